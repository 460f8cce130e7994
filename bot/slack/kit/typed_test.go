package kit

import "testing"

func TestUnmarkup(t *testing.T) {
	for in, want := range map[string]string{
		"<http://example.com|example.com> &amp; x": "example.com & x", "<http://127.0.0.1:18080/a|http://127.0.0.1:18080/a>": "http://127.0.0.1:18080/a",
		"a < b": "a < b", "plain": "plain", "<@U1> hi": "@alex hi", "<@U1|kim> hi": "kim hi", "&lt;x&gt;": "<x>",
		"a <b> c >d": "a <b> c >d", "<https://example.com/a>": "https://example.com/a", "<@>": "<@>", "<mailto:a@example.com|a@example.com>": "a@example.com",
		"<!channel> <!subteam^S1|@netops> <#C1|general>": "!channel @netops general",
	} {
		if got := Unmarkup(in, func(string) string { return "alex" }); got != want {
			t.Errorf("Unmarkup(%q) = %q, want %q", in, got, want)
		}
	}
}
