package danger

import (
	"regexp"
	"strings"
)

// wrapper says where, among the arguments of a program that starts another
// one, the other one begins.
type wrapper struct {
	short string   // short options that take a value
	long  []string // long options that take a separate value
	skip  int      // operands before the command, as in "timeout 5 cmd"
	env   bool     // VAR=value may stand before the command
	text  bool     // the rest is joined and read by a shell, as in "ssh host cmd"
	opts  []string // options whose value is text for a shell, as in "su -c TEXT"
	after string   // the command begins after this word, as in "kubectl exec pod -- cmd"
}

// wrappers are programs that start other programs. An unknown option counts
// both as a flag and as one that takes a value.
var wrappers = map[string]wrapper{
	"sudo":              {short: "aCcDghpRrTtUu", long: []string{"--user", "--group", "--host", "--chdir", "--chroot", "--prompt"}, env: true},
	"doas":              {short: "Cu", env: true},
	"pkexec":            {long: []string{"--user"}},
	"su":                {short: "gGsw", long: []string{"--shell", "--group"}, opts: []string{"-c", "--command", "--session-command"}, skip: 1},
	"runuser":           {short: "ugGs", long: []string{"--user", "--group"}, opts: []string{"-c", "--command", "--session-command"}},
	"sg":                {opts: []string{"-c"}, skip: 1},
	"env":               {short: "uC", long: []string{"--unset", "--chdir"}, env: true, opts: []string{"-S", "--split-string"}},
	"nohup":             {},
	"timeout":           {short: "ks", long: []string{"--kill-after", "--signal"}, skip: 1},
	"time":              {short: "fo"},
	"nice":              {short: "n", long: []string{"--adjustment"}},
	"ionice":            {short: "cnt"},
	"chrt":              {short: "TPD", skip: 1},
	"taskset":           {skip: 1},
	"numactl":           {short: "CNmpiP"},
	"setsid":            {},
	"setarch":           {skip: 1},
	"stdbuf":            {short: "ioe"},
	"unbuffer":          {},
	"chroot":            {skip: 1, long: []string{"--userspec", "--groups"}},
	"unshare":           {short: "SGRw"},
	"nsenter":           {short: "tSGr", long: []string{"--target"}},
	"setpriv":           {long: []string{"--reuid", "--regid", "--groups"}},
	"capsh":             {opts: []string{"-c"}},
	"prlimit":           {short: "p"},
	"cpulimit":          {short: "lpe"},
	"cgexec":            {short: "g"},
	"systemd-run":       {short: "pMEHu", long: []string{"--unit", "--property", "--slice", "--uid", "--gid"}},
	"systemd-inhibit":   {long: []string{"--what", "--who", "--why", "--mode"}},
	"machinectl":        {skip: 2},
	"firejail":          {},
	"bwrap":             {long: []string{"--bind", "--ro-bind", "--dev", "--proc"}},
	"proot":             {short: "rbw"},
	"fakeroot":          {},
	"fakechroot":        {},
	"dbus-run-session":  {},
	"dbus-launch":       {},
	"xvfb-run":          {},
	"strace":            {short: "eopsPEuaIOSX"},
	"ltrace":            {short: "eopsunlaAFD"},
	"perf":              {skip: 1},
	"gdb":               {after: "--args"},
	"valgrind":          {},
	"catchsegv":         {},
	"watch":             {short: "nqs", long: []string{"--interval"}, text: true},
	"xargs":             {short: "adEILnPs", long: []string{"--arg-file", "--delimiter", "--max-args", "--max-procs", "--replace"}},
	"parallel":          {short: "jNaIS", long: []string{"--jobs", "--sshlogin"}, text: true},
	"flock":             {short: "wE", skip: 1, opts: []string{"-c", "--command"}},
	"script":            {short: "toIOBE", opts: []string{"-c", "--command"}},
	"tmux":              {text: true, skip: 1, short: "LScFnt"},
	"screen":            {short: "SchpTte"},
	"start-stop-daemon": {opts: []string{"--exec", "--startas", "-x", "-a"}},
	"daemonize":         {short: "acepulo"},
	"busybox":           {},
	"toybox":            {},
	"command":           {},
	"builtin":           {},
	"exec":              {short: "a"},
	"eval":              {text: true},
	"coproc":            {},
	"alias":             {},
	"noglob":            {},
	"nocorrect":         {},
	"entr":              {},
	"at":                {short: "fqt"},
	"batch":             {},
	"ssh":               {short: "BbcDEeFIiJLlmOopQRSWw", skip: 1, text: true},
	"sshpass":           {short: "pfeP"},
	"mosh":              {skip: 1},
	"rsh":               {short: "l", skip: 1, text: true},
	"pdsh":              {short: "wxglf", text: true},
	"pssh":              {short: "hHlpot", text: true},
	"clush":             {short: "wgx", text: true},
	"dsh":               {short: "mg", text: true},
	"ansible":           {opts: []string{"-a", "--args"}},
	"salt":              {skip: 2, text: true},
	"kubectl":           {after: "--"},
	"oc":                {after: "--"},
	"docker":            {},
	"podman":            {},
	"nerdctl":           {},
	"crictl":            {},
	"ctr":               {},
	"lxc":               {after: "--"},
	"lxc-attach":        {short: "n", after: "--"},
	"az":                {opts: []string{"--scripts", "--exec-command", "--command"}},
	"aws":               {opts: []string{"--command"}},
	"gcloud":            {opts: []string{"--command"}},
	"vagrant":           {opts: []string{"-c", "--command"}},
	"wsl":               {opts: []string{"-e", "--exec"}},
	"expect":            {opts: []string{"-c"}},
	"ip":                {},
	"find":              {},
	"vtysh":             {},
}

// shells read a text after -c.
var shells = map[string]bool{"sh": true, "bash": true, "zsh": true, "dash": true, "ksh": true, "ash": true, "fish": true, "mksh": true,
	"rbash": true, "csh": true, "tcsh": true, "ksh93": true, "lksh": true, "posh": true, "yash": true, "hush": true}

// interpreters run program text; quoted strings inside it are read as commands.
var interpreters = map[string]bool{"perl": true, "python": true, "python2": true, "python3": true, "ruby": true, "node": true, "php": true,
	"lua": true, "awk": true, "gawk": true, "mawk": true, "nawk": true, "tclsh": true, "pwsh": true, "powershell": true, "osascript": true,
	"vim": true, "vi": true, "ex": true, "emacs": true, "deno": true, "bun": true, "sed": true, "make": true, "nmap": true, "sqlite3": true}

// unwrap searches what a program would start.
func (s *search) unwrap(name string, argv []string) {
	switch {
	case shells[name]:
		s.shell(argv)
	case name == "find" || name == "fd" || name == "fdfind":
		s.find(argv)
	case name == "ip":
		s.ip(argv)
	case name == "docker" || name == "podman" || name == "nerdctl" || name == "crictl" || name == "ctr":
		s.container(argv)
	case interpreters[name] || strings.HasPrefix(name, "python3."):
		s.program(name, argv)
	case embeds[name] != nil:
		s.embedded(argv, embeds[name])
		if w, ok := wrappers[name]; ok {
			s.wrapped(w, argv)
		}
	case name == "trap" && len(argv) > 1:
		s.text(argv[1]) // what follows are signals
	case name == "alias":
		for _, a := range argv[1:] {
			_, v, _ := strings.Cut(a, "=")
			s.text(v)
		}
	case name == "command" && len(argv) > 1 && strings.EqualFold(argv[1], "-v"):
		// only prints where a program is
	default:
		if w, ok := wrappers[name]; ok {
			s.wrapped(w, argv)
		}
	}
}

// shell searches the text of sh -c TEXT; the c may stand in a bundle.
func (s *search) shell(argv []string) {
	for i := 1; i < len(argv); i++ {
		a := argv[i]
		if len(a) < 2 || a[0] != '-' && a[0] != '+' {
			return
		}
		if a == "--command" || !strings.HasPrefix(a, "--") && strings.Contains(a, "c") {
			for _, t := range skipFlags(argv[i+1:]) {
				s.text(t)
				return
			}
		}
		if strings.HasPrefix(a, "--command=") {
			s.text(a[len("--command="):])
		}
		if a == "-o" || a == "-O" || a == "--rcfile" || a == "--init-file" {
			i++
		}
	}
}

// starters are the ways in which program text starts other programs.
var starters = []string{"system", "exec", "popen", "Popen", "spawn", "subprocess", "run(", "call(", "shell", "`", "qx", "| getline", "os."}

// editors run what follows a "!".
var editors = map[string]bool{"vim": true, "vi": true, "ex": true, "ed": true, "view": true, "nvim": true, "less": true, "more": true}

// program searches the strings inside program text, and loops that fork.
func (s *search) program(name string, argv []string) {
	for _, a := range argv[1:] {
		if strings.Contains(a, "fork while fork") || strings.Contains(a, "fork()") && strings.Contains(a, "while") {
			s.report("a fork bomb")
		}
		s.erases(a)
		for _, q := range quotedStrings(a) {
			if credentialFile(q) {
				s.report("a credential store read: " + q)
			}
		}
		if editors[name] {
			if _, cmd, ok := strings.Cut(a, "!"); ok {
				s.text(cmd)
			}
		}
		if !containsAny(a, starters) {
			continue
		}
		for _, q := range quotedStrings(a) {
			s.text(q)
		}
	}
}

// erasers delete whole trees in program text.
var erasers = []string{"rmtree", "rm_rf", "rm_r", "rmSync", "rmdirSync", "remove_tree", "removeAll", "Remove-Item", "unlink"}

// erases reports program text that deletes a system directory by itself.
func (s *search) erases(code string) {
	if !containsAny(code, erasers) {
		return
	}
	words := quotedStrings(code)
	if strings.Contains(code, "Remove-Item") {
		words = append(words, strings.Fields(code)...)
	}
	if dir, ok := firstOf(words, func(w string) bool { return systemDir(w) || driveRoot.MatchString(w) }); ok {
		s.report("a system or home directory deleted: " + clean(dir))
	}
}

// driveRoot is the root of a drive, or everything in it.
var driveRoot = regexp.MustCompile(`^[A-Za-z]:[\\/]*\*?$`)

// embeds are programs that run a command out of an option or a statement: what
// follows one of the marks inside an argument is one. An entry that begins with
// a dash is an option whose next argument is one.
var embeds = map[string][]string{
	"tar": {"exec=", "command=", "program=", "script=", "-I", "--to-command", "--use-compress-program", "--rsh-command"},
	"git": {"=!", "pager=", "editor=", "ommand=", "ext::sh -c "}, "gdb": {"shell ", "!", "system "}, "lldb": {"shell "},
	"rsync": {"--rsh=", "--rsync-path=", "-e", "--rsh", "--rsync-path"}, "zip": {"-TT", "--unzip-command"}, "man": {"-P", "--pager", "--pager="},
	"psql": {`\! `}, "mysql": {`\! `, "system "}, "mariadb": {`\! `, "system "}, "lftp": {"!"}, "ftp": {"!"},
	"ssh": {"ProxyCommand=", "ProxyCommand ", "LocalCommand=", "LocalCommand "}, "scp": {"ProxyCommand=", "-S"}, "sftp": {"ProxyCommand=", "-S"},
}

// maxEmbedding bounds the arguments that are looked at for a command inside.
const maxEmbedding = 256

// embedded searches what a program takes a command out of.
func (s *search) embedded(argv, marks []string) {
	for i, a := range argv[1:min(len(argv), maxEmbedding)] {
		if s.found != "" {
			return
		}
		for _, m := range marks {
			if m[0] == '-' && a == m && i+2 < len(argv) {
				s.text(argv[i+2])
			}
			if _, cmd, ok := strings.Cut(a, m); ok && (m[0] != '-' || strings.HasSuffix(m, "=")) {
				s.text(strings.Trim(cmd, `'"() `))
			}
		}
	}
}

func containsAny(s string, parts []string) bool {
	for _, p := range parts {
		if strings.Contains(s, p) {
			return true
		}
	}
	return false
}

// quotedStrings returns the contents of quotes in program text, and for lists
// of strings as in ["rm","-rf","/"] also the joined contents.
func quotedStrings(code string) []string {
	var out []string
	for i := 0; i < len(code) && len(out) < 64; i++ {
		q := code[i]
		if q != '"' && q != '\'' && q != '`' {
			continue
		}
		end := strings.IndexByte(code[i+1:], q)
		if end < 0 {
			break
		}
		out = append(out, code[i+1:i+1+end])
		i += end + 1
	}
	if len(out) > 1 {
		out = append(out, strings.Join(out, " "))
	}
	return out
}

// find searches -exec and its relatives, and deletions that start at a system
// directory.
func (s *search) find(argv []string) {
	system := false
	for i := 1; i < len(argv); i++ {
		switch a := argv[i]; a {
		case "-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch":
			inner := untilEnd(argv[i+1:])
			s.argv(inner)
			if system && len(inner) > 0 && (base(inner[0]) == "rm" || base(inner[0]) == "shred") {
				s.report("files deleted from a system directory downwards")
			}
			i += len(inner)
		case "-delete":
			if system {
				s.report("files deleted from a system directory downwards")
			}
		default:
			system = system || !strings.HasPrefix(a, "-") && systemDir(a)
		}
	}
}

func untilEnd(args []string) []string {
	for i, a := range args {
		if a == ";" || a == "+" {
			return args[:i]
		}
	}
	return args
}

// ip searches "ip netns exec NAME cmd" and "ip vrf exec NAME cmd", shortened
// forms included. With -all there is no name.
func (s *search) ip(argv []string) {
	for i := 2; i+1 < len(argv); i++ {
		object := argv[i-1] != "" && (strings.HasPrefix("netns", argv[i-1]) || strings.HasPrefix("vrf", argv[i-1]))
		if !object || argv[i] == "" || !strings.HasPrefix("exec", argv[i]) {
			continue
		}
		if strings.HasPrefix(argv[1], "-a") || strings.HasPrefix(argv[1], "--a") {
			s.argv(argv[i+1:])
		}
		s.argv(argv[i+2:])
		return
	}
}

// flagsOnly are the long options of "docker run|exec" and "kubectl exec" that
// take no value; every other one takes the next argument.
var flagsOnly = map[string]bool{"--rm": true, "--detach": true, "--interactive": true, "--tty": true, "--stdin": true, "--privileged": true,
	"--init": true, "--read-only": true, "--no-healthcheck": true, "--oom-kill-disable": true, "--publish-all": true, "--quiet": true,
	"--sig-proxy": true, "--disable-content-trust": true, "--sync": true, "--net-host": true, "--replace": true}

// container searches what "run", "exec" and "create" start inside an image, a
// container or a pod: the words after the first operand.
func (s *search) container(argv []string) {
	at := 1
	for at < len(argv) && argv[at] != "run" && argv[at] != "exec" && argv[at] != "create" {
		at++
	}
	for i := at + 1; i < len(argv); i++ {
		a := argv[i]
		switch {
		case a == "--":
			s.argv(argv[i+1:])
			return
		case strings.HasPrefix(a, "--"):
			if !strings.Contains(a, "=") && !flagsOnly[a] {
				if a == "--entrypoint" && i+1 < len(argv) {
					s.argv(argv[i+1 : i+2])
				}
				i++
			}
		case len(a) > 1 && a[0] == '-':
			i += takesNext(a, "aehlmpuvwcnf")
		default:
			rest := argv[i+1:]
			if len(rest) > 0 && rest[0] == "--" {
				rest = rest[1:]
			}
			s.argv(rest)
			s.mounted(argv[:i], rest)
			return
		}
	}
}

// maxMounting is how deep in wrappers mounts are followed.
const maxMounting = 4

// mounted looks once more at a container's command when a system directory of
// the machine stands inside the container: it works on that one.
func (s *search) mounted(options, command []string) {
	if s.depth > maxMounting {
		return // each level would double the work
	}
	for i, o := range options[:min(len(options), maxEmbedding)] {
		_, v, joined := strings.Cut(o, "=")
		switch {
		case o == "-v" || o == "--volume":
			if i+1 == len(options) {
				continue
			}
			v = options[i+1]
		case strings.HasPrefix(o, "-v") && len(o) > 2:
			v = o[2:]
		case !joined || !strings.HasPrefix(o, "--volume="):
			continue
		}
		from, rest, _ := strings.Cut(v, ":")
		to, _, _ := strings.Cut(rest, ":")
		if systemDir(from) && strings.HasPrefix(to, "/") && len(to) > 1 {
			s.argv(replaced(command, to, from))
		}
	}
}

// replaced is a command with one path in the place of another.
func replaced(command []string, old, path string) []string {
	out := make([]string, len(command))
	for i, a := range command {
		out[i] = strings.ReplaceAll(a, old, path)
	}
	return out
}

// takesNext returns 1 when a bundle of short options ends in one that takes a
// value, so that the value is the next argument.
func takesNext(bundle, withValue string) int {
	i := strings.IndexAny(bundle[1:], withValue)
	if withValue != "" && i >= 0 && i+1 == len(bundle)-1 {
		return 1
	}
	return 0
}

// wrapped finds the start of the wrapped command and goes on from there.
func (s *search) wrapped(w wrapper, argv []string) {
	if w.after != "" {
		if i := index(argv, w.after); i >= 0 {
			s.argv(argv[i+1:])
			if index(argv[:i], "debug") > 0 { // a node's disk is at /host
				s.argv(replaced(argv[i+1:], "/host", "/"))
			}
		} else {
			s.container(argv)
		}
		return
	}
	skip := w.skip
	for i := range argv[1:] {
		if v, n := textOption(w, argv[i+1:]); n > 0 {
			s.text(v)
		}
	}
	for i := 1; i < len(argv) && s.found == ""; i++ {
		a := argv[i]
		if _, n := textOption(w, argv[i:]); n > 0 {
			i += n - 1
			continue
		}
		switch {
		case a == "-":
		case a == "--":
			s.start(w, argv[min(i+1+skip, len(argv)):])
			return
		case len(a) > 1 && a[0] == '-':
			i += s.option(w, argv, i)
		case w.env && isAssignment(a):
		case skip > 0:
			skip--
		default:
			s.start(w, argv[i:])
			return
		}
	}
}

// option returns how many further arguments an option takes. For an unknown
// one it also searches as if the next argument were its value.
func (s *search) option(w wrapper, argv []string, i int) int {
	a := argv[i]
	if strings.HasPrefix(a, "--") {
		for _, l := range w.long {
			if a == l {
				return 1
			}
		}
		if !strings.Contains(a, "=") && i+2 < len(argv) && w.skip == 0 {
			s.start(w, argv[i+2:])
		}
		return 0
	}
	return takesNext(a, w.short)
}

func (s *search) start(w wrapper, rest []string) {
	if w.text && !s.flat {
		s.text(strings.Join(rest, " "))
		return
	}
	for len(rest) > 0 && w.env && isAssignment(rest[0]) {
		rest = rest[1:]
	}
	s.argv(rest)
}

// textOption returns the value of an option that a shell reads, and how many
// arguments it takes up.
func textOption(w wrapper, args []string) (string, int) {
	for _, o := range w.opts {
		switch {
		case args[0] == o && len(args) > 1:
			return args[1], 2
		case strings.HasPrefix(o, "--") && strings.HasPrefix(args[0], o+"="):
			return args[0][len(o)+1:], 1
		case len(o) == 2 && len(args) > 1 && bundleEnds(args[0], o[1]):
			return args[1], 2
		case len(o) == 2 && strings.HasPrefix(args[0], o) && len(args[0]) > 2:
			return args[0][2:], 1
		}
	}
	return "", 0
}

// bundleEnds reports short options such as -qc that end in the letter.
func bundleEnds(a string, letter byte) bool {
	return len(a) > 2 && len(a) < 6 && a[0] == '-' && a[1] != '-' && a[len(a)-1] == letter && strings.Trim(a[1:], letters) == ""
}

const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

func index(argv []string, word string) int {
	for i, a := range argv {
		if a == word {
			return i
		}
	}
	return -1
}

// plain are the wrappers that run the rest of their arguments as one program with
// its arguments, here and nothing more.
var plain = map[string]bool{"sudo": true, "doas": true, "env": true, "nice": true, "ionice": true, "nohup": true, "setsid": true, "stdbuf": true, "timeout": true, "time": true, "chrt": true, "taskset": true}

// Inner is the program that the wrappers in front of it start, with its arguments,
// and the wrappers; nil when there is none or where it begins is not certain.
func Inner(argv []string) (inner, by []string) {
	for len(argv) > 0 && plain[base(argv[0])] {
		name := base(argv[0])
		by = append(by, name)
		argv = after(wrappers[name], argv[1:])
	}
	if len(argv) == 0 || len(by) == 0 || Wraps(argv[0]) {
		return nil, nil
	}
	return argv, by
}

// after is what follows a wrapper's own arguments.
func after(w wrapper, args []string) []string {
	skip := w.skip
	for i := 0; i < len(args); i++ {
		switch a := args[i]; {
		case a == "--":
			return args[min(i+1+skip, len(args)):]
		case strings.HasPrefix(a, "--") && index(w.long, a) >= 0:
			i++
		case strings.HasPrefix(a, "--"):
		case len(a) > 1 && a[0] == '-':
			i += takesNext(a, w.short)
		case w.env && isAssignment(a):
		case skip > 0:
			skip--
		default:
			return args[i:]
		}
	}
	return nil
}
