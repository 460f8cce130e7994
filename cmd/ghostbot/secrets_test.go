package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"filippo.io/age"

	"ghostbot/cmd/ghostbot/secrets"
	"ghostbot/internal/sim/redis"
)

// harmless are the fields of the configuration that neither hold a secret nor name a
// file of one. A new field has to be put here or into secrets.Variables.
var harmless = []string{
	"GHOST_APPROVERS", "GHOST_APPROVERS_FILE", "GHOST_CHANNELS", "GHOST_SELF_APPROVAL", "GHOST_TWO_PERSON", "GHOST_SECOND_FACTOR", "GHOST_INSTRUCT", "GHOST_LEASE",
	"GHOST_APPROVAL_TTL", "GHOST_BRAIN", "GHOST_MODEL", "GHOST_MODEL_TOKENS", "GHOST_MODEL_USD", "GHOST_STATE_DIR", "GHOST_AUDIT_DIR", "GHOST_COMMAND_TIMEOUT",
	"GHOST_MAX_TURNS", "GHOST_ANONYMIZE", "GHOST_RECALL", "GHOST_READ_ONLY", "GHOST_AZ_SUBSCRIPTION", "GHOST_AZ_RESOURCE_GROUP", "GHOST_AZ_LOCATION",
	"GHOST_AZ_STORAGE_ACCOUNT", "GHOST_AZ_CONTAINER", "GHOST_OPS_CHANNEL", "GHOST_PATH", "GHOST_WORK_DIR", "GHOST_REDIS_CA_FILE", "GHOST_REDIS_REPLICAS",
	"GHOST_REDIS_RETENTION", "GHOST_RETENTION", "GHOST_DEPLOYMENT", "GHOST_HEALTH_ADDR", "GHOST_LOG", "GHOST_LOG_LEVEL",
}

func TestEveryFieldIsSortedByItsSecrets(t *testing.T) {
	typ := reflect.TypeFor[config]()
	for i := range typ.NumField() {
		name := typ.Field(i).Tag.Get("envconfig")
		_, secret := secrets.Variables[name]
		secret = secret || name == "GHOST_TOTP_FILE" // read by package who
		if secret == slices.Contains(harmless, name) {
			t.Errorf("%s: a secret %v, harmless %v; it is one of the two", name, secret, !secret)
		}
		if typ.Field(i).Type == reflect.TypeFor[secrets.Text]() && secrets.Variables[name] != secrets.Value {
			t.Errorf("%s is a secret value that redaction does not know", name)
		}
	}
}

// hidden are the secrets of one test, made for it.
type hidden map[string]string

// shown names every secret that a text has, in whatever form.
func (h hidden) shown(text []byte) (out []string) {
	for name, v := range h {
		for _, form := range []string{v, url.QueryEscape(v), hex.EncodeToString([]byte(v)), base64.StdEncoding.EncodeToString([]byte(v))} {
			if bytes.Contains(text, []byte(form)) {
				out = append(out, name)
				break
			}
		}
	}
	return out
}

// everySecret sets every variable that holds or names a secret.
func everySecret(t *testing.T) (hidden, []string) {
	t.Helper()
	dir, h := t.TempDir(), hidden{}
	made := func(name string) string {
		h[name] = rand.Text() + "-" + rand.Text()
		return h[name]
	}
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		write(t, path, text)
		return path
	}
	app, botToken := tokens()
	h["app token"], h["bot token"] = app, botToken
	factors := filepath.Join(dir, "totp")
	if code, out, errOut := runCLI("", "totp", "enrol", "U0AAA", "--file", factors); code != exitOK {
		t.Fatalf("totp: %s%s", out, errOut)
	} else {
		_, rest, _ := strings.Cut(out, "secret=")
		h["second factor"], _, _ = strings.Cut(rest, "&")
	}
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	captureKey := id.String()
	h["capture key"] = captureKey
	vars := []string{
		"SLACK_APP_TOKEN=" + app, "SLACK_BOT_TOKEN=" + botToken, "GEMINI_API_KEY=" + made("model key"),
		"SLACK_API_URL=http://u:" + made("slack url") + "@127.0.0.1:1/" + botToken + "/",
		"GHOST_GEMINI_URL=http://u:" + made("model url") + "@127.0.0.1:1/",
		"GHOST_JOURNAL_KEY_FILE=" + file("journal.key", made("journal key")+"\n"),
		"GHOST_CAPTURE_KEY_FILE=" + file("capture.key", "# a key\n"+captureKey+"\n"),
		"GHOST_REDIS_PASSWORD_FILE=" + file("redis", made("redis password")+"\n"),
		"GHOST_TOTP_FILE=" + factors, "GHOST_SECOND_FACTOR=az-mutate", "GHOST_APPROVERS=U0AAA",
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://u:" + made("collector url") + "@127.0.0.1:1",
		"OTEL_EXPORTER_OTLP_HEADERS=authorization=Bearer%20" + made("collector token"),
		"GHOST_HEALTH_ADDR=127.0.0.1:0", "GHOST_LOG_LEVEL=debug",
	}
	if h["second factor"] == "" {
		t.Fatal("no second factor was enrolled")
	}
	return h, vars
}

// TestSecretsAreShownNowhere runs what can go wrong with every secret set, and looks for
// each of them in all that was printed and left.
func TestSecretsAreShownNowhere(t *testing.T) {
	h, vars := everySecret(t)
	inURL := rand.Text()
	h["password in the url"] = inURL
	wrong := "redis://127.0.0.1:1"
	if r := redis.Start(t, "--requirepass", "another-password"); r != nil {
		wrong = r.URL()
	}
	for name, set := range map[string][]string{
		"files alone":         nil,
		"text log":            {"GHOST_LOG=json"},
		"refused connection":  {"GHOST_REDIS_URL=redis://user@127.0.0.1:1/0"},
		"password in the url": {"GHOST_REDIS_URL=redis://user:" + inURL + "@127.0.0.1:1/0"},
		"no url":              {"GHOST_REDIS_URL=redis://user:" + inURL + "@127.0.0.1:port /%zz"},
		"wrong password":      {"GHOST_REDIS_URL=" + wrong},
		"a wrong variable":    {"GHOST_LEASE=" + h["model key"]},
		"an unknown variable": {"GHOST_TYPO=" + h["model key"]},
		"a wrong key file":    {"GHOST_JOURNAL_KEY_FILE=/proc/self/cmdline"},
		"the model insists":   {"GHOST_BRAIN=gemini"},
	} {
		t.Run(name, func(t *testing.T) {
			environment(t, slices.Concat(vars, set)...)
			dir := t.TempDir()
			for _, args := range [][]string{{"doctor"}, {"doctor", "--json"}, {"serve"}, {"cases"}, {"audit", "verify", "register", "--stream"}, {"audit", "sign", "register"}} {
				ctx, done := context.WithTimeout(t.Context(), time.Second)
				var out bytes.Buffer
				run(ctx, &cli{in: strings.NewReader(""), out: &out, err: &out}, append(args, "--state-dir", dir))
				done()
				if out.Len() == 0 {
					t.Errorf("%s says nothing", args)
				}
				if leaks := h.shown(out.Bytes()); len(leaks) > 0 {
					t.Errorf("%s shows %q", args, leaks)
				}
			}
			err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
				if err != nil || d.IsDir() {
					return err
				}
				b, err := os.ReadFile(path)
				if leaks := h.shown(b); len(leaks) > 0 {
					t.Errorf("%s has %q", path, leaks)
				}
				return err
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}
