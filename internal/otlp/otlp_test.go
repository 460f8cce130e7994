package otlp

import (
	"bytes"
	"net/http"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

func TestCollector(t *testing.T) {
	c := Start()
	defer c.Close()
	body, err := proto.Marshal(&collector.ExportTraceServiceRequest{ResourceSpans: []*trace.ResourceSpans{{ScopeSpans: []*trace.ScopeSpans{{Spans: []*trace.Span{{Name: "command"}}}}}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		path, kind string
		body       []byte
		code       int
	}{
		{"/v1/traces", "application/x-protobuf", body, 200},
		{"/v1/metrics", "application/x-protobuf", body, 404},
		{"/v1/traces", "application/json", body, 404},
		{"/v1/traces", "application/x-protobuf", []byte("\xff\xff\xff"), 400},
	} {
		resp, err := http.Post(c.URL+tc.path, tc.kind, bytes.NewReader(tc.body))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != tc.code {
			t.Errorf("%s %s: %d, want %d", tc.path, tc.kind, resp.StatusCode, tc.code)
		}
	}
	spans, bad := c.Spans()
	if len(spans) != 1 || spans[0].Name != "command" || len(bad) != 3 || !c.Holds("command") || c.Holds("other") {
		t.Errorf("got %v, %v", spans, bad)
	}
}
