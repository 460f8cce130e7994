package safeexec

import (
	"strings"
	"testing"

	"ghostbot/safeexec/anonymize"
)

// What a command prints of the inside is hidden, what it was asked about stays,
// and a name in a brain's command is the real thing before anybody sees it.
func TestAnonymized(t *testing.T) {
	key := anonymize.Key([]byte("a secret of the installation"), sid)
	l := newLab(t, approve, func(o *Options) { o.Anonymizer = anonymize.New(key, "10.9.9.9 is slow") })
	l.program("uptime", `echo "via 10.0.0.1 and 10.9.9.9 and 10.0.0.1"; echo "10.0.0.2 failed" >&2`)
	l.program("frob", `echo "asked about $1 near 10.0.0.3"`)
	r := l.do(Request{Command: "uptime"})
	name := between(r.Output, "via ", " and")
	if !strings.HasPrefix(name, "[INTERNAL_IP_") || strings.Count(r.Output, name) != 2 || !strings.Contains(r.Output, "10.9.9.9") || strings.Contains(r.Stderr, "10.0.0.2") {
		t.Fatalf("output %q, stderr %q", r.Output, r.Stderr)
	}
	if !strings.Contains(string(r.Metadata), `"anonymization_applied":true`) {
		t.Errorf("metadata %s", r.Metadata)
	}
	r = l.do(Request{Command: "frob '" + name + "'"})
	if got := l.ppl.asked[0]; got.Display != "frob 10.0.0.1" || got.Argv[1] != "10.0.0.1" {
		t.Errorf("people were asked about %q %q", got.Display, got.Argv)
	}
	if !strings.HasPrefix(r.Output, "asked about 10.0.0.1 near [INTERNAL_IP_") {
		t.Errorf("output %q", r.Output)
	}
	r = l.do(Request{Argv: []string{"frob", name}})
	if r.Status != "completed" || l.ppl.asked[1].Argv[1] != "10.0.0.1" {
		t.Errorf("%+v", r)
	}
	asked := len(l.ppl.asked)
	r = l.do(Request{Command: "frob '[INTERNAL_IP_000000.000000]'"})
	if r.Error != "forbidden_command" || !strings.Contains(r.Detail, "look it up again") || len(l.ppl.asked) != asked {
		t.Errorf("an unknown name: %+v", r)
	}
	for _, e := range l.j.all() {
		if e.Kind == "outcome" && strings.Contains(string(e.Body), "10.0.0.3") {
			t.Errorf("the journal has %s", e.Body)
		}
	}
}

func between(s, a, b string) string {
	_, s, _ = strings.Cut(s, a)
	s, _, _ = strings.Cut(s, b)
	return s
}
