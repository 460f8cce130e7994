package redact

import (
	"strings"

	"ghostbot/safeexec/redact/scan"
	"ghostbot/safeexec/redact/shape"
)

// minFragment is the length from which a piece of token beside a cut is taken
// for one; maxCuts how many edges of a text are looked at.
const (
	minFragment = 24
	maxCuts     = 1000
)

// edges are how a text begins that a truncation left.
var edges = []string{"[truncated", "...", "…", "\n[truncated", "[...]", "\n...", "... [", "\n[..."}

// edge says whether t is the end of a text, or of what a truncation left of it.
func edge(t string) bool {
	for _, e := range edges {
		if strings.HasPrefix(t, e) {
			return true
		}
	}
	return t == ""
}

// atCut says whether the text at i is an edge.
func (s *scanner) atCut(i int) bool { return edge(s.T[i:]) }

// cut handles the edges of a truncation: a piece of a token directly before or
// behind it is masked, as is the end of a known value. The trigger is a word
// of the message; its brackets, or the word itself, are the message.
func (s *scanner) cut(a, b int) {
	if s.cuts++; s.cuts > maxCuts {
		return
	}
	t := s.T
	from, to := a, b
	if t[a] != '[' && t[a] != '<' {
		i := strings.LastIndexByte(t[max(0, a-48):a], '[')
		if i < 0 {
			return
		}
		from = max(0, a-48) + i
	}
	if c := t[b-1]; c != ']' && c != '>' {
		n := strings.IndexByte(s.Peek(b, 80), ']')
		if n < 0 {
			return
		}
		to = b + n + 1
	}
	s.fragmentBefore(from)
	s.fragmentAfter(to)
}

// beside skips what may stand between a piece and the message.
var beside = shape.NewSet(" \t\r\n.\"")

// fragmentBefore masks a piece of token that ends before i.
func (s *scanner) fragmentBefore(i int) {
	end := beside.Start(s.T, i, i-8)
	start := shape.SetToken.Start(s.T, end, 0)
	if n := strings.LastIndexByte(strings.TrimRight(s.T[start:end], "="), '='); n >= 0 { // the end of a label
		start += n + 1
	}
	s.fragment(start, end)
}

// fragmentAfter masks a piece of token that begins behind i.
func (s *scanner) fragmentAfter(i int) {
	i = beside.End(s.T, i, i+8)
	s.fragment(i, shape.SetToken.End(s.T, i, len(s.T)))
	if k := s.known; k != nil {
		s.Mask(i, i+k.tail(s.T[i:]), scan.Known)
	}
}

// fragment masks t[start:end] when it is random.
func (s *scanner) fragment(start, end int) {
	v := s.T[start:min(end, start+scan.GuardLen)]
	if len(v) >= minFragment && shape.Random(v) {
		s.Mask(start, end, scan.Cut)
	}
}

// echoed are commands whose text is hint enough where it stands before what they
// printed.
var echoed = []string{"keyvault secret show", "get-access-token", "keys list", "list-keys", "shared-key show", "get-secret-value", "vault read", "vault kv get"}
