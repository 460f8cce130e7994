package show

import "testing"

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"plain text":                  "plain text",
		"two\nlines\tand a tab":       "two\nlines\tand a tab",
		"\x1b[31mred\x1b[0m":          "[31mred[0m",
		"a\u202egnp.exe\u202c":        "agnp.exe",
		"zero\u200bwidth\u2066x":      "zerowidthx",
		"bell\a nul\x00 cr\r del\x7f": "bell nul cr del",
		"not utf-8 \xff\xfe":          "not utf-8 ",
		"grüße 🙂 日本":                  "grüße 🙂 日本",
	} {
		if got := Clean(in); got != want {
			t.Errorf("Clean(%q) = %q, want %q", in, got, want)
		}
	}
	if got := OneLine(" a\n\n b\t c "); got != "a b c" {
		t.Errorf("OneLine = %q", got)
	}
}

func TestVisible(t *testing.T) {
	for in, want := range map[string]string{
		"dig example.com":   "dig example.com",
		"dig ex\u202eample": `dig ex\u202eample`,
		"a\u200bb\x00\x1b":  `a\u200bb\u0000\u001b`,
		"grüße\ttab\nline":  "grüße\ttab\nline",
		"bad \xff":          `bad \ufffd`,
	} {
		if got := Visible(in); got != want {
			t.Errorf("Visible(%q) = %q, want %q", in, got, want)
		}
	}
}
