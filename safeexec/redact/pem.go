package redact

import "strings"

// keyLine bounds the lines of an armoured key: longer ones are escaped or
// joined and end where their characters do.
const keyLine = 4096

// keyBegin masks a private key from its first line on: to the matching last
// line, or as long as there are lines that belong to a key. A block without an
// end is a block; so is one on a single line.
func (s *scanner) keyBegin(a, b int) {
	if a < s.keyDone {
		return
	}
	t := s.t
	head := t[b:min(len(t), b+64)]
	dash := strings.Index(head, "----")
	if dash < 0 || !strings.Contains(head[:dash], "PRIVATE KEY") && !strings.Contains(head[:dash], "SECRET KEY") || strings.IndexByte(head[:dash], '\n') >= 0 {
		return
	}
	i := b + dash
	for i < len(t) && t[i] == '-' {
		i++
	}
	end := s.keyBody(i)
	if strings.HasPrefix(t[end:], "-----END") || strings.HasPrefix(t[end:], "---- END") {
		end = s.afterDashes(end)
	}
	s.keyDone = end
	s.mask(a, end, catPrivateKey)
}

// afterDashes is the end of an END line that starts at i.
func (s *scanner) afterDashes(i int) int {
	line := s.t[i:min(len(s.t), i+80)]
	if n := strings.IndexByte(line, '\n'); n >= 0 {
		line = line[:n]
	}
	if n := strings.LastIndex(line, "----"); n > 4 {
		return i + n + 4
	}
	return i + len(line)
}

// keyBody is the end of the lines from i on that may belong to a key: its
// characters, its headers, and the signs that text is quoted with.
func (s *scanner) keyBody(i int) int {
	t := s.t
	end := i
	for i < len(t) {
		j := s.run(i, &keySpace, len(t))
		if strings.HasPrefix(t[j:], "-----END") || strings.HasPrefix(t[j:], "---- END") {
			return j
		}
		k := s.run(j, &storageByte, len(t))
		pad := s.run(k, &padByte, 8)
		switch {
		case j >= len(t):
			return end
		case k > j && (k-j >= 16 || pad > k) && !s.prose(pad):
			i = pad
		case k > j && s.keyHeader(j) > 0:
			i = s.keyHeader(j)
		case t[j] == '=' && pad >= k && s.run(j+1, &storageByte, 5)-j == 5: // checksum of an armour
			i = j + 5
		case k > j && k-j < 16 && (k == len(t) || t[k] == '\n' || t[k] == '\r' || blank(t[k]) && end > 0 && pad == k) && s.remainder(j, k, end):
			i = k
		default:
			return end
		}
		end = i
	}
	return end
}

// remainder says whether a short run of key characters is the last line of a
// key: it stands alone on its line and does not look like a word.
func (s *scanner) remainder(j, k, end int) bool {
	alone := k >= len(s.t) || s.t[k] == '\n' || s.t[k] == '\r'
	if !alone || j == end {
		return false
	}
	c := kinds(s.t[j:k])
	next := s.run(k, &keySpace, 64)
	return c.digit > 0 || c.other > 0 || c.upper > 0 && c.lower > 0 && !(upper(s.t[j]) && c.upper == 1) || strings.HasPrefix(s.t[min(next, len(s.t)):], "-----END") || k >= len(s.t)
}

// prose says whether more than a key's characters follow on the line.
func (s *scanner) prose(i int) bool {
	return i < len(s.t) && strings.IndexByte(":(_.", s.t[i]) >= 0 && !strings.HasPrefix(s.t[i:], "...")
}

// keyHeader is the end of a header line such as "DEK-Info: ..." that starts at
// j, 0 when there is none.
func (s *scanner) keyHeader(j int) int {
	for _, h := range [...]string{"Proc-Type:", "DEK-Info:", "Version:", "Comment:", "Hash:", "Charset:", "MessageID:", "Key-Info:", "Content-Domain:", "Subject:"} {
		if strings.HasPrefix(s.t[j:], h) {
			return j + min(len(s.t)-j, len(h)+max(0, strings.IndexAny(s.t[j+len(h):min(len(s.t), j+200)], "\r\n\\")))
		}
	}
	return 0
}

// keySpace stands between and before the lines of a key.
var keySpace = byteSet(" \t\r\n>|#*+\"',\\;:")

var padByte = byteSet("=")

// keyEnd masks the lines before the last line of a private key whose first
// line was cut off.
func (s *scanner) keyEnd(a, b int) {
	if a < s.keyDone || !strings.Contains(strings.ToUpper(s.t[max(0, a-24):a]), "-----END") {
		return
	}
	t := s.t
	start := strings.LastIndex(t[:a], "-----")
	first := start
	for {
		i := start
		for i > s.keyDone && keySpace[t[i-1]] {
			i--
		}
		for i > s.keyDone && t[i-1] == '=' {
			i--
		}
		j := i
		for j > s.keyDone && storageByte[t[j-1]] {
			j--
		}
		if i-j < 16 && !(first == start && i > j) {
			break
		}
		start = j
	}
	s.keyDone = b
	if start < first {
		s.mask(start, b, catPrivateKey)
	}
}

// putty masks the private lines of a key in PuTTY's format.
func (s *scanner) putty(a int) {
	t := s.t
	i := strings.Index(t[a:min(len(t), a+8192)], "Private-Lines:")
	if i < 0 || a < s.keyDone {
		return
	}
	start := a + i + len("Private-Lines:")
	end := start
	if n := strings.IndexByte(t[start:min(len(t), start+16)], '\n'); n >= 0 {
		start += n + 1
		end = start
	}
	for end < len(t) {
		k := s.run(end, &storageByte, keyLine)
		k = s.run(k, &padByte, 4)
		if k == end {
			break
		}
		end = s.run(k, &keySpace, 2)
	}
	for end > start && keySpace[t[end-1]] {
		end--
	}
	s.keyDone = end
	s.mask(start, end, catPrivateKey)
}
