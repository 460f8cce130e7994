package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ghostbot/cmd/ghostbot/cloud"
	"ghostbot/cmd/ghostbot/secrets"
)

// environment gives a test an empty working directory and exactly these
// variables of ghostbot's.
func environment(t *testing.T, vars ...string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for _, kv := range os.Environ() {
		k, _, _ := strings.Cut(kv, "=")
		if strings.HasPrefix(k, "GHOST_") || strings.HasPrefix(k, "SLACK_") || k == "GEMINI_API_KEY" {
			t.Setenv(k, "") // so that it comes back afterwards
			os.Unsetenv(k)
		}
	}
	for _, kv := range vars {
		k, v, _ := strings.Cut(kv, "=")
		t.Setenv(k, v)
	}
}

// unsetAfter lets a variable that .env sets vanish with the test.
func unsetAfter(t *testing.T, names ...string) {
	for _, n := range names {
		t.Cleanup(func() { os.Unsetenv(n) })
	}
}

func TestDefaults(t *testing.T) {
	environment(t)
	got, err := load()
	if err != nil {
		t.Fatal(err)
	}
	want := config{SelfApproval: true, Lease: 12 * time.Second, ApprovalTTL: 30 * time.Minute, Brain: "auto",
		CommandTimeout: time.Minute, MaxTurns: 50, ModelTokens: 2_000_000, ModelUSD: 5, Recall: "channel", Instruct: "anyone", Log: "text", LogLevel: "info", RedisRetention: 90 * 24 * time.Hour, Deployment: "ghostbot"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("defaults (-want +got):\n%s", diff)
	}
}

func TestEveryVariable(t *testing.T) {
	environment(t, "SLACK_APP_TOKEN=a", "SLACK_BOT_TOKEN=b", "SLACK_API_URL=http://127.0.0.1/", "GHOST_APPROVERS= U0A , S0B,,W0C",
		"GHOST_CHANNELS=C01,G02, D03", "GHOST_SELF_APPROVAL=false", "GHOST_TWO_PERSON=RISKY,tcpdump-flag", "GHOST_INSTRUCT=requester", "GHOST_LEASE=3s",
		"GHOST_APPROVAL_TTL=1h30m", "GHOST_BRAIN=playbook", "GHOST_STATE_DIR=/s", "GHOST_AUDIT_DIR=/a", "GHOST_COMMAND_TIMEOUT=90s",
		"GHOST_MAX_TURNS=7", "GHOST_READ_ONLY=true", "GHOST_ANONYMIZE=true", "GHOST_RECALL=off", "GHOST_JOURNAL_KEY_FILE=/k", "GHOST_HEALTH_ADDR=127.0.0.1:0", "GHOST_LOG=json", "GHOST_LOG_LEVEL=warn", "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318",
		"GEMINI_API_KEY=k", "GHOST_MODEL=gemini-9", "GHOST_GEMINI_URL=http://127.0.0.1:1", "GHOST_MODEL_TOKENS=10000", "GHOST_MODEL_USD=0.25",
		"GHOST_REDIS_URL=redis+sentinel://a.example.com/main", "GHOST_REDIS_REPLICAS=2", "GHOST_WORK_DIR=/w", "GHOST_CAPTURE_KEY_FILE=/c", "GHOST_REDIS_RETENTION=48h", "GHOST_RETENTION=720h", "GHOST_DEPLOYMENT=staging")
	got, err := load()
	if err != nil {
		t.Fatal(err)
	}
	want := config{AppToken: "a", BotToken: "b", SlackURL: "http://127.0.0.1/", Approvers: []string{"U0A", "S0B", "W0C"},
		Channels: []string{"C01", "G02", "D03"}, TwoPerson: []string{"RISKY", "tcpdump-flag"}, Instruct: "requester", Lease: 3 * time.Second,
		ApprovalTTL: 90 * time.Minute, Brain: "playbook", StateDir: "/s", AuditDir: "/a", CommandTimeout: 90 * time.Second, MaxTurns: 7,
		ReadOnly: true, Anonymize: true, Recall: "off", JournalKeyFile: "/k", HealthAddr: "127.0.0.1:0", Log: "json", LogLevel: "warn", OTLPEndpoint: "http://127.0.0.1:4318",
		GeminiKey: "k", Model: "gemini-9", GeminiURL: "http://127.0.0.1:1", ModelTokens: 10_000, ModelUSD: 0.25,
		RedisURL: "redis+sentinel://a.example.com/main", RedisReplicas: 2, WorkDir: "/w", CaptureKeyFile: "/c", RedisRetention: 48 * time.Hour, Retention: 720 * time.Hour, Deployment: "staging"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("config (-want +got):\n%s", diff)
	}
}

// The account of captures, which does not go with a hidden topology.
func TestCloudVariables(t *testing.T) {
	vars := []string{"GHOST_AZ_SUBSCRIPTION=6f1c2b7e-0b8e-4c57-9d35-3c9a0a9e1b11", "GHOST_AZ_RESOURCE_GROUP=rg", "GHOST_AZ_LOCATION=westeurope",
		"GHOST_AZ_STORAGE_ACCOUNT=sa01", "GHOST_AZ_CONTAINER=captures"}
	environment(t, vars...)
	got, err := load()
	want := cloud.Account{Subscription: "6f1c2b7e-0b8e-4c57-9d35-3c9a0a9e1b11", ResourceGroup: "rg", Location: "westeurope", StorageAccount: "sa01", Container: "captures"}
	if err != nil || got.cloud() != want || !got.cloud().Set() {
		t.Errorf("%+v, %v", got.cloud(), err)
	}
	t.Setenv("GHOST_ANONYMIZE", "true")
	if _, err := load(); err == nil || !strings.Contains(err.Error(), "GHOST_ANONYMIZE") {
		t.Errorf("with a hidden topology: %v", err)
	}
	environment(t, vars[0])
	if _, err := load(); err == nil || !strings.Contains(err.Error(), "GHOST_AZ_RESOURCE_GROUP") {
		t.Errorf("a part of an account: %v", err)
	}
}

// Each variable at its bounds, beyond them, and as something else entirely. A
// refusal names the variable and what is accepted.
func TestBounds(t *testing.T) {
	for _, tc := range []struct{ kv, want string }{
		{"GHOST_LEASE=2s", ""},
		{"GHOST_LEASE=5m", ""},
		{"GHOST_LEASE=1.999s", "2s to 5m0s"},
		{"GHOST_LEASE=301s", "2s to 5m0s"},
		{"GHOST_LEASE=-12s", "2s to 5m0s"},
		{"GHOST_LEASE=12", "a duration such as 90s"},
		{"GHOST_LEASE=", "a duration such as 90s"},
		{"GHOST_APPROVAL_TTL=1s", ""},
		{"GHOST_APPROVAL_TTL=168h", ""},
		{"GHOST_APPROVAL_TTL=999ms", "1s to 168h0m0s"},
		{"GHOST_APPROVAL_TTL=168h1s", "1s to 168h0m0s"},
		{"GHOST_APPROVAL_TTL=half an hour", "a duration such as 90s"},
		{"GHOST_COMMAND_TIMEOUT=1s", ""},
		{"GHOST_COMMAND_TIMEOUT=1h", ""},
		{"GHOST_COMMAND_TIMEOUT=0s", "1s to 1h0m0s"},
		{"GHOST_COMMAND_TIMEOUT=61m", "1s to 1h0m0s"},
		{"GHOST_COMMAND_TIMEOUT=9999999h", "a duration such as 90s"},
		{"GHOST_MAX_TURNS=1", ""},
		{"GHOST_MAX_TURNS=1000", ""},
		{"GHOST_MAX_TURNS=0", "1 to 1000"},
		{"GHOST_MAX_TURNS=1001", "1 to 1000"},
		{"GHOST_MAX_TURNS=ten", "a whole number"},
		{"GHOST_MAX_TURNS=1.5", "a whole number"},
		{"GHOST_MAX_TURNS=010", ""},
		{"GHOST_MAX_TURNS=01000", ""},
		{"GHOST_MAX_TURNS=0x10", `GHOST_MAX_TURNS: "0x10" is not accepted (accepted: a whole number, in decimal digits)`},
		{"GHOST_MAX_TURNS=0b1", `GHOST_MAX_TURNS: "0b1" is not accepted (accepted: a whole number, in decimal digits)`},
		{"GHOST_MAX_TURNS=0o17", "a whole number, in decimal digits"},
		{"GHOST_MAX_TURNS=1_000", `GHOST_MAX_TURNS: "1_000" is not accepted (accepted: a whole number, in decimal digits)`},
		{"GHOST_MODEL_TOKENS=0x10000", "a whole number, in decimal digits"},
		{"GHOST_REDIS_REPLICAS=0x1", "a whole number, in decimal digits"},
		{"GHOST_MODEL_USD=0x1p2", `GHOST_MODEL_USD: "0x1p2" is not accepted (accepted: a number, in decimal digits)`},
		{"GHOST_SELF_APPROVAL=false", ""},
		{"GHOST_SELF_APPROVAL=1", ""},
		{"GHOST_SELF_APPROVAL=no", "true false"},
		{"GHOST_READ_ONLY=true", ""},
		{"GHOST_HEALTH_ADDR=127.0.0.1:9090", ""},
		{"GHOST_HEALTH_ADDR=:9090", "HOST:PORT"},
		{"SLACK_API_URL=slack.com/api/", "SLACK_API_URL: what it holds is not accepted (accepted: a URL that begins with https:// or http://)"},
		{"SLACK_API_URL=wss://slack.com/", "accepted: a URL"},
		{"SLACK_API_URL=https://", "accepted: a URL"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=collector:4318", "OTEL_EXPORTER_OTLP_ENDPOINT: what it holds is not accepted"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=https://collector.example.com:4318", ""},
		{"GHOST_LOG=xml", "accepted: text json"},
		{"GHOST_LOG_LEVEL=loud", "accepted: debug info warn error"},
		{"GHOST_RECALL=deployment", ""},
		{"GHOST_RECALL=all", "channel deployment off"},
		{"GHOST_READ_ONLY=yes", "true false"},
		{"GHOST_BRAIN=auto", ""},
		{"GHOST_BRAIN=playbook", ""},
		{"GHOST_BRAIN=Auto", "auto gemini playbook"},
		{"GHOST_BRAIN=", "auto gemini playbook"},
		{"GHOST_BRAIN=gemini", "GEMINI_API_KEY is not set"},
		{"GHOST_MODEL_TOKENS=9999", "10000 to 1000000000"},
		{"GHOST_MODEL_TOKENS=many", "a whole number"},
		{"GHOST_MODEL_USD=0", ""},
		{"GHOST_MODEL_USD=-1", "to 10000"},
		{"GHOST_MODEL_USD=NaN", "to 10000"},
		{"GHOST_MODEL_USD=cheap", "a number"},
		{"GHOST_GEMINI_URL=https://gateway.example.com/gemini", ""},
		{"GHOST_GEMINI_URL=http://gateway.example.com/", "in the clear"},
		{"GHOST_GEMINI_URL=gateway", "not a base URL"},
		{"GHOST_APPROVERS=", ""},
		{"GHOST_APPROVERS=U0123ABC,S0123", ""},
		{"GHOST_APPROVERS=@ann", "U..."},
		{"GHOST_APPROVERS=U0123ABC;U0124", "U..."},
		{"GHOST_APPROVERS=C0123", "U..."},
		{"GHOST_APPROVERS=*", "U..."},
		{"GHOST_CHANNELS=C0123", ""},
		{"GHOST_CHANNELS=#incidents", "C..."},
		{"GHOST_CHANNELS=U0123", "C..."},
		{"GHOST_TWO_PERSON=RISKY", ""},
		{"GHOST_TWO_PERSON=tcpdump-flag,unknown-program", ""},
		{"GHOST_TWO_PERSON=risky", "RISKY"},
		{"GHOST_TWO_PERSON=SAFE", "RISKY"},
		{"GHOST_TWO_PERSON=FORBIDDEN", "RISKY"},
		{"GHOST_TWO_PERSON=RISKY tcpdump-flag", "RISKY"},
		{"GHOST_REDIS_REPLICAS=0", ""},
		{"GHOST_REDIS_REPLICAS=2", "GHOST_REDIS_URL is not set"}, // it would serve alone, beside the replicas that share one
		{"GHOST_REDIS_PASSWORD_FILE=/etc/ghostbot/redis", "GHOST_REDIS_URL is not set"},
		{"GHOST_REDIS_CA_FILE=/etc/ghostbot/ca.pem", "GHOST_REDIS_URL is not set"},
		{"GHOST_FAULT=x", ""},
		{"GHOST_APPROVER=U0123", "GHOST_APPROVERS"},
		{"GHOST_=1", "GHOST_APPROVERS"},
		{"GHOSTLY=1", ""},
	} {
		t.Run(tc.kv, func(t *testing.T) {
			name, _, _ := strings.Cut(tc.kv, "=")
			environment(t, tc.kv)
			_, err := load()
			if tc.want == "" {
				if err != nil {
					t.Fatalf("refused: %v", err)
				}
				return
			}
			var e *exitError
			if !errors.As(err, &e) || e.code != exitUsage {
				t.Fatalf("got %v, want a usage error", err)
			}
			if !strings.HasPrefix(err.Error(), name+" ") && !strings.HasPrefix(err.Error(), name+": ") || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%q does not name %s and %s", err, name, tc.want)
			}
		})
	}
}

// The list of variables and the fields of config are the same.
func TestEveryFieldIsOurs(t *testing.T) {
	for _, name := range ours[:len(ours)-2] {
		environment(t, name+"=\x7f")
		_, err := load()
		if err != nil && strings.Contains(err.Error(), "is not a variable") {
			t.Errorf("%s is refused as unknown", name)
		}
	}
}

func TestDotEnv(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		vars       []string
		want       string // approvers, or the error
	}{
		{"none", "", nil, ""},
		{"read", "GHOST_APPROVERS=U0FILE\n", nil, "U0FILE"},
		{"windows", "# c\r\nGHOST_APPROVERS=U0FILE\r\n", nil, "U0FILE"},
		{"quoted", "export GHOST_APPROVERS=\"U0FILE,U0TWO\" # both\n", nil, "U0FILE,U0TWO"},
		{"real variables win", "GHOST_APPROVERS=U0FILE\n", []string{"GHOST_APPROVERS=U0REAL"}, "U0REAL"},
		{"and so does an empty one", "GHOST_APPROVERS=U0FILE\n", []string{"GHOST_APPROVERS="}, ""},
		{"unknown", "GHOST_APROVERS=U0FILE\n", nil, "GHOST_APROVERS is not a variable"},
		{"no assignment", "\n#\nhidden\n", nil, ".env: line 3 is not NAME=VALUE"},
		{"bad name", "GHOST-X=hidden\n", nil, ".env: line 1 is not NAME=VALUE"},
		{"open quote", "GHOST_BRAIN='hidden\n", nil, ".env: a quoted value does not end"},
		{"binary", "\x00\x01hidden", nil, ".env: line 1 is not NAME=VALUE"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			environment(t, tc.vars...)
			unsetAfter(t, "GHOST_APPROVERS", "GHOST_APROVERS", "GHOST_BRAIN")
			if tc.text != "" {
				write(t, ".env", tc.text)
			}
			cfg, err := load()
			got := strings.Join(cfg.Approvers, ",")
			if err != nil {
				got = err.Error()
			}
			if err == nil && got != tc.want || !strings.HasPrefix(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			if strings.Contains(got, "hidden") {
				t.Errorf("%q shows what is in the file", got)
			}
		})
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestSecretIsNeverPrinted(t *testing.T) {
	value := strings.Join([]string{"xoxb", "not", "a", "real", "one"}, "-")
	cfg := config{AppToken: secrets.Text(value), BotToken: secrets.Text(value)}
	asJSON, err := json.Marshal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	indirect, err := json.Marshal(map[string]any{"x": []secrets.Text{secrets.Text(value)}})
	if err != nil {
		t.Fatal(err)
	}
	var logged bytes.Buffer
	for _, h := range []slog.Handler{slog.NewTextHandler(&logged, nil), slog.NewJSONHandler(&logged, nil)} {
		slog.New(h).Info("start", "token", cfg.AppToken, "config", cfg, "pointer", &cfg, "list", []secrets.Text{secrets.Text(value)})
	}
	outputs := map[string]string{"json": string(asJSON), "json inside": string(indirect), "slog": logged.String(), "error": fmt.Errorf("token %v", cfg.AppToken).Error()}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%40s", "%c", "%U"} {
		outputs[verb] = fmt.Sprintf(verb, cfg.AppToken)
		outputs["struct "+verb] = fmt.Sprintf(verb, cfg)
		outputs["pointer "+verb] = fmt.Sprintf(verb, &cfg)
	}
	for how, got := range outputs {
		if strings.Contains(got, value) || strings.Contains(strings.ToLower(got), fmt.Sprintf("%x", value)) {
			t.Errorf("%s shows it: %s", how, got)
		}
	}
	if got := fmt.Sprint(secrets.Text("")); got != "(not set)" {
		t.Errorf("an empty one is %q", got)
	}
	if got := fmt.Sprintf("%#v %s", secrets.Text("x"), secrets.Text("x")); got != "(set) (set)" {
		t.Errorf("one that is set is %q", got)
	}
}
