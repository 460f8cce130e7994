package redact

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"ghostbot/safeexec/truncate"
)

// FuzzRedact holds what must be true of every text: it fails on none, twice is
// once, marks never split a character, and what is not masked stays.
func FuzzRedact(f *testing.F) {
	m := maker{rand.New(rand.NewPCG(9, 10))}
	for _, fam := range templates {
		for i, tmpl := range fam.texts {
			if i%7 == 0 {
				text, _ := m.fill(strings.TrimPrefix(tmpl, "~"))
				f.Add(text)
			}
		}
	}
	for _, piece := range crafted {
		f.Add(filled(piece, 200))
	}
	r := New(Options{Known: []string{"process-own-secret"}})
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 8<<10 {
			return
		}
		res, err := r.RedactFor(text, "")
		if err != nil {
			t.Fatalf("%v", err)
		}
		if utf8.ValidString(text) && !utf8.ValidString(res.Text) {
			t.Error("a character was split")
		}
		if again := r.Redact(res.Text); again.Text != res.Text || again.Count != 0 {
			t.Errorf("twice is not once:\n%q\n%q", res.Text, again.Text)
		}
		if (res.Count == 0) != (res.Text == text) || (res.Count == 0) != (len(res.Categories) == 0) {
			t.Errorf("%d masks, categories %v, for a change %v", res.Count, res.Categories, res.Text != text)
		}
		if r.Contains(text) && res.Count == 0 {
			t.Error("a credential that is not masked")
		}
		Clean([]byte(text))
	})
}

// FuzzPlanted plants a credential in a text, hides it, cuts the text up as a
// bounded buffer does, and sends it down the whole way that output takes:
// nothing of the credential comes out.
func FuzzPlanted(f *testing.F) {
	for i := range 40 {
		f.Add(uint64(i), "noise before", "noise after", uint16(i*37), uint8(i))
	}
	r := New(Options{})
	f.Fuzz(func(t *testing.T, seed uint64, before, after string, pick uint16, hiding uint8) {
		if len(before)+len(after) > 8<<10 {
			return
		}
		m := maker{rand.New(rand.NewPCG(seed, 1))}
		all := slices.Concat(templates, secondTemplates)
		fam := all[int(pick)%len(all)]
		text, secrets := m.fill(strings.TrimPrefix(fam.texts[int(pick)/len(all)%len(fam.texts)], "~"))
		text = hide(m, text, int(hiding%6))
		if fam.family == "cut" { // these end where the text ends
			after = ""
		} else {
			after = strings.TrimSuffix("\n"+after, "\n")
		}
		whole := before + "\n\n" + text + after
		for _, in := range []string{whole, Clean([]byte(whole)), strings.Repeat("line of a log\n", int(hiding)*4) + whole} {
			once := r.Redact(in).Text
			short, _ := truncate.Output(once)
			out := r.Redact(short).Text
			for _, s := range secrets {
				if strings.Contains(unhide(once), s) || strings.Contains(unhide(out), s) {
					t.Fatalf("%s: left %q\nin  %q\nout %q", fam.family, s, in, once)
				}
			}
			if utf8.ValidString(in) && !utf8.ValidString(out) {
				t.Error("a character was split")
			}
		}
	})
}

// FuzzCut cuts a text with credentials of known forms anywhere, as a buffer
// for head and tail does: no long piece of one is left beside the cut.
func FuzzCut(f *testing.F) {
	for i := range 20 {
		f.Add(uint64(i), uint16(i*11), uint16(i*5))
	}
	const secret = "Zq7Plain9Value42Known8Secret"
	r := New(Options{Known: []string{secret}})
	f.Fuzz(func(t *testing.T, seed uint64, from, lost uint16) {
		m := maker{rand.New(rand.NewPCG(seed, 2))}
		token := "gh" + "p_" + m.make("A", 36)
		web := m.make("J", 0)
		block, lines := key(m, "RSA PRIVATE KEY", "\n")
		text := "start " + token + " mid\nbearer: " + web + "\nx " + secret + " y\n" + block + "\nthe end\n"
		a := int(from) % len(text)
		b := min(len(text), a+1+int(lost)%200)
		cut := text[:a] + "\n[truncated: 12 lines omitted]\n" + text[b:]
		got := r.Redact(cut).Text
		pieces := append([]string{secret, token, web}, lines...)
		for _, p := range pieces {
			const long = minFragment + 8 // shorter ones may be unlucky and look like a name
			for i := 0; i+long <= len(p); i++ {
				if strings.Contains(got, p[i:i+long]) {
					t.Fatalf("left %q of %q\nin  %q\nout %q", p[i:i+long], p, cut, got)
				}
			}
		}
	})
}
