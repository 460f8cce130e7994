// Package logs makes the program's log: lines of text or of JSON on one writer,
// in which no credential stands, and what is decided in cases, with the ids to find
// it by.
//
// # Lines
//
// A line of JSON has time, level and msg, and what belongs to it: session_id is a
// case, audit_id an entry of its journals (the citation in reports), proposal the
// id of what people were asked about. Names are only ever added.
//
// # Credentials
//
// Every text of a line passes redaction: the message, and each value together with
// its name, because a label is often all that shows a password. Text that cannot be
// redacted is withheld. A text is cut after [maxText] bytes.
package logs

import (
	"encoding"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// maxText is how long one text of a line may be, in bytes.
const maxText = 8 << 10

// Config is what operators chose.
type Config struct {
	Format string // text, json
	Level  string // debug, info, warn, error
}

// formats and levels are what may be chosen.
var (
	formats = []string{"text", "json"}
	levels  = []string{"debug", "info", "warn", "error"}
)

// Check says what is wrong with the choice; the error begins with the variable.
func (c Config) Check() error {
	if !slices.Contains(formats, c.Format) {
		return fmt.Errorf("GHOST_LOG: %q is not accepted (accepted: %s)", c.Format, strings.Join(formats, " "))
	}
	if !slices.Contains(levels, c.Level) {
		return fmt.Errorf("GHOST_LOG_LEVEL: %q is not accepted (accepted: %s)", c.Level, strings.Join(levels, " "))
	}
	return nil
}

// New returns a logger that writes to w; clean removes credentials from a text. A
// choice that Check refuses is text, from info on.
func New(w io.Writer, c Config, clean func(string) string) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.Level)); err != nil {
		level = slog.LevelInfo
	}
	o := &slog.HandlerOptions{Level: level, ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr { return safe(a, len(groups) == 0, clean) }}
	if c.Format == "json" {
		return slog.New(slog.NewJSONHandler(w, o))
	}
	return slog.New(slog.NewTextHandler(w, o))
}

// names of values that are ours and no secrets, although they may look like one.
var names = []string{"key", "session_id", "audit_id", "proposal", slog.MessageKey}

// safe is a with a value that may be shown.
func safe(a slog.Attr, top bool, clean func(string) string) slog.Attr {
	v := a.Value.Resolve()
	switch v.Kind() {
	case slog.KindBool, slog.KindDuration, slog.KindFloat64, slog.KindInt64, slog.KindUint64, slog.KindTime, slog.KindGroup:
		return a
	case slog.KindAny:
		if _, level := v.Any().(slog.Level); level && top {
			return a
		}
	}
	s := cut(text(v))
	if !slices.Contains(names, a.Key) {
		labelled := clean(a.Key + "=" + s)
		if rest, ok := strings.CutPrefix(labelled, a.Key+"="); ok && rest != s {
			return slog.String(a.Key, rest)
		}
	}
	return slog.String(a.Key, clean(s))
}

// text is a value as one text.
func text(v slog.Value) string {
	if v.Kind() == slog.KindString {
		return v.String()
	}
	switch x := v.Any().(type) {
	case error:
		return x.Error()
	case []byte:
		return string(x)
	case fmt.Stringer:
		return x.String()
	case encoding.TextMarshaler:
		if b, err := x.MarshalText(); err == nil {
			return string(b)
		}
	}
	if b, err := json.Marshal(v.Any()); err == nil {
		return string(b)
	}
	return fmt.Sprintf("%v", v.Any())
}

// cut shortens a text between two of its runes.
func cut(s string) string {
	if len(s) <= maxText {
		return s
	}
	end := maxText
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "..."
}

// seconds rounds a time for people.
func seconds(d time.Duration) float64 { return d.Round(time.Millisecond).Seconds() }
