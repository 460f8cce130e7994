package redact

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// rows reads one file of the regression data beside the module.
func rows[T any](t *testing.T, name string) (out []T) {
	t.Helper()
	f, err := os.Open(filepath.Join("..", "..", "..", "shared", "vectors", name))
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("regression data: %v", err)
		}
		t.Skipf("regression data is not beside the module: %v", err)
	}
	defer f.Close()
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<24)
	for sc.Scan() {
		var r T
		if err := json.Unmarshal(sc.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		out = append(out, r)
	}
	return out
}

// text is a string or a list of strings.
type texts []string

func (t *texts) UnmarshalJSON(b []byte) error {
	if b[0] == '"' {
		*t = make(texts, 1)
		return json.Unmarshal(b, &(*t)[0])
	}
	return json.Unmarshal(b, (*[]string)(t))
}

type snippet struct {
	ID       string `json:"id"`
	Kind     string `json:"kind"`
	Text     string `json:"text"`
	Secrets  texts  `json:"secrets"`
	Joined   texts  `json:"joined"`
	Keep     texts  `json:"keep"`
	Arguable bool   `json:"arguable"`
}

var unseen = regexp.MustCompile("\x1b\\[[0-?]*[ -/]*[@-~]|\x1b[@-Z\\\\-_]|[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]")

// TestCorpus measures recall, cleanness, false alarms and subscription ids
// over the regression data, against the bars.
func TestCorpus(t *testing.T) {
	r := New(Options{})
	var secret, gone, clean, benign, same, subs, subsOK int
	for _, x := range rows[snippet](t, "redaction.jsonl") {
		res := r.Redact(x.Text)
		ok := true
		for _, s := range x.Secrets {
			ok = ok && !strings.Contains(res.Text, s)
		}
		for _, s := range x.Joined {
			ok = ok && !strings.Contains(unseen.ReplaceAllString(res.Text, ""), s)
		}
		kept := true
		for _, s := range x.Keep {
			kept = kept && strings.Contains(res.Text, s)
		}
		switch {
		case x.Kind == "subscription-id":
			subs++
			if ok && kept {
				subsOK++
			} else {
				t.Errorf("%s: %q", x.ID, res.Text)
			}
		case len(x.Secrets) > 0:
			if x.Arguable {
				if !ok || !kept {
					t.Logf("arguable %s: %.300q", x.ID, res.Text)
				}
				continue
			}
			secret++
			if ok {
				gone++
			}
			if ok && kept {
				clean++
			} else {
				t.Logf("%s (gone %v kept %v): %.700q", x.ID, ok, kept, res.Text)
			}
		default:
			benign++
			if res.Text == x.Text {
				same++
			} else {
				t.Logf("%s: %.300q", x.ID, res.Text)
			}
		}
	}
	bar(t, "recall", gone, secret, 99)
	bar(t, "clean", clean, secret, 98)
	bar(t, "benign unchanged", same, benign, 99.5)
	bar(t, "subscription ids", subsOK, subs, 100)
}

func bar(t *testing.T, what string, got, total int, least float64) {
	t.Helper()
	pct := 100 * float64(got) / float64(total)
	t.Logf("%s: %d of %d (%.1f %%)", what, got, total, pct)
	if total == 0 || pct < least {
		t.Errorf("%s: %.1f %%, want at least %.1f %%", what, pct, least)
	}
}

// A case is a row of the comparable shell's own tests.
type redactCase struct {
	Stage      string   `json:"stage"`
	Kind       string   `json:"kind"`
	Source     string   `json:"source"`
	Input      string   `json:"input"`
	Not        []string `json:"must_not_contain"`
	Must       []string `json:"must_contain"`
	Categories []string `json:"categories"`
	Count      int      `json:"count"`
}

// deviations are inputs of those rows for which this package answers
// otherwise, with the reason.
var deviations = map[string]string{
	"bearer abc": "what is not masked stays as it is, the case of the word too",
	"Data Source=x;Initial Catalog=y;Password=z": "of a connection string only the secret parts are masked: server and database are worth more in an incident",
}

// TestShellCases agrees with every row of stage redact, or has a reason not to.
// The rows of stage anonymize and pipeline are about the package's callers.
func TestShellCases(t *testing.T) {
	r := New(Options{})
	used := map[string]bool{}
	n := 0
	for _, c := range rows[redactCase](t, "safeexec_redact.jsonl") {
		if c.Stage != "redact" {
			continue
		}
		n++
		if deviations[c.Input] != "" {
			used[c.Input] = true
			continue
		}
		res := r.Redact(c.Input)
		for _, s := range c.Not {
			if strings.Contains(res.Text, s) {
				t.Errorf("%s: %q: %q is left in %q", c.Kind, c.Input, s, res.Text)
			}
		}
		for _, s := range c.Must {
			if !strings.Contains(res.Text, s) {
				t.Errorf("%s: %q: %q is missing in %q", c.Kind, c.Input, s, res.Text)
			}
		}
		want := slices.Sorted(slices.Values(c.Categories))
		if c.Categories != nil && !slices.Equal(want, res.Categories) {
			t.Errorf("%s: %q: categories %v, want %v", c.Kind, c.Input, res.Categories, want)
		}
		if c.Count > 0 && c.Count != res.Count {
			t.Errorf("%s: %q: %d masks, want %d", c.Kind, c.Input, res.Count, c.Count)
		}
	}
	if n < 40 {
		t.Errorf("only %d rows", n)
	}
	for in := range deviations {
		if !used[in] {
			t.Errorf("no row has the input %q any more", in)
		}
	}
}
