package slacksim_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"testing"
)

// post sends JSON; headers are name, value pairs. A body that is no JSON object is returned under
// "raw".
func post(t testing.TB, url string, body any, headers ...string) (int, map[string]any) {
	t.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	return send(t, http.MethodPost, url, raw, append([]string{"Content-Type", "application/json"}, headers...)...)
}

func get(t testing.TB, url string, headers ...string) (int, map[string]any) {
	t.Helper()
	return send(t, http.MethodGet, url, nil, headers...)
}

func send(t testing.TB, method, url string, body []byte, headers ...string) (int, map[string]any) {
	t.Helper()
	req, err := http.NewRequest(method, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i] == "Host" {
			req.Host = headers[i+1]
			continue
		}
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if json.Unmarshal(got, &out) != nil {
		out = map[string]any{"raw": string(got)}
	}
	return res.StatusCode, out
}

// list is GET of a JSON array.
func list(t testing.TB, url string) []map[string]any {
	t.Helper()
	_, out := get(t, url)
	var l []map[string]any
	if err := json.Unmarshal([]byte(out["raw"].(string)), &l); err != nil {
		t.Fatalf("%s: %v in %v", url, err, out)
	}
	return l
}
