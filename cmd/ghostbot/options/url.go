package options

import (
	"fmt"
	"net/url"
)

// URL refuses a variable that holds no web address: whoever is to be asked there would
// be waited for without an end. What it holds is not said, it may have a password in it.
func URL(name, value string) error {
	u, err := url.Parse(value)
	if value == "" || err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https") {
		return nil
	}
	return fmt.Errorf("%s: what it holds is not accepted (accepted: a URL that begins with https:// or http://)", name)
}
