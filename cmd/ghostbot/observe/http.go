package observe

import (
	"bytes"
	"io"
	"net/http"
	"path"
	"sync"
	"time"
)

// Call is one request of the Web API that is over.
type Call struct {
	Method  string // last element of the path, as in chat.postMessage; of any form
	Status  int    // 0: there was no answer
	Refused bool   // the answer came, and its JSON begins with a no
	Took    time.Duration
}

// peek is how much of an answer is looked at: Slack's begin with {"ok":...
const peek = 64

// Transport carries HTTP requests and tells of each when its answer was read.
func Transport(next http.RoundTripper, seen func(Call)) http.RoundTripper {
	if next == nil {
		next = http.DefaultTransport
	}
	return &transport{next, seen}
}

type transport struct {
	next http.RoundTripper
	seen func(Call)
}

// RoundTrip implements [http.RoundTripper].
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	start := time.Now()
	method := path.Base(r.URL.Path)
	resp, err := t.next.RoundTrip(r)
	if err != nil {
		t.seen(Call{Method: method, Took: time.Since(start)})
		return resp, err
	}
	status := resp.StatusCode
	resp.Body = &body{ReadCloser: resp.Body, done: func(head []byte) {
		no := bytes.HasPrefix(bytes.Join(bytes.Fields(head), nil), []byte(`{"ok":false`))
		t.seen(Call{Method: method, Status: status, Refused: no, Took: time.Since(start)})
	}}
	return resp, nil
}

// body remembers how an answer begins, and tells when it is closed.
type body struct {
	io.ReadCloser
	head []byte
	once sync.Once
	done func(head []byte)
}

// Read implements [io.Reader].
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if room := peek - len(b.head); room > 0 {
		b.head = append(b.head, p[:min(n, room)]...)
	}
	return n, err
}

// Close implements [io.Closer].
func (b *body) Close() error {
	b.once.Do(func() { b.done(b.head) })
	return b.ReadCloser.Close()
}
