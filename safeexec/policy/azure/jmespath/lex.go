package jmespath

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// tok is the kind of a token.
type tok uint8

const (
	end tok = iota
	ident
	quoted
	raw
	jsonLit
	number
	op // text is the operator
)

type token struct {
	kind tok
	text string
	at   int
}

// operators, longest first.
var operators = []string{"&&", "||", "==", "!=", "<=", ">=", "[?", "[]", ".", "*", "|", "[", "]", "(", ")", "{", "}", ",", ":", "@", "!", "&", "<", ">"}

func lex(s string) ([]token, error) {
	var out []token
	for i := 0; i < len(s); {
		c := s[i]
		if c == ' ' || c == '\t' || c == '\n' || c == '\r' {
			i++
			continue
		}
		t, n, err := one(s, i)
		if err != nil {
			return nil, err
		}
		out = append(out, t)
		i += n
	}
	return append(out, token{kind: end, at: len(s)}), nil
}

func one(s string, i int) (token, int, error) {
	c := s[i]
	switch {
	case isLetter(c):
		n := 1
		for i+n < len(s) && (isLetter(s[i+n]) || s[i+n] >= '0' && s[i+n] <= '9') {
			n++
		}
		return token{ident, s[i : i+n], i}, n, nil
	case c == '-' || c >= '0' && c <= '9':
		n := 1
		for i+n < len(s) && s[i+n] >= '0' && s[i+n] <= '9' {
			n++
		}
		if s[i:i+n] == "-" {
			return token{}, 0, fmt.Errorf("a number is missing behind - at position %d", i+1)
		}
		return token{number, s[i : i+n], i}, n, nil
	case c == '"' || c == '\'' || c == '`':
		return quote(s, i)
	}
	for _, o := range operators {
		if strings.HasPrefix(s[i:], o) {
			return token{op, o, i}, len(o), nil
		}
	}
	r, _ := utf8.DecodeRuneInString(s[i:])
	return token{}, 0, fmt.Errorf("unexpected %q at position %d", r, i+1)
}

func isLetter(c byte) bool { return c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z' }

// quote reads "name", 'text' and `literal`.
func quote(s string, i int) (token, int, error) {
	q, n := s[i], 1
	for i+n < len(s) && s[i+n] != q {
		if s[i+n] == '\\' {
			n++
		}
		n++
	}
	if i+n >= len(s) {
		return token{}, 0, fmt.Errorf("the %c at position %d is never closed", q, i+1)
	}
	text := s[i+1 : i+n]
	switch q {
	case '"':
		var name string
		if err := json.Unmarshal([]byte(s[i:i+n+1]), &name); err != nil {
			return token{}, 0, fmt.Errorf("the name at position %d is no valid quoted name", i+1)
		}
		return token{quoted, name, i}, n + 1, nil
	case '\'':
		return token{raw, text, i}, n + 1, nil
	}
	lit := strings.TrimLeft(strings.ReplaceAll(text, "\\`", "`"), " \t")
	if !json.Valid([]byte(lit)) && !json.Valid([]byte(`"`+lit+`"`)) {
		return token{}, 0, fmt.Errorf("the literal at position %d is no valid JSON", i+1)
	}
	return token{jsonLit, text, i}, n + 1, nil
}
