package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"

	"ghostbot/cmd/ghostbot/jsonl"
	"ghostbot/safeexec/policy"
	"ghostbot/safeexec/redact"
)

// selfPolicy is the policy of this binary.
func selfPolicy() *policy.Policy {
	self, err := os.Executable()
	if err != nil {
		self = ""
	}
	return policy.New(policy.Options{Self: self})
}

// classify prints the gate's verdict about one command, or about one a line.
func classify(_ context.Context, c *cli, args []string) error {
	var jsonl, asJSON bool
	var command string
	args, command = commandTail(args)
	rest, err := c.flags("classify", args, func(fs *flag.FlagSet) {
		fs.BoolVar(&jsonl, "jsonl", false, "read one JSON object a line, write one a line")
		fs.BoolVar(&asJSON, "json", false, "print one JSON object")
	})
	if err != nil {
		return err
	}
	if command != "" {
		rest = append(rest, command)
	}
	if jsonl {
		p := selfPolicy()
		if len(rest) > 0 {
			return usageError("classify --jsonl reads standard input and takes no command, got %q", rest[0])
		}
		return eachLine(c, `{"id":...,"command":"..."}`, func(in struct {
			ID      json.RawMessage `json:"id"`
			Command string          `json:"command"`
		}) any {
			return struct {
				ID json.RawMessage `json:"id"`
				policy.Verdict
			}{in.ID, p.Classify(in.Command)}
		})
	}
	if len(rest) != 1 {
		return usageError("classify wants one command in quotes, got %d arguments", len(rest))
	}
	v := selfPolicy().Classify(rest[0])
	if asJSON {
		return encode(c.out, v)
	}
	fmt.Fprintf(c.out, "%s  %s: %s\n", v.Class, v.Rule, v.Reason)
	return nil
}

// commandTail takes what follows "--" as one command given as words.
func commandTail(args []string) (before []string, command string) {
	for i, a := range args {
		if a == "--" {
			if len(args[i+1:]) == 1 {
				return args[:i], args[i+1]
			}
			return args[:i], policy.Quote(args[i+1:])
		}
	}
	return args, ""
}

// redactVerb is the redactor as a filter.
func redactVerb(_ context.Context, c *cli, args []string) error {
	var jsonl bool
	rest, err := c.flags("redact", args, func(fs *flag.FlagSet) {
		fs.BoolVar(&jsonl, "jsonl", false, "read one JSON object a line, write one a line")
	})
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		return usageError("redact reads standard input and takes no argument, got %q", rest[0])
	}
	r := redact.New(redact.Options{})
	if !jsonl {
		text, err := io.ReadAll(c.in)
		if err != nil {
			return err
		}
		res, err := r.RedactFor(string(bytes.ToValidUTF8(text, []byte("\uFFFD"))), "")
		if err != nil {
			return err
		}
		_, err = io.WriteString(c.out, res.Text)
		return err
	}
	return eachLine(c, `{"id":...,"text":"..."}`, func(in struct {
		ID   json.RawMessage `json:"id"`
		Text string          `json:"text"`
	}) any {
		res, err := r.RedactFor(in.Text, "")
		if err != nil {
			res = redact.Result{Text: "[withheld: redaction failed]"}
		}
		if res.Categories == nil {
			res.Categories = []string{}
		}
		return struct {
			ID         json.RawMessage `json:"id"`
			Text       string          `json:"text"`
			Count      int             `json:"count"`
			Categories []string        `json:"categories"`
		}{in.ID, res.Text, res.Count, res.Categories}
	})
}

// eachLine is [jsonl.Each] on the streams of the program.
func eachLine[T any](c *cli, want string, f func(T) any) error {
	err := jsonl.Each(c.in, c.out, want, f)
	if errors.Is(err, jsonl.ErrInput) {
		return usageError("%w", err)
	}
	return err
}

func encode(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// oneLine keeps a listing one line an item, whatever the text holds: no control
// sequence, line break or change of the writing direction reaches the terminal.
func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Cf, r) { // what reorders, and what has no width
			return -1
		}
		return r
	}, redact.Clean([]byte(s)))
	return strings.Join(strings.Fields(s), " ")
}
