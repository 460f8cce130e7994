package safeexec

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"ghostbot/safeexec/policy"
)

// Rules of proposals that the gate itself refuses. Continue recognises them.
const (
	ruleCredential = "credential"
	withheld       = "[withheld: redaction did not work]"
)

func unclean(arg string) bool { return !utf8.ValidString(arg) || strings.ContainsRune(arg, 0) }

// plan says what would run and what people should know about it. It is a pure
// function of the command, the request and this shell; recheck compares two of
// its results.
func (s *Shell) plan(c Command, r Request) Proposal {
	v := s.followed(c.Verdict())
	p := Proposal{
		SessionID: s.opt.SessionID, Argv: v.Argv, Display: c.Display(), Dir: s.dir(v.Argv),
		Class: v.Class, Tier: v.Tier, Rule: v.Rule, Risk: v.Reason, Env: v.Environment,
		Reasoning: s.words(r.Reasoning), Hypothesis: r.Hypothesis, Target: s.words(r.Target), Effect: s.words(r.Effect), Means: s.words(r.Means),
		Requester: r.Requester, Policy: s.policy.Version(),
		Replaces: r.Replaces, Repeat: r.Repeat, Turn: r.Turn, Index: r.Index, Patience: r.Patience, Grant: r.Grant,
	}
	if p.Env == "" {
		p.Env = "local"
	}
	if s.leaks(c) {
		p.Class, p.Rule, p.Risk = Forbidden, ruleCredential, "contains a credential"
		p.Argv, p.Display = nil, s.scrub(p.Display)
	}
	if len(p.Argv) > 0 {
		p.Program = s.resolve(p.Argv[0])
		p.Timeout = s.timeout(p.Argv[0], r.Timeout)
		p.describe()
	}
	if p.Env == "azure" {
		p.Identity = s.opt.Identity()
	}
	return p
}

// followed forbids a command that reads a credential store through a link. It is
// looked at when a command is proposed and again right before it starts; the
// policy itself knows texts only.
func (s *Shell) followed(v policy.Verdict) policy.Verdict {
	if v.Class == Forbidden || len(v.Argv) < 2 {
		return v
	}
	argv := slices.Clone(v.Argv)
	for i, a := range argv[1:] {
		real := s.behind(s.dir(v.Argv), a)
		if real == "" {
			continue
		}
		argv[i+1] = real
		if v.Class == Safe && s.policy.ClassifyArgv([]string{"cat", real}).Class == Forbidden || s.policy.ClassifyArgv(argv).Class == Forbidden {
			f := forbid("catastrophe", "never run: "+a+" is a link that leads to a credential store or a system file")
			f.Environment, f.Argv = v.Environment, v.Argv
			return f
		}
	}
	return v
}

// behind is the file to which an argument of a command in dir leads over links, "" when it is none
// or leads over no link.
func (s *Shell) behind(dir, arg string) string {
	if len(arg) > 1024 || arg == "" || arg[0] == '-' || strings.Contains(arg, "://") {
		return ""
	}
	file := arg
	if !filepath.IsAbs(file) {
		file = filepath.Join(dir, file)
	}
	if remote(file) {
		return ""
	}
	real, err := filepath.EvalSymlinks(file)
	if err != nil || real == filepath.Clean(file) {
		return ""
	}
	return real
}

// scrub redacts text that goes into the journal or to people. When redaction
// breaks, the text is withheld.
func (s *Shell) scrub(text string) (out string) {
	if text == "" {
		return ""
	}
	defer func() {
		if recover() != nil {
			out = withheld
		}
	}()
	return s.opt.Redactor.Redact(text).Text
}

// maxWords bounds a text in words, in bytes: people read it on a card.
const maxWords = 4 << 10

// words is scrub for a text of any length.
func (s *Shell) words(text string) string {
	text = s.scrub(text)
	if len(text) <= maxWords {
		return text
	}
	return strings.ToValidUTF8(text[:maxWords], "") + "..."
}

// leaks reports whether redaction would change what c shows. Arguments are also
// looked at one by one, because quoting can hide a pattern.
func (s *Shell) leaks(c Command) (leak bool) {
	defer func() {
		if recover() != nil {
			leak = true
		}
	}()
	texts := append([]string{c.text, c.Display(), strings.Join(c.verdict.Argv, " ")}, c.verdict.Argv...)
	for _, t := range texts {
		if s.opt.Redactor.Contains(t) {
			return true
		}
	}
	return false
}

// timeout of a command whose request asked for want (0: the tool's own).
func (s *Shell) timeout(tool string, want time.Duration) time.Duration {
	if want <= 0 {
		want = s.opt.Timeout
		if t := s.opt.Timeouts[filepath.Base(tool)]; t > 0 {
			want = t
		}
	}
	return min(want, s.opt.MaxTimeout)
}

// resolve returns the real file behind a program's name, "" when there is none.
// The link that was found is followed now, so that swapping it later does not
// change what runs. Relative paths name nothing here.
func (s *Shell) resolve(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if real, ok := s.programs[name]; ok {
		return real
	}
	real := lookUp(name, s.opt.Path)
	if real != "" {
		s.programs[name] = real
	}
	return real
}

func lookUp(name, path string) string {
	if filepath.IsAbs(name) {
		return executable(name)
	}
	if name == "" || name == "." || name == ".." || strings.ContainsRune(name, '/') {
		return ""
	}
	for _, dir := range filepath.SplitList(path) {
		if real := executable(filepath.Join(dir, name)); real != "" {
			return real
		}
	}
	return ""
}

func executable(file string) string {
	real, err := filepath.EvalSymlinks(file)
	if err != nil {
		return ""
	}
	fi, err := os.Stat(real)
	if err != nil || !fi.Mode().IsRegular() || unix.Access(real, unix.X_OK) != nil {
		return ""
	}
	return real
}

// describe fills what the caller left out of the words for people.
func (p *Proposal) describe() {
	if p.Target == "" {
		p.Target = target(p.Argv)
	}
	if p.Effect == "" && p.Class == Safe {
		p.Effect = "reads only"
	}
	if p.Effect == "" {
		p.Effect = "not known to be read-only"
	}
}

// target guesses what an argument list touches: the named cloud resource, else
// the first argument that is an address, a URL or a host name.
func target(argv []string) string {
	if argv[0] == "az" {
		return azTarget(argv)
	}
	for _, a := range argv[1:] {
		if strings.HasPrefix(a, "-") {
			continue
		}
		if u, err := url.Parse(a); err == nil && u.Host != "" {
			return u.Host
		}
		if _, err := netip.ParseAddr(a); err == nil {
			return a
		}
		if dot := strings.LastIndexByte(a, '.'); dot > 0 && dot < len(a)-1 && !strings.ContainsAny(a, "/=:@ ") {
			return a
		}
	}
	return ""
}

func azTarget(argv []string) string {
	var group, name string
	for i := 1; i+1 < len(argv); i++ {
		switch argv[i] {
		case "-g", "--resource-group":
			group = argv[i+1]
		case "-n", "--name", "--ids":
			name = argv[i+1]
		}
	}
	return strings.Trim(group+"/"+name, "/")
}

// Digest is what an approval binds: the SHA-256, in lower-case hex, over the
// line "ghostbot-proposal-v1\n" followed by these fields in this order, each as
// "name count\n" and then, for each of its count strings, "length:bytes\n":
//
//	argv, program, dir, identity, target, requester, policy, expires
//
// Lengths are decimal byte counts; expires is RFC 3339 with nanoseconds in UTC,
// or the empty string. No two different proposals have the same encoding. The
// fence is not part of it: pending approvals survive a take-over.
func Digest(p Proposal) string {
	h := sha256.New()
	field := func(name string, values ...string) {
		fmt.Fprintf(h, "%s %d\n", name, len(values))
		for _, v := range values {
			fmt.Fprintf(h, "%d:%s\n", len(v), v)
		}
	}
	expires := ""
	if !p.Expires.IsZero() {
		expires = p.Expires.UTC().Format(time.RFC3339Nano)
	}
	h.Write([]byte("ghostbot-proposal-v1\n"))
	field("argv", p.Argv...)
	field("program", p.Program)
	field("dir", p.Dir)
	field("identity", p.Identity)
	field("target", p.Target)
	field("requester", p.Requester)
	field("policy", p.Policy)
	field("expires", expires)
	return hex.EncodeToString(h.Sum(nil))
}

// propose journals p and returns it with its citation and id.
func (s *Shell) propose(ctx context.Context, p Proposal) (Proposal, error) {
	if p.Class == Risky {
		p.Expires = s.opt.Now().Add(s.opt.ApprovalTTL).UTC().Round(0)
	}
	p.Digest = Digest(p)
	n, hash, err := s.opt.Journal.Append(ctx, "proposed", p)
	if err != nil {
		return p, fmt.Errorf("journal proposal: %w", err)
	}
	if len(hash) < 32 {
		return p, errors.New("journal proposal: the entry's hash is too short for an id")
	}
	p.AuditID, p.ID = s.opt.SessionID+"_"+pad(n), hash[:32]
	return p, nil
}

// pad writes n with at least three digits, as citations do.
func pad(n uint64) string {
	t := strconv.FormatUint(n, 10)
	return strings.Repeat("0", max(0, 3-len(t))) + t
}

// recheck plans p's argument list again under the policy in force and reports
// whether what was proposed may no longer be started as it stands.
func (s *Shell) recheck(p Proposal) (now Proposal, why string) {
	c := Command{text: p.Display, verdict: s.policy.ClassifyArgv(p.Argv)}
	now = s.plan(c, p.request())
	now.Edited = p.Edited
	switch {
	case Digest(p) != p.Digest:
		return now, "its digest does not match"
	case now.Class < p.Class:
		return now, "the policy is stricter now: " + now.Risk
	case now.Policy != p.Policy:
		return now, "the policy has changed"
	case !slices.Equal(now.Argv, p.Argv):
		return now, "its argument list reads differently now"
	case now.Program != p.Program:
		return now, "the program is another file now"
	case now.Dir != p.Dir || now.SessionID != p.SessionID:
		return now, "it was proposed for another place"
	case now.Identity != p.Identity:
		return now, "the cloud account is another one now"
	}
	return now, ""
}

// request is what would propose p again.
func (p Proposal) request() Request {
	return Request{
		Argv: p.Argv, Reasoning: p.Reasoning, Hypothesis: p.Hypothesis, Requester: p.Requester, Target: p.Target,
		Effect: p.Effect, Means: p.Means, Timeout: p.Timeout, Patience: p.Patience, Turn: p.Turn, Index: p.Index, Replaces: p.Replaces, Repeat: p.Repeat,
	}
}
