// Package behind reads what an answer says about what is behind the one who
// answers: the endpoints that it blames, where it sends its clients, and whether
// it calls itself well.
//
// An answer is untrusted: a host and a port are all that is taken from it, after
// the same check as everything else, and the path is dropped, so that no answer
// can make anybody request more than the root of a server.
package behind

import (
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"ghostbot/agent/playbook/pattern"
	"ghostbot/agent/playbook/read"
	"ghostbot/agent/playbook/rules"
	"ghostbot/agent/playbook/symptom"
)

var (
	tlsWanted     = pattern.New(`(?i)plain http request was sent to https|http request to an https server|speaking plain http to an ssl`)
	gatewayBody   = pattern.New(`(?i)upstream|no healthy|bad gateway|gateway time|no server is available|proxy error|backend|connection failure|error reaching|origin (is )?unreachable|reading from remote server`)
	gatewayServer = pattern.New(`(?i)nginx|openresty|haproxy|envoy|traefik|caddy|varnish|squid|cloudflare|awselb|apache traffic|kong`)
	// blames are words that make a page with markup one about another server; the
	// links of any other page are not followed.
	blames    = pattern.New(`(?i)upstream|backend|dial|connect|connection|refus|time[d-]? ?out|timeout|unreachable|lookup|no such host|proxy|origin|peer|reset|remote|target|service|server|host|addr|endpoint|dependency|depend|downstream|api|db|database|cache|queue|store|dns|url|node|via|to|from`)
	attribute = pattern.New(`(?is)<(a|link|img|script|meta|base)\b[^>]{0,500}>|<!doctype[^>]{0,300}>|xmlns[^\s>]{0,200}`)
	tags      = pattern.New(`<[^>]{0,300}>`)
)

// Gateway reports whether an error answer was made by something that stands
// between the client and another server.
func Gateway(w read.Web) bool {
	if w.Code == 502 || w.Code == 504 {
		return true
	}
	if w.Code != 500 && gatewayBody.MatchString(head(w.Body, 4000)) {
		return true
	}
	for h := range w.Header {
		if strings.HasPrefix(h, "x-envoy-") && w.Code == 503 {
			return true
		}
	}
	return w.Code == 503 && gatewayServer.MatchString(w.Header["server"])
}

// Blamed returns the endpoints that an error answer names, without self.
func Blamed(w read.Web, self symptom.Endpoint) []symptom.Endpoint {
	var out []symptom.Endpoint
	for _, e := range append(jsonEndpoints(w.Body), textEndpoints(blameText(w.Body))...) {
		out = Add(out, e, self)
	}
	for _, h := range []string{"x-upstream", "x-upstream-addr", "x-backend", "x-backend-server", "x-proxy-upstream", "x-served-by", "x-upstream-host"} {
		if e, ok := symptom.ParseEndpoint(w.Header[h]); ok && e.Port != 0 {
			out = Add(out, e, self)
		}
	}
	return out
}

// asking are the words for the near end of a connection, as a key or before an
// address.
var asking = pattern.New(`(?i)client|remote|source|\bsrc|local|self|request|forwarded|referer|trace|docs?|help|support|link|href|user|caller|listen`)

var askingText = pattern.New(`(?i)\b(client|remote|remote_addr|source|src|local|from|peer|listening on)["']?[ =:]+["']?\[?[0-9a-f.:]+\]?:\d+`)

// blameText is what of an answer may speak of something behind: of a JSON
// document the strings whose keys are not about the one who asks.
func blameText(body string) string {
	if v, ok := document(body); ok {
		var out []string
		stringsOf(v, "", 0, &out)
		return strings.Join(out, "\n")
	}
	return askingText.ReplaceAllString(head(body, 8000), " ")
}

func stringsOf(v any, key string, depth int, out *[]string) {
	if depth > 6 || len(*out) > 50 || asking.MatchString(key) {
		return
	}
	switch v := v.(type) {
	case string:
		*out = append(*out, askingText.ReplaceAllString(head(v, 2000), " "))
	case []any:
		for _, x := range v {
			stringsOf(x, key, depth+1, out)
		}
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			stringsOf(v[k], k, depth+1, out)
		}
	}
}

// Add adds e unless it is there, is self, or was cut short.
func Add(list []symptom.Endpoint, e, self symptom.Endpoint) []symptom.Endpoint {
	e.Path = ""
	if !e.Valid() || e.Same(self) || len(list) >= rules.MaxBehind || e.Port == self.Port && e.Loopback() && self.Loopback() {
		return list
	}
	for i, have := range list {
		if have.Same(e) {
			if have.Scheme == "" {
				list[i].Scheme = e.Scheme
			}
			return list
		}
		if have.Host == e.Host && (e.Port == 0 || have.Port == 0) {
			list[i].Port = max(e.Port, have.Port)
			return list
		}
	}
	return append(list, e)
}

// textEndpoints scans text for endpoints with a port, and for names next to
// words of resolving.
func textEndpoints(body string) []symptom.Endpoint {
	page := strings.Contains(body, "<")
	body = attribute.ReplaceAllString(body, " ")
	body = tags.ReplaceAllString(body, " ")
	body = strings.NewReplacer(`\"`, `"`, `\/`, `/`, "&quot;", `"`, "&#39;", "'", "&gt;", ">", "&lt;", "<", "&#34;", `"`).Replace(body)
	if page && !blames.MatchString(body) {
		return nil
	}
	s := symptom.Parse(body)
	var out []symptom.Endpoint
	for _, e := range s.Targets {
		nameOnly := e.Scheme == "tcp" && e.Port == 0
		if e.Port == 0 && !nameOnly || e.IsName() && e.Scheme == "https" && e.Port == 443 && !strings.Contains(body, "https://"+e.Host) {
			continue
		}
		out = append(out, e)
	}
	return out
}

// document reads a body that is one JSON object.
func document(body string) (any, bool) {
	var v any
	body = head(body, 64<<10)
	i := strings.IndexByte(body, '{')
	if i < 0 || strings.TrimSpace(body[:i]) != "" {
		return nil, false
	}
	err := json.NewDecoder(strings.NewReader(body[i:])).Decode(&v)
	return v, err == nil && v != nil
}

// jsonEndpoints looks for objects that hold a host and a port apart.
func jsonEndpoints(body string) []symptom.Endpoint {
	v, ok := document(body)
	if !ok {
		return nil
	}
	var out []symptom.Endpoint
	walkJSON(v, 0, &out)
	return out
}

var hostKey = pattern.New(`(?i)host|addr|server|upstream|backend|target|ip$|name$|peer|node`)

func walkJSON(v any, depth int, out *[]symptom.Endpoint) {
	if depth > 6 || len(*out) >= rules.MaxBehind {
		return
	}
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			walkJSON(x, depth+1, out)
		}
	case map[string]any:
		keys := slices.Sorted(maps.Keys(v))
		pairEndpoint(v, keys, out)
		for _, k := range keys {
			walkJSON(v[k], depth+1, out)
		}
	}
}

// pairEndpoint reads {"host": "h", "port": 1} under whatever names.
func pairEndpoint(v map[string]any, keys []string, out *[]symptom.Endpoint) {
	port := 0
	for _, k := range keys {
		if strings.HasSuffix(strings.ToLower(k), "port") {
			switch x := v[k].(type) {
			case float64:
				port = int(x)
			case string:
				port, _ = strconv.Atoi(x)
			}
		}
	}
	if port < 1 || port > 65535 {
		return
	}
	for _, k := range keys {
		s, is := v[k].(string)
		if !is || !hostKey.MatchString(k) || asking.MatchString(k) {
			continue
		}
		if e, ok := symptom.ParseEndpoint(s); ok && e.Port == 0 {
			e.Port = port
			*out = append(*out, e)
			return
		}
	}
}

// Moved returns where a redirect sends clients, when that is another server.
func Moved(w read.Web, self symptom.Endpoint) []symptom.Endpoint {
	u, err := url.Parse(w.Header["location"])
	if err != nil || u.Host == "" {
		return nil
	}
	e, ok := symptom.ParseEndpoint(u.Scheme + "://" + u.Host)
	if !ok || !e.HTTP() || e.Same(self) {
		return nil
	}
	return []symptom.Endpoint{e}
}

// Turned says whether a redirect leads to the very address that was asked, or to
// another one of the same server. One that sets a cookie may do so once.
func Turned(w read.Web, self symptom.Endpoint) []string {
	base, err := url.Parse(self.URL())
	if err != nil {
		return nil
	}
	to, err := base.Parse(w.Header["location"])
	switch {
	case err != nil, w.Header["location"] == "", to.Scheme != base.Scheme, !strings.EqualFold(to.Host, base.Host):
		return nil
	case to.RequestURI() == base.RequestURI() && w.Header["set-cookie"] == "":
		return []string{"redirect-self"}
	}
	return []string{"redirect-near"}
}

var unhealthy = pattern.New(`(?i)^(down|unhealthy|not ok|nok|error|errors|fail|failed|failing|failure|critical|degraded|unavailable|out_of_service|ko|red)$`)

// Unwell reports whether an answer is a report of health that says "not well".
func Unwell(body string) bool {
	v, ok := document(body)
	if !ok {
		return false
	}
	m, _ := v.(map[string]any)
	for k, x := range m {
		switch s, is := x.(string); strings.ToLower(k) {
		case "status", "state", "health":
			if is && unhealthy.MatchString(s) {
				return true
			}
		}
	}
	return false
}

// WantsTLS reports whether an answer complains about a request without TLS.
func WantsTLS(w read.Web) bool { return tlsWanted.MatchString(w.Body) }

// Words is the text of an answer without its markup.
func Words(w read.Web) string { return tags.ReplaceAllString(w.Body, " ") }

func head(s string, n int) string {
	if len(s) > n {
		return s[:n]
	}
	return s
}
