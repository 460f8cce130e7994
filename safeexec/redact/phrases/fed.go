package phrases

import (
	"cmp"
	"strconv"
	"strings"

	"ghostbot/safeexec/redact/scan"
)

// fed masks the secret of the last name:secret between the start of the line
// that holds i and its last bar.
func (s *Phrases) fed(i int, c scan.Category) {
	start := max(0, i-2*maxName)
	start += strings.LastIndexByte(s.T[start:i], '\n') + 1
	bar := strings.LastIndexByte(s.T[start:i], '|')
	k := strings.LastIndexByte(s.T[start:start+max(bar, 0)], ':')
	if k < 0 || bar-k > maxName {
		return
	}
	v := s.ValueAt(start + k + 1)
	if head := s.Head(v); v.End <= start+bar && len(head) > 3 && !s.Harmless(scan.Label{}, v, head) {
		s.Mask(v.Start, v.End, c)
	}
}

// echoed masks the last word between echo or printf and the bar in front of the
// command at i.
func (s *Phrases) echoed(i int, c scan.Category) {
	start := max(0, i-2*maxName)
	start += strings.LastIndexByte(s.T[start:i], '\n') + 1
	bar := start + max(strings.LastIndexByte(s.T[start:i], '|'), 0)
	fed := strings.TrimRight(s.T[start:bar], " ")
	end := start + len(fed)
	from := max(strings.LastIndex(fed, "echo "), strings.LastIndex(fed, "printf "))
	if from < 0 {
		return
	}
	at := start + strings.LastIndexByte(fed, ' ') + 1
	if q := fed[len(fed)-1]; q == '\'' || q == '"' {
		end--
		at = start + strings.LastIndexByte(fed[:len(fed)-1], q) + 1
	}
	if v := strings.TrimSuffix(s.T[min(at, end):end], "\\n"); at > start+from && len(v) > 2 && scan.MarkAt(v) == 0 && v[0] != '$' && v[0] != '-' && !scan.Empty(v) {
		s.Mask(at, at+len(v), c)
	}
}

// bulks masks the last of the bulk strings behind AUTH in a Redis command as it is on the
// wire (RESP, https://redis.io/docs/latest/develop/reference/protocol-spec/), its
// line ends raw, written as \r\n, or as the dots of a packet dump.
func (s *Phrases) bulks(i int, c scan.Category) int {
	secret, end := -1, -1
	for range 2 { // a user's name may stand in front
		at := s.lineEnds(cmp.Or(max(end, 0), i))
		if at >= len(s.T) || s.T[at] != '$' {
			break
		}
		digits := at + 1
		for digits < min(at+5, len(s.T)) && s.T[digits] >= '0' && s.T[digits] <= '9' {
			digits++
		}
		n, err := strconv.Atoi(s.T[at+1 : digits])
		from := s.lineEnds(digits)
		if err == nil && from < len(s.T) && scan.MarkAt(s.T[from:]) > 0 {
			return -1 // it is masked, and its length no longer what it says
		}
		if err != nil || n == 0 || from == digits || from+n > len(s.T) {
			break
		}
		secret, end = from, from+n
	}
	if secret < 0 {
		return -1
	}
	s.phraseDone = end
	s.Mask(secret, end, c)
	return end
}

// lineEnds is where the line ends at i, in any of their spellings, end.
func (s *Phrases) lineEnds(i int) int {
	for stop := i + 16; i < min(stop, len(s.T)); {
		switch w := s.Peek(i, 4); {
		case w[0] == '\r' || w[0] == '\n' || strings.HasPrefix(w, ".."):
			i++
		case w[0] == '.' && i > 0 && s.T[i-1] == '.':
			i++
		case strings.HasPrefix(w, `\r`) || strings.HasPrefix(w, `\n`):
			i += 2
		case w == `\x0d` || w == `\x0a`:
			i += 4
		default:
			return i
		}
	}
	return i
}

// accessRules masks what follows > and <, and the digests behind # and !, among the
// rules of a Redis user (https://redis.io/docs/latest/commands/acl-setuser/).
func (s *Phrases) accessRules(i int, c scan.Category) {
	stop := min(s.LineEnd(i), i+maxSearch)
	rules := false
	for at := i; at < stop; {
		at = s.Blanks(at)
		end := s.PlainWord(at)
		if end == at {
			return
		}
		w := s.T[at:end]
		rules = rules || w == "on" || w == "off" || w == "reset" || w == "resetpass"
		if rules && len(w) > 3 && (w[0] == '>' || w[0] == '<' || (w[0] == '#' || w[0] == '!') && hexKey(w[1:])) && scan.MarkAt(w[1:]) == 0 {
			s.Mask(at+1, end, c)
		}
		at = end
	}
}
