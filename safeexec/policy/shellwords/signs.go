package shellwords

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
)

// promptForm is what shells write before what people type. A sign that ends it stands
// before a blank, where no program's name has one: "$ ", "host:~# ", "[user@host dir]$ ",
// "user@host dir % ".
var promptForm = regexp.MustCompile(`^ *(?:[^ '"\\|;&<>()]*([$#%])|(>{1,3})|\[[^\]'"]*@[^\]'"]*\]([$#%])|[^ '"]+@[^ '"]+ +[~/]?[^ '"]* *([$#%])|~[^ '"]* +([$#%])) +[^ ]`)

// prompt says that a text begins with a prompt.
func prompt(text string) *Problem {
	m := promptForm.FindStringSubmatch(text)
	if m == nil {
		return nil
	}
	rule, mark := "command-word", strings.Join(m[1:], "")
	if strings.HasPrefix(strings.TrimLeft(text, " "), "#") {
		rule = "comment" // it is one as well
	}
	return &Problem{rule, "the text begins with the prompt of a shell (" + mark + "); leave it out"}
}

// meant is what a person typed before a program made it look better.
var meant = []struct{ signs, name, plain string }{
	{"\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d", "a typographic dash", "- or --"},
	{"\u201c\u201d\u201e\u201f\u00ab\u00bb\u2033\uff02", "a typographic quotation mark", "\""},
	{"\u2018\u2019\u201a\u201b\u2039\u203a\u2032\u00b4\uff07", "a typographic quotation mark", "'"},
	{"\u2026", "one character for three dots", "..."},
	{"\u00a0\u202f\u2007", "a non-breaking space", "a plain space"},
	{"\ufeff", "a byte order mark", ""},
	{"\u200b\u200c\u200d\u2060\u00ad", "an invisible character", ""},
}

// sign names a character that is not plain, and what was meant where that is known. What
// cannot be seen is named by its number alone.
func sign(r rune) string {
	name := fmt.Sprintf("U+%04X", r)
	if unicode.IsGraphic(r) && !unicode.IsSpace(r) && !unicode.Is(unicode.M, r) {
		name = string(r) + " (" + name + ")"
	}
	for _, m := range meant {
		if !strings.ContainsRune(m.signs, r) {
			continue
		}
		if m.plain == "" {
			return name + ", " + m.name + "; leave it out"
		}
		return name + ", " + m.name + "; write " + m.plain
	}
	if unicode.IsSpace(r) {
		return name + ", an unusual space; write a plain space"
	}
	return name
}
