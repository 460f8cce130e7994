package truncate

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func lines(n int, format string) string {
	var s []string
	for i := range n {
		s = append(s, strings.ReplaceAll(format, "#", strconv.Itoa(i)))
	}
	return strings.Join(s, "\n")
}

func jsonArray(n int, item string) string {
	return "[" + strings.ReplaceAll(lines(n, item), "\n", ",") + "]"
}

func TestShapes(t *testing.T) {
	huge := strings.Repeat("x", 10_000)
	tests := []struct {
		name string
		in   string
		typ  string
		want []string // in this order
		not  []string
	}{
		{"a log keeps its head and tail", lines(1000, "line #."), LogStream,
			[]string{"line 0.", "line 19.", "[truncated: 970 lines omitted]", "line 990.", "line 999."}, []string{"line 20.", "line 989."}},
		{"one endless line keeps both ends", "START" + strings.Repeat("y", 1<<20) + "END", LogStream,
			[]string{"START", "[truncated: ", " characters omitted]", "END"}, []string{"-"}},
		{"few but long lines are all shown", lines(25, "#:"+huge), LogStream,
			[]string{"0:x", "characters omitted]", "24:x"}, []string{"lines omitted"}},
		{"an array keeps first three and last", jsonArray(9000, `{"id":#}`), JSONArray,
			[]string{`"id": 0`, `"id": 2`, "[truncated: showing 4 of 9000 items]", `"id": 8999`}, []string{`"id": 3`}},
		{"huge items are cut inside", jsonArray(3, `{"id":#,"v":"`+huge+`"}`), JSONArray,
			[]string{`"id": 0`, "bytes omitted]", `"id": 2`}, nil},
		{"an object ends at depth three", `{"a":{"b":{"c":{"d":"deep"}}},"pad":"` + huge + huge + `"}`, JSONObject,
			[]string{`"c": "..."`, "bytes omitted]"}, []string{"deep"}},
		{"a wide object loses fields", "{" + strings.Trim(jsonArray(9000, `"f#":#`), "[]") + "}", JSONObject,
			[]string{`"f0": 0`, "of 9000 fields]"}, []string{`"f8999"`}},
		{"an array of arrays", jsonArray(50, "["+strings.Repeat("1,", 500)+"1]"), JSONArray,
			[]string{"of 50 items]"}, nil},
		{"a table keeps its header", "NAME  AGE\n" + lines(500, "n#  1"), Tabular,
			[]string{"NAME  AGE", "n0  1", "n198  1", "[truncated: showing 199 of 500 rows]"}, []string{"n199"}},
		{"a wide table shows fewer rows", "NAME  V\n" + lines(100, "n#  "+huge[:1000]), Tabular,
			[]string{"NAME  V", "n0 ", "rows]"}, []string{"n99 "}},
		{"a table of endless rows is cut as text", "NAME  V\n" + lines(9, "n#  "+huge), Tabular,
			[]string{"NAME  V", "n0  x", "n8  x"}, nil},
		{"broken JSON is a log", "[" + jsonArray(9000, `{"id":#}`), LogStream, []string{"[[", "omitted]"}, nil},
		{"control characters hide the rest", strings.Repeat("\x00\x01data", 500), Binary,
			[]string{"[binary output: 3000 bytes, not displayed]"}, []string{"data"}},
		{"broken UTF-8 hides the rest", strings.Repeat("\uFFFDELF", 500), Binary, []string{"[binary output: 3000 bytes"}, nil},
		{"colours are text", strings.Repeat("\x1b[31mred\x1b[0m\n", 300), LogStream, []string{"red", "lines omitted]"}, nil},
		{"white space is empty", strings.Repeat(" \n", 300), Empty, nil, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			out, m := Output(tt.in)
			if m.OutputType != tt.typ {
				t.Errorf("type = %q, want %q", m.OutputType, tt.typ)
			}
			if tt.typ != Empty && (!m.TruncationApplied || m.TotalBytes != len(tt.in)) {
				t.Errorf("metadata = %+v, want an applied truncation of %d bytes", m, len(tt.in))
			}
			rest := out
			for _, w := range tt.want {
				i := strings.Index(rest, w)
				if i < 0 {
					t.Fatalf("%q is missing (or out of order) in:\n%.2000s", w, out)
				}
				rest = rest[i+len(w):]
			}
			for _, n := range tt.not {
				if strings.Contains(out, n) {
					t.Errorf("%q should be gone", n)
				}
			}
			check(t, tt.in, out, m)
		})
	}
}

// check is what holds for every text.
func check(t *testing.T, in, out string, m Metadata) {
	t.Helper()
	if len(out) > len(in) || utf8.RuneCountInString(out) > utf8.RuneCountInString(in) {
		t.Errorf("grew from %d to %d bytes", len(in), len(out))
	}
	if utf8.ValidString(in) && !utf8.ValidString(out) {
		t.Error("a character was split")
	}
	if !m.TruncationApplied && out != in {
		t.Error("changed without saying so")
	}
	body := out
	if m.OutputType == Tabular { // two hundred lines and the message
		body, _, _ = strings.Cut(out, "\n[truncated: ")
	}
	if m.OutputType != Empty && !fits(body) {
		t.Errorf("still %d characters in %d lines", utf8.RuneCountInString(out), countLines(out))
	}
	if m.LinesShown < 0 || m.TotalLines != countLines(in) {
		t.Errorf("line counts of %+v are wrong", m)
	}
	if m.ItemsShown != nil && *m.ItemsShown > 0 && !json.Valid([]byte(out)) {
		t.Errorf("a shown array is no JSON any more: %.200s", out)
	}
}

func TestSmallIsUntouched(t *testing.T) {
	for in, typ := range map[string]string{
		"": Empty, " \n ": Empty, "short": LogStream, "a\nb\n": LogStream, "[]": JSONArray, "[1, 2, 3, 4, 5, 6]": JSONArray,
		`{"a":{"b":{"c":{"d":1}}}}`: JSONObject, "NAME  AGE\na  1\nb  2": Tabular, strings.Repeat("é", MaxChars): LogStream,
		lines(MaxLines, "l#"): LogStream,
	} {
		out, m := Output(in)
		if out != in || m.TruncationApplied || m.OutputType != typ {
			t.Errorf("Output(%.30q) = %.30q, %+v; want it untouched as %s", in, out, m, typ)
		}
	}
}

func TestTinyBinaryDoesNotGrow(t *testing.T) {
	for _, in := range []string{"\x00", "\x00\x01\x02\x03\x04\x05\x06\x07", strings.Repeat("\x00", 100)} {
		out, m := Output(in)
		if m.OutputType != Binary || len(out) > len(in) || strings.Contains(out, "\x00") {
			t.Errorf("Output(%q) = %q, %+v", in, out, m)
		}
	}
	if got, want := Hidden(12), "[binary output: 12 bytes, not displayed]"; got != want {
		t.Errorf("Hidden = %q, want %q", got, want)
	}
}

func TestStderr(t *testing.T) {
	tests := []struct {
		name, in string
		lines    int // shown
		cut      bool
	}{
		{"empty", "", 0, false},
		{"two hundred lines", lines(200, strings.Repeat("e", 400)), 200, false},
		{"two hundred lines and their newline", lines(200, "e") + "\n", 201, false},
		{"two hundred and one", lines(201, "error #"), 200, true},
		{"many", lines(5000, "error #") + "\n", 200, true},
		{"one huge line", strings.Repeat("z", 1<<20), 1, true},
		{"two hundred huge lines", lines(200, strings.Repeat("z", 4000)) + "\n", 200, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			out, m := Stderr(tt.in)
			if m.LinesShown != tt.lines || m.TruncationApplied != tt.cut {
				t.Errorf("metadata = %+v, want %d lines shown, cut %v", m, tt.lines, tt.cut)
			}
			if len(out) > len(tt.in) || (!tt.cut && out != tt.in) {
				t.Errorf("%d bytes became %d", len(tt.in), len(out))
			}
			if got := countLines(strings.TrimSuffix(out, "\n")); got < min(MaxLines, tt.lines) {
				t.Errorf("%d lines are left, want %d", got, min(MaxLines, tt.lines))
			}
		})
	}
}

func TestMetadataJSON(t *testing.T) {
	_, m := Output(jsonArray(1000, `{"id":#}`) + strings.Repeat("\n", 300))
	got, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"truncation_applied":true,"total_lines":301,"lines_shown":15,"total_bytes":11191,"output_type":"json_array","items_total":1000,"items_shown":4}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("metadata (-want +got):\n%s", diff)
	}
}

// A gen describes the input of a row in the regression data.
type gen struct {
	Kind      string          `json:"kind"`
	Text      string          `json:"text"`
	Unit      string          `json:"unit"`
	Count     int             `json:"count"`
	Template  string          `json:"template"`
	Newline   bool            `json:"trailing_newline"`
	Rows      int             `json:"rows"`
	Items     int             `json:"items"`
	Key       string          `json:"key"`
	UnitCount int             `json:"unit_count"`
	Parts     []gen           `json:"parts"`
	Base      json.RawMessage `json:"base"`
	ListKey   string          `json:"list_key"`
	ListCount int             `json:"list_count"`
}

func (g gen) text(t *testing.T) string {
	var b strings.Builder
	switch g.Kind {
	case "literal":
		return g.Text
	case "repeat":
		return strings.Repeat(g.Unit, g.Count)
	case "concat":
		for _, p := range g.Parts {
			b.WriteString(p.text(t))
		}
	case "lines":
		for i := range g.Count {
			l := strings.ReplaceAll(g.Template, "{i:02d}", fmt.Sprintf("%02d", i))
			b.WriteString(strings.ReplaceAll(l, "{i}", strconv.Itoa(i)) + "\n")
		}
		if !g.Newline {
			return strings.TrimSuffix(b.String(), "\n")
		}
	case "table":
		b.WriteString("Name          Age   City          Country")
		for i := range g.Rows {
			fmt.Fprintf(&b, "\n%-14s%d    City_%d          Country_%d", "Person_"+strconv.Itoa(i), 20+i%50, i%10, i%5)
		}
	case "json_array_of_items":
		return "[\n" + items(g.Count, "  ") + "\n]"
	case "json_array_of_equal_items":
		one := fmt.Sprintf(`{"%s": "%s"}`, g.Key, strings.Repeat(g.Unit, g.UnitCount))
		return "[" + strings.TrimSuffix(strings.Repeat(one+", ", g.Items), ", ") + "]"
	case "json_object_one_string":
		return fmt.Sprintf(`{"%s": "%s"}`, g.Key, strings.Repeat(g.Unit, g.UnitCount))
	case "json_value":
		return "{\n \"k\": [\n  [\n   1,\n   2,\n   3,\n   4,\n   5,\n   6\n  ],\n  2\n ]\n}"
	case "json_big_object":
		var base strings.Builder
		indent(t, &base, g.Base)
		head := strings.TrimSuffix(base.String(), "\n}")
		return head + ",\n  \"" + g.ListKey + "\": [\n" + items(g.ListCount, "    ") + "\n  ]\n}"
	default:
		t.Fatalf("the data has a new kind of input: %s", g.Kind)
	}
	return b.String()
}

func items(n int, in string) string {
	return strings.TrimSuffix(strings.ReplaceAll(lines(n, in+"{\t"+in+`  "id": #,`+"\t"+in+`  "name": "item_#"`+"\t"+in+"},"), "\t", "\n"), ",")
}

func indent(t *testing.T, b *strings.Builder, raw []byte) {
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatal(err)
	}
	out, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	b.Write(out)
}

func TestVectors(t *testing.T) {
	path := filepath.Join("..", "..", "..", "shared", "vectors", "safeexec_truncate.jsonl")
	f, err := os.Open(path)
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("regression data: %v", err)
		}
		t.Skipf("regression data is not beside the module: %v", err)
	}
	defer f.Close()
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<24)
	n := 0
	for sc.Scan() {
		var r struct {
			ID     string         `json:"id"`
			Gen    gen            `json:"gen"`
			Sum    string         `json:"input_sha256"`
			Expect map[string]any `json:"expect_meta"`
			Must   []string       `json:"must_contain"`
			Not    []string       `json:"must_not_contain"`
		}
		if err := json.Unmarshal(sc.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		n++
		t.Run(r.ID, func(t *testing.T) {
			in := r.Gen.text(t)
			if sum := sha256.Sum256([]byte(in)); hex.EncodeToString(sum[:]) != r.Sum {
				t.Fatalf("input is not the one that was meant: %.200q", in)
			}
			out, m := Output(in)
			check(t, in, out, m)
			meta := map[string]any{}
			raw, _ := json.Marshal(m)
			if err := json.Unmarshal(raw, &meta); err != nil {
				t.Fatal(err)
			}
			for k, want := range r.Expect {
				if got := meta[k]; !cmp.Equal(got, want) {
					t.Errorf("%s = %v, want %v", k, got, want)
				}
			}
			for _, s := range r.Must {
				if !strings.Contains(out, s) {
					t.Errorf("%q is missing in:\n%.500s", s, out)
				}
			}
			for _, s := range r.Not {
				if strings.Contains(out, s) {
					t.Errorf("%q should not be in:\n%.500s", s, out)
				}
			}
		})
	}
	if n < 20 {
		t.Errorf("only %d rows of regression data", n)
	}
}

func FuzzOutput(f *testing.F) {
	for _, s := range []string{"", "a\nb", "[1,2,3,4,5,6]", `{"a":"\ud83d\ude00\\\""}`, "A  B\n1  2\n3  4", "\x00\x01", "é\xff", strings.Repeat("[", 300) + strings.Repeat("]", 300)} {
		f.Add(s, uint16(300))
	}
	f.Fuzz(func(t *testing.T, s string, times uint16) {
		s = s[:min(len(s), 2000)]
		in := strings.Repeat(s, int(times)%400+1)
		for _, in := range []string{s, in, "[" + strings.TrimSuffix(strings.Repeat(s+",", int(times)%400+1), ",") + "]"} {
			out, m := Output(in)
			if m.OutputType == Empty && fits(in) && out != in {
				t.Errorf("blank text changed")
			}
			check(t, in, out, m)
			again, m2 := Output(out)
			if (m.OutputType == LogStream || m.OutputType == JSONArray) && m2.OutputType == m.OutputType && again != out {
				t.Errorf("a second pass changed the result of the first: %+v then %+v", m, m2)
			}
			err, me := Stderr(in)
			if len(err) > len(in) || (utf8.ValidString(in) && !utf8.ValidString(err)) || (!me.TruncationApplied && err != in) {
				t.Errorf("standard error grew, broke or changed silently: %+v", me)
			}
		}
	})
}

func BenchmarkOutput(b *testing.B) {
	for name, in := range map[string]string{
		"log":   lines(20_000, "2025-01-15T14:32:00.000Z INFO item # was processed"),
		"array": jsonArray(20_000, `{"id":#,"name":"item","tags":["a","b"]}`),
		"table": "NAME  STATE  AGE\n" + lines(20_000, "pod-#  Running  3d"),
		"line":  strings.Repeat("0123456789abcdef", 1<<16),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(in)))
			for b.Loop() {
				Output(in)
			}
		})
		b.Run(name+"/floor", func(b *testing.B) { // what merely counting the lines costs
			b.SetBytes(int64(len(in)))
			for b.Loop() {
				strings.Count(in, "\n")
			}
		})
	}
}

func TestElements(t *testing.T) {
	tests := []struct {
		in   string
		want []string
	}{
		{"[]", nil},
		{"[ ]", nil},
		{"[1]", []string{"1"}},
		{"[1, 2,3]", []string{"1", "2", "3"}},
		{`["a,b", "c]"]`, []string{`"a,b"`, `"c]"`}},
		{`["a\",b", "\\"]`, []string{`"a\",b"`, `"\\"`}},
		{"[[1,2],{\"a\":[3,4]}]", []string{"[1,2]", `{"a":[3,4]}`}},
		{`{"a": 1, "b": {"c": 2}}`, []string{`"a": 1`, `"b": {"c": 2}`}},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, elements(tt.in)); diff != "" {
			t.Errorf("elements(%s) (-want +got):\n%s", tt.in, diff)
		}
	}
}

func TestNextChar(t *testing.T) {
	for in, want := range map[string]int{`a"`: 1, `é"`: 2, `日"`: 3, `\n"`: 2, `\""`: 2, `\u00e9"`: 6, `\ud83d\ude00"`: 12, `\ud83dx"`: 6} {
		if got := nextChar(in, 0); got != want {
			t.Errorf("nextChar(%s) = %d, want %d", in, got, want)
		}
	}
}

func TestCutLine(t *testing.T) {
	long := strings.Repeat("é", 500)
	got := cutLine(long, 90)
	if want := strings.Repeat("é", 60) + "[truncated: 410 characters omitted]" + strings.Repeat("é", 30); got != want {
		t.Errorf("cutLine = %q, want %q", got, want)
	}
	if got := cutLine(long, 460); got != long {
		t.Error("a line is cut that would lose less than the message adds")
	}
}

func TestColumns(t *testing.T) {
	for in, want := range map[string]int{"": 0, "a": 1, "a b": 1, "a  b": 2, "  a  b  c  ": 3, "a\tb": 1} {
		if got := columns(in); got != want {
			t.Errorf("columns(%q) = %d, want %d", in, got, want)
		}
	}
}
