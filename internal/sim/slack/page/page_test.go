package page

import (
	"io"
	"io/fs"
	"math"
	"net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// read returns every file of the page by name.
func read(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := fs.WalkDir(files, "static", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := fs.ReadFile(files, p)
		out[path.Base(p)] = string(raw)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestServesItsParts(t *testing.T) {
	srv := httptest.NewServer(Handler())
	defer srv.Close()
	kinds := map[string]string{".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
	for name := range read(t) {
		at := "/" + name
		if name == "index.html" {
			at = "/"
		}
		res, err := http.Get(srv.URL + at)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || res.StatusCode != 200 || len(body) == 0 || !strings.HasPrefix(res.Header.Get("Content-Type"), kinds[path.Ext(name)]) {
			t.Errorf("%s: %d, %d bytes, %v", at, res.StatusCode, len(body), res.Header)
		}
		for _, h := range []string{"Content-Security-Policy", "X-Content-Type-Options", "Referrer-Policy"} {
			if res.Header.Get(h) == "" {
				t.Errorf("%s: no %s", at, h)
			}
		}
	}
	for _, at := range []string{"/static/", "/page.go", "/../page.go", "/nothing"} {
		res, err := http.Get(srv.URL + at)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != 404 {
			t.Errorf("%s: %d", at, res.StatusCode)
		}
	}
}

func TestPolicy(t *testing.T) {
	for _, must := range []string{"default-src 'none'", "script-src 'self'", "connect-src 'self'", "frame-ancestors 'none'", "form-action 'none'"} {
		if !strings.Contains(policy, must) {
			t.Errorf("the policy lacks %s", must)
		}
	}
	if strings.Contains(policy, "unsafe-eval") || strings.Contains(policy, "*") || strings.Contains(policy, "http") {
		t.Errorf("the policy is too wide: %s", policy)
	}
}

var (
	imported   = regexp.MustCompile(`from '\./([\w.]+)'`)
	referenced = regexp.MustCompile(`(?:href|src)="([\w.]+)"`)
	elsewhere  = regexp.MustCompile(`["'(]https?://[a-z]`)
)

// Everything a part refers to is there, and nothing is anywhere else.
func TestReferences(t *testing.T) {
	all := read(t)
	for name, text := range all {
		for _, hit := range append(imported.FindAllStringSubmatch(text, -1), referenced.FindAllStringSubmatch(text, -1)...) {
			if _, ok := all[hit[1]]; !ok {
				t.Errorf("%s refers to %s, which is not there", name, hit[1])
			}
		}
		for _, hit := range elsewhere.FindAllString(text, -1) {
			if !strings.Contains(text, "http://www.w3.org/") {
				t.Errorf("%s refers to %s elsewhere", name, hit)
			}
		}
	}
}

// What bots and people write reaches the page as text nodes only: there is no way to parse HTML in
// the code, and none to run text.
func TestNoHTMLFromText(t *testing.T) {
	for name, text := range read(t) {
		if path.Ext(name) != ".js" {
			continue
		}
		for _, danger := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "DOMParser", "eval(", "new Function", "srcdoc", "createContextualFragment"} {
			if strings.Contains(text, danger) {
				t.Errorf("%s uses %s", name, danger)
			}
		}
	}
	if html := read(t)["index.html"]; strings.Contains(html, "<script>") || strings.Contains(html, "onclick") {
		t.Error("inline script, which the policy forbids")
	}
}

// Every icon that is asked for is drawn, and every one drawn is asked for somewhere.
func TestIcons(t *testing.T) {
	all := read(t)
	drawn := map[string]bool{}
	body := all["dom.js"]
	body = body[strings.Index(body, "const paths"):strings.Index(body, "export function icon")]
	for _, m := range regexp.MustCompile(`(?m)^  (\w+): '`).FindAllStringSubmatch(body, -1) {
		drawn[m[1]] = true
	}
	used := regexp.MustCompile(`(?:icon|iconButton)\('(\w+)'`)
	for name, text := range all {
		for _, m := range used.FindAllStringSubmatch(text, -1) {
			if !drawn[m[1]] {
				t.Errorf("%s asks for the icon %s", name, m[1])
			}
		}
	}
	if len(drawn) < 20 {
		t.Errorf("only %d icons found", len(drawn))
	}
}

// Light and dark define the same colours, whichever way dark was chosen.
func TestThemes(t *testing.T) {
	css := read(t)["style.css"]
	variable := regexp.MustCompile(`(--[\w-]+):\s*([^;]+);`)
	values := func(from string) map[string]string {
		i := strings.Index(css, from)
		if i < 0 {
			t.Fatalf("no %s", from)
		}
		out := map[string]string{}
		body, _, _ := strings.Cut(css[i+len(from):], "}")
		for _, m := range variable.FindAllStringSubmatch(body, -1) {
			out[m[1]] = m[2]
		}
		return out
	}
	byButton, bySystem := values(`:root[data-theme="dark"] {`), values(`:root:not([data-theme="light"]) {`)
	if len(byButton) < 20 || len(byButton) != len(bySystem) {
		t.Errorf("%d and %d dark colours", len(byButton), len(bySystem))
	}
	light := values(":root {")
	for k, v := range byButton {
		if bySystem[k] != v {
			t.Errorf("%s: %s by button, %s by system", k, v, bySystem[k])
		}
		if light[k] == "" {
			t.Errorf("%s has no light value", k)
		}
	}
	for _, m := range regexp.MustCompile(`var\((--[\w-]+)\)`).FindAllStringSubmatch(css+read(t)["blocks.css"], -1) {
		if light[m[1]] == "" {
			t.Errorf("%s is used and not defined", m[1])
		}
	}
}

// What is read stands out from what is behind it: 4.5 to 1, in both themes.
func TestContrast(t *testing.T) {
	css := read(t)["style.css"]
	themes := map[string]string{"light": ":root {", "dark": `:root[data-theme="dark"] {`}
	pairs := [][2]string{
		{"ink", "bg"}, {"ink-2", "bg"}, {"ink-3", "bg"}, {"ink", "bg-2"}, {"ink-2", "bg-3"}, {"ink-2", "only"}, {"link", "bg"}, {"red", "bg"},
		{"amber", "bg"}, {"code", "bg-2"}, {"mention-ink", "mention"}, {"mine-ink", "mine"}, {"side-ink", "side"}, {"side-here-ink", "side-here"},
		{"#fff", "green"}, {"#fff", "green-2"}, {"#fff", "red-2"}}
	for name, from := range themes {
		colours := map[string]string{"#fff": "#fff"}
		for _, f := range []string{":root {", from} {
			body, _, _ := strings.Cut(css[strings.Index(css, f)+len(f):], "}")
			for _, m := range regexp.MustCompile(`--([\w-]+):\s*(#[0-9a-f]+);`).FindAllStringSubmatch(body, -1) {
				colours[m[1]] = m[2]
			}
		}
		for _, p := range pairs {
			if got := contrast(t, colours[p[0]], colours[p[1]]); got < 4.5 {
				t.Errorf("%s: %s on %s: %.2f to 1", name, p[0], p[1], got)
			}
		}
	}
}

// contrast is the ratio of WCAG 2.2.
func contrast(t *testing.T, a, b string) float64 {
	t.Helper()
	x, y := luminance(t, a), luminance(t, b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

func luminance(t *testing.T, hex string) float64 {
	t.Helper()
	hex = strings.TrimPrefix(hex, "#")
	if len(hex) == 3 {
		hex = string([]byte{hex[0], hex[0], hex[1], hex[1], hex[2], hex[2]})
	}
	rgb, err := strconv.ParseUint(hex, 16, 24)
	if err != nil {
		t.Fatalf("colour %q: %v", hex, err)
	}
	linear := func(c uint64) float64 {
		v := float64(c&0xff) / 255
		if v <= 0.04045 {
			return v / 12.92
		}
		return math.Pow((v+0.055)/1.055, 2.4)
	}
	return 0.2126*linear(rgb>>16) + 0.7152*linear(rgb>>8) + 0.0722*linear(rgb)
}
