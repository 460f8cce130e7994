package term

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ghostbot/agent"
	"ghostbot/bot/show"
)

func TestWrap(t *testing.T) {
	tests := []struct {
		in    string
		width int
		hard  bool
		want  []string
	}{
		{"", 10, false, []string{""}},
		{"one two three", 7, false, []string{"one two", "three"}},
		{"one two three", 8, false, []string{"one two", "three"}},
		{"/a/path/that/is/long now", 8, false, []string{"/a/path/that/is/long", "now"}},
		{"abcdefghij", 4, true, []string{"abcd", "efgh", "ij"}},
		{"ab abcdefghij", 4, true, []string{"ab", "abcd", "efgh", "ij"}},
		{"日本語です", 4, true, []string{"日本", "語で", "す"}},
		{"日", 1, true, []string{"日"}}, // one rune has room
		{"a\tb", 20, false, []string{"a    b"}},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, wrap(tt.in, tt.width, tt.hard)); diff != "" {
			t.Errorf("wrap(%q, %d, %v): %s", tt.in, tt.width, tt.hard, diff)
		}
	}
}

// FuzzWrap: nothing but blanks is lost, and hard parts fit.
func FuzzWrap(f *testing.F) {
	f.Add("one two three", 7)
	f.Add("日本語 です 🙂🙂🙂", 4)
	f.Add("\u0301\u200b", 2)
	f.Fuzz(func(t *testing.T, text string, width int) {
		width = 2 + abs(width)%80
		text = show.OneLine(text)
		parts := wrap(text, width, true)
		for _, p := range parts {
			if columns().StringWidth(p) > width {
				t.Errorf("%q is wider than %d", p, width)
			}
		}
		if got, want := strings.ReplaceAll(strings.Join(parts, ""), " ", ""), strings.ReplaceAll(text, " ", ""); got != want {
			t.Errorf("wrap(%q, %d) = %q", text, width, parts)
		}
	})
}

func abs(n int) int {
	if n < 0 {
		return -(n + 1)
	}
	return n
}

// Every line of a box has its width, whatever is in it, and all of the command is
// there.
func TestBoxHoldsEverything(t *testing.T) {
	c := &show.CardView{
		Command: "az network route-table route update --name " + strings.Repeat("x", 300) + " --next-hop-ip 192.0.2.5", Risk: "mutative\x1b[2J", Why: "日本語 mixed\u202e text",
		Timeout: time.Minute, Expires: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Withdraw: time.Date(2026, 1, 2, 3, 0, 5, 0, time.UTC),
		Needed: 2, AuditID: "ghost_20260102_030405_007", Digest: strings.Repeat("ab", 32), Target: "rt-1", Effect: "changes a route",
	}
	for _, width := range []int{minWidth, 72, maxWidth} {
		got := cardBox(c, width)
		if strings.ContainsAny(got, "\x1b\u202e") {
			t.Errorf("terminal sequences in a box: %q", got)
		}
		var flat strings.Builder
		for _, l := range strings.Split(strings.TrimSuffix(got, "\n"), "\n") {
			if columns().StringWidth(l) != width {
				t.Errorf("width %d of %q, want %d", columns().StringWidth(l), l, width)
			}
			flat.WriteString(strings.ReplaceAll(strings.Trim(l, "│"), " ", ""))
		}
		for _, want := range []string{"TIER:–", strings.Repeat("x", 300), "expiresat03:04:05UTC", "withdrawnat03:00:05UTC", "2differentpeople", "ghost_20260102_030405_007", "[A]pprove"} {
			if !strings.Contains(flat.String(), want) {
				t.Errorf("width %d: %q is missing in\n%s", width, want, got)
			}
		}
	}
}

func TestLetters(t *testing.T) {
	o := func(labels ...string) (out []agent.Option) {
		for _, l := range labels {
			out = append(out, agent.Option{Key: l, Label: l})
		}
		return out
	}
	tests := []struct {
		options []agent.Option
		want    string
	}{
		{o("Report now", "10 more turns"), "[R] Report now   [M] 10 more turns"},
		{o("Continue anyway", "Fresh case", "Abort"), "[C] Continue anyway   [F] Fresh case   [A] Abort"},
		{o("Leave it", "Leave all"), "[L] Leave it   [E] Leave all"},
		{o("123", "456"), "[1] 123   [2] 456"},
		{o("a", "a"), "[A] a   [2] a"},
	}
	for _, tt := range tests {
		if got := options(tt.options); got != tt.want {
			t.Errorf("options = %q, want %q", got, tt.want)
		}
	}
}

func TestDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{0: "0s", 4500 * time.Millisecond: "5s", 512 * time.Second: "8m 32s", 3 * time.Hour: "180m 0s"} {
		if got := duration(d); got != want {
			t.Errorf("duration(%s) = %q, want %q", d, got, want)
		}
	}
}
