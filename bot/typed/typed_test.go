package typed

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestRequest(t *testing.T) {
	for in, want := range map[string][2]string{
		"investigate x": {"investigate", "x"}, "INVESTIGATE\tx": {"investigate", "x"}, "Investigate: x is *down*": {"investigate", "x is *down*"},
		"*investigate* x": {"investigate", "x"}, "*investigate x y*": {"investigate", "x y"}, "_investigate_ *x*": {"investigate", "*x*"}, "`status`": {"status", ""},
		"“status”": {"status", ""}, "“investigate x”": {"investigate", "x"}, "investigate, x": {"investigate", "x"}, "investigate:x": {"investigate", "x"},
		"investigate - x": {"investigate", "- x"}, "- investigate x": {"investigate", "x"}, "\u200binvestigate x": {"investigate", "x"}, "/ghost investigate x": {"investigate", "x"},
		"/ghost /ghost list 2": {"list", "2"}, "please investigate x": {"investigate", "x"}, "hey, please status": {"status", ""}, "status?": {"status", ""}, "Help!": {"help", ""},
		"```investigate x```": {"investigate", "x"}, "stop": {"stop", ""}, "*Stop*": {"stop", ""}, "/ghost": {"", ""}, "": {"", ""},
		"investigate 👨\u200d👩 x": {"investigate", "👨\u200d👩 x"},
		// what is no request keeps its words
		"stop?": {"stop?", ""}, "dance please": {"dance", "please"}, "please dance": {"please", "dance"}, "http://192.0.2.1/ is down": {"http://192.0.2.1/", "is down"},
		"is it down": {"is", "it down"}, "investigated x": {"investigated", "x"}, "statuses": {"statuses", ""}, "ghost list": {"ghost", "list"},
	} {
		if verb, rest := Request(in); verb != want[0] || rest != want[1] {
			t.Errorf("Request(%q) = %q, %q, want %q", in, verb, rest, want)
		}
	}
}

func TestCase(t *testing.T) {
	const id = "ghost_20260314_104512-2"
	for _, in := range []string{
		id, "`" + id + "`", "*" + id + "*", "_" + id + "_", "“" + id + "”", "‘" + id + "’", "<" + id + ">", "(" + id + ").", id + ".", id + "?", "#" + id, "\u200b" + id, id + "\ufeff",
		"GHOST_20260314_104512-2", "20260314_104512-2", id + " please", "case " + id, "of case `" + id + "`, thanks", "```" + id + "```", "\"" + id + "\"", "\u00a0" + id + "\u00a0",
	} {
		if got, ok := Case(in); got != id || !ok {
			t.Errorf("Case(%q) = %q, %v", in, got, ok)
		}
	}
	for in, want := range map[string]string{"": "", "please": "", " * ": "", "the case": ""} {
		if got, ok := Case(in); got != want || !ok {
			t.Errorf("Case(%q) = %q, %v, want none", in, got, ok)
		}
	}
	for in, want := range map[string]string{"#1": "1", "red": "red", "of the deploy is red": "deploy is red", "../../etc": "/../etc", "ghost_": "ghost", id + " " + id: id + " " + id, "a`b": "a'b", "deployment": "deployment", id + "-3": id + "-3"} {
		if got, ok := Case(in); got != want || ok {
			t.Errorf("Case(%q) = %q, %v, want %q, which is no id", in, got, ok, want)
		}
	}
}

func TestStop(t *testing.T) {
	for in, want := range map[string]bool{
		"stop": true, " Stop! ": true, "STOP.": true, "cancel": true, "please stop": true, "/ghost stop": true, "stop it": true,
		"*stop*": true, "_stop_": true, "*stop* please": true, "stop please": true, "stop, please!": true, "please stop!": true, "stop now": true, "Stop. Now.": true,
		"stop :octagonal_sign:": true, ":octagonal_sign: stop": true, "stop 🛑": true, "🛑stop": true, "stop :raised_hand::skin-tone-3:": true, "stop ✋🏽": true, "stop ✋️": true,
		"stop…": true, "stop\u200b": true, "stop stop stop": true, "hey ghost, stop": true, "ok stop it": true, "ghost: stop": true, ": stop": true, "please\nstop": true,
		"stop the service on port 80": false, "don't stop": false, "": false, "`stop`": false, "```stop```": false, "```\nstop\n```": false,
		"> stop": false, "\"stop\"": false, "“stop”": false, "‘stop’": false, "«stop»": false, "s t o p": false, "stop\nand look at 192.0.2.7": false, "nonstop": false,
		"stop?": false, "~stop~": false, "please": false, "now": false, ":octagonal_sign:": false, "please don't stop": false, "no stop": false, "stop that": false, "stop 80": false, "it stop": false,
		"(stop)": false, "stop :octagonal_sign: the service": false, "status": false, "stop asking": false, "ghost": false,
	} {
		if got := Stop(in); got != want {
			t.Errorf("Stop(%q) = %v", in, got)
		}
	}
}

func TestAddressed(t *testing.T) {
	for _, tt := range []struct {
		in, text string
		how      Address
	}{
		{"<@UBOT> investigate x", "investigate x", First},
		{"<@UBOT>: investigate x", "investigate x", First},
		{"<@UBOT>, investigate x", "investigate x", First},
		{"<@UBOT>:investigate x", "investigate x", First},
		{"<@UBOT|ghost> - investigate x", "investigate x", First},
		{"  <@UBOT>\n*investigate* x", "*investigate* x", First},
		{"*<@UBOT>* investigate *x*", "investigate *x*", First},
		{"hey <@UBOT> investigate x", "investigate x", First},
		{"Hey, <@UBOT>! investigate x", "investigate x", First},
		{"<@UBOT> <@UBOT>: list", "list", First},
		{"<@UBOT>", "", First},
		{"<@UBOT>:", "", First},
		{"<@UBOT> ask <@U2> about <@UBOT>", "ask <@U2> about", First},
		{"investigate x <@UBOT>", "investigate x", Within},
		{"as <@UBOT> said: list", "as   said: list", Within},
		{"thanks <@UBOT>!", "thanks  !", Within},
		{"&gt; <@UBOT> list", "&gt;   list", Within},
		{"<@U2> <@UBOT> list", "<@U2>   list", Within},
		{"<@U2>: list", "<@U2>: list", Absent},
		{"<@UBOTS> list", "<@UBOTS> list", Absent},
		{"list", "list", Absent},
		{"", "", Absent},
	} {
		if text, how := Addressed(tt.in, "UBOT"); text != tt.text || how != tt.how {
			t.Errorf("Addressed(%q) = %q, %v, want %q, %v", tt.in, text, how, tt.text, tt.how)
		}
	}
}

// Whatever is typed is read without harm: a verb is one of the list or was typed, a case
// is an id, and a text that says stop is short of other words.
func FuzzTyped(f *testing.F) {
	for _, s := range []string{"<@UBOT>: investigate x", "*stop* :x:", "`ghost_20260314_104512`", "hey <@UBOT|g> status", "\u200b", "/ghost /ghost", "“", "```"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		text, _ := Addressed(s, "UBOT")
		verb, rest := Request(text)
		if len(verb)+len(rest) > len(text)+1 {
			t.Errorf("Request(%q) = %q, %q", text, verb, rest)
		}
		if name, ok := Case(rest); ok && name != "" && !idForm.MatchString(name) || strings.Contains(name, "`") {
			t.Errorf("Case(%q) = %q", rest, name)
		}
		if Stop(s) && strings.ContainsAny(s, "`\"“”‘’?0123456789") && utf8.ValidString(emoji.ReplaceAllString(s, "")) && strings.ContainsAny(emoji.ReplaceAllString(s, ""), "`\"“”‘’?0123456789") {
			t.Errorf("Stop(%q)", s)
		}
	})
}
