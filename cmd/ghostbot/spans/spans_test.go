package spans

import (
	"encoding/hex"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"

	"ghostbot/agent"
	"ghostbot/cmd/ghostbot/observe"
	"ghostbot/internal/otlp"
	"ghostbot/orchestrator"
	"ghostbot/safeexec"
)

const sid = "ghost_20260314_104512"

var begin = time.Date(2026, 3, 14, 10, 45, 12, 0, time.UTC)

// start makes Spans that send to a collector on the wire.
func start(t *testing.T, c *otlp.Collector) *Spans {
	t.Helper()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", c.URL)
	s, err := New(t.Context(), Options{Version: "1", Log: slog.New(slog.DiscardHandler), Clean: func(s string) string { return strings.ReplaceAll(s, "SECRET", "[REDACTED]") }})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

type line struct {
	kind string
	body any
}

// story is a case of one probe, one command that was approved, one that was denied, a
// question and a capture; an entry a second.
func story() []line {
	zero := 0
	id := func(n int) string { return fmt.Sprintf("%s_%03d", sid, n) }
	return []line{
		{"opened", agent.Opened{Brain: "playbook/0a", Policy: "p1", Symptom: "WORDS"}},                                                                           // 1
		{"turn", agent.TurnEntry{Turn: 1, Text: "WORDS"}},                                                                                                        // 2
		{"proposed", safeexec.Proposal{Class: safeexec.Safe, Display: "ss -ltn", Program: "/usr/bin/ss", Rule: "ss", Turn: 1, Reasoning: "WORDS"}},               // 3
		{"intent", safeexec.Intent{AuditID: id(3)}},                                                                                                              // 4
		{"outcome", safeexec.Result{AuditID: id(3), Classification: safeexec.Safe, Status: "completed", ExitCode: &zero, Output: "WORDS"}},                       // 5
		{"proposed", safeexec.Proposal{Class: safeexec.Risky, Display: "tcpdump -w SECRET", Program: "/usr/bin/tcpdump", Rule: "tcpdump", Turn: 1, Effect: "W"}}, // 6
		{"decided", safeexec.Decided{AuditID: id(6), Decision: "APPROVED", By: "U0PERSON"}},                                                                      // 7
		{"intent", safeexec.Intent{AuditID: id(6)}},                                                                                                              // 8
		{"outcome", safeexec.Result{AuditID: id(6), Classification: safeexec.Risky, Status: "error", Error: "timeout", Stderr: "WORDS"}},                         // 9
		{"turn", agent.TurnEntry{Turn: 2, Usage: &agent.Usage{Prompt: 10, Output: 3}}},                                                                           // 10
		{"proposed", safeexec.Proposal{Class: safeexec.Risky, Display: "curl", Turn: 2}},                                                                         // 11
		{"decided", safeexec.Decided{AuditID: id(11), Decision: "DENIED", Reason: "WORDS"}},                                                                      // 12
		{"outcome", safeexec.Result{AuditID: id(11), Status: "denied", DenialReason: "WORDS"}},                                                                   // 13
		{"question", agent.Question{ID: "q1", Kind: "extend", Text: "WORDS"}},                                                                                    // 14
		{"answer", agent.AnswerEntry{ID: "q1", Answer: agent.Answer{Key: "yes", By: "U0PERSON"}}},                                                                // 15
		{"task", orchestrator.Task{TaskID: "t1", State: orchestrator.Waiting, Target: "WORDS"}},                                                                  // 16
		{"task", orchestrator.Task{TaskID: "t1", State: orchestrator.Complete}},                                                                                  // 17
		{"task", orchestrator.Task{TaskID: "t1", State: orchestrator.Done}},                                                                                      // 18
		{"concluded", agent.Conclusion{EndedBy: "brain", Complete: agent.Complete{Verdict: "root_cause", Summary: "WORDS"}}},                                     // 19
	}
}

func show(s *Spans, from, to int, past bool) {
	for i, l := range story()[:to] {
		if i >= from {
			s.Entry(observe.NewEntry(observe.Entry{SessionID: sid, ID: fmt.Sprintf("%s_%03d", sid, i+1), Kind: l.kind, Time: begin.Add(time.Duration(i) * time.Second), Past: past}, l.body))
		}
	}
}

// want is the trace of the story: parent/name from-to, in seconds.
var want = []string{
	"/case 0-18", "case/capture 15-16", "case/question 13-14", "case/turn 1 0-9", "case/turn 2 8-18",
	"command/approval 10-11", "command/approval 5-6", "command/run 3-4", "command/run 7-8",
	"turn 1/brain 0-1", "turn 1/command 2-4", "turn 1/command 5-8", "turn 2/brain 8-9", "turn 2/command 10-12",
}

// tree describes the spans, each once, and checks that they are one trace.
func tree(t *testing.T, spans []*trace.Span) []string {
	t.Helper()
	names, out := map[string]string{}, map[string]bool{}
	for _, s := range spans {
		names[string(s.SpanId)] = s.Name
	}
	trace := TraceID(sid)
	for _, s := range spans {
		if !slices.Equal(s.TraceId, trace[:]) {
			t.Errorf("%s is in trace %s", s.Name, hex.EncodeToString(s.TraceId))
		}
		parent, known := names[string(s.ParentSpanId)]
		if len(s.ParentSpanId) > 0 && !known {
			t.Errorf("%s: its parent was not sent", s.Name)
		}
		at := func(ns uint64) int { return int(time.Unix(0, int64(ns)).Sub(begin) / time.Second) }
		out[fmt.Sprintf("%s/%s %d-%d", parent, s.Name, at(s.StartTimeUnixNano), at(s.EndTimeUnixNano))] = true
	}
	var lines []string
	for l := range out {
		lines = append(lines, l)
	}
	slices.Sort(lines)
	return lines
}

func TestOneTraceOnTheWire(t *testing.T) {
	c := otlp.Start()
	defer c.Close()
	s := start(t, c)
	s.Opened(sid)
	show(s, 0, len(story()), false)
	s.Closed(sid)
	s.Close()
	spans, bad := c.Spans()
	if diff := cmp.Diff(want, tree(t, spans)); diff != "" || len(bad) > 0 || len(spans) != len(want) {
		t.Errorf("%d spans, %v; want (-), got (+):\n%s", len(spans), bad, diff)
	}
	for _, text := range []string{"WORDS", "SECRET", "U0PERSON"} {
		if c.Holds(text) {
			t.Errorf("%s was sent", text)
		}
	}
	for _, text := range []string{"ss -ltn", "[withheld]", "ghostbot.rule", "timeout", sid, "service.version"} {
		if !c.Holds(text) {
			t.Errorf("%s was not sent", text)
		}
	}
}

// Whenever a process dies and another goes on, the spans of both are the one trace.
func TestReplicasGoOnWithOneTrace(t *testing.T) {
	for n := 1; n < len(story()); n++ {
		c := otlp.Start()
		first := start(t, c)
		first.Opened(sid)
		show(first, 0, n, false)
		first.Close()
		second := start(t, c)
		second.Opened(sid)
		show(second, 0, n, true)
		show(second, n, len(story()), false)
		second.Close()
		spans, _ := c.Spans()
		if diff := cmp.Diff(want, tree(t, spans)); diff != "" {
			t.Errorf("taken over after entry %d: want (-), got (+):\n%s", n, diff)
		}
		c.Close()
	}
}

// A collector that is away, refuses or hangs costs spans only.
func TestNoCollector(t *testing.T) {
	c := otlp.Start()
	s := start(t, c)
	c.Close()
	begun := time.Now()
	s.Opened(sid)
	for range 500 {
		show(s, 0, len(story()), false)
	}
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("a case waited %s", took)
	}
	s.Close()
}

// Entries that fit nothing end nothing, and bodies of other forms are passed over.
func TestOddEntries(t *testing.T) {
	c := otlp.Start()
	defer c.Close()
	s := start(t, c)
	show(s, 0, len(story()), false) // a case that is not held
	s.Opened(sid)
	for _, kind := range []string{"turn", "proposed", "decided", "intent", "outcome", "question", "answer", "task", "unknown", ""} {
		for _, body := range []any{nil, 7, "text", []int{1}, map[string]any{"audit_id": 3}} {
			s.Entry(observe.NewEntry(observe.Entry{SessionID: sid, ID: "x", Kind: kind, Time: begin}, body))
		}
	}
	s.Entry(observe.NewEntry(observe.Entry{SessionID: sid, ID: "x", Kind: "concluded", Time: begin}, agent.Conclusion{}))
	s.Close()
	spans, _ := c.Spans()
	for _, sp := range spans {
		if sp.EndTimeUnixNano < sp.StartTimeUnixNano {
			t.Errorf("%s ends before it begins", sp.Name)
		}
	}
	if len(spans) == 0 || spans[len(spans)-1].Name != "case" {
		t.Errorf("the root is missing: %v", spans)
	}
}
