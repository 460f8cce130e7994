// Package spans makes one OpenTelemetry trace of each case: what the journals say
// about time, as a picture. It is a watcher of package observe, and off unless an
// endpoint is named.
//
// # Spans
//
//	case                    from "opened" to "concluded"; the root
//	  turn N                from the question to the brain until the next one
//	    brain               until the brain has answered
//	    command             from "proposed" to "outcome"
//	      approval          from "proposed" to "decided"
//	      run               from "intent" to "outcome"
//	  question              from "question" to "answer"
//	  capture               from a task's first entry to its last state
//
// A span is sent when it is over, with the times of its entries. Ids are digests of
// the case and the entry, so that a replica that takes a case up goes on with the same
// trace, and a span that two replicas send is one span. A case that is being
// investigated has no root yet: tools show its spans all the same.
//
// # What is in them
//
// Classes, rules, states, results, times, the ids of entries. A command's text is in
// its span when redaction finds nothing in it, and withheld otherwise. Outputs,
// words of people and models, and ids of people are in none.
package spans

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"
	api "go.opentelemetry.io/otel/trace"
)

// Options build Spans.
type Options struct {
	Version string
	Clean   func(string) string // removes credentials
	Log     *slog.Logger
}

// Spans makes traces. Use New, and Close to send what is left.
type Spans struct {
	o        Options
	provider *trace.TracerProvider
	tracer   api.Tracer

	mu    sync.Mutex
	cases map[string]*history
}

const (
	sendTime  = 5 * time.Second
	queueSize = 4096
)

// New sends traces to where the environment says (OTEL_EXPORTER_OTLP_ENDPOINT and its
// companions). Nothing is sent before the first span is over; a collector that is away
// costs spans, never a case its time.
func New(ctx context.Context, o Options) (*Spans, error) {
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithTimeout(sendTime))
	if err != nil {
		return nil, fmt.Errorf("traces: %w", err)
	}
	res, err := resource.New(ctx, resource.WithAttributes(attribute.String("service.name", "ghostbot"), attribute.String("service.version", o.Version)),
		resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil {
		o.Log.Warn("the environment's resource of traces is not whole", "err", err)
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { o.Log.Warn("traces are not sent", "err", err) }))
	p := trace.NewTracerProvider(trace.WithResource(res), trace.WithIDGenerator(ids{}), trace.WithSampler(trace.AlwaysSample()),
		trace.WithBatcher(exporter, trace.WithMaxQueueSize(queueSize), trace.WithExportTimeout(sendTime)))
	return &Spans{o: o, provider: p, tracer: p.Tracer("ghostbot"), cases: map[string]*history{}}, nil
}

// Close sends what is left, for five seconds at most.
func (s *Spans) Close() {
	ctx, done := context.WithTimeout(context.Background(), sendTime)
	defer done()
	if err := s.provider.Shutdown(ctx); err != nil {
		s.o.Log.Warn("the last traces are not sent", "err", err)
	}
}

// digest is what ids are made of.
func digest(parts ...string) [32]byte {
	h := sha256.New()
	fmt.Fprint(h, "ghostbot-trace-v1\n")
	for _, p := range parts {
		fmt.Fprintf(h, "%q\n", p)
	}
	return [32]byte(h.Sum(nil))
}

// TraceID is the trace of a case.
func TraceID(sid string) api.TraceID {
	d := digest(sid)
	return api.TraceID(d[:16])
}

// spanID is the id of one span of a case; "" is its root.
func spanID(sid, name string) api.SpanID {
	d := digest(sid, name)
	return api.SpanID(d[16:24])
}

// ids gives spans the ids that their context holds.
type ids struct{}

type idKey struct{}

type idPair struct {
	trace api.TraceID
	span  api.SpanID
}

// NewIDs implements [trace.IDGenerator].
func (ids) NewIDs(ctx context.Context) (api.TraceID, api.SpanID) {
	p, _ := ctx.Value(idKey{}).(idPair)
	return p.trace, p.span
}

// NewSpanID implements [trace.IDGenerator].
func (ids) NewSpanID(ctx context.Context, _ api.TraceID) api.SpanID {
	p, _ := ctx.Value(idKey{}).(idPair)
	return p.span
}

// span is one span that is over.
type span struct {
	sid, name  string // name tells it from all others of the case; "" is the root
	shown      string
	parent     string // name of the parent
	kind       api.SpanKind
	from, to   time.Time
	bad        string // what went wrong; "" nothing
	attributes []attribute.KeyValue
}

// send makes a span of what is over.
func (s *Spans) send(x span) {
	ctx := context.WithValue(context.Background(), idKey{}, idPair{TraceID(x.sid), spanID(x.sid, x.name)})
	if x.name != "" {
		ctx = api.ContextWithRemoteSpanContext(ctx, api.NewSpanContext(api.SpanContextConfig{
			TraceID: TraceID(x.sid), SpanID: spanID(x.sid, x.parent), TraceFlags: api.FlagsSampled, Remote: true,
		}))
	}
	if x.to.Before(x.from) { // clocks of two machines
		x.to = x.from
	}
	_, sp := s.tracer.Start(ctx, x.shown, api.WithTimestamp(x.from), api.WithSpanKind(x.kind),
		api.WithAttributes(append(x.attributes, attribute.String("ghostbot.session_id", x.sid))...))
	if x.bad != "" {
		sp.SetStatus(codes.Error, x.bad)
	}
	sp.End(api.WithTimestamp(x.to))
}
