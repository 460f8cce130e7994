package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/joho/godotenv"
	"github.com/kelseyhightower/envconfig"

	"ghostbot/cmd/ghostbot/cloud"
	"ghostbot/cmd/ghostbot/health"
	"ghostbot/cmd/ghostbot/memory"
	"ghostbot/cmd/ghostbot/who"
	"ghostbot/safeexec/policy"
	"ghostbot/store/redis"
)

// secret is a value that never appears in logs, errors or doctor output.
type secret string

// String masks the value.
func (s secret) String() string {
	if s == "" {
		return "(not set)"
	}
	return "(set)"
}

// GoString masks the value in %#v.
func (s secret) GoString() string { return s.String() }

// Format masks the value whatever the verb is.
func (s secret) Format(f fmt.State, _ rune) { io.WriteString(f, s.String()) }

// MarshalText masks the value in JSON and logs.
func (s secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// config is the environment of serve. Every GHOST_ variable is a field here;
// others are refused.
type config struct {
	AppToken       secret        `envconfig:"SLACK_APP_TOKEN"`
	BotToken       secret        `envconfig:"SLACK_BOT_TOKEN"`
	SlackURL       string        `envconfig:"SLACK_API_URL"`
	Approvers      []string      `envconfig:"GHOST_APPROVERS"`
	ApproversFile  string        `envconfig:"GHOST_APPROVERS_FILE"`
	Channels       []string      `envconfig:"GHOST_CHANNELS"`
	SelfApproval   bool          `envconfig:"GHOST_SELF_APPROVAL" default:"true"`
	TwoPerson      []string      `envconfig:"GHOST_TWO_PERSON"`
	SecondFactor   []string      `envconfig:"GHOST_SECOND_FACTOR"`
	TOTPFile       string        `envconfig:"GHOST_TOTP_FILE"`
	Instruct       string        `envconfig:"GHOST_INSTRUCT" default:"anyone"`
	Lease          time.Duration `envconfig:"GHOST_LEASE" default:"12s"`
	ApprovalTTL    time.Duration `envconfig:"GHOST_APPROVAL_TTL" default:"30m"`
	Brain          string        `envconfig:"GHOST_BRAIN" default:"auto"`
	GeminiKey      secret        `envconfig:"GEMINI_API_KEY"`
	Model          string        `envconfig:"GHOST_MODEL"`
	GeminiURL      string        `envconfig:"GHOST_GEMINI_URL"`
	ModelTokens    int           `envconfig:"GHOST_MODEL_TOKENS" default:"2000000"`
	ModelUSD       float64       `envconfig:"GHOST_MODEL_USD" default:"5"`
	StateDir       string        `envconfig:"GHOST_STATE_DIR"`
	AuditDir       string        `envconfig:"GHOST_AUDIT_DIR"`
	CommandTimeout time.Duration `envconfig:"GHOST_COMMAND_TIMEOUT" default:"60s"`
	MaxTurns       int           `envconfig:"GHOST_MAX_TURNS" default:"50"`
	Anonymize      bool          `envconfig:"GHOST_ANONYMIZE" default:"false"`
	Recall         string        `envconfig:"GHOST_RECALL" default:"channel"`
	ReadOnly       bool          `envconfig:"GHOST_READ_ONLY" default:"false"`
	Subscription   string        `envconfig:"GHOST_AZ_SUBSCRIPTION"`
	ResourceGroup  string        `envconfig:"GHOST_AZ_RESOURCE_GROUP"`
	Location       string        `envconfig:"GHOST_AZ_LOCATION"`
	StorageAccount string        `envconfig:"GHOST_AZ_STORAGE_ACCOUNT"`
	Container      string        `envconfig:"GHOST_AZ_CONTAINER"`
	OpsChannel     string        `envconfig:"GHOST_OPS_CHANNEL"`
	Path           string        `envconfig:"GHOST_PATH"`
	JournalKeyFile string        `envconfig:"GHOST_JOURNAL_KEY_FILE"`
	WorkDir        string        `envconfig:"GHOST_WORK_DIR"`
	RedisURL       string        `envconfig:"GHOST_REDIS_URL"`
	RedisPassword  string        `envconfig:"GHOST_REDIS_PASSWORD_FILE"`
	RedisCA        string        `envconfig:"GHOST_REDIS_CA_FILE"`
	RedisReplicas  int           `envconfig:"GHOST_REDIS_REPLICAS" default:"0"`
	RedisRetention time.Duration `envconfig:"GHOST_REDIS_RETENTION" default:"2160h"`
	Deployment     string        `envconfig:"GHOST_DEPLOYMENT" default:"ghostbot"`
	HealthAddr     string        `envconfig:"GHOST_HEALTH_ADDR"`
	Log            string        `envconfig:"GHOST_LOG" default:"text"`
	LogLevel       string        `envconfig:"GHOST_LOG_LEVEL" default:"info"`
	OTLPEndpoint   string        `envconfig:"OTEL_EXPORTER_OTLP_ENDPOINT"`
}

// ours are the variables that config knows; GHOST_FAULT and GHOST_FAULT_COUNT
// belong to builds for crash tests.
var ours = []string{
	"GHOST_APPROVERS", "GHOST_APPROVERS_FILE", "GHOST_CHANNELS", "GHOST_SELF_APPROVAL", "GHOST_TWO_PERSON", "GHOST_SECOND_FACTOR", "GHOST_TOTP_FILE", "GHOST_INSTRUCT", "GHOST_LEASE", "GHOST_APPROVAL_TTL",
	"GHOST_BRAIN", "GHOST_MODEL", "GHOST_GEMINI_URL", "GHOST_MODEL_TOKENS", "GHOST_MODEL_USD", "GHOST_STATE_DIR", "GHOST_AUDIT_DIR", "GHOST_COMMAND_TIMEOUT", "GHOST_MAX_TURNS", "GHOST_ANONYMIZE", "GHOST_RECALL", "GHOST_READ_ONLY",
	"GHOST_AZ_SUBSCRIPTION", "GHOST_AZ_RESOURCE_GROUP", "GHOST_AZ_LOCATION", "GHOST_AZ_STORAGE_ACCOUNT", "GHOST_AZ_CONTAINER", "GHOST_OPS_CHANNEL", "GHOST_PATH", "GHOST_JOURNAL_KEY_FILE", "GHOST_HEALTH_ADDR", "GHOST_LOG", "GHOST_LOG_LEVEL",
	"GHOST_WORK_DIR", "GHOST_REDIS_URL", "GHOST_REDIS_PASSWORD_FILE", "GHOST_REDIS_CA_FILE", "GHOST_REDIS_REPLICAS", "GHOST_REDIS_RETENTION", "GHOST_DEPLOYMENT",
	"GHOST_FAULT", "GHOST_FAULT_COUNT",
}

// loadEnv reads .env in the working directory when it is there; variables that
// are set already win. What is wrong in it is told without its text, which the
// parser's own errors quote: there are tokens in it.
func loadEnv() error {
	raw, err := os.ReadFile(".env")
	var path *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.As(err, &path):
		return usageError(".env: %v", path.Err)
	case err != nil:
		return usageError(".env: %v", err)
	}
	text := string(raw)
	vars, err := godotenv.Unmarshal(mentioned(text) + text)
	if err == nil {
		for k, v := range vars {
			if _, set := os.LookupEnv(k); !set {
				err = errors.Join(err, os.Setenv(k, v))
			}
		}
		if err != nil {
			return usageError(".env: %v", err)
		}
		return nil
	}
	for i, line := range strings.Split(text, "\n") {
		if !envLine.MatchString(line) {
			return usageError(".env: line %d is not NAME=VALUE", i+1)
		}
	}
	return usageError(".env: a quoted value does not end (accepted: NAME=VALUE a line)")
}

// mentioned are assignments of the variables of the environment that a text uses, as
// in ${HOME}/journal.key, which the parser looks for in the text only.
func mentioned(text string) string {
	var b strings.Builder
	for _, m := range envUse.FindAllStringSubmatch(text, -1) {
		if v := os.Getenv(m[1]); v != "" && !strings.ContainsAny(v, "'\n\r") {
			fmt.Fprintf(&b, "%s='%s'\n", m[1], v)
		}
	}
	return b.String()
}

// envUse is the use of a variable in a value.
var envUse = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)

// envLine is a line of .env: an assignment, a comment, or nothing.
var envLine = regexp.MustCompile(`^\s*((export\s+)?[A-Za-z0-9_.]+\s*[=:].*|#.*)?$`)

// load reads the environment of serve and checks every value.
func load() (config, error) {
	c, err := read()
	if err != nil {
		return c, err
	}
	return c, c.check()
}

// read reads the environment of serve; flags may change it before it is checked.
func read() (config, error) {
	var c config
	os.Unsetenv("GOOGLE_API_KEY") // the model's library would say that it uses that one
	if err := loadEnv(); err != nil {
		return c, err
	}
	if err := envconfig.Process("", &c); err != nil {
		var p *envconfig.ParseError
		if errors.As(err, &p) {
			return c, usageError("%s: %q is not accepted (accepted: %s)", p.KeyName, p.Value, accepted(p.TypeName))
		}
		return c, usageError("%v", err)
	}
	for _, kv := range os.Environ() {
		k, _, _ := strings.Cut(kv, "=")
		if strings.HasPrefix(k, "GHOST_") && !slices.Contains(ours, k) {
			return c, usageError("%s is not a variable of ghostbot (accepted: %s)", k, strings.Join(ours[:len(ours)-2], " "))
		}
	}
	return c, nil
}

// accepted says what a variable of a type may be.
func accepted(typeName string) string {
	switch typeName {
	case "bool":
		return "true false"
	case "int":
		return "a whole number"
	case "float64":
		return "a number"
	}
	return "a duration such as 90s, 5m or 1h30m"
}

// channelID is a Slack channel.
var channelID = regexp.MustCompile(`^[CGD][A-Z0-9]{2,}$`)

func (c *config) check() error {
	c.Approvers, c.Channels, c.TwoPerson, c.SecondFactor = trim(c.Approvers), trim(c.Channels), trim(c.TwoPerson), trim(c.SecondFactor)
	for _, ch := range c.Channels {
		if !channelID.MatchString(ch) {
			return usageError("GHOST_CHANNELS: %q is not a Slack channel id (C...)", ch)
		}
	}
	if c.OpsChannel != "" && !channelID.MatchString(c.OpsChannel) {
		return usageError("GHOST_OPS_CHANNEL: %q is not a Slack channel id (C...)", c.OpsChannel)
	}
	for _, dir := range filepath.SplitList(c.Path) {
		if !filepath.IsAbs(dir) || strings.ContainsFunc(dir, unicode.IsControl) {
			return usageError("GHOST_PATH: %q is not accepted (accepted: absolute directories, separated by colons)", dir)
		}
	}
	if _, err := c.who().Rules(policy.New(policy.Options{}).KnownRule); err != nil {
		return usageError("%w", err)
	}
	bounds := []struct {
		name    string
		v       time.Duration
		min, mx time.Duration
	}{
		{"GHOST_LEASE", c.Lease, 2 * time.Second, 5 * time.Minute},
		{"GHOST_APPROVAL_TTL", c.ApprovalTTL, time.Second, 7 * 24 * time.Hour},
		{"GHOST_COMMAND_TIMEOUT", c.CommandTimeout, time.Second, time.Hour},
		{"GHOST_REDIS_RETENTION", c.RedisRetention, time.Hour, 10 * 365 * 24 * time.Hour},
	}
	for _, b := range bounds {
		if b.v < b.min || b.v > b.mx {
			return usageError("%s: %s is out of range (accepted: %s to %s)", b.name, b.v, b.min, b.mx)
		}
	}
	if c.MaxTurns < minTurns || c.MaxTurns > maxTurns {
		return usageError("GHOST_MAX_TURNS: %d is out of range (accepted: %d to %d)", c.MaxTurns, minTurns, maxTurns)
	}
	if err := c.choice().Check(); err != nil {
		return usageError("%w", err)
	}
	if err := cmp.Or(c.cloud().Check(c.Anonymize), memory.Check(c.Recall), health.Check(c.HealthAddr), c.logging().Check()); err != nil {
		return usageError("%w", err)
	}
	if c.WorkDir != "" && !filepath.IsAbs(c.WorkDir) {
		return usageError("GHOST_WORK_DIR: %q is not accepted (accepted: an absolute directory)", c.WorkDir)
	}
	if c.RedisURL != "" {
		if err := c.redis().Check(); err != nil {
			return usageError("GHOST_REDIS_URL: %w", err)
		}
		if c.JournalKeyFile == "" {
			return usageError("GHOST_REDIS_URL: needs GHOST_JOURNAL_KEY_FILE: whoever can write to Redis could forge answers")
		}
	}
	return nil
}

// redis is where replicas share their state; without URL they do not.
func (c *config) redis() redis.Options {
	o := redis.Options{URL: c.RedisURL, PasswordFile: c.RedisPassword, CAFile: c.RedisCA, Replicas: c.RedisReplicas, Deployment: c.Deployment}
	if parts := strings.Split(string(c.AppToken), "-"); len(parts) > 2 { // xapp-1-APP-...
		o.App = parts[2]
	}
	return o
}

func (c *config) who() who.Settings {
	return who.Settings{Approvers: c.Approvers, Channels: c.Channels, Self: c.SelfApproval, TwoPerson: c.TwoPerson, Instruct: c.Instruct, Factor: c.SecondFactor, File: c.ApproversFile, Secrets: c.TOTPFile}
}

func (c *config) cloud() cloud.Account {
	return cloud.Account{Subscription: c.Subscription, ResourceGroup: c.ResourceGroup, Location: c.Location, StorageAccount: c.StorageAccount, Container: c.Container}
}

func trim(in []string) []string {
	var out []string
	for _, s := range in {
		if s = strings.TrimSpace(s); s != "" {
			out = append(out, s)
		}
	}
	return out
}
