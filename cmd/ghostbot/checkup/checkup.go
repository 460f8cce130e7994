// Package checkup looks at what the bot needs, one thing at a time, and says in a
// line what is wrong and what to do. Nothing is changed by looking.
package checkup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"ghostbot/agent/brains"
	"ghostbot/audit"
	"ghostbot/bot/access"
	"ghostbot/bot/slack"
	"ghostbot/cmd/ghostbot/health"
	"ghostbot/cmd/ghostbot/keyring"
	"ghostbot/cmd/ghostbot/stray"
	"ghostbot/cmd/ghostbot/vault"
	"ghostbot/cmd/ghostbot/who"
	"ghostbot/safeexec"
	"ghostbot/safeexec/policy"
	"ghostbot/store"
	"ghostbot/store/file"
	"ghostbot/store/redis"
	"ghostbot/store/sealed"
)

// Line is what one look found.
type Line struct {
	Name string `json:"name"`
	OK   bool   `json:"ok"`
	What string `json:"what"`
	Hint string `json:"hint,omitempty"` // what to do, when something is wrong
}

// Print writes a line; clean makes text safe to show on one.
func Print(w io.Writer, k Line, clean func(string) string) {
	mark := "ok  "
	if !k.OK {
		mark = "BAD "
	}
	line := k.Name + ": " + k.What
	if k.Hint != "" {
		line += "  (" + k.Hint + ")"
	}
	fmt.Fprintln(w, mark+clean(line))
}

// Bad reports whether any line is.
func Bad(ks []Line) bool {
	for _, k := range ks {
		if !k.OK {
			return true
		}
	}
	return false
}

// Config is about the variables; err is what reading them said.
func Config(err error) Line {
	if err != nil {
		return Line{Name: "configuration", What: err.Error(), Hint: "see docs/operating.md for every variable"}
	}
	return Line{Name: "configuration", OK: true, What: "every GHOST_ variable is known and valid"}
}

// Masked are lines whose texts went through clean, which removes credentials.
func Masked(ks []Line, clean func(string) string) []Line {
	out := make([]Line, len(ks))
	for i, k := range ks {
		k.What, k.Hint = clean(k.What), clean(k.Hint)
		out[i] = k
	}
	return out
}

// Approvers is about who may decide. With reached, Slack is asked whether it knows them.
func Approvers(ctx context.Context, settings who.Settings, o slack.Options, reached bool) Line {
	rules, err := settings.Rules(policy.New(policy.Options{}).KnownRule)
	if err != nil {
		return Line{Name: "approvers", What: err.Error(), Hint: "see docs/operating.md, Who may decide"}
	}
	if err := unknown(ctx, rules, o, reached); err != nil {
		return Line{Name: "approvers", What: err.Error(), Hint: "take the id from Slack again: a profile's menu, Copy member ID; a group's address ends with its id"}
	}
	ok, what, hint := settings.Told(rules)
	return Line{Name: "approvers", OK: ok, What: what, Hint: hint}
}

// unknown says whom Slack does not know.
func unknown(ctx context.Context, rules access.Rules, o slack.Options, reached bool) error {
	if !reached {
		return nil
	}
	f, err := slack.New(o)
	if err != nil {
		return nil // the check of Slack says so
	}
	if err := f.Known(ctx, []access.Line{{Channel: access.Every, Who: rules.Approvers}}); err != nil {
		return fmt.Errorf("GHOST_APPROVERS: %s", strings.TrimPrefix(err.Error(), "line 0: "))
	}
	if err := f.Known(ctx, rules.Narrowings()); err != nil {
		return fmt.Errorf("GHOST_APPROVERS_FILE: %w", err)
	}
	return nil
}

// Brain asks the model whether key and model are accepted.
func Brain(ctx context.Context, c brains.Options) Line {
	name, _, err := c.Probe(ctx)
	switch {
	case c.Name == brains.Gemini && c.Key == "":
		return Line{Name: "brain", What: "no GEMINI_API_KEY is set", Hint: "set it, or GHOST_BRAIN=playbook"}
	case err != nil:
		return Line{Name: "brain", What: err.Error(), Hint: "cases go on with the playbook under GHOST_BRAIN=auto"}
	case name != "":
		return Line{Name: "brain", OK: true, What: name + ": key and model are accepted"}
	case c.Name == brains.Auto:
		return Line{Name: "brain", OK: true, What: "the playbook: no GEMINI_API_KEY is set"}
	}
	return Line{Name: "brain", OK: true, What: "the playbook, which needs no key"}
}

// State looks at the state directory; there says whether a store was made in it. When it is the store of the
// deployment, which no Redis is, its values have to fit the journals' keys, which are in files.
func State(ctx context.Context, dir string, there bool, err error, files string, alone bool) Line {
	k := Line{Name: "state directory", What: dir}
	if err == nil && !there {
		err = mayMake(dir)
		k.What += " (made at the first start)"
	}
	if err == nil && there {
		if err = mayMake(dir); err == nil {
			err = opens(ctx, dir, files, alone)
		}
	}
	if err != nil {
		k.What, k.Hint = err.Error(), hintOf(err, "choose another with --state-dir or GHOST_STATE_DIR")
		return k
	}
	k.OK = true
	return k
}

// Dir looks at another directory that the bot writes, and at what it holds so far.
func Dir(name, variable, dir string) Line {
	k := Line{Name: name, What: dir}
	err := mayMake(dir)
	if err == nil {
		if _, err = os.ReadDir(dir); errors.Is(err, fs.ErrNotExist) {
			err = nil
			k.What += " (made at the first start)"
		} else if why := health.Disk(dir); err == nil && why != "" {
			k.What, k.Hint = why, "make space, or choose another with "+variable
			return k
		}
	}
	if err != nil {
		k.What, k.Hint = err.Error(), hintOf(err, "choose another with "+variable)
		return k
	}
	k.OK = true
	return k
}

// hintOf says what to do about a directory.
func hintOf(err error, otherwise string) string {
	switch {
	case errors.Is(err, errCodes):
		return sign
	case errors.Is(err, fs.ErrPermission):
		return fmt.Sprintf("give it to the bot's user: chown -R to uid %d, mode 0700; or %s", os.Geteuid(), otherwise)
	case errors.Is(err, unix.ENOSPC):
		return "make space"
	case errors.Is(err, unix.EROFS):
		return "the file system is mounted read-only; " + otherwise
	}
	return otherwise
}

func opens(ctx context.Context, dir, files string, alone bool) error {
	db, err := file.Open(dir, file.Options{})
	if err != nil {
		return err
	}
	if alone {
		err = codes(ctx, db, files)
	}
	return errors.Join(err, db.Close())
}

// errCodes is that the stored values do not fit the keys, or not all of them have got a code yet.
var errCodes = errors.New("stored values")

const sign = "GHOST_JOURNAL_KEY_FILE must name each key that these values were written with; where they are from before the first one, or codes are being given, run 'ghostbot audit sign'"

// codes says why serve would refuse the values of a store with these keys.
func codes(ctx context.Context, db store.DB, files string) error {
	keys, err := keyring.Keys(files)
	if files != "" && err != nil {
		return nil // the check of the key says so
	}
	ring := make([]sealed.Key, len(keys))
	for i, k := range keys {
		ring[i] = sealed.Key{ID: k.ID, Secret: k.Secret}
	}
	if err := sealed.New(db, ring).Check(ctx, store.Deployment); err != nil {
		return fmt.Errorf("%w: %w", errCodes, err)
	}
	return nil
}

// mayMake says why a directory could not be made or written, without trying.
func mayMake(dir string) error {
	for {
		fi, err := os.Stat(dir)
		switch up := filepath.Dir(dir); {
		case errors.Is(err, fs.ErrNotExist) && up != dir:
			dir = up
			continue
		case err != nil:
			return err
		case !fi.IsDir():
			return fmt.Errorf("%s is not a directory", dir)
		}
		if err := unix.Access(dir, unix.W_OK|unix.X_OK); err != nil {
			return fmt.Errorf("write in %s: %w", dir, err)
		}
		return nil
	}
}

// Key is about the files with the journals' keys, "" when there are none, and about the
// register of a directory, which the keys have to fit.
func Key(files, auditDir string) Line {
	k := Line{Name: "journal key", OK: true, What: "none: journals are chained, not authenticated"}
	var keys []audit.Key
	if files != "" {
		k.What = files
		var err error
		if keys, err = keyring.Keys(files); err != nil {
			k.OK, k.What, k.Hint = false, err.Error(), "GHOST_JOURNAL_KEY_FILE names files with 32 random bytes or more, which the bot's user can read"
			return k
		}
	}
	signed, err := fits(keys, auditDir)
	switch {
	case err != nil:
		k.OK, k.What = false, "register: "+err.Error()
		k.Hint = "when the key was changed, list the old one behind the new one; when it is the first key of a directory with journals, stop the bot and run 'ghostbot audit sign register'; else see 'ghostbot audit verify register'"
	case signed && len(keys) == 0:
		k.OK, k.What = false, "none, and the register was written with one"
		k.Hint = "set GHOST_JOURNAL_KEY_FILE to the key of these journals: without it forged lines do not show"
	}
	return k
}

// Captures is about the key that captures are encrypted with, "" when there is none, and the
// memory that they pass through.
func Captures(file, work string) Line {
	k := Line{Name: "capture key", OK: true, What: "none: captures lie on disk as they are"}
	v, err := vault.Load(file)
	if err == nil && v.Set() {
		k.What = "what commands leave is encrypted for " + v.Recipient() + ", and lies in " + filepath.Dir(vault.Memory(work)) + " before"
		if vault.Memory(work) == "" {
			err = vault.ErrMemory
		}
	}
	if err != nil {
		k.OK, k.What, k.Hint = false, err.Error(), vault.Variable+" names a file of age identities (age-keygen -o FILE), which the bot's user alone can read"
	}
	return k
}

// fits says why the register does not verify with keys, and whether it has MACs.
func fits(keys []audit.Key, auditDir string) (signed bool, err error) {
	entries, err := audit.Read(auditDir, audit.Register)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	for _, e := range entries {
		signed = signed || e.MAC != ""
	}
	ring, err := keyring.New(auditDir, keys)
	if err != nil {
		return signed, err
	}
	if v := ring.Verify(audit.Register, audit.VerifyOptions{}); !v.OK {
		return signed, errors.New(cmp.Or(v.Why, "it does not verify"))
	}
	return signed, nil
}

// Port says whether the operators' port could be opened; "" when none is wanted. One
// that is taken may be the bot's own.
func Port(addr string) Line {
	k := Line{Name: "health port", OK: true, What: "none: GHOST_HEALTH_ADDR is not set"}
	if addr == "" {
		return k
	}
	k.What = addr
	if err := health.Check(addr); err != nil {
		k.OK, k.What, k.Hint = false, err.Error(), "GHOST_HEALTH_ADDR is HOST:PORT"
		return k
	}
	l, err := net.Listen("tcp", addr)
	if err == nil {
		l.Close()
		return k
	}
	if errors.Is(err, unix.EADDRINUSE) {
		k.What += " is in use, by a bot that runs already or by another program"
		return k
	}
	k.OK, k.What, k.Hint = false, err.Error(), "GHOST_HEALTH_ADDR names an address of this machine and a free port"
	return k
}

// tool is a program of investigations, its Debian package, and what is not seen without it.
type tool struct{ name, pkg, blind string }

// tools are what investigations like to have; a missing one narrows what can be seen,
// and is reported as such in a case.
var tools = []tool{
	{"ping", "iputils-ping", ""}, {"dig", "bind9-dnsutils", ""}, {"ss", "iproute2", ""}, {"ip", "iproute2", ""}, {"curl", "curl", ""},
	{"nc", "netcat-openbsd", ""}, {"openssl", "openssl", ""}, {"traceroute", "traceroute", ""}, {"getent", "libc-bin", ""}, {"tcpdump", "tcpdump", "no packets of this machine"},
}

// azure is the tool of captures in the cloud.
var azure = tool{"az", "", "no captures in Azure, although GHOST_AZ_SUBSCRIPTION is set; docs/operating.md, Captures in Azure"}

// Tools looks for the programs of investigations where the gate would: in path, or in its own
// places when that is "". Captures in the cloud need one more.
func Tools(path string, cloud bool) Line {
	path = cmp.Or(path, safeexec.DefaultPath)
	want := tools
	if cloud {
		want = append(slices.Clone(tools), azure)
	}
	var names, missing, packages, hints []string
	for _, t := range want {
		names = append(names, t.name)
		if onPath(t.name, path) {
			continue
		}
		missing = append(missing, t.name)
		if t.pkg != "" && !slices.Contains(packages, t.pkg) {
			packages = append(packages, t.pkg)
		}
		if t.blind != "" {
			hints = append(hints, "without "+t.name+": "+t.blind)
		}
	}
	if len(missing) == 0 {
		return Line{Name: "tools", OK: true, What: strings.Join(names, " ")}
	}
	if len(packages) > 0 {
		hints = append([]string{"apt-get install " + strings.Join(packages, " ")}, hints...)
	}
	return Line{Name: "tools", What: "not installed: " + strings.Join(missing, " ") + " (looked in " + path + ")", Hint: strings.Join(hints, "; ")}
}

func onPath(name, path string) bool {
	for _, dir := range filepath.SplitList(path) {
		if fi, err := os.Stat(filepath.Join(dir, name)); err == nil && fi.Mode().IsRegular() && fi.Mode()&0o111 != 0 {
			return true
		}
	}
	return false
}

// remedies are what to do about what is wrong with Redis, by a word of the error.
var remedies = []struct{ word, what string }{
	{"connection refused", "start Redis, or correct GHOST_REDIS_URL"},
	{"no such host", "correct the host in GHOST_REDIS_URL, or DNS"},
	{"timeout", "is Redis reachable from here (firewall, NetworkPolicy, GHOST_REDIS_URL), and does it have TLS exactly when the URL says rediss?"},
	{"deadline exceeded", "is Redis reachable from here (firewall, NetworkPolicy, GHOST_REDIS_URL), and does it have TLS exactly when the URL says rediss?"},
	{"certificate", "GHOST_REDIS_CA_FILE names the authority that signed Redis's certificate"},
	{"first record does not look like a TLS", "this Redis has no TLS on that port: redis:// instead of rediss://"},
	{"password is wrong", "the first line of the file that GHOST_REDIS_PASSWORD_FILE names must be Redis's requirepass, or its user's"},
	{"wants a password", "set GHOST_REDIS_PASSWORD_FILE to a file with it"},
	{"user may not", "let the user have ~gb1:*, &gb1:*, +@all -@dangerous +info +wait"},
	{"another deployment", "give this one a name of its own with GHOST_DEPLOYMENT, or the key that the other replicas have"},
	{"too old", "upgrade Redis to 7 or later"},
	{"is a replica", "name the primary, or use redis+sentinel://"},
	{"(set ", "change it in redis.conf, or with CONFIG SET and CONFIG REWRITE"},
	{"replicas are connected", "connect the replicas, or lower GHOST_REDIS_REPLICAS"},
	{"machine's clock", "doctor's line about Slack's clock tells which of the two is wrong"},
	{"memory is full", "raise maxmemory"},
	{"files to disk", "make space on Redis's disk"},
}

// Redis looks at the store that replicas share, and whether the files' keys are those of its
// deployment. It makes nothing there.
func Redis(ctx context.Context, o redis.Options, files string) Line {
	keys, _ := keyring.Keys(files) // the check of the key says what is wrong with it
	for _, k := range keys {
		o.Keys = append(o.Keys, redis.Key{ID: k.ID, Secret: k.Secret})
	}
	what, err := redis.Look(ctx, o)
	if err == nil {
		var db *redis.DB
		if db, err = redis.View(o); err == nil {
			err = errors.Join(codes(ctx, db, files), db.Close())
		}
	}
	if err == nil {
		return Line{Name: "redis", OK: true, What: what}
	}
	k := Line{Name: "redis", What: err.Error(), Hint: "see docs/operating.md, Several replicas"}
	if errors.Is(err, errCodes) {
		k.Hint = "GHOST_JOURNAL_KEY_FILE must name each key that these values were written with"
	}
	for _, r := range remedies {
		if strings.Contains(k.What, r.word) {
			k.Hint = r.what
			break
		}
	}
	return k
}

// Strays looks for open cases of this machine that the store which replicas share does not know.
func Strays(ctx context.Context, o redis.Options, auditDir string) Line {
	k := Line{Name: "open cases", OK: true, What: "the store knows every open case that this machine has journals of"}
	db, err := redis.View(o)
	if err != nil {
		return Line{Name: k.Name, What: "not known: " + err.Error()}
	}
	defer db.Close()
	sids, err := stray.Cases(ctx, sealed.New(db, nil), auditDir)
	switch {
	case errors.Is(err, store.ErrUnavailable):
		k.What = "not known: the line about redis says why"
	case err != nil:
		k.OK, k.What = false, "not known: "+err.Error()
	case len(sids) > 0:
		k.OK = false
		k.What, k.Hint = stray.Told(sids)
	}
	return k
}
