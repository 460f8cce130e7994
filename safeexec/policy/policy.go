// Package policy decides, without running anything, what class a command is of.
//
// # Tiers
//
// Tier 0: catastrophes, FORBIDDEN whoever approves, found by walking the parsed
// text through wrappers (room danger). Tier 1: the tool's own policy,
// allow-listed flags and positional grammar (room tools). Tier 2: the azure-cli
// command tree (room azure). Tier 3: shape of the text (more than one simple
// command, substitutions, wrappers; room shellwords). A command is SAFE only
// when exactly one allow-listed program with allow-listed arguments is left;
// everything that is not understood is RISKY. The zero Class is Forbidden.
//
// Classification never depends on what is installed.
package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"ghostbot/safeexec/policy/azure"
	"ghostbot/safeexec/policy/danger"
	"ghostbot/safeexec/policy/shellwords"
	"ghostbot/safeexec/policy/tools"
)

// Class says what may happen with a command. The zero value forbids.
type Class uint8

const (
	Forbidden Class = iota // never run, whoever approves
	Risky                  // run after a person approved
	Safe                   // run without asking
)

// String is the class as people and files write it.
func (c Class) String() string {
	switch c {
	case Safe:
		return "SAFE"
	case Risky:
		return "RISKY"
	}
	return "FORBIDDEN"
}

// MarshalText writes the class as SAFE, RISKY or FORBIDDEN.
func (c Class) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText reads SAFE and RISKY; everything else is FORBIDDEN.
func (c *Class) UnmarshalText(b []byte) error {
	*c = classes[string(b)]
	return nil
}

// classes by name; a name that is not here is the zero class, which forbids.
var classes = map[string]Class{"SAFE": Safe, "RISKY": Risky}

// RuleQuery is the rule of an az command whose --query az would refuse. It is
// RISKY like all that is not understood, and nobody needs to be asked about it.
const RuleQuery = azure.RuleQuery

// Verdict is the answer about one command text.
type Verdict struct {
	Class       Class    `json:"class"`
	Tier        *int     `json:"tier"`        // 0 to 3; nil when SAFE
	Rule        string   `json:"rule"`        // short stable name, as in "curl-flag"
	Reason      string   `json:"reason"`      // for people
	Environment string   `json:"environment"` // "azure" when the program is az, else "local"
	Argv        []string `json:"argv"`        // the argument list that would run; nil when there is no single one
}

// Options are what a deployment may add to the built-in policy.
type Options struct {
	// Self is the absolute path of the product's own binary; its read-only
	// verbs (pcap, classify, version) are SAFE by exactly this path.
	Self string
	// CaptureDirs are absolute folders whose files tcpdump -r, tshark -r and
	// the product's pcap verb may read.
	CaptureDirs []string
}

// Policy classifies commands. It is immutable and safe for concurrent use.
type Policy struct {
	version string
	self    string
	table   *tools.Table
	az      func() *azure.Policy // read at the first az command: most programs that start never see one
}

// rules counts changes of the rules that stand in Go, not in tables; raise it
// with any change of the rooms that alters a verdict.
const rules = "10"

// New returns the built-in policy with o added. Tables that cannot be read
// make no command SAFE.
func New(o Options) *Policy {
	p := &Policy{self: o.Self}
	// A broken table gives an empty one, which denies; the tests of the rooms
	// show the error.
	p.table, _ = tools.Load(tools.Config{CaptureDirs: o.CaptureDirs, Self: o.Self})
	p.az = sync.OnceValue(func() *azure.Policy {
		az, _ := azure.Load()
		return az
	})
	p.version = digest(o)
	return p
}

func digest(o Options) string {
	h := sha256.New()
	src, err := tools.Source()
	if err != nil {
		src = err.Error()
	}
	opt, _ := json.Marshal(o) // strings only: cannot be refused
	for _, part := range []string{rules, src, azure.Source(), string(opt)} {
		h.Write([]byte(part))
		h.Write([]byte{0})
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}

// Version identifies the policy's content; it is part of what an approval
// binds, so that an approval given under one policy does not start a command
// under another. It is a digest over the tables, the options and a number that
// stands for the rules in Go.
func (p *Policy) Version() string { return p.version }

// Classify decides about a command text. It never fails: a text that is no
// command is RISKY with a nil Argv, which means that no approval can start it
// as it stands.
func (p *Policy) Classify(text string) (v Verdict) {
	defer func() {
		// The parser is not ours: a text that breaks it is refused like any other.
		if recover() != nil {
			v = Verdict{Class: Risky, Environment: "local"}.explain(3, "internal", "the text cannot be read by the parser")
		}
	}()
	c := shellwords.Parse(text)
	v = Verdict{Class: Risky, Environment: "local", Argv: c.Argv}
	if len(c.Argv) > 0 && c.Argv[0] == "az" {
		v.Environment = "azure"
	}
	if why := danger.Command(c, text); why != "" {
		v.Class = Forbidden
		return v.explain(0, "catastrophe", "never run: "+why)
	}
	if c.Problem != nil {
		return v.explain(3, c.Problem.Rule, c.Problem.Reason)
	}
	return p.judge(v)
}

// judge decides about a plain argument list.
func (p *Policy) judge(v Verdict) Verdict {
	if v.Argv[0] == "az" {
		if problem := p.az().Check(v.Argv); problem != nil {
			return v.explain(2, problem.Rule, problem.Reason)
		}
	} else if problem := p.table.Check(v.Argv); problem != nil {
		if problem.Rule == "unknown-program" && danger.Wraps(v.Argv[0]) {
			return v.explain(3, "wrapper", p.inside(v.Argv))
		}
		rule, reason := hosts(v.Argv, p.self, problem.Rule, problem.Reason)
		return v.explain(1, rule, reason)
	}
	v.Class = Safe
	v.Rule, v.Reason = "listed", "a read-only command on the list"
	return v
}

// inside says why a program that starts another one needs a person: for what the
// other one does, where that can be told.
func (p *Policy) inside(argv []string) string {
	inner, by := danger.Inner(argv)
	if inner == nil || inner[0] == "az" {
		return argv[0] + " starts another program; that needs a person"
	}
	problem := p.table.Check(inner)
	if problem == nil {
		return argv[0] + " starts another program; that needs a person"
	}
	return problem.Reason + "; started by " + strings.Join(by, " and ")
}

func (v Verdict) explain(tier int, rule, reason string) Verdict {
	v.Tier, v.Rule, v.Reason = &tier, rule, reason
	return v
}

// ClassifyArgv decides about an argument list: the same verdict as Classify
// gives for its quoted form.
func (p *Policy) ClassifyArgv(argv []string) Verdict {
	return p.Classify(Quote(argv))
}

// Quote writes an argument list as one line, for people and for journals: every
// argument is quoted where that is needed, characters outside printable ASCII
// are escaped visibly, and two different lists never look alike. A list of
// printable ASCII comes back unchanged through Classify.
func Quote(argv []string) string { return shellwords.Quote(argv) }

// ToolDoc describes, for the manual, what a program may do without a person.
type ToolDoc = tools.Doc

// AzGroup is the first word of az commands, with how many there are and how many
// of them only read.
type AzGroup = azure.Group

// DescribeAz returns the command tree of az by first word, and the reads that
// are held back with the reason, for a reference page.
func (p *Policy) DescribeAz() (groups []AzGroup, held []string) {
	return p.az().Groups(), p.az().Held()
}

// Describe returns what is SAFE, program by program, for a reference page. The
// last entry is az, whose policy is the command tree of azure-cli.
func (p *Policy) Describe() []ToolDoc {
	reads, all := p.az().Count()
	return append(p.table.Describe(), ToolDoc{
		Name: "az",
		Safe: fmt.Sprintf("%d of %d known commands, those that only read, with options that select or shape", reads, all),
	})
}
