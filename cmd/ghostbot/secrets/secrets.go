// Package secrets knows which variables of the environment hold what nobody must be
// shown, or name where it is kept, and reads the values off them, so that redaction
// masks exactly these wherever they turn up.
//
// It reads the environment itself and not the parsed configuration: an error about the
// configuration may quote them too. A file that cannot be read has no value here; whoever
// needs it says so.
package secrets

import (
	"net/url"
	"os"
	"regexp"
	"strings"

	"ghostbot/internal/input"
)

// Kind is how a variable holds a secret.
type Kind string

// Kinds of variables.
const (
	Value    Kind = "value"    // is one
	Password Kind = "password" // names a file whose first line is one
	Keys     Kind = "keys"     // names files, separated by commas, that are one each
	Lines    Kind = "lines"    // names a file of one a line, and comments
	URL      Kind = "url"      // a URL, which may have a password
	Headers  Kind = "headers"  // NAME=VALUE, separated by commas, each value percent-encoded
)

// Variables are all that hold or name a secret. The secrets of GHOST_TOTP_FILE are
// read by who knows its form.
var Variables = map[string]Kind{
	"SLACK_APP_TOKEN": Value, "SLACK_BOT_TOKEN": Value, "GEMINI_API_KEY": Value,
	"SLACK_API_URL": URL, "GHOST_GEMINI_URL": URL, "GHOST_REDIS_URL": URL,
	"GHOST_REDIS_PASSWORD_FILE": Password, "GHOST_JOURNAL_KEY_FILE": Keys, "GHOST_CAPTURE_KEY_FILE": Lines,
	"OTEL_EXPORTER_OTLP_ENDPOINT": URL, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": URL,
	"OTEL_EXPORTER_OTLP_HEADERS": Headers, "OTEL_EXPORTER_OTLP_TRACES_HEADERS": Headers,
	"HTTP_PROXY": URL, "HTTPS_PROXY": URL, "ALL_PROXY": URL, "http_proxy": URL, "https_proxy": URL, "all_proxy": URL,
}

// maxFile bounds what is read of a file: a path that is wrong may lead anywhere.
const maxFile = 64 << 10

// Known are the secrets that the environment holds or names.
func Known() []string {
	var out []string
	for name, kind := range Variables {
		if v := os.Getenv(name); v != "" {
			out = append(out, values(kind, v)...)
		}
	}
	return out
}

func values(kind Kind, v string) []string {
	switch kind {
	case Value:
		return []string{v, strings.TrimSpace(v)}
	case URL:
		return inURL(v)
	case Headers:
		return inHeaders(v)
	case Password:
		line, _, _ := strings.Cut(read(v), "\n")
		return []string{strings.TrimRight(line, "\r")}
	case Lines:
		var out []string
		for line := range strings.Lines(read(v)) {
			if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
				out = append(out, line)
			}
		}
		return out
	case Keys:
		var out []string
		for path := range strings.SplitSeq(v, ",") {
			out = append(out, strings.TrimSpace(read(strings.TrimSpace(path))))
		}
		return out
	}
	return nil
}

// userinfo is what stands before the host of a URL, also of one that no parser takes.
var userinfo = regexp.MustCompile(`://[^@:/]*:(.+)@`)

func inURL(v string) []string {
	var out []string
	if u, err := url.Parse(v); err == nil {
		if p, has := u.User.Password(); has {
			out = append(out, p)
		}
		if name := u.User.Username(); len(name) >= telling { // a token may stand alone there
			out = append(out, name)
		}
	}
	if _, q, has := strings.Cut(v, "?"); has { // also of what no parser takes
		q, _, _ = strings.Cut(q, "#")
		out = append(out, inQuery(q)...)
	}
	if m := userinfo.FindStringSubmatch(v); m != nil {
		out = append(out, m[1])
		if p, err := url.PathUnescape(m[1]); err == nil {
			out = append(out, p)
		}
	}
	return out
}

// inQuery are the values of a query that look like credentials, or are called so.
func inQuery(q string) []string {
	var out []string
	for pair := range strings.FieldsFuncSeq(q, func(r rune) bool { return r == '&' || r == ';' }) {
		name, value, _ := strings.Cut(pair, "=")
		if value == "" || len(value) < telling && !credential.MatchString(name) {
			continue
		}
		if plain, err := url.QueryUnescape(value); err == nil {
			out = append(out, plain)
		}
		out = append(out, value)
	}
	return out
}

// telling is how long a header's value is, at least, when its name does not say that it is
// a credential: a shorter one may be a word, which would be masked wherever it stands.
const telling = 16

// credential is in the name of a header that has one.
var credential = regexp.MustCompile(`(?i)auth|key|token|secret|pass|cred|cookie|session`)

// scheme is what stands before a credential in a header.
var scheme = regexp.MustCompile(`^(?i:basic|bearer|apikey|token) +`)

func inHeaders(v string) []string {
	var out []string
	for pair := range strings.SplitSeq(v, ",") {
		name, value, _ := strings.Cut(pair, "=")
		if value = strings.TrimSpace(value); len(value) < telling && !credential.MatchString(name) {
			continue
		}
		if plain, err := url.PathUnescape(value); err == nil {
			out = append(out, plain, scheme.ReplaceAllString(plain, ""))
		}
		out = append(out, value)
	}
	return out
}

// read is a file as whoever uses it reads it; "" when it cannot be read.
func read(path string) string {
	b, err := input.Secret(path, maxFile)
	if err != nil {
		return ""
	}
	return string(b)
}
