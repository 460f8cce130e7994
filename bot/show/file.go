package show

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"ghostbot/agent"
	"ghostbot/safeexec"
)

// plotsMost bounds the pictures of a case that are shown, outputsMost the outputs that
// are added as files.
const (
	plotsMost   = 8
	outputsMost = 40
)

// Pictures are what the product's analysis draws, by the ends of their names.
var Pictures = []string{"throughput", "rtt", "sequence", "ladder"}

// titles are the same for people.
var titles = map[string]string{"throughput": "Throughput", "rtt": "Round-trip times", "sequence": "One TCP stream", "ladder": "One exchange, packet by packet"}

// draws reports whether a command is the product's analysis of a capture with pictures.
// No other program's file is taken for a picture, whatever its name: nothing looks into one for
// credentials. Of programs that are given by a path the policy lets the product's own alone run without a
// person, so that its class tells whose it was, also after the binary has moved.
func draws(p safeexec.Proposal) bool {
	return p.Class == safeexec.Safe && len(p.Argv) > 2 && filepath.IsAbs(p.Argv[0]) && p.Argv[1] == "pcap" && slices.Contains(p.Argv, "--plots")
}

// keepPlots notes the pictures that a command left: the report comes with them.
func (s *Fold) keepPlots(r safeexec.Result) {
	if !s.drawing[r.AuditID] {
		return
	}
	for _, a := range r.Artefacts {
		name := strings.TrimSuffix(a.Path[strings.LastIndexByte(a.Path, '/')+1:], ".age") // encrypted, and read so
		stem, of := strings.CutSuffix(name, ".png")
		kind := stem[strings.LastIndexByte(stem, '_')+1:]
		if !of || a.SHA256 == "" || len(s.plots) == plotsMost || !slices.Contains(Pictures, kind) {
			continue
		}
		if !slices.ContainsFunc(s.plots, func(v PlotView) bool { return v.SHA256 == a.SHA256 }) {
			s.plots = append(s.plots, PlotView{Name: name, SHA256: a.SHA256, Title: titles[kind] + ", of " + OneLine(strings.TrimSuffix(stem, "_"+kind))})
		}
	}
}

// said is what a command printed, for people: standard error behind what it put out.
func said(r safeexec.Result) string {
	out, bad := strings.TrimRight(r.Output, "\n"), strings.TrimRight(r.Stderr, "\n")
	switch {
	case strings.TrimSpace(bad) == "":
		return out
	case strings.TrimSpace(out) == "":
		return bad
	}
	return out + "\n--- standard error ---\n" + bad
}

// output adds what a command printed as a file, when a card shows less of it.
func (s *Fold) output(e agent.Entry, c *CardView, r safeexec.Result, state string) {
	n := 0
	for _, m := range s.order {
		if m.Output != nil {
			n++
		}
	}
	if n == outputsMost {
		c.File = false
		return
	}
	of := c.AuditID[strings.LastIndexByte(c.AuditID, '_')+1:]
	body := fmt.Sprintf("Command  %s\nResult   %s\nEntry    %s\nWhat follows is what the journal has: credentials masked, long output shortened.\n\n%s\n", c.Command, state, c.AuditID, said(r))
	s.add(Message{Key: "output/" + of, Entry: e.N, Kind: KindFile, Text: "Output of " + c.Command,
		Output: &OutputView{AuditID: c.AuditID, Title: "Output of entry " + c.AuditID, Text: body}})
}

// firstLines are the first n lines of a text; cut tells that there is more.
func firstLines(text string, n int) (first string, cut bool) {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if cut = len(lines) > n; cut {
		lines = append(lines[:n], fmt.Sprintf("… %d more lines in the journal", len(lines)-n))
	}
	out := strings.Join(lines, "\n")
	if r := []rune(out); len(r) > 1200 {
		out, cut = string(r[:1200])+"…", true
	}
	return out, cut
}
