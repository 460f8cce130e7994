package webapi

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
)

// maxBody bounds a call's body; Slack's own limit is not published.
const maxBody = 4 << 20

var errArguments = errors.New("arguments are malformed")

// decode reads the arguments of a call as strings: JSON members that are no strings keep their JSON
// text, null counts as absent. The token may stand in the header or among the arguments; it is not
// left among them.
func decode(w http.ResponseWriter, r *http.Request) (args map[string]string, token string, err error) {
	args = map[string]string{}
	for k, v := range r.URL.Query() {
		args[k] = v[0]
	}
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	switch kind {
	case "application/json":
		err = decodeJSON(r.Body, args)
	case "multipart/form-data":
		if err = r.ParseMultipartForm(maxBody); err == nil {
			fill(args, r.MultipartForm.Value)
		}
	default:
		if err = r.ParseForm(); err == nil {
			fill(args, r.PostForm)
		}
	}
	token = args["token"]
	delete(args, "token")
	if h := r.Header.Get("Authorization"); len(h) > 7 && strings.EqualFold(h[:7], "Bearer ") {
		token = strings.TrimSpace(h[7:])
	}
	return args, token, err
}

func fill(args map[string]string, form map[string][]string) {
	for k, v := range form {
		if len(v) > 0 {
			args[k] = v[0]
		}
	}
}

func decodeJSON(body io.Reader, args map[string]string) error {
	raw, err := io.ReadAll(body)
	if err != nil {
		return errArguments
	}
	if len(strings.TrimSpace(string(raw))) == 0 {
		return nil
	}
	var m map[string]json.RawMessage
	if err := json.Unmarshal(raw, &m); err != nil {
		return errArguments
	}
	for k, v := range m {
		var s string
		switch {
		case string(v) == "null":
		case json.Unmarshal(v, &s) == nil:
			args[k] = s
		default:
			args[k] = string(v)
		}
	}
	return nil
}

// stringList reads a list that may be JSON or separated by commas.
func stringList(s string) []string {
	var l []string
	if json.Unmarshal([]byte(s), &l) == nil {
		return l
	}
	for p := range strings.SplitSeq(s, ",") {
		if p = strings.TrimSpace(p); p != "" {
			l = append(l, p)
		}
	}
	return l
}
