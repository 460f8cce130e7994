package gemini

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"ghostbot/agent"
)

// fence sets text apart that somebody else wrote. Its marker is made of things
// that whoever writes an output does not know (the delivery that opened the case
// and the nanosecond of its first entry), and is the same wherever the case is
// continued. Should a text contain it all the same, it is broken there.
type fence struct{ marker string }

func fenceOf(c agent.Case) fence {
	sum := sha256.Sum256(fmt.Appendf(nil, "fence\x00%s\x00%s\x00%d\x00%s\x00%s", c.SessionID, c.Opened.Delivery, c.CreatedAt.UnixNano(), c.Opened.Origin, c.Symptom))
	return fence{hex.EncodeToString(sum[:6])}
}

// data is a text with the fence around it.
func (f fence) data(text string) string {
	return "<<data " + f.marker + ">>\n" + f.clean(text) + "\n<<end " + f.marker + ">>"
}

// optional is data for a text that may be empty.
func (f fence) optional(text string) string {
	if text == "" {
		return ""
	}
	return f.data(text)
}

// clean breaks the marker wherever it stands in a text.
func (f fence) clean(text string) string { return strings.ReplaceAll(text, f.marker, "[marker]") }

// tree is a JSON value in which no text contains the marker.
func (f fence) tree(v any) any {
	switch v := v.(type) {
	case string:
		return f.clean(v)
	case []any:
		for i := range v {
			v[i] = f.tree(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = f.tree(v[k])
		}
	}
	return v
}
