package gemini

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/txtar"
)

// Recorder writes what a client and a real model say to each other as a script,
// which a [Server] can play later. Keys are scrubbed: no header is kept, requests
// are reduced to what they must have, and wherever a key stands in a response it
// is replaced.
type Recorder struct {
	Next http.RoundTripper
	Keys []string

	mu     sync.Mutex
	models []string
	files  []txtar.File
	n      int
}

// RoundTrip implements [http.RoundTripper].
func (r *Recorder) RoundTrip(q *http.Request) (*http.Response, error) {
	var sent []byte
	if q.Body != nil {
		var err error
		if sent, err = io.ReadAll(q.Body); err != nil {
			return nil, err
		}
		q.Body.Close()
		q = q.Clone(q.Context())
		q.Body = io.NopCloser(bytes.NewReader(sent))
	}
	resp, err := r.Next.RoundTrip(q)
	if err != nil {
		return nil, err
	}
	got, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil {
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(got))
	if model, ok := strings.CutSuffix(q.URL.Path, ":generateContent"); ok {
		r.keep(model[strings.LastIndex(model, "/")+1:], sent, resp.StatusCode, got)
	}
	return resp, nil
}

func (r *Recorder) keep(model string, sent []byte, status int, got []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.n++
	if !slices.Contains(r.models, model) {
		r.models = append(r.models, model)
	}
	r.add("expect", expectation(sent))
	if status == http.StatusOK {
		r.add("answer", r.scrub(got))
		return
	}
	var e struct {
		Error struct{ Message string }
	}
	json.Unmarshal(got, &e)
	r.add("fault", r.scrub(fmt.Appendf(nil, "status %d\nmessage %s", status, strings.Join(strings.Fields(e.Error.Message), " "))))
}

func (r *Recorder) add(what string, data []byte) {
	r.files = append(r.files, txtar.File{Name: fmt.Sprintf("%d %s", r.n, what), Data: append(bytes.TrimSpace(data), '\n')})
}

// expectation is what must be true of a request that is like this one.
func expectation(sent []byte) []byte {
	var b bytes.Buffer
	var q request
	if json.Unmarshal(sent, &q) != nil || len(q.Contents) == 0 {
		return nil
	}
	for _, t := range q.Tools {
		for _, d := range t.FunctionDeclarations {
			fmt.Fprintf(&b, "tool %s\n", d.Name)
		}
	}
	fmt.Fprintf(&b, "contents %d\n", len(q.Contents))
	for _, f := range q.Contents[len(q.Contents)-1].responses() {
		for _, key := range []string{"status", "audit_id"} {
			if v, ok := f.Response[key].(string); ok && q.responds(f.Name+" "+key+"="+v) {
				fmt.Fprintf(&b, "response %s %s=%s\n", f.Name, key, v)
			}
		}
	}
	return b.Bytes()
}

// scrub replaces the keys.
func (r *Recorder) scrub(b []byte) []byte {
	for _, k := range r.Keys {
		if k != "" {
			b = bytes.ReplaceAll(b, []byte(k), []byte("[key]"))
		}
	}
	return b
}

// Script is what was recorded so far.
func (r *Recorder) Script() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := &txtar.Archive{Files: r.files}
	for _, m := range r.models {
		a.Comment = fmt.Appendf(a.Comment, "model %s\n", m)
	}
	return txtar.Format(a)
}
