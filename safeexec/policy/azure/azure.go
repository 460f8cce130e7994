// Package azure decides which az commands only read, over the whole azure-cli
// command tree.
//
// A command is the leading run of words, in any letter case; no option may
// stand before or between them. It must be in the tree (commands.txt, generated
// by "go generate" from a reviewed list of all commands) and there be a read.
// Its options must be on the list of options that select or shape
// (options.txt), because az reads files into any argument that begins with
// "@", shortens option names ("--show-sec"), and has options that print
// secrets, write files or follow for ever. --query is parsed as JMESPath.
package azure

//go:generate go run ./generate ../../../../shared/vectors/az_commands.jsonl commands.txt

import (
	_ "embed"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"ghostbot/safeexec/policy/azure/jmespath"
)

//go:embed commands.txt
var commandsText string

//go:embed options.txt
var optionsText string

// Problem says why a command is not SAFE. Rule is short and stable, Reason is
// one sentence for people.
type Problem struct{ Rule, Reason string }

// Policy is the loaded command tree with its options. It is immutable and safe
// for concurrent use.
type Policy struct {
	tree    map[string]command
	options map[string]bool
	guards  map[string]guard
}

// Load reads the tables that are part of the program.
func Load() (*Policy, error) {
	tree, err := parseTree(commandsText)
	if err != nil {
		return &Policy{}, err
	}
	p := &Policy{tree: tree, options: map[string]bool{}, guards: guards}
	for _, line := range strings.Split(optionsText, "\n") {
		if !strings.HasPrefix(line, "#") {
			for _, o := range strings.Fields(line) {
				p.options[o] = true
			}
		}
	}
	return p, nil
}

// Source returns the text of all tables; a policy's version is a digest over it.
func Source() string { return commandsText + optionsText }

// Count returns how many commands of the tree are reads, and how many there are.
func (p *Policy) Count() (reads, all int) {
	for _, c := range p.tree {
		if c.effect == Read {
			reads++
		}
	}
	return reads, len(p.tree)
}

// A Group is the first word of commands of the tree, with how many of them there
// are and how many only read.
type Group struct {
	Name       string
	Reads, All int
}

// Groups lists the tree by first word.
func (p *Policy) Groups() []Group {
	by := map[string]*Group{}
	for name, c := range p.tree {
		first, _, _ := strings.Cut(name, " ")
		if by[first] == nil {
			by[first] = &Group{Name: first}
		}
		by[first].All++
		if c.effect == Read {
			by[first].Reads++
		}
	}
	out := make([]Group, 0, len(by))
	for _, name := range slices.Sorted(maps.Keys(by)) {
		out = append(out, *by[name])
	}
	return out
}

// Held lists the commands that only read and still are not SAFE as they stand,
// with the reason.
func (p *Policy) Held() []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(p.guards)) {
		out = append(out, "az "+name+" "+p.guards[name].reason)
	}
	return out
}

// Check returns nil when argv, which begins with "az", is a read.
func (p *Policy) Check(argv []string) *Problem {
	if len(argv) < 2 {
		return &Problem{"az-command", "az alone is no command"}
	}
	if problem := readsFile(argv[1:]); problem != nil {
		return problem
	}
	n := 1
	for n < len(argv) && !strings.HasPrefix(argv[n], "-") {
		n++
	}
	name := strings.ToLower(strings.Join(argv[1:n], " "))
	cmd, ok := p.tree[name]
	if !ok {
		return p.unknown(argv[1:n], argv[1:])
	}
	if problem := badQuery(argv[n:]); problem != nil {
		return problem
	}
	if _, held := p.guards[name]; cmd.effect != Read && !(held && cmd.effect == Secret) {
		return &Problem{"az-" + effectName(cmd.effect), fmt.Sprintf("az %s %s", name, why[cmd.effect])}
	}
	o, problem := p.parse(name, cmd, argv[n:])
	if problem != nil {
		return problem
	}
	return p.guarded(name, o)
}

// RuleQuery is the rule of a --query that az would refuse: a mistake to be
// mended, nothing that anybody could approve.
const RuleQuery = "az-query"

// badQuery explains a --query that is no JMESPath, whatever the command does.
func badQuery(args []string) *Problem {
	for i, a := range args {
		opt, value, joined := splitOption(a)
		if len(opt) < 4 || global(opt) != "--query" {
			continue
		}
		if !joined && i+1 < len(args) {
			value = args[i+1]
		}
		if _, err := jmespath.Parse(value); err != nil {
			return &Problem{RuleQuery, "the --query expression is wrong: " + err.Error()}
		}
	}
	return nil
}

func effectName(e Effect) string {
	for name, letter := range letters {
		if letter == e {
			return name
		}
	}
	return "unknown"
}

// readsFile refuses arguments whose content az would read from a file or from
// standard input: "@x", and "name=@x".
func readsFile(args []string) *Problem {
	for _, a := range args {
		_, value, joined := strings.Cut(a, "=")
		if len(a) > 1 && a[0] == '@' || joined && len(value) > 1 && value[0] == '@' {
			return &Problem{"az-file", "az reads a local file into an argument that begins with @"}
		}
	}
	return nil
}

// unknown explains a command that is not in the tree, with the longest part
// that is.
func (p *Policy) unknown(words, args []string) *Problem {
	if len(words) == 0 {
		if args[0] == "--version" && len(args) == 1 || (args[0] == "-h" || args[0] == "--help") && len(args) == 1 {
			return nil
		}
		return &Problem{"az-command", "az takes options only after the words of its command"}
	}
	for n := len(words) - 1; n > 0; n-- {
		name := strings.ToLower(strings.Join(words[:n], " "))
		if _, ok := p.tree[name]; ok {
			return &Problem{"az-command", fmt.Sprintf("az %s takes no further word; %s is not on the list", name, clip(words[n]))}
		}
	}
	return &Problem{"az-command", fmt.Sprintf("az %s is not in the list of known commands", clip(strings.Join(words, " ")))}
}

// options holds what was given to a read.
type options struct {
	query  string
	output string
}

// parse looks at every option of a read.
func (p *Policy) parse(name string, cmd command, args []string) (options, *Problem) {
	var o options
	for i := 0; i < len(args); {
		opt, value, joined := splitOption(args[i])
		i++
		var values []string
		if joined {
			values = append(values, value)
		}
		for i < len(args) && !isOption(args[i]) {
			values = append(values, args[i])
			i++
		}
		if problem := p.option(name, cmd, opt, values, &o); problem != nil {
			return o, problem
		}
	}
	return o, nil
}

func isOption(a string) bool { return len(a) > 1 && a[0] == '-' }

// splitOption separates "--opt=value" and "-ovalue".
func splitOption(a string) (opt, value string, joined bool) {
	if strings.HasPrefix(a, "--") {
		return strings.Cut(a, "=")
	}
	if len(a) > 2 {
		return a[:2], strings.TrimPrefix(a[2:], "="), true
	}
	return a, "", false
}

func (p *Policy) option(name string, cmd command, opt string, values []string, o *options) *Problem {
	for _, e := range cmd.escalate {
		if e == opt || len(opt) > 3 && strings.HasPrefix(e, opt) {
			return &Problem{"az-option", fmt.Sprintf("az %s %s does more than read", name, opt)}
		}
	}
	full := global(opt)
	if !p.options[full] && !selector(full) && !slices.Contains(extra[name], full) {
		return &Problem{"az-option", fmt.Sprintf("az %s %s is not on the list of options that run without a person", name, clip(opt))}
	}
	for _, v := range values {
		if !printable(v) {
			return &Problem{"az-value", fmt.Sprintf("az %s %s: the value has unusual characters", name, opt)}
		}
		if localFile(full, v) {
			return &Problem{"az-file", fmt.Sprintf("az %s %s %s: az may read a local file there", name, opt, clip(v))}
		}
	}
	for _, v := range values {
		if foreign(name, full, v) {
			return &Problem{"az-value", fmt.Sprintf("az %s %s %s: az puts such a value into an address that it sends its token to; a plain name runs without a person", name, opt, clip(v))}
		}
	}
	last := ""
	if len(values) > 0 {
		last = values[len(values)-1]
	}
	return checkValue(name, full, last, values, o)
}

// extra options of single commands.
var extra = map[string][]string{
	"graph query":                         {"-q", "--graph-query", "--first", "--subscriptions", "-s", "--management-groups", "-m"},
	"vm image list":                       {"-p", "-f"},
	"vm image list-offers":                {"-p"},
	"vm image list-skus":                  {"-p", "-f"},
	"vm image show":                       {"-p", "-f", "-u"},
	"account list":                        {"--refresh"},
	"monitor metrics list":                {"--namespace"},
	"network vnet list-endpoint-services": {"-l"},
}

// confidential words keep an option off the list even when it only selects.
var confidential = []string{"secret", "secrets", "key", "keys", "password", "token", "sas", "file", "template", "script",
	"credential", "connection-string", "user-data", "body"}

// selector reports an option that names an object, as in --vnet-name.
func selector(opt string) bool {
	if !strings.HasPrefix(opt, "--") {
		return false
	}
	for _, c := range confidential {
		if strings.Contains(opt+"-", "-"+c+"-") {
			return false
		}
	}
	for _, s := range []string{"-name", "-names", "-id", "-ids", "-group", "-groups"} {
		if strings.HasSuffix(opt, s) && len(opt) > len(s)+2 {
			return true
		}
	}
	return false
}

// foreign reports a value that names another host than a service of Azure. Data commands
// build https://NAME.blob.core.windows.net and the like from a name (azure-cli,
// get_account_url and _get_credentials): what ends the host before the suffix makes it any
// host. Ids of Key Vault are whole addresses.
func foreign(name, opt, v string) bool {
	if strings.HasPrefix(strings.ToLower(v), "http") && strings.Contains(v, ":") {
		u, err := url.Parse(v)
		return err != nil || !strings.EqualFold(u.Scheme, "https") || u.User != nil || !slices.ContainsFunc(vaults, func(s string) bool { return strings.HasSuffix(strings.ToLower(u.Host), s) })
	}
	named := opt == "-n" || opt == "-r" || opt == "--name" || opt == "--registry" || strings.HasSuffix(opt, "-name") || opt == "-w" || opt == "--workspace"
	path := (opt == "-n" || opt == "--name") && (strings.HasPrefix(name, "storage ") || strings.HasPrefix(name, "acr manifest "))
	return named && !path && !strings.HasPrefix(strings.ToLower(v), "/subscriptions/") && strings.ContainsAny(v, `/?#\%`)
}

// vaults are the hosts of Key Vault and Managed HSM in the clouds that azure-cli knows.
var vaults = []string{".vault.azure.net", ".vault.azure.cn", ".vault.usgovcloudapi.net", ".managedhsm.azure.net", ".managedhsm.azure.cn", ".managedhsm.usgovcloudapi.net"}

// localFile reports a value that is a path on this machine: some options of az
// read a file when their value is one. Resource ids and paths of a service
// begin with a slash too.
func localFile(opt, v string) bool {
	switch {
	case strings.HasPrefix(v, "~") || strings.HasPrefix(v, "./") || strings.HasPrefix(v, "../") || strings.HasPrefix(strings.ToLower(v), "file:"):
		return true
	case !strings.HasPrefix(v, "/") || opt == "--ids" || opt == "--path":
		return false
	}
	for _, p := range []string{"/subscriptions/", "/providers/", "/tenants/"} {
		if strings.HasPrefix(strings.ToLower(v), p) {
			return false
		}
	}
	return v != "/"
}

// global completes shortened global options: every command has them, so a
// prefix of one either means it or is an error of az.
func global(opt string) string {
	i := slices.IndexFunc(globals, func(g string) bool { return len(opt) > 4 && strings.HasPrefix(g, opt) })
	if i < 0 {
		return opt
	}
	return globals[i]
}

var globals = []string{"--output", "--query", "--subscription", "--verbose"}

func checkValue(name, opt, last string, values []string, o *options) *Problem {
	switch opt {
	case "--query":
		o.query = last
		if len(values) != 1 {
			return &Problem{RuleQuery, "az --query takes one expression; quote it"}
		}
	case "--output", "-o":
		o.output = last
		if !outputs[strings.ToLower(last)] || len(values) != 1 {
			return &Problem{"az-value", fmt.Sprintf("az -o %s: give one of json, jsonc, table, tsv, yaml, yamlc, none", clip(last))}
		}
	case "--auth-mode":
		if last != "login" {
			return &Problem{"az-option", fmt.Sprintf("az %s --auth-mode %s uses an account key; only login runs without a person", name, clip(last))}
		}
	}
	return nil
}

var outputs = map[string]bool{"json": true, "jsonc": true, "table": true, "tsv": true, "yaml": true, "yamlc": true, "none": true}

func printable(v string) bool {
	for _, r := range v {
		if r < ' ' || r == 0x7f {
			return false
		}
	}
	return len(v) <= 8000
}

func clip(s string) string {
	if len(s) > 60 {
		s = s[:60] + "..."
	}
	return strings.Map(visible, s)
}

func visible(r rune) rune {
	if r < ' ' || r > '~' {
		return '?'
	}
	return r
}
