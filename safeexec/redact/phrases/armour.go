package phrases

import (
	"strings"

	"ghostbot/safeexec/redact/scan"
	"ghostbot/safeexec/redact/shape"
)

// KeyBegin masks a private key from its first line on: to the matching last
// line, or as long as there are lines that belong to a key. A block without an
// end is a block; so is one on a single line.
func (s *Phrases) KeyBegin(a, b int) {
	if a < s.keyDone {
		return
	}
	head := s.Peek(b, 64)
	dash := strings.Index(head, "----")
	if dash < 0 || !privateName(head[:dash]) {
		return
	}
	i := b + dash
	for i < len(s.T) && s.T[i] == '-' {
		i++
	}
	end := s.keyBody(i)
	if s.endLine(end) {
		end = s.afterDashes(end)
	}
	s.keyDone = end
	s.Mask(a, end, scan.PrivateKey)
	if head := s.Peek(max(0, a-maxPrefix), a-max(0, a-maxPrefix)); !s.endLine(end) && s.Newline(s.Blanks(end)) && strings.Trim(head[strings.LastIndexByte(head, '\n')+1:], " \t") != "" {
		s.prefixed(end)
	}
}

// Bounds of the lines of a key that each have something before them: how many
// there are, how long one is, and how long what stands before the key.
const (
	maxPrefixed = 256
	maxLine     = 512
	maxPrefix   = 200
)

// prefixed masks the last word of each of the lines below i for as long as it
// belongs to a key, as in a log that puts a time before every line. The text may
// be the rest of a longer one: a short word is one only before the last line.
func (s *Phrases) prefixed(i int) {
	t := s.T
	for range maxPrefixed {
		from := i + strings.IndexByte(s.Peek(i, maxLine), '\n') + 1
		n := strings.IndexByte(s.Peek(from, maxLine), '\n')
		if n < 0 && len(t)-from < maxLine {
			n = len(t) - from
		}
		if from == i || n <= 0 {
			return
		}
		i = from + n
		end := i
		for end > from && strings.IndexByte(" \r\"',|", t[end-1]) >= 0 {
			end--
		}
		if line := t[from:end]; strings.HasSuffix(line, "-----") {
			if k := strings.LastIndex(line, "-----END"); k >= 0 {
				s.Mask(from+k, end, scan.PrivateKey)
				s.keyDone = end
			}
			return
		}
		start := shape.SetBase64.Start(t, scan.PadSet.Start(t, end, from), from)
		if start == end || end-start < 16 && !strings.Contains(s.Peek(i+1, 96), "-----END") {
			return
		}
		s.Mask(start, end, scan.PrivateKey)
		s.keyDone = end
	}
}

// privateName says whether the name of an armour is one of a secret.
func privateName(name string) bool {
	name = strings.ReplaceAll(strings.ToUpper(name), "+", " ")
	return strings.IndexByte(name, '\n') < 0 && (strings.Contains(name, "PRIVATE KEY") || strings.Contains(name, "SECRET KEY") || strings.Contains(name, "STATIC KEY"))
}

// endLine says whether the last line of an armour starts at i.
func (s *Phrases) endLine(i int) bool {
	p := s.Peek(i, 8)
	return p == "-----END" || p == "---- END"
}

// afterDashes is the end of a last line that starts at i.
func (s *Phrases) afterDashes(i int) int {
	line, _, _ := strings.Cut(s.Peek(i, 80), "\n")
	if n := strings.LastIndex(line, "----"); n > 4 {
		return i + n + 4
	}
	return i + len(line)
}

// keyBody is the end of the lines from i on that may belong to a key: its
// characters, its headers, its checksum.
func (s *Phrases) keyBody(i int) int {
	t := s.T
	for {
		j := scan.KeySpace.End(t, i, len(t))
		k := shape.SetBase64.End(t, j, len(t))
		pad := scan.PadSet.End(t, k, k+3)
		header := s.keyHeader(j)
		switch {
		case s.endLine(j):
			return j
		case header > 0:
			i = header
		case k-j >= 16 && !s.prose(pad), k > j && pad > k:
			i = pad
		case k == j && pad > k && shape.SetBase64.End(t, pad, pad+5)-pad == 4: // checksum of an armour
			i = pad + 4
		case k > j && s.remainder(i, j, k):
			i = k
		default:
			return i
		}
	}
}

// remainder says whether the short run t[j:k] is the last line of a key: it
// stands alone on its line and does not look like a word. i is the end of what
// stands before it.
func (s *Phrases) remainder(i, j, k int) bool {
	if j == i || !s.Newline(k) {
		return false
	}
	return !shape.Ordinary(s.T[j:k]) || k >= len(s.T) || s.endLine(scan.KeySpace.End(s.T, k, k+64))
}

// prose says whether more than a key's characters follow on the line.
func (s *Phrases) prose(i int) bool {
	p := s.Peek(i, 3)
	return p != "" && strings.IndexByte(":(_.", p[0]) >= 0 && p != "..."
}

// keyHeaders are the header lines of armours.
var keyHeaders = [...]string{"Proc-Type:", "DEK-Info:", "Version:", "Comment:", "Hash:", "Charset:", "MessageID:", "Key-Info:", "Subject:"}

// keyHeader is the end of a header line that starts at j, 0 when there is none.
func (s *Phrases) keyHeader(j int) int {
	line := s.Peek(j, 200)
	for _, h := range keyHeaders {
		if strings.HasPrefix(line, h) {
			if n := strings.IndexAny(line, "\r\n\\"); n >= 0 {
				return j + n
			}
			return j + len(line)
		}
	}
	return 0
}

// KeyEnd masks the lines before the last line of a private key whose first
// line was cut off.
func (s *Phrases) KeyEnd(a, b int) {
	t := s.T
	last := strings.LastIndex(t[max(0, a-32):a], "-----")
	if a < s.keyDone || last < 0 || !shape.HasFold(t[max(0, a-32)+last:], "-----end") {
		return
	}
	last += max(0, a-32)
	start := last
	for {
		i := scan.PadSet.Start(t, scan.KeySpace.Start(t, start, s.keyDone), s.keyDone)
		j := shape.SetBase64.Start(t, i, s.keyDone)
		if i-j < 16 && (start != last || i == j || shape.Ordinary(t[j:i])) { // only the last line is short
			break
		}
		start = j
	}
	s.keyDone = b
	if start < last {
		s.Mask(start, b, scan.PrivateKey)
	}
}

// Putty masks the private lines of a key in PuTTY's format.
func (s *Phrases) Putty(a int) {
	const mark = "Private-Lines:"
	i := strings.Index(s.Peek(a, 8192), mark)
	if i < 0 || a < s.keyDone {
		return
	}
	start := scan.KeySpace.End(s.T, s.PlainWord(s.Blanks(a+i+len(mark))), len(s.T))
	end := start
	for {
		k := scan.PadSet.End(s.T, shape.SetBase64.End(s.T, end, len(s.T)), len(s.T))
		if k == end || !s.Newline(k) && s.T[k] != '\\' {
			break
		}
		end = scan.KeySpace.End(s.T, k, k+3)
	}
	end = scan.KeySpace.Start(s.T, end, start)
	s.keyDone = max(end, a+i)
	s.Mask(start, end, scan.PrivateKey)
}
