package policy_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"ghostbot/triage/model"
	"ghostbot/triage/policy"
	"ghostbot/triage/proc"
	"ghostbot/triage/scan"
)

func record(names ...string) *scan.Record {
	return &scan.Record{Identity: proc.Identity{PID: 4711, UID: 1000}, PPID: 1, Names: names, AgeS: 3600}
}

func TestProtected(t *testing.T) {
	p, err := policy.Parse([]byte(`{"guardrails":{"protected_patterns":["^zz-special$",{"pattern":"data-*","kind":"glob"},{"pattern":"Exact","kind":"literal"},{"pattern":"fold","kind":"literal","case_insensitive":true}],"protected_users":["1001"],"never_kill_ppid":[77]}}`))
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		r    *scan.Record
		want bool
	}{
		{"ordinary", record("worker"), false},
		{"by executable", record("nginx", "x"), true},
		{"by comm or argv", record("python3", "redis-server"), true},
		{"a word in it", record("redis-notes.txt"), false},
		{"longer", record("nginx-exporter"), false},
		{"glob of the list", record("systemd-udevd"), true},
		{"glob of the list, shim", record("containerd-shim-runc-v2"), true},
		{"pattern", record("zz-special"), true},
		{"pattern, longer", record("zz-special2"), false},
		{"glob", record("data-loader"), true},
		{"literal", record("exact"), false},
		{"literal, folded", record("FOLD"), true},
		{"orphan", record("sleep"), false},
	}
	for _, tt := range tests {
		if why := p.Protected(tt.r); (why != "") != tt.want {
			t.Errorf("%s: %q", tt.name, why)
		}
	}
	for name, change := range map[string]func(*scan.Record){
		"process 1": func(r *scan.Record) { r.PID = 1 }, "own": func(r *scan.Record) { r.Own = "this program" }, "login": func(r *scan.Record) { r.LoginChain = true },
		"user": func(r *scan.Record) { r.UID = 1001 }, "parent": func(r *scan.Record) { r.PPID = 77 },
	} {
		r := record("worker")
		change(r)
		if p.Protected(r) == "" {
			t.Errorf("%s is not protected", name)
		}
	}
}

func TestRootIsProtectedWhenThePolicySaysSo(t *testing.T) {
	r := record("worker")
	r.UID = 0
	for value, want := range map[string]bool{`"auto"`: false, "false": false, "true": true, `"true"`: true} {
		p, err := policy.Parse([]byte(`{"guardrails":{"protect_root":` + value + `}}`))
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Protected(r) != ""; got != want {
			t.Errorf("%s: %v", value, got)
		}
	}
}

func TestCrossUID(t *testing.T) {
	tests := []struct {
		mine, theirs int
		allow, want  bool
	}{{0, 1000, false, true}, {1000, 1000, false, true}, {1000, 0, false, false}, {1000, 1001, false, false}, {1000, 0, true, true}}
	for _, tt := range tests {
		p := policy.Default()
		p.Guardrails.AllowCrossUID = tt.allow
		r := record("worker")
		r.UID = tt.theirs
		why := p.CrossUID(r, tt.mine)
		if (why == "") != tt.want || why != "" && !strings.HasPrefix(why, "privilege_blocked") {
			t.Errorf("%+v: %q", tt, why)
		}
	}
}

// A policy that cannot be understood completely is refused.
func TestBrokenPoliciesAreRefused(t *testing.T) {
	for _, bad := range []string{
		"{", `{"guardrails":{"protected_pattern":["x"]}}`, `{"guardrail":{}}`, `{"guardrails":{"protect_root":"maybe"}}`, `{"guardrails":{"protected_patterns":["("]}}`, `{"guardrails":{"protected_patterns":[""]}}`,
		`{"guardrails":{"protected_patterns":[{"pattern":"x","kind":"sound"}]}}`, `{"guardrails":{"protected_patterns":[{"patern":"x"}]}}`, `{"robot_mode":{"min_posterior":0}}`, `{"robot_mode":{"min_posterior":1.1}}`,
		`{"guardrails":{"min_process_age_seconds":-1}}`, `{"guardrails":{"max_kills_per_hour":-1}}`, `{"fdr":{"method":"bh"}}`, `{"losses":{"kill":[1,2,3,-4]}}`,
		`{} {"guardrails":{"protected_patterns":["^x$"]}}`, `{"guardrails":{}}x`, `{"policy":{},"guardrails":{"protected_patterns":["^x$"]}}`, `{"policy":{}} {}`,
	} {
		if _, err := policy.Parse([]byte(bad)); !errors.Is(err, policy.ErrPolicy) {
			t.Errorf("%s: %v", bad, err)
		}
	}
	p := policy.Default()
	p.Guardrails.Users = []string{"nobody-we-know"}
	if err := p.Resolve("root:x:0:0::/:/bin/sh\n"); !errors.Is(err, policy.ErrPolicy) {
		t.Errorf("unknown user: %v", err)
	}
	p.Guardrails.Users = []string{"root", "7"}
	if err := p.Resolve("root:x:0:0::/:/bin/sh\n"); err != nil || p.Guardrails.Users[0] != "0" || p.Guardrails.Users[1] != "7" {
		t.Errorf("%v, %v", p.Guardrails.Users, err)
	}
}

func TestDefaultsAreCautious(t *testing.T) {
	p := policy.Default()
	if p.Robot.Enabled || p.Robot.MinPosterior != 0.99 || p.Attended.MinPosterior != 0.5 || p.Guardrails.MinAge != 300 || p.Guardrails.KillsPerRun != 5 || p.Guardrails.KillsPerMinute != 3 || p.Guardrails.KillsPerHour != 20 || p.Guardrails.KillsPerDay != 50 {
		t.Errorf("%+v", p)
	}
	if !p.Young(&scan.Record{AgeS: 299}) || p.Young(&scan.Record{AgeS: 300}) || !p.Review(record("kube-proxy")) || p.Review(record("worker")) {
		t.Error("age or review is wrong")
	}
	if wrapped, err := policy.Parse([]byte(`{"policy":{"robot_mode":{"enabled":true}},"note":"x"}`)); err != nil || !wrapped.Robot.Enabled || wrapped.Robot.MinPosterior != 0.99 {
		t.Errorf("wrapped: %+v, %v", wrapped, err)
	}
}

// The hash is the SHA-256 of the effective configuration, equal across runs.
func TestStatement39TheConfigHashIsOfTheEffectiveConfig(t *testing.T) {
	a, b := policy.Default(), policy.Default()
	pr := model.DefaultPriors()
	if h := a.Hash(pr); len(h) != 64 || h != b.Hash(model.DefaultPriors()) {
		t.Errorf("%s and %s", h, b.Hash(pr))
	}
	c, err := policy.Parse([]byte(`{"guardrails":{"min_process_age_seconds":300}}`))
	if err != nil || c.Hash(pr) != a.Hash(pr) {
		t.Errorf("the same value written out has another hash: %v", err)
	}
	c.Guardrails.MinAge = 301
	if c.Hash(pr) == a.Hash(pr) {
		t.Error("another policy has the same hash")
	}
	pr.CapNats = 4
	if a.Hash(pr) == b.Hash(model.DefaultPriors()) {
		t.Error("other priors have the same hash")
	}
	if again, err := json.Marshal(a); err != nil || strings.Contains(string(again), "null") {
		t.Errorf("%s, %v", again, err)
	}
}
