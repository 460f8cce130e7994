// Package otlp is a collector of traces on loopback, for tests: it takes what the
// OTLP exporters send over HTTP and decodes it with OpenTelemetry's own types.
package otlp

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Collector keeps every span that it was sent.
type Collector struct {
	URL string // for OTEL_EXPORTER_OTLP_ENDPOINT

	srv   *httptest.Server
	mu    sync.Mutex
	spans []*trace.Span
	raw   []byte
	bad   []string
}

// limit is how long one request may be, in bytes.
const limit = 16 << 20

// Start listens on a free port of loopback.
func Start() *Collector {
	c := &Collector{}
	c.srv = httptest.NewServer(http.HandlerFunc(c.take))
	c.URL = c.srv.URL
	return c
}

// Close ends it.
func (c *Collector) Close() { c.srv.Close() }

func (c *Collector) take(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, limit))
	var req collector.ExportTraceServiceRequest
	if err == nil {
		err = proto.Unmarshal(body, &req)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case r.URL.Path != "/v1/traces" || r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/x-protobuf":
		c.bad = append(c.bad, r.Method+" "+r.URL.Path+" "+r.Header.Get("Content-Type"))
		http.NotFound(w, r)
		return
	case err != nil:
		c.bad = append(c.bad, err.Error())
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c.raw = append(c.raw, body...)
	for _, rs := range req.ResourceSpans {
		for _, ss := range rs.ScopeSpans {
			c.spans = append(c.spans, ss.Spans...)
		}
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
}

// Spans are what came so far, and what was no export of traces.
func (c *Collector) Spans() (spans []*trace.Span, bad []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]*trace.Span(nil), c.spans...), append([]string(nil), c.bad...)
}

// Holds reports whether a text was sent anywhere, resources included.
func (c *Collector) Holds(text string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Contains(string(c.raw), text)
}
