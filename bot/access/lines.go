package access

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"ghostbot/internal/input"
)

// Every stands for every channel, and for every class and rule.
const Every = "*"

// Nobody stands in the place of users and groups: nobody may approve.
const Nobody = "nobody"

// classRisky is the only class that people decide about.
const classRisky = "RISKY"

// MaxGroups bounds the user groups of a configuration. Slack allows 20 look-ups a
// minute, and each group is looked up again every minute in which it is needed.
const MaxGroups = 15

// maxFile bounds the approvers' file: people read it.
const maxFile = 256 << 10

// Line narrows who may decide. The zero value fits nothing.
type Line struct {
	N       int      // its number in the file
	Channel string   // an id, or [Every]
	What    string   // a class, a rule, the beginning of rules followed by *, or [Every]
	Who     []string // users and groups; empty: nobody
}

func (l Line) fits(about About) bool {
	return (l.Channel == Every || l.Channel != "" && l.Channel == about.Channel) && Fits(l.What, about.Class, about.Rule)
}

// covers reports whether everything that other fits fits l as well.
func (l Line) covers(other Line) bool {
	channel := l.Channel == Every || l.Channel == other.Channel
	head, beginning := strings.CutSuffix(l.What, "*")
	switch {
	case !channel:
		return false
	case l.What == Every, l.What == classRisky, l.What == other.What:
		return true
	}
	return beginning && other.What != classRisky && strings.HasPrefix(other.What, head)
}

var (
	userOrGroup = regexp.MustCompile(`^[UWS][A-Z0-9]{2,}$`)
	channelID   = regexp.MustCompile(`^[CGD][A-Z0-9]{2,}$`)
	ruleForm    = regexp.MustCompile(`^[a-z0-9][a-z0-9._+-]*\*?$`)
)

// CheckID says what is wrong with the id of an approver.
func CheckID(id string) error {
	if !userOrGroup.MatchString(id) {
		return fmt.Errorf("%q is not a Slack user (U...) or user group (S...)", id)
	}
	return nil
}

// CheckWhat says what is wrong with the name of a class or rule. known reports
// whether the policy has a rule of that name, or rules that begin so.
func CheckWhat(what string, known func(rule string) bool) error {
	switch {
	case what == classRisky:
		return nil
	case what == "SAFE" || what == "FORBIDDEN" || what == "risky":
		return fmt.Errorf("%q is not accepted: only RISKY is a class that people decide about", what)
	case !ruleForm.MatchString(what) || !known(what):
		return fmt.Errorf("%q is not accepted (accepted: RISKY, a rule as classify prints it, or the beginning of rules followed by *, as in az-*)", what)
	}
	return nil
}

// Read reads the approvers' file: a line for each narrowing, with channel, class or
// rule, and approvers, separated by blanks or tabs; # begins a comment. channels are
// those in which cases may be opened; empty: all.
//
// A line that can never fit, because one above it always fits first, is an error:
// whoever wrote it expected something else.
func Read(name string, channels []string, known func(rule string) bool) ([]Line, error) {
	f, info, err := input.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	switch {
	case info.Mode().Perm()&0o022 != 0:
		return nil, fmt.Errorf("%s can be written by others than its owner (mode %04o): chmod go-w %s", name, info.Mode().Perm(), name)
	case info.Size() > maxFile:
		return nil, fmt.Errorf("%s has %d bytes, at most %d are read", name, info.Size(), maxFile)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxFile))
	if err == nil {
		text, err = input.Plain(name, text)
	}
	if err != nil {
		return nil, err
	}
	lines, err := parse(bytes.NewReader(text), channels, known)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return lines, nil
}

func parse(r io.Reader, channels []string, known func(string) bool) ([]Line, error) {
	var out []Line
	in := bufio.NewScanner(r)
	for n := 1; in.Scan(); n++ {
		text, _, _ := strings.Cut(in.Text(), "#")
		fields := strings.Fields(strings.ReplaceAll(text, ",", " "))
		if len(fields) == 0 {
			continue
		}
		l, err := line(fields, channels, known)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		l.N = n
		for _, above := range out {
			if above.covers(l) {
				return nil, fmt.Errorf("line %d never counts: line %d fits first. Put the narrower line above", n, above.N)
			}
		}
		out = append(out, l)
	}
	return out, in.Err()
}

func line(fields, channels []string, known func(string) bool) (Line, error) {
	if len(fields) < 3 {
		return Line{}, fmt.Errorf("%q is not a channel, a class or rule, and approvers (accepted: three columns or more; * for every channel or rule, nobody for no approver)", strings.Join(fields, " "))
	}
	l := Line{Channel: fields[0], What: fields[1], Who: fields[2:]}
	switch {
	case l.Channel == Every:
	case !channelID.MatchString(l.Channel):
		return l, fmt.Errorf("%q is not a Slack channel id (C...), or *", l.Channel)
	case len(channels) > 0 && !slices.Contains(channels, l.Channel):
		return l, fmt.Errorf("no case can be opened in %s, which is not in GHOST_CHANNELS", l.Channel)
	}
	if l.What != Every {
		if err := CheckWhat(l.What, known); err != nil {
			return l, err
		}
	}
	if len(l.Who) == 1 && l.Who[0] == Nobody {
		l.Who = nil
		return l, nil
	}
	for _, id := range l.Who {
		if err := CheckID(id); err != nil {
			return l, err
		}
	}
	return l, nil
}

// Check says what is wrong with the rules as a whole.
func (a Rules) Check() error {
	if n := len(a.Groups()); n > MaxGroups {
		return fmt.Errorf("%d user groups are named, at most %d can be looked up every minute", n, MaxGroups)
	}
	return nil
}

// With is a check of lines in the place of those that a has.
func (a Rules) With(lines []Line) error {
	a.File, a.Lines = nil, lines
	return a.Check()
}

// Groups are the user groups that the rules name.
func (a Rules) Groups() []string {
	return a.named(func(id string) bool { return strings.HasPrefix(id, "S") })
}

// Users are the users that the rules name.
func (a Rules) Users() []string {
	return a.named(func(id string) bool { return !strings.HasPrefix(id, "S") })
}

func (a Rules) named(wanted func(string) bool) []string {
	var out []string
	add := func(ids []string) {
		for _, id := range ids {
			if wanted(id) && !slices.Contains(out, id) {
				out = append(out, id)
			}
		}
	}
	add(a.Approvers)
	lines, _ := a.narrowings() // where they cannot be read, they name nobody
	for _, l := range lines {
		add(l.Who)
	}
	return out
}
