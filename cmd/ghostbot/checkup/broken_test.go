package checkup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"sigs.k8s.io/yaml"

	"filippo.io/age"

	"ghostbot/audit"
	"ghostbot/bot/slack"
	"ghostbot/bot/slack/grant"
	"ghostbot/cmd/ghostbot/keyring"
	"ghostbot/cmd/ghostbot/vault"
	"ghostbot/cmd/ghostbot/who"
	sim "ghostbot/internal/sim/redis"
	"ghostbot/store"
	"ghostbot/store/file"
	"ghostbot/store/redis"
	"ghostbot/store/sealed"
)

// tokens are made here, so that no scanner takes the source for a leak.
func tokens() (app, bot string) {
	tail := "-" + strings.Repeat("1234567890-", 2) + strings.Repeat("aB3dE6gH", 3)
	return "xapp" + tail, "xoxb" + tail
}

// workspace answers as Slack does; refuse names methods and the error of each.
type workspace struct {
	refuse map[string]string
	scopes string
	off    time.Duration // of its clock
	html   bool
}

func (w workspace) start(t *testing.T) slack.Options {
	app, bot := tokens()
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		method := strings.TrimPrefix(r.URL.Path, "/api/")
		want := "Bearer " + bot
		if method == "apps.connections.open" {
			want = "Bearer " + app
		}
		rw.Header().Set("Date", time.Now().Add(w.off).UTC().Format(http.TimeFormat))
		if w.scopes != "" {
			rw.Header().Set("X-OAuth-Scopes", w.scopes)
		}
		if w.html {
			fmt.Fprint(rw, "<html>a proxy wants you to sign in</html>")
			return
		}
		rw.Header().Set("Content-Type", "application/json")
		a := map[string]any{"ok": true, "team": "Example", "user_id": "U0BOT", "url": "wss://example.com", "usergroups": []any{}, "users": []string{"U0AAA"}}
		if r.FormValue("user") == "U0GONE" {
			a = map[string]any{"ok": false, "error": "user_not_found"}
		}
		if e := w.refuse[method]; e != "" {
			a = map[string]any{"ok": false, "error": e}
		} else if got := r.Header.Get("Authorization"); got != want && r.FormValue("token") != bot {
			a = map[string]any{"ok": false, "error": "invalid_auth"}
		}
		_ = json.NewEncoder(rw).Encode(a) // a client that went away
	}))
	t.Cleanup(srv.Close)
	return slack.Options{AppToken: app, BotToken: bot, APIURL: srv.URL + "/api/"}
}

// bad are the lines that are wrong, as an engineer reads them.
func bad(ks []Line) (out []string) {
	for _, k := range ks {
		if !k.OK {
			out = append(out, k.Name+": "+k.What+" | "+k.Hint)
		}
	}
	return out
}

func TestSlackBroken(t *testing.T) {
	all := "app_mentions:read,channels:history,channels:read,chat:write,commands,files:write,groups:history,groups:read,usergroups:read,users:read"
	for name, tc := range map[string]struct {
		w     workspace
		spoil func(*slack.Options)
		want  []string // beginnings and ends of the bad lines
	}{
		"all is well":       {w: workspace{scopes: all}},
		"scopes not told":   {},
		"no tokens":         {spoil: func(o *slack.Options) { o.AppToken, o.BotToken = "", "" }, want: []string{"slack: SLACK_APP_TOKEN is not set", "manifest.yaml"}},
		"swapped":           {spoil: func(o *slack.Options) { o.AppToken, o.BotToken = o.BotToken, o.AppToken }, want: []string{"slack: ", "manifest.yaml"}},
		"wrong bot token":   {w: workspace{refuse: map[string]string{"auth.test": "invalid_auth"}}, want: []string{"slack: SLACK_BOT_TOKEN: Slack refuses it: invalid_auth", "copy it again (Install App, Bot User OAuth Token)"}},
		"revoked":           {w: workspace{refuse: map[string]string{"auth.test": "token_revoked"}}, want: []string{"slack: SLACK_BOT_TOKEN", "install the app again (Install App, Bot User OAuth Token)"}},
		"app removed":       {w: workspace{refuse: map[string]string{"auth.test": "account_inactive"}}, want: []string{"slack: SLACK_BOT_TOKEN", "install it again (Install App, Bot User OAuth Token)"}},
		"wrong app token":   {w: workspace{scopes: all, refuse: map[string]string{"apps.connections.open": "invalid_auth"}}, want: []string{"slack events: SLACK_APP_TOKEN: Slack refuses it: invalid_auth", "copy it again (Basic Information, App-Level Tokens)"}},
		"app token's scope": {w: workspace{scopes: all, refuse: map[string]string{"apps.connections.open": "missing_scope"}}, want: []string{"slack events: SLACK_APP_TOKEN", "(Basic Information, App-Level Tokens)"}},
		"an odd error":      {w: workspace{refuse: map[string]string{"auth.test": "odd_thing"}}, want: []string{"slack: SLACK_BOT_TOKEN: Slack refuses it: odd_thing", "Connect it to Slack"}},
		"scopes missing":    {w: workspace{scopes: "chat:write, commands,users:read"}, want: []string{"slack scopes: not granted: app_mentions:read (requests in a mention are not heard); channels:history (", "install the app again"}},
		"clock behind":      {w: workspace{scopes: all, off: 5 * time.Minute}, want: []string{"clock: ", " behind Slack's | synchronise it (timedatectl set-ntp true); times in journals are wrong, and codes are refused where the state is not in Redis, whose clock counts then"}},
		"clock ahead":       {w: workspace{scopes: all, off: -time.Hour}, want: []string{"clock: ", " ahead of Slack's | synchronise it (timedatectl set-ntp true); times in journals are wrong, and codes are refused where the state is not in Redis, whose clock counts then"}},
		"a proxy answers":   {w: workspace{html: true}, want: []string{"slack: Slack cannot be asked: auth.test: status 200 and no JSON", "HTTPS and WebSocket to Slack"}},
		"nobody answers":    {spoil: func(o *slack.Options) { o.APIURL = "http://127.0.0.1:1/" }, want: []string{"slack: Slack cannot be asked: ", "HTTPS and WebSocket to Slack"}},
		"no url":            {spoil: func(o *slack.Options) { o.APIURL = "http://[::1:9/" }, want: []string{"slack: ", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			o := tc.w.start(t)
			if tc.spoil != nil {
				tc.spoil(&o)
			}
			lines, reached := Slack(t.Context(), o)
			got := bad(lines)
			if tc.want == nil {
				if len(got) > 0 || !reached || len(lines) != 4 {
					t.Errorf("got %q", got)
				}
				return
			}
			if len(got) != 1 || !strings.HasPrefix(got[0], tc.want[0]) || !strings.HasSuffix(got[0], tc.want[1]) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			if reached != (len(lines) == 4) {
				t.Errorf("reached %v with %d lines", reached, len(lines))
			}
		})
	}
}

// The scopes are those that people are told to give.
func TestScopesAreTheManifests(t *testing.T) {
	text, err := os.ReadFile("../../../deploy/slack/manifest.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var m struct {
		OAuth struct {
			Scopes struct{ Bot []string }
		} `json:"oauth_config"`
	}
	var wanted []string
	for _, s := range grant.Scopes {
		wanted = append(wanted, s.Name)
	}
	if err := yaml.Unmarshal(text, &m); err != nil || !slices.Equal(m.OAuth.Scopes.Bot, wanted) {
		t.Errorf("the manifest has %q, %v", m.OAuth.Scopes.Bot, err)
	}
}

func TestApproversBroken(t *testing.T) {
	file := filepath.Join(t.TempDir(), "approvers")
	if err := os.WriteFile(file, []byte("C0AAA az-* U0GONE\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		s         who.Settings
		w         workspace
		unreached bool
		want      string // "": fine
	}{
		"nobody":               {want: "approvers: nobody may approve | set GHOST_APPROVERS"},
		"a user":               {s: who.Settings{Approvers: []string{"U0AAA"}}, w: workspace{refuse: map[string]string{"users.info": "internal_error"}}},
		"a user that is gone":  {s: who.Settings{Approvers: []string{"U0GONE"}}, want: "approvers: GHOST_APPROVERS: Slack does not know U0GONE | take the id from Slack again"},
		"a group that is gone": {s: who.Settings{Approvers: []string{"S0GONE"}}, w: workspace{refuse: map[string]string{"usergroups.users.list": "no_such_subteam"}}, want: "approvers: GHOST_APPROVERS: Slack does not know S0GONE | take the id"},
		"in the file":          {s: who.Settings{Approvers: []string{"U0AAA"}, File: file}, w: workspace{}, want: "approvers: GHOST_APPROVERS_FILE: line 1: Slack does not know "},
		"slack is away":        {s: who.Settings{Approvers: []string{"U0GONE"}}, unreached: true},
		"no id":                {s: who.Settings{Approvers: []string{"somebody"}}, want: "approvers: GHOST_APPROVERS: "},
	} {
		t.Run(name, func(t *testing.T) {
			tc.s.Instruct = "anyone"
			k := Approvers(t.Context(), tc.s, tc.w.start(t), !tc.unreached)
			got := strings.Join(bad([]Line{k}), "")
			if tc.want == "" && got != "" || !strings.HasPrefix(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestDirectoriesBroken(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		dir  string
		ok   bool
		what string
	}{
		{dir, true, dir}, {filepath.Join(dir, "new"), true, "(made at the first start)"}, {filepath.Join(dir, "file"), false, "is not a directory"}, {filepath.Join(dir, "file", "x"), false, "not a directory"},
		{"/proc/1/x", false, "write in /proc/1"},
	} {
		for _, k := range []Line{Dir("d", "GHOST_X", tc.dir), State(t.Context(), tc.dir, false, nil, "", true)} {
			if k.OK != tc.ok || !strings.Contains(k.What, tc.what) || k.OK != (k.Hint == "") {
				t.Errorf("%s: got %+v", tc.dir, k)
			}
		}
	}
	if k := State(t.Context(), dir, true, errors.New("odd"), "", true); k.OK || k.What != "odd" || !strings.HasPrefix(k.Hint, "choose another") {
		t.Errorf("got %+v", k)
	}
	if k := State(t.Context(), dir, true, nil, "", true); !k.OK {
		t.Errorf("got %+v", k)
	}
	db, err := file.Open(dir, file.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	secret := strings.Repeat("k", 32)
	key := filepath.Join(dir, "key")
	if err := os.WriteFile(key, []byte(secret), 0o600); err != nil {
		t.Fatal(err)
	}
	keys, err := keyring.Keys(key)
	if err != nil {
		t.Fatal(err)
	}
	codes := sealed.New(db, []sealed.Key{{ID: keys[0].ID, Secret: keys[0].Secret}})
	if _, err := codes.Put(t.Context(), store.Key{Scope: store.Deployment, Name: "sealing"}, []byte("true"), store.Absent); err != nil { // as an interrupted audit sign leaves it
		t.Fatal(err)
	}
	if k := State(t.Context(), dir, true, nil, key, true); k.OK || !strings.Contains(k.What, "not all values have got a code") || !strings.Contains(k.Hint, "ghostbot audit sign") {
		t.Errorf("an interrupted seal: got %+v", k)
	}
	if k := State(t.Context(), dir, true, nil, key, false); !k.OK {
		t.Errorf("beside a Redis: got %+v", k)
	}
	for err, want := range map[error]string{unix.EACCES: "give it to the bot's user", unix.ENOSPC: "make space", unix.EROFS: "mounted read-only; x", unix.EIO: "x"} {
		if got := hintOf(&os.PathError{Op: "open", Path: "p", Err: err}, "x"); !strings.Contains(got, want) {
			t.Errorf("%v: got %q", err, got)
		}
	}
}

// register writes entries into the register of a directory.
func register(t *testing.T, dir string, keys []audit.Key) {
	t.Helper()
	log, err := audit.Open(t.Context(), audit.Options{Dir: dir, SID: audit.Register, Keys: keys, Fence: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	for range 2 {
		if _, _, err := log.Journal(audit.Register).Append(t.Context(), "served", 1); err != nil {
			t.Fatal(err)
		}
	}
}

func TestKeyBroken(t *testing.T) {
	files := t.TempDir()
	key := func(name, text string) string {
		path := filepath.Join(files, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	old, fresh, short := key("2026.key", strings.Repeat("o", 32)), key("2027.key", strings.Repeat("n", 32)), key("short.key", "x")
	keys, err := keyring.Keys(old)
	if err != nil {
		t.Fatal(err)
	}
	signed, plain, empty := t.TempDir(), t.TempDir(), t.TempDir()
	register(t, signed, keys)
	register(t, plain, nil)
	broken := t.TempDir()
	register(t, broken, nil)
	name := filepath.Join(broken, audit.FileName(audit.Register, audit.Register))
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(strings.Replace(string(text), "served", "server", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ files, dir, want string }{
		{"", empty, ""}, {"", plain, ""}, {old, signed, ""}, {fresh + "," + old, signed, ""}, {old, empty, ""},
		{"", signed, "none, and the register was written with one | set GHOST_JOURNAL_KEY_FILE"},
		{fresh, signed, "list the old one behind the new one"},
		{old, plain, "run 'ghostbot audit sign register'"},
		{short, empty, "1 bytes are too few"},
		{filepath.Join(files, "none"), empty, "no such file"},
		{"", broken, "register: "},
	} {
		got := strings.Join(bad([]Line{Key(tc.files, tc.dir)}), "")
		if tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
			t.Errorf("%s with %s: got %q, want %q", tc.files, filepath.Base(tc.dir), got, tc.want)
		}
	}
}

// TestCaptures: what is said about the key of captures; nothing is made by looking.
func TestCaptures(t *testing.T) {
	t.Setenv("RUNTIME_DIRECTORY", "")
	t.Setenv("XDG_RUNTIME_DIR", "")
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	dir, work := t.TempDir(), t.TempDir()
	file := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.WriteFile(path, []byte(text), mode), os.Chmod(path, mode)); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, tc := range []struct {
		file, what string
		ok         bool
	}{
		{"", "none: captures lie on disk as they are", true},
		{file("good", id.String(), 0o600), "is encrypted for " + id.Recipient().String(), vault.Memory(work) != ""},
		{file("open", id.String(), 0o644), "chmod 600", false},
		{file("wrong", "x", 0o600), "line 1 is not an age identity", false},
		{filepath.Join(dir, "none"), "no such file", false},
	} {
		k := Captures(tc.file, work)
		if k.OK != tc.ok || !strings.Contains(k.What, tc.what) && vault.Memory(work) != "" || !k.OK && k.Hint == "" || strings.Contains(k.What+k.Hint, id.String()) {
			t.Errorf("%s: %+v", tc.file, k)
		}
	}
	if _, err := os.Stat(vault.Memory(work)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("looking made a directory: %v", err)
	}
}

func TestRedisBroken(t *testing.T) {
	files := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(files, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	key, other := file("a.key", strings.Repeat("a", 32)), file("b.key", strings.Repeat("b", 32))
	good, locked, forgets := sim.Start(t), sim.Start(t, "--requirepass", "right-word"), sim.Start(t, "--appendonly", "no")
	evicts := sim.Start(t, "--maxmemory-policy", "allkeys-lru")
	full, unsaved := sim.Start(t), sim.Start(t)
	full.Do("CONFIG", "SET", "maxmemory", "1")
	if err := os.Mkdir(filepath.Join(unsaved.Dir, "dump.rdb"), 0o700); err != nil { // so that it cannot be written
		t.Fatal(err)
	}
	unsaved.Do("BGSAVE")
	for range 200 {
		if strings.Contains(fmt.Sprint(unsaved.Do("INFO", "persistence")), "rdb_last_bgsave_status:err") {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	keys, err := keyring.Keys(key)
	if err != nil {
		t.Fatal(err)
	}
	db, err := redis.Open(t.Context(), redis.Options{URL: good.URL(), Keys: []redis.Key{{ID: keys[0].ID, Secret: keys[0].Secret}}})
	if err != nil {
		t.Fatal(err)
	}
	db.Close()
	for name, tc := range map[string]struct {
		o    redis.Options
		key  string
		want string
	}{
		"fine":                {redis.Options{URL: good.URL()}, key, ""},
		"a key file is wrong": {redis.Options{URL: good.URL()}, "/nowhere", ""}, // another line says so
		"nobody there":        {redis.Options{URL: "redis://127.0.0.1:1"}, key, "connection refused | start Redis, or correct GHOST_REDIS_URL"},
		"no password":         {redis.Options{URL: locked.URL()}, key, "| set GHOST_REDIS_PASSWORD_FILE to a file with it"},
		"wrong password":      {redis.Options{URL: locked.URL(), PasswordFile: file("pw", "wrong-word\n")}, key, "| the first line of the file that GHOST_REDIS_PASSWORD_FILE names"},
		"no TLS there":        {redis.Options{URL: "rediss://" + good.Addr()}, key, "does it have TLS exactly when the URL says rediss?"},
		"keeps no file":       {redis.Options{URL: forgets.URL()}, key, "(set appendonly yes) | change it in redis.conf"},
		"evicts":              {redis.Options{URL: evicts.URL()}, key, "(set maxmemory-policy noeviction) | change it in redis.conf"},
		"full":                {redis.Options{URL: full.URL()}, key, "of 1 bytes (maxmemory) | raise maxmemory"},
		"could not save":      {redis.Options{URL: unsaved.URL()}, key, "(rdb_last_bgsave_status: err) | make space on Redis's disk"},
		"no replicas":         {redis.Options{URL: good.URL(), Replicas: 1}, key, "0 of 1 replicas are connected (GHOST_REDIS_REPLICAS) | connect the replicas"},
		"another's":           {redis.Options{URL: good.URL()}, other, "| give this one a name of its own with GHOST_DEPLOYMENT"},
		"another app's":       {redis.Options{URL: good.URL(), App: "A0OTHER"}, key, "| give this one a name of its own with GHOST_DEPLOYMENT"},
		"a bad url":           {redis.Options{URL: "http://127.0.0.1"}, key, "| see docs/operating.md, Several replicas"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, done := context.WithTimeout(t.Context(), 20*time.Second)
			defer done()
			got := strings.Join(bad([]Line{Redis(ctx, tc.o, tc.key)}), "")
			if tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestMasked(t *testing.T) {
	got := Masked([]Line{{Name: "a", What: "word", Hint: "the word"}}, func(s string) string { return strings.ReplaceAll(s, "word", "***") })
	if len(got) != 1 || got[0] != (Line{Name: "a", What: "***", Hint: "the ***"}) {
		t.Errorf("got %+v", got)
	}
}
