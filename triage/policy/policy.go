// Package policy says which processes are never touched and how much may be
// done at once. It is pure. The policy is an editable file over defaults; a
// member that nobody knows is an error, because a guardrail with a misspelt name
// guards nothing.
package policy

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"ghostbot/triage/model"
	"ghostbot/triage/scan"
)

// ErrPolicy is what every refusal of a policy file is.
var ErrPolicy = errors.New("policy is not usable")

// Policy is the policy file.
type Policy struct {
	SchemaVersion string       `json:"schema_version"`
	ID            string       `json:"id"`
	Guardrails    Guardrails   `json:"guardrails"`
	Robot         Robot        `json:"robot_mode"`
	Attended      Attended     `json:"attended"`
	FDR           FDR          `json:"fdr"`
	Losses        model.Losses `json:"losses"`

	names, review []*regexp.Regexp
}

// Guardrails hold for everybody.
type Guardrails struct {
	MinAge         float64  `json:"min_process_age_seconds"`
	ProtectRoot    Tristate `json:"protect_root"`
	AllowCrossUID  bool     `json:"allow_cross_uid"`
	Names          []string `json:"protected_names"`
	Patterns       []Entry  `json:"protected_patterns"`
	Users          []string `json:"protected_users"`
	ForceReview    []string `json:"force_review"`
	NeverKillPPID  []int    `json:"never_kill_ppid"`
	KillsPerRun    int      `json:"max_kills_per_run"`
	KillsPerMinute int      `json:"max_kills_per_minute"`
	KillsPerHour   int      `json:"max_kills_per_hour"`
	KillsPerDay    int      `json:"max_kills_per_day"`
}

// Robot is for runs that nobody approved target by target.
type Robot struct {
	Enabled        bool    `json:"enabled"`
	MinPosterior   float64 `json:"min_posterior"`
	MaxBlastMB     float64 `json:"max_blast_radius_mb"`
	MaxKills       int     `json:"max_kills"`
	KnownSignature bool    `json:"require_known_signature"`
}

// Attended is for actions that a person approved.
type Attended struct {
	MinPosterior float64 `json:"min_posterior"`
}

// FDR is the control of false discoveries.
type FDR struct {
	Method string  `json:"method"`
	Alpha  float64 `json:"alpha"`
}

// Tristate is true, false or "auto".
type Tristate string

// UnmarshalJSON implements [json.Unmarshaler].
func (t *Tristate) UnmarshalJSON(b []byte) error {
	switch s := strings.Trim(string(b), `"`); s {
	case "auto", "true", "false":
		*t = Tristate(s)
		return nil
	}
	return fmt.Errorf("%s is not true, false or \"auto\"", b)
}

// Entry is a protected pattern: a regular expression, or an object with a kind.
type Entry struct {
	Pattern string `json:"pattern"`
	Kind    string `json:"kind,omitempty"` // regex, glob, literal
	Fold    bool   `json:"case_insensitive,omitempty"`
	Notes   string `json:"notes,omitempty"`
	re      *regexp.Regexp
}

// UnmarshalJSON accepts a plain string as a regular expression.
func (e *Entry) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		e.Kind = "regex"
		return json.Unmarshal(b, &e.Pattern)
	}
	type plain Entry
	return strict(b, (*plain)(e))
}

func strict(b []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("something follows the end of the document")
	}
	return nil
}

//go:embed policy.json
var defaults []byte

// Default is the policy that is shipped.
func Default() *Policy {
	p, err := Parse(nil)
	if err != nil {
		panic(err) // the file is part of the program, and a test reads it
	}
	return p
}

// Parse reads a policy file over the defaults; nil is the defaults alone. The
// policy may stand in a member "policy" of the file.
func Parse(b []byte) (*Policy, error) {
	p := &Policy{}
	if err := strict(defaults, p); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPolicy, err)
	}
	if b != nil {
		var wrapped struct {
			Policy json.RawMessage `json:"policy"`
		}
		if json.Unmarshal(b, &wrapped) == nil && wrapped.Policy != nil {
			if err := alone(b); err != nil {
				return nil, fmt.Errorf("%w: %w", ErrPolicy, err)
			}
			b = wrapped.Policy
		}
		if err := strict(b, p); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrPolicy, err)
		}
	}
	if err := p.compile(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPolicy, err)
	}
	return p, nil
}

// alone refuses members of a policy beside the member "policy": nobody would read
// them.
func alone(b []byte) error {
	var beside map[string]json.RawMessage
	if err := json.Unmarshal(b, &beside); err != nil {
		return err
	}
	for _, name := range []string{"guardrails", "robot_mode", "attended", "fdr", "losses"} {
		if beside[name] != nil {
			return fmt.Errorf("%q stands beside the member \"policy\" and not in it", name)
		}
	}
	return nil
}

func (p *Policy) compile() error {
	for _, v := range []float64{p.Robot.MinPosterior, p.Attended.MinPosterior, p.FDR.Alpha} {
		if !(v > 0 && v <= 1) {
			return fmt.Errorf("%v is not a probability above 0", v)
		}
	}
	if p.FDR.Method != "e-bh" {
		return fmt.Errorf("fdr method %q: only e-bh is known", p.FDR.Method)
	}
	if p.Guardrails.MinAge < 0 || p.Robot.MaxBlastMB < 0 {
		return errors.New("a limit is below 0")
	}
	for _, n := range []int{p.Guardrails.KillsPerRun, p.Guardrails.KillsPerMinute, p.Guardrails.KillsPerHour, p.Guardrails.KillsPerDay, p.Robot.MaxKills} {
		if n < 0 {
			return errors.New("a limit is below 0")
		}
	}
	for i := range p.Guardrails.Patterns {
		if err := p.Guardrails.Patterns[i].compile(); err != nil {
			return err
		}
	}
	p.names, p.review = nil, nil
	for _, n := range p.Guardrails.Names {
		p.names = append(p.names, glob(n))
	}
	for _, n := range p.Guardrails.ForceReview {
		p.review = append(p.review, glob(n))
	}
	return p.Losses.Check()
}

func (e *Entry) compile() (err error) {
	src := e.Pattern
	switch e.Kind {
	case "regex", "":
	case "glob":
		src = glob(e.Pattern).String()
	case "literal":
		src = "^" + regexp.QuoteMeta(e.Pattern) + "$"
	default:
		return fmt.Errorf("pattern %q: kind %q is not regex, glob or literal", e.Pattern, e.Kind)
	}
	if e.Pattern == "" {
		return errors.New("a protected pattern is empty")
	}
	if e.Fold {
		src = "(?i)" + src
	}
	e.re, err = regexp.Compile(src)
	return err
}

// glob translates a file pattern: * stops at a slash, ** does not, ? is one
// character.
func glob(s string) *regexp.Regexp {
	var b strings.Builder
	b.WriteString("^")
	for i := 0; i < len(s); i++ {
		switch {
		case strings.HasPrefix(s[i:], "**"):
			b.WriteString(".*")
			i++
		case s[i] == '*':
			b.WriteString("[^/]*")
		case s[i] == '?':
			b.WriteString("[^/]")
		default:
			b.WriteString(regexp.QuoteMeta(s[i : i+1]))
		}
	}
	b.WriteString("$")
	return regexp.MustCompile(b.String())
}

// Hash is the SHA-256 of the effective policy and priors, equal across runs and
// builds.
func (p *Policy) Hash(priors *model.Priors) string {
	a, err := json.Marshal(p)
	b, err2 := json.Marshal(priors)
	if err != nil || err2 != nil {
		return ""
	}
	sum := sha256.Sum256(append(append(a, '\n'), b...))
	return hex.EncodeToString(sum[:])
}

// Protected says why r is never touched; "" when it may be.
func (p *Policy) Protected(r *scan.Record) string {
	switch {
	case r.PID == 1:
		return "process 1"
	case r.Own != "":
		return r.Own
	case r.LoginChain:
		return "part of a login session"
	}
	if n := matched(p.names, r.Names); n != "" {
		return "protected name " + n
	}
	for _, e := range p.Guardrails.Patterns {
		if n := matched([]*regexp.Regexp{e.re}, r.Names); n != "" {
			return "protected pattern " + e.Pattern
		}
	}
	switch {
	case slices.Contains(p.Guardrails.NeverKillPPID, r.PPID):
		return "child of the protected process " + strconv.Itoa(r.PPID)
	case r.UID == 0 && p.Guardrails.ProtectRoot == "true":
		return "a process of root"
	case slices.Contains(p.Guardrails.Users, strconv.Itoa(r.UID)):
		return "protected user " + strconv.Itoa(r.UID)
	}
	return ""
}

func matched(res []*regexp.Regexp, names []string) string {
	for _, n := range names {
		if slices.ContainsFunc(res, func(re *regexp.Regexp) bool { return re.MatchString(n) }) {
			return n
		}
	}
	return ""
}

// Review says that a person decides about r, whatever the evidence.
func (p *Policy) Review(r *scan.Record) bool { return matched(p.review, r.Names) != "" }

// CrossUID says why uid may not act on r; "" when it may. Root may act on
// everybody's; others on their own, unless the policy allows more.
func (p *Policy) CrossUID(r *scan.Record, uid int) string {
	if uid == 0 || r.UID == uid || p.Guardrails.AllowCrossUID && p.Guardrails.ProtectRoot != "true" {
		return ""
	}
	return "privilege_blocked: the process belongs to uid " + strconv.Itoa(r.UID)
}

// Young says that r has not lived long enough to be judged.
func (p *Policy) Young(r *scan.Record) bool { return r.AgeS < p.Guardrails.MinAge }

// Resolve turns user names into numbers with a passwd file.
func (p *Policy) Resolve(passwd string) error {
	for i, u := range p.Guardrails.Users {
		if _, err := strconv.Atoi(u); err == nil {
			continue
		}
		id := ""
		for line := range strings.Lines(passwd) {
			if f := strings.Split(line, ":"); len(f) > 2 && f[0] == u {
				id = f[2]
			}
		}
		if id == "" {
			return fmt.Errorf("%w: protected user %q is not known", ErrPolicy, u)
		}
		p.Guardrails.Users[i] = id
	}
	return nil
}
