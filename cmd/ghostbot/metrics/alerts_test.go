package metrics

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

const alerts = "../../../deploy/prometheus"

// TestAlertsAreAboutWhatThereIs: every name in the example's rules is a metric of the
// program, and every value of a label is one that it can have.
func TestAlertsAreAboutWhatThereIs(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(alerts, "alerts.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	m := newMetrics()
	descs := make(chan *prometheus.Desc, 1000)
	m.registry.Describe(descs)
	close(descs)
	names := map[string]bool{}
	for d := range descs {
		name, _, _ := strings.Cut(strings.TrimPrefix(d.String(), `Desc{fqName: "`), `"`)
		names[name] = true
	}
	exprs := regexp.MustCompile(`(?m)^ +expr: (.*)$`).FindAllStringSubmatch(string(text), -1)
	if len(exprs) < 10 {
		t.Fatalf("%d rules", len(exprs))
	}
	values := slices.Concat([]string{"ok", "error", "taken_over", "new", forApproval, forAnswer, investigating, "commit", "renew", "outcome_unknown"})
	for _, list := range [][]string{decisions, troubles, classes} {
		for _, v := range list {
			values = append(values, known(v, list))
		}
	}
	for _, e := range exprs {
		found := regexp.MustCompile(`ghostbot_\w+`).FindAllString(e[1], -1)
		if len(found) == 0 {
			t.Errorf("%s is about nothing of ours", e[1])
		}
		for _, name := range found {
			if base := regexp.MustCompile(`_(bucket|count|sum)$`).ReplaceAllString(name, ""); !names[name] && !names[base] {
				t.Errorf("%s is no metric", name)
			}
		}
		for _, l := range regexp.MustCompile(`\w+(?:=|!=|=~)"([^"]*)"`).FindAllStringSubmatch(e[1], -1) {
			for v := range strings.SplitSeq(l[1], "|") {
				if !slices.Contains(values, v) {
					t.Errorf("%s: no label has the value %q", e[1], v)
				}
			}
		}
	}
}

// TestRulesWork lets promtool check and try the rules.
func TestRulesWork(t *testing.T) {
	out, err := exec.Command("../../../scripts/promtool", "path").Output()
	promtool := strings.TrimSpace(string(out))
	if err != nil || promtool == "" {
		if os.Getenv("CI") == "true" {
			t.Fatalf("there is no promtool: %v", err)
		}
		t.Skip("there is no promtool: scripts/promtool unpacks it")
	}
	for _, args := range [][]string{{"check", "rules", "alerts.yaml"}, {"test", "rules", "alerts_test.yaml"}} {
		cmd := exec.Command(promtool, args...)
		cmd.Dir = alerts
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", args, err, out)
		}
	}
	cmd := exec.Command(promtool, "check", "metrics")
	cmd.Stdin = strings.NewReader(told(t))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("the page: %v: %s", err, out)
	}
}

// told is the page after a case.
func told(t *testing.T) string {
	t.Helper()
	m := newMetrics()
	m.Opened(sid)
	play(m, false, story()...)
	return page(t, m)
}

// TestPageParses reads the page as Prometheus does.
func TestPageParses(t *testing.T) {
	p := expfmt.NewTextParser(model.UTF8Validation)
	families, err := p.TextToMetricFamilies(strings.NewReader(told(t)))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ghostbot_cases", "ghostbot_approvals_total", "ghostbot_approval_duration_seconds", "ghostbot_commands_total", "ghostbot_denials_total",
		"ghostbot_model_tokens_total", "ghostbot_model_cost_usd_total", "ghostbot_journal_lag_entries", "ghostbot_journal_write_age_seconds", "ghostbot_slack_connected", "ghostbot_ready"} {
		if f := families[name]; f == nil || len(f.Metric) == 0 || f.GetHelp() == "" {
			t.Errorf("%s is not on the page, or without help", name)
		}
	}
}
