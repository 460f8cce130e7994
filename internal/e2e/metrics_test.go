package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// page is what the bot answers on the operators' port.
func page(t testing.TB, addr, path string) (int, string) {
	t.Helper()
	resp, err := http.Get("http://" + addr + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// families reads a page of metrics, and holds it against the rules of Prometheus.
func families(t testing.TB, addr string) map[string]*dto.MetricFamily {
	t.Helper()
	code, text := page(t, addr, "/metrics")
	if code != 200 {
		t.Fatalf("/metrics: %d %s", code, text)
	}
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "ghostbot_") {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	fs, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return fs
}

// values are the samples of one family, by their labels: counters and gauges as they
// are, histograms by the number of what was observed.
func values(f *dto.MetricFamily) map[string]float64 {
	out := map[string]float64{}
	for _, m := range f.GetMetric() {
		var labels []string
		for _, l := range m.GetLabel() {
			labels = append(labels, l.GetName()+"="+l.GetValue())
		}
		v := m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		out[strings.Join(labels, ",")] = v
	}
	return out
}

// TestMetricsSayWhatTheJournalSays: a real case, and every number about it is what can
// be counted in its journals; names and forms keep Prometheus's rules; no label holds
// anything of the case.
func TestMetricsSayWhatTheJournalSays(t *testing.T) {
	addr := deadPort(t)
	l := newLab(t, "GHOST_HEALTH_ADDR="+addr)
	l.run()
	l.until(5*time.Second, "the bot is ready", func() bool { code, _ := page(t, addr, "/readyz"); return code == 200 })
	if code, text := page(t, addr, "/healthz"); code != 200 || text != "ok\n" {
		t.Errorf("/healthz: %d %s", code, text)
	}
	service, upstream := gateway(t)
	l.command("incidents", l.other(), "/ghost investigate checkout gets 502 from "+service+" since 10:40")
	card := l.find(caseLimit, "incidents", "checkout", "Approval needed: ")
	if got := values(families(t, addr)["ghostbot_cases"])["state=awaiting_approval"]; got != 1 {
		t.Errorf("cases that wait for an approval: %v, want 1", got)
	}
	l.deny("incidents", l.approver(0), card.TS)
	l.denyRest("incidents", "checkout")
	l.report("incidents", "checkout")
	sid := l.sid("incidents", "checkout")
	l.closed(sid)
	l.until(5*time.Second, "the case is given up", func() bool {
		sum := 0.0
		for _, v := range values(families(t, addr)["ghostbot_cases"]) {
			sum += v
		}
		return sum == 0
	})
	fs := families(t, addr)
	want := countJournal(t, l.journal(sid))
	for name, labels := range want {
		got := values(fs[name])
		for label, n := range labels {
			if got[label] != n {
				t.Errorf("%s{%s}: %v, the journal says %v", name, label, got[label], n)
			}
		}
		for label, n := range got {
			if labels[label] != n {
				t.Errorf("%s{%s}: %v, the journal says %v", name, label, n, labels[label])
			}
		}
	}
	for _, name := range []string{"ghostbot_build_info", "ghostbot_slack_connected", "ghostbot_journal_lag_entries", "ghostbot_store_operation_duration_seconds",
		"ghostbot_brain_turn_duration_seconds", "ghostbot_slack_requests_total", "ghostbot_lease_operations_total", "go_goroutines", "process_open_fds"} {
		if fs[name] == nil {
			t.Errorf("%s is missing", name)
		}
	}
	_, text := page(t, addr, "/metrics")
	for _, secret := range []string{sid, sid[len("ghost_"):], service, upstream, l.approver(0), l.other(), l.chans["incidents"], l.slack.BotToken, "checkout", "curl"} {
		if strings.Contains(text, secret) {
			t.Errorf("the metrics name %q", secret)
		}
	}
	l.stop()
}

// countJournal counts what the metrics have to say about one case.
func countJournal(t *testing.T, es []entry) map[string]map[string]float64 {
	t.Helper()
	out := map[string]map[string]float64{"ghostbot_cases_taken_total": {}, "ghostbot_cases_concluded_total": {}, "ghostbot_approvals_total": {}, "ghostbot_commands_total": {}, "ghostbot_denials_total": {}, "ghostbot_journal_entries_total": {}}
	add := func(name, label string) { out["ghostbot_"+name][label]++ }
	for _, e := range es {
		var b struct {
			EndedBy  string `json:"ended_by"`
			Decision string `json:"decision"`
			Status   string `json:"status"`
			Action   string `json:"action"`
			Class    string `json:"classification"`
			Error    string `json:"error"`
			Reason   string `json:"denial_reason"`
			Exit     *int   `json:"exit_code"`
		}
		if err := json.NewDecoder(bytes.NewReader(e.Body)).Decode(&b); err != nil {
			continue // a body without these members
		}
		add("journal_entries_total", "journal="+e.Journal)
		switch e.Kind {
		case "opened":
			add("cases_taken_total", "kind=new")
		case "concluded":
			add("cases_concluded_total", "ended_by="+b.EndedBy)
		case "decided":
			add("approvals_total", "outcome="+strings.ToLower(b.Decision))
		case "outcome":
			outcome := b.Error
			switch {
			case b.Status == "denied":
				outcome = "denied"
				reason := "person"
				if slices.Contains([]string{"expired", "stopped", "withdrawn", "superseded"}, b.Reason) {
					reason = b.Reason
				}
				add("denials_total", "reason="+reason)
			case b.Status == "completed" && b.Exit != nil && *b.Exit == 0:
				outcome = "completed"
			case b.Status == "completed":
				outcome = "failed"
			}
			add("commands_total", fmt.Sprintf("class=%s,outcome=%s", strings.ToLower(b.Class), outcome))
		}
	}
	return out
}
