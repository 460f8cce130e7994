package redact

import (
	"encoding/base64"
	"encoding/hex"
	"strings"

	"ghostbot/safeexec/redact/scan"
	"ghostbot/safeexec/redact/shape"
	"ghostbot/safeexec/redact/view"
)

// minRun is the length from which a run of base64 is looked into.
const minRun = 16

var runSet = shape.NewSet(shape.Alphabet + "+/_-")

// encoded finds the runs of base64 in v that decode to text. It finds them by
// looking at every sixteenth byte.
func (f *finder) encoded(v *view.View) (out []view.Range) {
	t, wrappedDone := v.Text, 0
	for i := minRun - 1; i < len(t); i += minRun {
		if !runSet[t[i]] {
			continue
		}
		start := runSet.Start(t, i, i-minRun)
		end := runSet.End(t, i, len(t))
		i = max(i, end-1)
		if end-start < minRun {
			continue
		}
		if text := audited(t, start, end); text != "" {
			out = append(out, view.Range{Start: start, End: end, Text: text})
			continue
		}
		if stop := discord(t, start, end); stop > 0 {
			out = append(out, view.Range{Start: start, End: stop, Text: credentialsText})
			continue
		}
		if start >= wrappedDone {
			stop, text, ok := wrapped(t, start, end)
			wrappedDone = stop // what did not decode is not tried again from its next line on
			if ok {
				out = append(out, view.Range{Start: start, End: stop, Text: text})
				i = max(i, stop-1)
				continue
			}
		}
		if text, ok := decode(t[start:end]); ok {
			out = append(out, view.Range{Start: start, End: scan.PadSet.End(t, end, end+2), Text: text})
		}
	}
	return out
}

// minWidth is the least width of the lines that base64 is wrapped into.
const minWidth = 32

// wrapped is the end and the meaning of base64 that fills several lines, of which
// t[start:end] is the first. stop is where its lines end, 0 when it is none.
func wrapped(t string, start, end int) (stop int, text string, ok bool) {
	width := end - start
	if width < minWidth || width > 128 {
		return 0, "", false
	}
	if _, ok := decode(t[start : start+width&^3]); !ok {
		return 0, "", false
	}
	all := []byte(t[start:end])
	for at := end; ; {
		from := at + strings.IndexByte(t[at:min(len(t), at+3)], '\n') + 1
		if from == at || strings.Trim(t[at:from], "\r\n") != "" {
			break
		}
		for from < len(t) && from-at < 40 && shape.Blank(t[from]) {
			from++
		}
		to := runSet.End(t, from, from+width)
		if to == from {
			break
		}
		all = append(all, t[from:to]...)
		at = scan.PadSet.End(t, to, to+2)
		stop = at
		if to-from < width {
			break
		}
	}
	if stop > 0 {
		text, ok = decode(string(all))
	}
	return stop, text, ok
}

// audited is the meaning of t[start:end] when it is a command line or an argument
// that the audit log wrote in hexadecimal, its words NUL-terminated; "" when it is
// none.
func audited(t string, start, end int) string {
	if start < 3 || t[start-1] != '=' || (end-start)%2 != 0 {
		return ""
	}
	name := t[max(0, start-12) : start-1]
	name = name[strings.LastIndexByte(name, ' ')+1:]
	if !strings.HasSuffix(name, "proctitle") && (name == "" || name[0] != 'a' || !shape.Digits(name[1:])) {
		return ""
	}
	raw, err := hex.DecodeString(t[start:end])
	if err != nil || !shape.Printable(raw) {
		return ""
	}
	return strings.ReplaceAll(string(raw), "\x00", " ")
}

// discord is the end of the token of a Discord bot that begins with
// t[start:end]: 24 to 28 characters, then 6 and 27 or more behind dots.
func discord(t string, start, end int) int {
	if n := end - start; n < 24 || n > 28 || end+8 > len(t) || t[end] != '.' || t[end+7] != '.' || !shape.SetURL.Only(t[end+1:end+7]) {
		return 0
	}
	stop := shape.SetURL.End(t, end+8, end+90)
	if stop-end-8 < 27 || !shape.Mixed(t[start:stop]) {
		return 0
	}
	return stop
}

// randomWords masks every word that looks random: the text is what a command
// printed that prints secrets.
func (s *scanner) randomWords() {
	const least = 20
	for i := least - 1; i < len(s.T); i += least {
		if !shape.SetToken[s.T[i]] {
			continue
		}
		start := shape.SetToken.Start(s.T, i, i-least)
		end := shape.SetToken.End(s.T, i, len(s.T))
		i = max(i, end-1)
		v := s.T[start:min(end, start+scan.GuardLen)]
		if end-start >= least && shape.Random(v) && v[0] != '/' && !strings.Contains(v, "//") && scan.MarkAt(s.T[max(0, start-1):]) == 0 {
			s.Mask(start, end, scan.Secret)
		}
	}
}

// credentialsText stands for a decoded text that is nothing but user and
// password: it gives the rules the label that the text lacks. It is shorter
// than any run.
const credentialsText = "secret=Passw0rd"

// decode decodes a run of base64 when it is text.
func decode(run string) (string, bool) {
	enc := base64.RawStdEncoding
	if strings.ContainsAny(run, "_-") {
		enc = base64.RawURLEncoding
	}
	var probe [24]byte
	n, err := enc.Decode(probe[:], []byte(run[:min(len(run), 32)&^3]))
	if err != nil || !shape.Printable(probe[:n]) {
		return "", false
	}
	if len(run)%4 == 1 { // cut
		run = run[:len(run)-1]
	}
	raw, err := enc.DecodeString(run)
	if err != nil || !shape.Printable(raw) {
		return "", false
	}
	text := string(raw)
	if userAndPassword(text) {
		return credentialsText, true
	}
	return text, true
}

// userAndPassword says whether decoded text is nothing but these two, as in
// Basic authentication, SASL PLAIN and cloud-init's chpasswd.
func userAndPassword(text string) bool {
	if strings.Count(text, "\x00") == 2 || strings.Contains(text, "chpasswd") {
		return true
	}
	user, pw, ok := strings.Cut(strings.TrimRight(text, "\n"), ":")
	return ok && user != "" && len(user) < 64 && userName.Only(user) && shape.Secret(pw) && strings.IndexByte(pw, ' ') < 0
}

var userName = shape.NewSet(shape.Alphabet + "._-@\\+")
