package memory

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ghostbot/agent"
	"ghostbot/agent/recall"
	"ghostbot/audit"
	"ghostbot/bot"
	"ghostbot/bot/show"
	"ghostbot/cmd/ghostbot/keyring"
	"ghostbot/store"
	"ghostbot/store/file"
)

// past is a state directory with closed cases.
type past struct {
	t   testing.TB
	db  *file.DB
	dir string
}

func newPast(t testing.TB) *past {
	t.Helper()
	db, err := file.Open(t.TempDir(), file.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return &past{t: t, db: db, dir: t.TempDir()}
}

func (p *past) options(change ...func(*Options)) Options {
	o := Options{DB: p.db, Ring: p.ring(nil), Scope: Channel}
	for _, f := range change {
		f(&o)
	}
	return o
}

func (p *past) ring(keys []audit.Key) *keyring.Ring {
	p.t.Helper()
	r, err := keyring.New(p.dir, keys)
	if err != nil {
		p.t.Fatal(err)
	}
	return r
}

func id(n int) string { return fmt.Sprintf("ghost_20260101_%06d", n) }

var day = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func (p *past) index(n int, symptom, summary, channel string, closed bool) bot.CaseInfo {
	return bot.CaseInfo{SessionID: id(n), Opening: bot.Opening{Symptom: symptom, Place: bot.Place{Transport: "slack", Channel: channel}},
		CreatedAt: day, Closed: closed, ClosedAt: day.Add(time.Duration(n) * time.Hour), Verdict: "root_cause", Summary: summary}
}

func (p *past) put(infos ...bot.CaseInfo) {
	p.t.Helper()
	for len(infos) > 0 {
		some := infos[:min(len(infos), 200)]
		infos = infos[len(some):]
		var c store.Commit
		c.Scope = store.Deployment
		for _, i := range some {
			data, err := json.Marshal(i)
			if err != nil {
				p.t.Fatal(err)
			}
			c.Writes = append(c.Writes, store.Write{Key: store.Key{Scope: store.Deployment, Name: "case/" + i.SessionID}, Data: data})
		}
		if err := p.db.Commit(context.Background(), c); err != nil {
			p.t.Fatal(err)
		}
	}
}

// closed makes a whole closed case: value, journals, report file.
func (p *past) closed(n int, symptom, cause, channel string) {
	p.t.Helper()
	p.put(p.index(n, symptom, cause, channel, true))
	ctx := context.Background()
	log, err := audit.Open(ctx, audit.Options{Dir: p.dir, SID: id(n), Fence: 1})
	if err != nil {
		p.t.Fatal(err)
	}
	defer log.Close()
	md := []byte("# report of " + id(n))
	sum := sha256.Sum256(md)
	for _, e := range []struct {
		kind string
		body any
	}{
		{"opened", agent.Opened{Symptom: symptom}},
		{"concluded", agent.Conclusion{EndedBy: "brain"}},
		{show.KindOfReport, show.Report{Title: "Root cause found", Verdict: "root_cause", Confidence: "high", Summary: cause, Causes: []agent.Cause{{Statement: cause}}, Gaps: []string{"a", "b"}, SHA256: hex.EncodeToString(sum[:])}},
	} {
		if _, _, err := log.Journal(audit.Case).Append(ctx, e.kind, e.body); err != nil {
			p.t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(p.dir, "ghost_rca_"+id(n)+".md"), md, 0o600); err != nil {
		p.t.Fatal(err)
	}
}

func mine(symptom string) bot.CaseInfo {
	return bot.CaseInfo{SessionID: "ghost_20260314_104512", Opening: bot.Opening{Symptom: symptom, Place: bot.Place{Transport: "slack", Channel: "C1"}}}
}

func ids(rs []agent.Recalled) string {
	var out []string
	for _, r := range rs {
		out = append(out, strings.TrimLeft(r.SessionID[len("ghost_20260101_"):], "0"))
	}
	return strings.Join(out, " ")
}

// TestRecall: the likeliest and newest closed cases of the channel, as their journals
// tell them.
func TestRecall(t *testing.T) {
	p := newPast(t)
	for n := 1; n <= 4; n++ {
		p.closed(n, "checkout gets 502 from 192.0.2.7:8080", "Nothing listens on 192.0.2.7:8081.", "C1")
	}
	p.closed(5, "checkout gets 502 from 192.0.2.7:8080", "secret of another channel", "C2")
	p.closed(6, "mail is slow at mail.example.com", "The queue is full.", "C1")
	p.put(p.index(7, "checkout gets 502 from 192.0.2.7:8080", "", "C1", false)) // open
	sweep := p.index(9, "checkout gets 502 from 192.0.2.7:8080", "", "C1", true)
	sweep.Opening.Kind = agent.KindSweep
	p.put(sweep)
	c := mine("192.0.2.7:8080 answers 502 again")
	got, err := p.options().Recall(t.Context(), c)
	if err != nil || ids(got) != "4 3 2" {
		t.Fatalf("%s, %v", ids(got), err)
	}
	r := got[0]
	if r.Verdict != "root_cause" || r.Confidence != "high" || r.Gaps != 2 || len(r.Head) != 32 || r.Note != "" || len(r.Causes) != 1 || r.Causes[0] != "Nothing listens on 192.0.2.7:8081." ||
		r.Symptom != "checkout gets 502 from 192.0.2.7:8080" || !r.ClosedAt.Equal(day.Add(4*time.Hour)) || !strings.Contains(r.Why, "same target 192.0.2.7 port 8080") || r.Points < recall.Enough {
		t.Errorf("%+v", r)
	}
	if v := audit.Verify(p.dir, r.SessionID, audit.VerifyOptions{Head: r.Head}); !v.OK {
		t.Errorf("the head is not of that case: %s", v.Why)
	}
	if got, err := p.options(func(o *Options) { o.Scope = Off }).Recall(t.Context(), c); len(got) != 0 || err != nil {
		t.Errorf("off: %v, %v", got, err)
	}
	got, err = p.options(func(o *Options) {
		o.Scope, o.Clean = Deployment, func(s string) string { return strings.ReplaceAll(s, "secret", "[hidden]") }
	}).Recall(t.Context(), c)
	if err != nil || ids(got) != "5 4 3" || got[0].Causes[0] != "[hidden] of another channel" || got[0].Summary != "[hidden] of another channel" {
		t.Errorf("deployment: %s, %v, %+v", ids(got), err, got[:1])
	}
	c.Opening.From = id(4)
	if got, _ := p.options().Recall(t.Context(), c); ids(got) != "3 2 1" {
		t.Errorf("the case that it takes the place of is recalled: %s", ids(got))
	}
	if got, err := p.options().Recall(t.Context(), mine("printer is out of paper")); len(got) != 0 || err != nil {
		t.Errorf("nothing is alike: %v, %v", got, err)
	}
}

// TestRecallFromDamagedFiles: a case whose journals were changed, lost or grew too
// long tells nothing; one whose report was changed says so; a value that promises
// another likeness than the journals is not believed.
func TestRecallFromDamagedFiles(t *testing.T) {
	p := newPast(t)
	for n := 1; n <= 6; n++ {
		p.closed(n, "checkout gets 502 from 192.0.2.7:8080", "Nothing listens.", "C1")
	}
	name := func(n int, journal string) string { return filepath.Join(p.dir, audit.FileName(id(n), journal)) }
	b, _ := os.ReadFile(name(6, audit.Case))
	os.WriteFile(name(6, audit.Case), []byte(strings.Replace(string(b), "Nothing listens", "Nothing lisTens", 1)), 0o600)
	os.Remove(name(5, audit.Case))
	os.Truncate(name(4, audit.Case), maxJournals+1)
	os.WriteFile(filepath.Join(p.dir, "ghost_rca_"+id(3)+".md"), []byte("other"), 0o600)
	os.Remove(filepath.Join(p.dir, "ghost_rca_"+id(2)+".md"))
	p.put(p.index(7, "checkout gets 502 from 192.0.2.7:8080", "x", "C1", true))
	p.closed(8, "mail is slow", "x", "C1")
	p.put(p.index(8, "checkout gets 502 from 192.0.2.7:8080", "x", "C1", true))
	got, err := p.options().Recall(t.Context(), mine("checkout gets 502 from 192.0.2.7:8080"))
	if ids(got) != "3" || got[0].Note != "its report file is not what its journal says" { // 8 7 6 5 4 were looked at first
		t.Errorf("%s %+v", ids(got), got)
	}
	for _, want := range []string{id(7), id(6), id(5), id(4)} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s is left out without a word: %v", want, err)
		}
	}
	if r, err := p.options().read(id(2)); err != nil || r.Note != "its report file is missing" {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := p.options(func(o *Options) { o.Ring = p.ring([]audit.Key{{ID: "k", Secret: make([]byte, 32)}}) }).read(id(2)); err == nil {
		t.Error("journals without a MAC are taken although there is a key")
	}
}

func TestRecallOfABrokenStore(t *testing.T) {
	p := newPast(t)
	if _, err := p.db.Put(t.Context(), store.Key{Scope: store.Deployment, Name: "case/" + id(1)}, []byte("[1]"), store.Absent); err != nil {
		t.Fatal(err)
	}
	if _, err := p.options().Recall(t.Context(), mine("x")); err == nil || !strings.Contains(err.Error(), id(1)) {
		t.Errorf("%v", err)
	}
	ctx, end := context.WithCancel(t.Context())
	end()
	if _, err := p.options().Recall(ctx, mine("x")); err == nil {
		t.Error("an ended context is no error")
	}
}

func TestCheck(t *testing.T) {
	for scope, ok := range map[string]bool{Channel: true, Deployment: true, Off: true, "": false, "all": false} {
		if err := Check(scope); (err == nil) != ok {
			t.Errorf("%q: %v", scope, err)
		}
	}
}

// TestLike: what the list of cases --like shows.
func TestLike(t *testing.T) {
	p := newPast(t)
	for n, s := range []string{"Timeout to db.example.com:5432 from checkout", "checkout returns 502", "ping to 192.0.2.7 is slow", ""} {
		p.put(p.index(n+1, s, "", "C1", n == 1))
	}
	for _, tc := range []struct{ like, want string }{
		{id(1), "1 2"}, // itself, and "checkout" is shared
		{id(3), "3"},
		{id(4), ""}, // there is nothing to be like
		{id(9), ""},
		{"timeout", "1"},
		{"TIMEOUT!", "1"},
		{"192.0.2.7", "3"},
		{"(192.0.2.7),", "3"},
		{"db.example.com port 5432", "1"},
		{"returns, perhaps, timeout", "1 2"},
		{"nothing-such", ""},
		{"...", ""},
	} {
		list, err := Like(t.Context(), p.db, tc.like)
		if err != nil || list == nil {
			t.Fatalf("%q: %v, %v", tc.like, list, err)
		}
		var got []string
		for _, l := range list {
			got = append(got, l.SessionID[len(l.SessionID)-1:])
			if l.Like == nil || l.Like.Points < recall.Listed || len(l.Like.Reasons) == 0 {
				t.Errorf("%q: %+v", tc.like, l.Like)
			}
		}
		if strings.Join(got, " ") != tc.want {
			t.Errorf("%q: got %v, want %q", tc.like, got, tc.want)
		}
	}
}

// BenchmarkRecall is what a new case waits for, after people see it, behind 5,000
// closed cases on a disk; BenchmarkLike is the list of ghostbot cases --like.
func BenchmarkRecall(b *testing.B) {
	p := manyCases(b, 5000)
	b.ReportAllocs()
	for b.Loop() {
		got, err := p.options().Recall(b.Context(), mine("checkout gets 502 from host17.example.com:8003"))
		if err != nil || len(got) != 3 {
			b.Fatal(got, err)
		}
	}
}

func BenchmarkLike(b *testing.B) {
	p := manyCases(b, 5000)
	b.ReportAllocs()
	for b.Loop() {
		got, err := Like(b.Context(), p.db, "checkout gets 502 from host17.example.com:8003")
		if err != nil || len(got) != maxListed {
			b.Fatal(len(got), err)
		}
	}
}

func manyCases(b *testing.B, n int) *past {
	p := newPast(b)
	var infos []bot.CaseInfo
	for i := range n {
		infos = append(infos, p.index(i, fmt.Sprintf("checkout %d gets 502 from host%d.example.com:%d since 10:40, users see errors", i%50, i%300, 8000+i%7), "Nothing listens on 192.0.2.7:81.", "C1", true))
	}
	p.put(infos...)
	for i := n - 30; i < n; i++ {
		p.closed(i, "checkout gets 502 from host17.example.com:8003", "Nothing listens on 192.0.2.7:81.", "C1")
	}
	return p
}
