package e2e

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"ghostbot/internal/otlp"
)

// TestOneTraceOverAKill: a case whose bot is killed in between is one trace on the
// wire, with a span for every command and decision of its journal; the log is JSON
// and leads to the entries; neither holds what was said or printed.
func TestOneTraceOverAKill(t *testing.T) {
	c := otlp.Start()
	defer c.Close()
	l := newLab(t, "OTEL_EXPORTER_OTLP_ENDPOINT="+c.URL, "OTEL_BSP_SCHEDULE_DELAY=50", "GHOST_LOG=json")
	l.run()
	service, _ := gateway(t)
	l.command("incidents", l.other(), "/ghost investigate checkout gets 502 from "+service+" since 10:40")
	l.find(caseLimit, "incidents", "checkout", "Approval needed: ")
	sid := l.sid("incidents", "checkout")
	l.until(caseLimit, "what is over by then is sent", func() bool { return spansOf(c, "run") == outcomes(l, sid) }) // a kill costs what was not sent yet
	first := l.log()
	l.kill()
	l.run()
	l.denyRest("incidents", "checkout")
	l.report("incidents", "checkout")
	l.closed(sid)
	l.stop()
	spans, bad := c.Spans()
	if len(bad) > 0 {
		t.Errorf("the collector was sent: %v", bad)
	}
	got, ids, traces := map[string]int{}, map[string]string{}, map[string]bool{}
	for _, s := range spans {
		traces[hex.EncodeToString(s.TraceId)] = true
		if ids[string(s.SpanId)] == "" {
			got[s.Name]++
		}
		ids[string(s.SpanId)] = s.Name
	}
	for _, s := range spans {
		if len(s.ParentSpanId) > 0 && ids[string(s.ParentSpanId)] == "" {
			t.Errorf("%s: its parent was not sent", s.Name)
		}
	}
	if len(traces) != 1 || got["case"] != 1 {
		t.Errorf("%d traces, %d roots, want one", len(traces), got["case"])
	}
	want := map[string]int{}
	for _, e := range l.journal(sid) {
		switch e.Kind {
		case "outcome":
			want["command"]++
		case "decided":
			want["approval"]++
		case "turn":
			want["brain"]++
			want[fmt.Sprintf("turn %d", want["brain"])]++
		}
	}
	for name, n := range want {
		if got[name] != n && !strings.HasPrefix(name, "turn ") || got[name] == 0 {
			t.Errorf("%s: %d spans, the journal says %d", name, got[name], n)
		}
	}
	checkJSONLog(t, l, first+l.log(), sid)
	for _, text := range []string{"bad gateway", "Connection refused", l.approver(0), l.slack.BotToken, l.slack.AppToken} {
		if c.Holds(text) {
			t.Errorf("%q was sent to the collector", text)
		}
	}
}

func spansOf(c *otlp.Collector, name string) (n int) {
	spans, _ := c.Spans()
	for _, s := range spans {
		if s.Name == name {
			n++
		}
	}
	return n
}

// outcomes are the ends of commands in a case's journal.
func outcomes(l *lab, sid string) (n int) {
	for _, e := range l.journal(sid) {
		if e.Kind == "outcome" {
			n++
		}
	}
	return n
}

// checkJSONLog: every line is JSON, each decision and each end of a command has one with the
// ids of its entry, and none holds tokens or what commands printed.
func checkJSONLog(t *testing.T, l *lab, log, sid string) {
	t.Helper()
	var logged []string
	for line := range strings.Lines(log) {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Errorf("no JSON: %s", line)
			continue
		}
		if m["session_id"] == sid && (m["msg"] == "decided" || m["msg"] == "command ended") {
			logged = append(logged, fmt.Sprint(m["audit_id"]))
		}
	}
	for _, e := range l.journal(sid) {
		id := fmt.Sprintf("%s_%03d", sid, e.N)
		if (e.Kind == "decided" || e.Kind == "outcome") && !slices.Contains(logged, id) {
			t.Errorf("%s %s has no line in the log", e.Kind, id)
		}
	}
	for _, text := range []string{l.slack.BotToken, l.slack.AppToken, "bad gateway"} {
		if strings.Contains(log, text) {
			t.Errorf("the log holds %q", text)
		}
	}
}
