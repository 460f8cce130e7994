package blockkit

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

type obj = map[string]any

func of(t testing.TB, v any) []any {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	l, err := Decode(raw)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func pt(n int) obj   { return obj{"type": "plain_text", "text": strings.Repeat("x", n)} }
func mark(n int) obj { return obj{"type": "mrkdwn", "text": strings.Repeat("ü", n)} }

func times(n int, v func(i int) any) []any {
	var l []any
	for i := range n {
		l = append(l, v(i))
	}
	return l
}

func option(text, value int) any { return obj{"text": pt(text), "value": strings.Repeat("v", value)} }

func btn(change obj) obj {
	b := obj{"type": "button", "text": pt(3)}
	for k, v := range change {
		b[k] = v
	}
	return b
}

func actions(e ...any) []any { return []any{obj{"type": "actions", "elements": e}} }

func input(e obj) []any { return []any{obj{"type": "input", "label": pt(3), "element": e}} }

// Each row builds blocks whose size is n; at the limit they pass, one over they do not.
func TestLimits(t *testing.T) {
	for _, tt := range []struct {
		name  string
		limit int
		build func(n int) []any
		want  string // the violation one over the limit
	}{
		{"blocks in a message", 50, func(n int) []any { return times(n, func(int) any { return obj{"type": "divider"} }) },
			"no more than 50 items allowed [json-pointer:/blocks]"},
		{"header", 150, func(n int) []any { return []any{obj{"type": "header", "text": pt(n)}} },
			"must be less than 151 characters [json-pointer:/blocks/0/text/text]"},
		{"section text", 3000, func(n int) []any { return []any{obj{"type": "section", "text": mark(n)}} },
			"must be less than 3001 characters [json-pointer:/blocks/0/text/text]"},
		{"section fields", 10, func(n int) []any {
			return []any{obj{"type": "section", "fields": times(n, func(int) any { return mark(1) })}}
		}, "no more than 10 items allowed [json-pointer:/blocks/0/fields]"},
		{"section field text", 2000, func(n int) []any { return []any{obj{"type": "section", "fields": []any{mark(n)}}} },
			"must be less than 2001 characters [json-pointer:/blocks/0/fields/0/text]"},
		{"context elements", 10, func(n int) []any {
			return []any{obj{"type": "context", "elements": times(n, func(int) any { return pt(1) })}}
		}, "no more than 10 items allowed [json-pointer:/blocks/0/elements]"},
		{"actions elements", 25, func(n int) []any {
			return actions(times(n, func(i int) any { return btn(obj{"action_id": fmt.Sprint(i)}) })...)
		}, "no more than 25 items allowed [json-pointer:/blocks/0/elements]"},
		{"button text", 75, func(n int) []any { return actions(btn(obj{"text": pt(n)})) },
			"must be less than 76 characters [json-pointer:/blocks/0/elements/0/text/text]"},
		{"button value", 2000, func(n int) []any { return actions(btn(obj{"value": strings.Repeat("x", n)})) },
			"must be less than 2001 characters [json-pointer:/blocks/0/elements/0/value]"},
		{"accessibility label", 75, func(n int) []any { return actions(btn(obj{"accessibility_label": strings.Repeat("x", n)})) },
			"must be less than 76 characters [json-pointer:/blocks/0/elements/0/accessibility_label]"},
		{"action_id", 255, func(n int) []any { return actions(btn(obj{"action_id": strings.Repeat("x", n)})) },
			"must be less than 256 characters [json-pointer:/blocks/0/elements/0/action_id]"},
		{"block_id", 255, func(n int) []any { return []any{obj{"type": "divider", "block_id": strings.Repeat("x", n)}} },
			"must be less than 256 characters [json-pointer:/blocks/0/block_id]"},
		{"overflow options", 5, func(n int) []any {
			return actions(obj{"type": "overflow", "options": times(n, func(int) any { return option(1, 1) })})
		}, "no more than 5 items allowed [json-pointer:/blocks/0/elements/0/options]"},
		{"select options", 100, func(n int) []any {
			return actions(obj{"type": "static_select", "options": times(n, func(int) any { return option(1, 1) })})
		}, "no more than 100 items allowed [json-pointer:/blocks/0/elements/0/options]"},
		{"radio options", 10, func(n int) []any {
			return actions(obj{"type": "radio_buttons", "options": times(n, func(int) any { return option(1, 1) })})
		}, "no more than 10 items allowed [json-pointer:/blocks/0/elements/0/options]"},
		{"option text", 75, func(n int) []any { return actions(obj{"type": "overflow", "options": []any{option(n, 1)}}) },
			"must be less than 76 characters [json-pointer:/blocks/0/elements/0/options/0/text/text]"},
		{"option value", 150, func(n int) []any { return actions(obj{"type": "overflow", "options": []any{option(1, n)}}) },
			"must be less than 151 characters [json-pointer:/blocks/0/elements/0/options/0/value]"},
		{"confirm text", 300, func(n int) []any {
			return actions(btn(obj{"confirm": obj{"title": pt(1), "text": mark(n)}}))
		}, "must be less than 301 characters [json-pointer:/blocks/0/elements/0/confirm/text/text]"},
		{"confirm title", 100, func(n int) []any {
			return actions(btn(obj{"confirm": obj{"title": pt(n), "text": mark(1)}}))
		}, "must be less than 101 characters [json-pointer:/blocks/0/elements/0/confirm/title/text]"},
		{"confirm button", 30, func(n int) []any {
			return actions(btn(obj{"confirm": obj{"title": pt(1), "text": mark(1), "confirm": pt(n)}}))
		}, "must be less than 31 characters [json-pointer:/blocks/0/elements/0/confirm/confirm/text]"},
		{"image alt text", 2000, func(n int) []any {
			return []any{obj{"type": "image", "image_url": "https://example.com/x.png", "alt_text": strings.Repeat("x", n)}}
		}, "must be less than 2001 characters [json-pointer:/blocks/0/alt_text]"},
		{"input label", 2000, func(n int) []any {
			return []any{obj{"type": "input", "label": pt(n), "element": obj{"type": "plain_text_input"}}}
		}, "must be less than 2001 characters [json-pointer:/blocks/0/label/text]"},
		{"placeholder", 150, func(n int) []any { return input(obj{"type": "plain_text_input", "placeholder": pt(n)}) },
			"must be less than 151 characters [json-pointer:/blocks/0/element/placeholder/text]"},
		{"max_length", 3000, func(n int) []any { return input(obj{"type": "plain_text_input", "max_length": n}) },
			"must be less than 3001 [json-pointer:/blocks/0/element/max_length]"},
		{"markdown", 12000, func(n int) []any { return []any{obj{"type": "markdown", "text": strings.Repeat("x", n)}} },
			"must be less than 12001 characters [json-pointer:/blocks/0/text]"},
		{"table rows", 100, func(n int) []any {
			return []any{obj{"type": "table", "rows": times(n, func(int) any { return []any{obj{"type": "raw_text", "text": "x"}} })}}
		}, "no more than 100 items allowed [json-pointer:/blocks/0/rows]"},
		{"table columns", 20, func(n int) []any {
			return []any{obj{"type": "table", "rows": []any{times(n, func(int) any { return obj{"type": "raw_text", "text": "x"} })}}}
		}, "no more than 20 items allowed [json-pointer:/blocks/0/rows/0]"},
		{"tables in a message", 1, func(n int) []any {
			return times(n, func(int) any { return obj{"type": "table", "rows": []any{[]any{obj{"type": "raw_text", "text": "x"}}}} })
		}, "only one table allowed [json-pointer:/blocks]"},
		{"text of a table", 10000, func(n int) []any {
			return []any{obj{"type": "table", "rows": []any{[]any{obj{"type": "raw_text", "text": strings.Repeat("x", n)}}}}}
		}, "must be less than 10001 characters [json-pointer:/blocks]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := CheckMessage(of(t, tt.build(tt.limit))); len(got) != 0 {
				t.Errorf("at the limit: %v", got)
			}
			got := CheckMessage(of(t, tt.build(tt.limit+1)))
			if len(got) == 0 || got[0].String() != tt.want {
				t.Errorf("over the limit:\ngot  %v\nwant %s", got, tt.want)
			}
		})
	}
}

func TestRefused(t *testing.T) {
	for _, tt := range []struct{ name, blocks, want string }{
		{"unknown block", `[{"type":"carousel"}]`, "unsupported type: carousel [json-pointer:/blocks/0/type]"},
		{"received only", `[{"type":"file","source":"remote","external_id":"1"}]`, "unsupported type: file [json-pointer:/blocks/0/type]"},
		{"no type", `[{}]`, "unsupported type:  [json-pointer:/blocks/0/type]"},
		{"empty section", `[{"type":"section"}]`, "missing required field: text or fields [json-pointer:/blocks/0]"},
		{"empty text", `[{"type":"section","text":{"type":"mrkdwn","text":""}}]`, "must be more than 0 characters [json-pointer:/blocks/0/text/text]"},
		{"mrkdwn header", `[{"type":"header","text":{"type":"mrkdwn","text":"x"}}]`, "unsupported type: mrkdwn [json-pointer:/blocks/0/text/type]"},
		{"text is a string", `[{"type":"header","text":"x"}]`, "must provide an object [json-pointer:/blocks/0/text]"},
		{"unknown property", `[{"type":"divider","colour":"red"}]`, "invalid additional property: colour [json-pointer:/blocks/0]"},
		{"emoji in mrkdwn", `[{"type":"section","text":{"type":"mrkdwn","text":"x","emoji":true}}]`, "invalid additional property: emoji [json-pointer:/blocks/0/text]"},
		{"button style", `[{"type":"actions","elements":[{"type":"button","text":{"type":"plain_text","text":"x"},"style":"warning"}]}]`, "must be a valid enum value [json-pointer:/blocks/0/elements/0/style]"},
		{"element at the wrong place", `[{"type":"actions","elements":[{"type":"plain_text_input"}]}]`, "unsupported type: plain_text_input [json-pointer:/blocks/0/elements/0/type]"},
		{"same action twice", `[{"type":"actions","elements":[{"type":"button","action_id":"a","text":{"type":"plain_text","text":"x"}},{"type":"button","action_id":"a","text":{"type":"plain_text","text":"x"}}]}]`, "action_id already exists [json-pointer:/blocks/0/elements/1/action_id]"},
		{"same block twice", `[{"type":"divider","block_id":"a"},{"type":"divider","block_id":"a"}]`, "block_id already exists [json-pointer:/blocks/1/block_id]"},
		{"two kinds of options", `[{"type":"actions","elements":[{"type":"static_select"}]}]`, "must provide exactly one of: options, option_groups [json-pointer:/blocks/0/elements/0]"},
		{"mrkdwn in a menu", `[{"type":"actions","elements":[{"type":"overflow","options":[{"text":{"type":"mrkdwn","text":"x"},"value":"v"}]}]}]`, "unsupported type: mrkdwn [json-pointer:/blocks/0/elements/0/options/0/text/type]"},
		{"length range", `[{"type":"input","label":{"type":"plain_text","text":"x"},"element":{"type":"plain_text_input","min_length":5,"max_length":4}}]`, "must not be more than max_length [json-pointer:/blocks/0/element/min_length]"},
		{"flag is a string", `[{"type":"input","optional":"yes","label":{"type":"plain_text","text":"x"},"element":{"type":"plain_text_input"}}]`, "must be a boolean [json-pointer:/blocks/0/optional]"},
		{"number is a fraction", `[{"type":"input","label":{"type":"plain_text","text":"x"},"element":{"type":"plain_text_input","max_length":1.5}}]`, "must be an integer [json-pointer:/blocks/0/element/max_length]"},
		{"number too small", `[{"type":"input","label":{"type":"plain_text","text":"x"},"element":{"type":"plain_text_input","max_length":0}}]`, "must be more than 0 [json-pointer:/blocks/0/element/max_length]"},
		{"value is a number", `[{"type":"actions","elements":[{"type":"button","text":{"type":"plain_text","text":"x"},"value":1}]}]`, "must be a string [json-pointer:/blocks/0/elements/0/value]"},
		{"elements is an object", `[{"type":"actions","elements":{}}]`, "must provide an array [json-pointer:/blocks/0/elements]"},
		{"element is a string", `[{"type":"actions","elements":["x"]}]`, "must provide an object [json-pointer:/blocks/0/elements/0]"},
		{"picture twice", `[{"type":"image","alt_text":"x","image_url":"https://example.com","slack_file":{"id":"F1"}}]`, "must provide exactly one of: image_url, slack_file [json-pointer:/blocks/0]"},
		{"rich text container", `[{"type":"rich_text","elements":[{"type":"text","text":"x"}]}]`, "unsupported type: text [json-pointer:/blocks/0/elements/0/type]"},
		{"rich text inline", `[{"type":"rich_text","elements":[{"type":"rich_text_section","elements":[{"type":"button"}]}]}]`, "unsupported type: button [json-pointer:/blocks/0/elements/0/elements/0/type]"},
		{"mention in preformatted", `[{"type":"rich_text","elements":[{"type":"rich_text_preformatted","elements":[{"type":"user","user_id":"U1"}]}]}]`, "unsupported type: user [json-pointer:/blocks/0/elements/0/elements/0/type]"},
		{"empty rich text", `[{"type":"rich_text","elements":[{"type":"rich_text_section","elements":[{"type":"text","text":""}]}]}]`, "must be more than 0 characters [json-pointer:/blocks/0/elements/0/elements/0/text]"},
		{"list style", `[{"type":"rich_text","elements":[{"type":"rich_text_list","style":"square","elements":[{"type":"rich_text_section","elements":[]}]}]}]`, "must be a valid enum value [json-pointer:/blocks/0/elements/0/style]"},
		{"list indent", `[{"type":"rich_text","elements":[{"type":"rich_text_list","style":"bullet","indent":9,"elements":[{"type":"rich_text_section","elements":[]}]}]}]`, "must be less than 9 [json-pointer:/blocks/0/elements/0/indent]"},
		{"link without address", `[{"type":"rich_text","elements":[{"type":"rich_text_section","elements":[{"type":"link"}]}]}]`, "missing required field: url [json-pointer:/blocks/0/elements/0/elements/0]"},
		{"table cell", `[{"type":"table","rows":[[{"type":"mrkdwn","text":"x"}]]}]`, "unsupported type: mrkdwn [json-pointer:/blocks/0/rows/0/0/type]"},
		{"empty row", `[{"type":"table","rows":[[]]}]`, "no fewer than 1 items allowed [json-pointer:/blocks/0/rows/0]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l, err := Decode([]byte(tt.blocks))
			if err != nil {
				t.Fatal(err)
			}
			got := CheckMessage(l)
			if len(got) == 0 || got[0].String() != tt.want {
				t.Errorf("got  %v\nwant %s", got, tt.want)
			}
		})
	}
}

// What uses every block and element of the safe profile passes.
func TestEveryBlockPasses(t *testing.T) {
	raw, err := os.ReadFile("../testdata/every_block.json")
	if err != nil {
		t.Fatal(err)
	}
	l, err := Decode(raw)
	if err != nil {
		t.Fatal(err)
	}
	if got := CheckMessage(l); len(got) != 0 {
		t.Errorf("refused: %v", got)
	}
	if got := CheckBlocks(l, Modal, "/blocks"); len(got) != 3 { // markdown, table and context_actions are for messages
		t.Errorf("in a modal: %v", got)
	}
}

func TestDecode(t *testing.T) {
	for _, tt := range []struct {
		in   string
		n    int
		fail bool
	}{
		{"", 0, false}, {"null", 0, false}, {" null ", 0, false}, {"[]", 0, false}, {`[{"type":"divider"}]`, 1, false},
		{"{}", 0, true}, {`"x"`, 0, true}, {"[1]", 0, true}, {"[", 0, true}, {`[null]`, 0, true},
	} {
		l, err := Decode([]byte(tt.in))
		if len(l) != tt.n || (err != nil) != tt.fail {
			t.Errorf("Decode(%q) = %v, %v", tt.in, l, err)
		}
	}
}

func modal(change obj) obj {
	m := obj{"type": "modal", "title": pt(3), "submit": pt(3), "blocks": []any{obj{"type": "divider"}}}
	for k, v := range change {
		m[k] = v
		if v == nil {
			delete(m, k)
		}
	}
	return m
}

func TestViews(t *testing.T) {
	long := strings.Repeat("x", 3001)
	for _, tt := range []struct {
		name string
		view obj
		want string
	}{
		{"modal", modal(nil), ""},
		{"title at the limit", modal(obj{"title": pt(24)}), ""},
		{"title over it", modal(obj{"title": pt(25)}), "must be less than 25 characters [json-pointer:/view/title/text]"},
		{"no title", modal(obj{"title": nil}), "missing required field: title [json-pointer:/view]"},
		{"no blocks", modal(obj{"blocks": []any{}}), "no fewer than 1 items allowed [json-pointer:/view/blocks]"},
		{"metadata", modal(obj{"private_metadata": long}), "must be less than 3001 characters [json-pointer:/view/private_metadata]"},
		{"input without submit", modal(obj{"submit": nil, "blocks": input(obj{"type": "plain_text_input"})}), "missing required field: submit [json-pointer:/view]"},
		{"sent back as received", modal(obj{"id": "V1", "hash": "h", "state": obj{}, "team_id": "T1", "root_view_id": "V1"}), ""},
		{"home", obj{"type": "home", "blocks": []any{obj{"type": "divider"}}}, ""},
		{"home with a title", obj{"type": "home", "title": pt(1), "blocks": []any{obj{"type": "divider"}}}, "invalid additional property: title [json-pointer:/view]"},
		{"other type", obj{"type": "page"}, "unsupported type: page [json-pointer:/view/type]"},
		{"100 blocks", modal(obj{"blocks": times(100, func(int) any { return obj{"type": "divider"} })}), ""},
		{"101 blocks", modal(obj{"blocks": times(101, func(int) any { return obj{"type": "divider"} })}), "no more than 100 items allowed [json-pointer:/view/blocks]"},
		{"markdown in a modal", modal(obj{"blocks": []any{obj{"type": "markdown", "text": "x"}}}), "unsupported type: markdown [json-pointer:/view/blocks/0/type]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var view obj
			raw, err := json.Marshal(tt.view)
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(raw, &view); err != nil {
				t.Fatal(err)
			}
			got := CheckView(view)
			switch {
			case tt.want == "" && len(got) != 0:
				t.Errorf("refused: %v", got)
			case tt.want != "" && (len(got) == 0 || got[0].String() != tt.want):
				t.Errorf("got  %v\nwant %s", got, tt.want)
			}
		})
	}
}

func TestTotalText(t *testing.T) {
	l := of(t, []any{
		obj{"type": "header", "text": pt(10)}, obj{"type": "section", "fields": []any{mark(5), mark(5)}},
		obj{"type": "rich_text", "elements": []any{obj{"type": "rich_text_preformatted", "elements": []any{obj{"type": "text", "text": "four"}}}}},
		actions(btn(nil))[0]})
	if got := TotalText(l); got != 27 {
		t.Errorf("got %d, want 27", got)
	}
	if !CheckText(strings.Repeat("ü", 4000), 4000) || CheckText(strings.Repeat("ü", 4001), 4000) || !CheckText("x", 0) {
		t.Error("CheckText counts wrong")
	}
}

// A hostile message cannot make the answer large.
func TestViolationsAreBounded(t *testing.T) {
	l := of(t, times(500, func(int) any { return obj{"type": "nonsense"} }))
	if got := CheckMessage(l); len(got) != maxViolations {
		t.Errorf("%d violations", len(got))
	}
}

func TestFindMentions(t *testing.T) {
	rich := func(e ...any) []any {
		return []any{obj{"type": "rich_text", "elements": []any{obj{"type": "rich_text_section", "elements": e}}}}
	}
	md := func(s string) obj { return obj{"type": "mrkdwn", "text": s} }
	for _, tt := range []struct {
		name        string
		text        string
		blocks      []any
		attachments []any
		want        Mentions
	}{
		{"none", "hello @channel U123", nil, nil, Mentions{}},
		{"user", "<@U123> and <@W9|name> and <@U123>", nil, nil, Mentions{Users: []string{"U123", "W9"}}},
		{"group", "<!subteam^S12> <!subteam^S13|@ops>", nil, nil, Mentions{Groups: []string{"S12", "S13"}}},
		{"everybody", "<!here> <!channel> <!everyone|everyone>", nil, nil, Mentions{Broadcasts: []string{"here", "channel", "everyone"}}},
		{"inside code", "`<!channel>` ```<!here>```", nil, nil, Mentions{Broadcasts: []string{"channel", "here"}}},
		{"escaped", "&lt;!channel&gt; &lt;@U1&gt;", nil, nil, Mentions{}},
		{"links and dates", "<https://example.com|@U1> <#C1> <!date^1^{date}|x>", nil, nil, Mentions{}},
		{"section", "", []any{obj{"type": "section", "text": md("<@U1>"), "fields": []any{md("<!here>")}}}, nil, Mentions{Users: []string{"U1"}, Broadcasts: []string{"here"}}},
		{"plain text", "", []any{obj{"type": "section", "text": obj{"type": "plain_text", "text": "<!channel>"}}, obj{"type": "header", "text": obj{"type": "plain_text", "text": "<@U1>"}}}, nil, Mentions{}},
		{"context", "", []any{obj{"type": "context", "elements": []any{md("<@U1>")}}}, nil, Mentions{Users: []string{"U1"}}},
		{"markdown", "", []any{obj{"type": "markdown", "text": "**<!channel>**"}}, nil, Mentions{Broadcasts: []string{"channel"}}},
		{"rich text is inert", "", rich(obj{"type": "text", "text": "<!channel> <@U1>"}), nil, Mentions{}},
		{"rich text elements", "", rich(obj{"type": "user", "user_id": "U1"}, obj{"type": "usergroup", "usergroup_id": "S1"}, obj{"type": "broadcast", "range": "here"}), nil,
			Mentions{Users: []string{"U1"}, Groups: []string{"S1"}, Broadcasts: []string{"here"}}},
		{"preformatted is inert", "", []any{obj{"type": "rich_text", "elements": []any{obj{"type": "rich_text_preformatted", "elements": []any{obj{"type": "text", "text": "<!channel>"}}}}}}, nil, Mentions{}},
		{"table", "", []any{obj{"type": "table", "rows": []any{[]any{obj{"type": "raw_text", "text": "<!channel>"}, obj{"type": "rich_text", "elements": []any{obj{"type": "rich_text_section", "elements": []any{obj{"type": "user", "user_id": "U7"}}}}}}}}}, nil, Mentions{Users: []string{"U7"}}},
		{"attachment", "", nil, []any{obj{"text": "<@U1>", "fields": []any{obj{"value": "<!here>"}}, "blocks": []any{obj{"type": "section", "text": md("<@U2>")}}}},
			Mentions{Users: []string{"U1", "U2"}, Broadcasts: []string{"here"}}},
		{"button", "", actions(obj{"type": "button", "text": obj{"type": "plain_text", "text": "<!channel>"}, "confirm": obj{"text": md("<!channel>")}}), nil, Mentions{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, FindMentions(tt.text, tt.blocks, tt.attachments)); diff != "" {
				t.Error(diff)
			}
		})
	}
	got := Mentions{Users: []string{"U1", "U2"}, Broadcasts: []string{"here"}}.Minus(Mentions{Users: []string{"U1"}})
	if diff := cmp.Diff(Mentions{Users: []string{"U2"}, Broadcasts: []string{"here"}}, got, cmp.Transformer("nil", func(s []string) []string { return append([]string{}, s...) })); diff != "" {
		t.Error(diff)
	}
}

// Escaped text never mentions, and un-escaping it gives the text back.
func FuzzEscape(f *testing.F) {
	for _, s := range []string{"<!channel>", "<@U1|x>", "&lt;!here&gt;", "`<!subteam^S1>`", "a & b < c", "<<!channel>>"} {
		f.Add(s)
	}
	back := strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&")
	f.Fuzz(func(t *testing.T, s string) {
		e := Escape(s)
		if m := FindMentions(e, nil, nil); !m.Empty() {
			t.Errorf("%q mentions %v", e, m)
		}
		if got := back.Replace(e); got != s {
			t.Errorf("%q comes back as %q", s, got)
		}
	})
}

// Whatever JSON comes in: checking terminates, is bounded, does not change the blocks, and blocks
// that pass still pass after ids were filled in.
func FuzzCheck(f *testing.F) {
	raw, err := os.ReadFile("../testdata/every_block.json")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw)
	f.Add([]byte(`[{"type":"section","text":{"type":"mrkdwn","text":"<!channel>"}}]`))
	f.Add([]byte(`[{"type":"actions","elements":[null,1,"x",{}]},{"type":"table","rows":[[[]]]}]`))
	f.Fuzz(func(t *testing.T, in []byte) {
		l, err := Decode(in)
		if err != nil {
			return
		}
		before, _ := json.Marshal(l)
		bad := CheckMessage(l)
		if len(bad) > maxViolations {
			t.Errorf("%d violations", len(bad))
		}
		FindMentions("", l, l)
		Missing(l, InitialState(l))
		if after, _ := json.Marshal(l); string(after) != string(before) {
			t.Error("checking changed the blocks")
		}
		n := 0
		AssignIDs(l, func() string { n++; return fmt.Sprintf("generated %d", n) })
		if len(bad) == 0 {
			if again := CheckMessage(l); len(again) != 0 {
				t.Errorf("refused after ids were filled in: %v", again)
			}
		}
	})
}
