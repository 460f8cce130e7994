package main

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/kelseyhightower/envconfig"

	"ghostbot/cmd/ghostbot/cloud"
	"ghostbot/cmd/ghostbot/dotenv"
	"ghostbot/cmd/ghostbot/health"
	"ghostbot/cmd/ghostbot/home"
	"ghostbot/cmd/ghostbot/memory"
	"ghostbot/cmd/ghostbot/options"
	"ghostbot/cmd/ghostbot/secrets"
	"ghostbot/cmd/ghostbot/who"
	"ghostbot/safeexec/policy"
	"ghostbot/store/redis"
)

// config is the environment of serve. Every GHOST_ variable is a field here;
// others are refused.
type config struct {
	AppToken       secrets.Text   `envconfig:"SLACK_APP_TOKEN"`
	BotToken       secrets.Text   `envconfig:"SLACK_BOT_TOKEN"`
	SlackURL       string         `envconfig:"SLACK_API_URL"`
	Approvers      []string       `envconfig:"GHOST_APPROVERS"`
	ApproversFile  string         `envconfig:"GHOST_APPROVERS_FILE"`
	Channels       []string       `envconfig:"GHOST_CHANNELS"`
	SelfApproval   bool           `envconfig:"GHOST_SELF_APPROVAL" default:"true"`
	TwoPerson      []string       `envconfig:"GHOST_TWO_PERSON"`
	SecondFactor   []string       `envconfig:"GHOST_SECOND_FACTOR"`
	TOTPFile       string         `envconfig:"GHOST_TOTP_FILE"`
	Instruct       string         `envconfig:"GHOST_INSTRUCT" default:"anyone"`
	Lease          time.Duration  `envconfig:"GHOST_LEASE" default:"12s"`
	ApprovalTTL    time.Duration  `envconfig:"GHOST_APPROVAL_TTL" default:"30m"`
	Brain          string         `envconfig:"GHOST_BRAIN" default:"auto"`
	GeminiKey      secrets.Text   `envconfig:"GEMINI_API_KEY"`
	Model          string         `envconfig:"GHOST_MODEL"`
	GeminiURL      string         `envconfig:"GHOST_GEMINI_URL"`
	ModelTokens    options.Whole  `envconfig:"GHOST_MODEL_TOKENS" default:"2000000"`
	ModelUSD       options.Number `envconfig:"GHOST_MODEL_USD" default:"5"`
	StateDir       string         `envconfig:"GHOST_STATE_DIR"`
	AuditDir       string         `envconfig:"GHOST_AUDIT_DIR"`
	CommandTimeout time.Duration  `envconfig:"GHOST_COMMAND_TIMEOUT" default:"60s"`
	MaxTurns       options.Whole  `envconfig:"GHOST_MAX_TURNS" default:"50"`
	Anonymize      bool           `envconfig:"GHOST_ANONYMIZE" default:"false"`
	Recall         string         `envconfig:"GHOST_RECALL" default:"channel"`
	ReadOnly       bool           `envconfig:"GHOST_READ_ONLY" default:"false"`
	Subscription   string         `envconfig:"GHOST_AZ_SUBSCRIPTION"`
	ResourceGroup  string         `envconfig:"GHOST_AZ_RESOURCE_GROUP"`
	Location       string         `envconfig:"GHOST_AZ_LOCATION"`
	StorageAccount string         `envconfig:"GHOST_AZ_STORAGE_ACCOUNT"`
	Container      string         `envconfig:"GHOST_AZ_CONTAINER"`
	OpsChannel     string         `envconfig:"GHOST_OPS_CHANNEL"`
	Path           string         `envconfig:"GHOST_PATH"`
	JournalKeyFile string         `envconfig:"GHOST_JOURNAL_KEY_FILE"`
	WorkDir        string         `envconfig:"GHOST_WORK_DIR"`
	CaptureKeyFile string         `envconfig:"GHOST_CAPTURE_KEY_FILE"`
	RedisURL       string         `envconfig:"GHOST_REDIS_URL"`
	RedisPassword  string         `envconfig:"GHOST_REDIS_PASSWORD_FILE"`
	RedisCA        string         `envconfig:"GHOST_REDIS_CA_FILE"`
	RedisReplicas  options.Whole  `envconfig:"GHOST_REDIS_REPLICAS" default:"0"`
	RedisRetention time.Duration  `envconfig:"GHOST_REDIS_RETENTION" default:"2160h"`
	Retention      time.Duration  `envconfig:"GHOST_RETENTION" default:"0s"`
	Deployment     string         `envconfig:"GHOST_DEPLOYMENT" default:"ghostbot"`
	HealthAddr     string         `envconfig:"GHOST_HEALTH_ADDR"`
	Log            string         `envconfig:"GHOST_LOG" default:"text"`
	LogLevel       string         `envconfig:"GHOST_LOG_LEVEL" default:"info"`
	OTLPEndpoint   string         `envconfig:"OTEL_EXPORTER_OTLP_ENDPOINT"`
}

// ours are the variables that config knows; GHOST_FAULT and GHOST_FAULT_COUNT
// belong to builds for crash tests.
var ours = []string{
	"GHOST_APPROVERS", "GHOST_APPROVERS_FILE", "GHOST_CHANNELS", "GHOST_SELF_APPROVAL", "GHOST_TWO_PERSON", "GHOST_SECOND_FACTOR", "GHOST_TOTP_FILE", "GHOST_INSTRUCT", "GHOST_LEASE", "GHOST_APPROVAL_TTL",
	"GHOST_BRAIN", "GHOST_MODEL", "GHOST_GEMINI_URL", "GHOST_MODEL_TOKENS", "GHOST_MODEL_USD", "GHOST_STATE_DIR", "GHOST_AUDIT_DIR", "GHOST_COMMAND_TIMEOUT", "GHOST_MAX_TURNS", "GHOST_ANONYMIZE", "GHOST_RECALL", "GHOST_READ_ONLY",
	"GHOST_AZ_SUBSCRIPTION", "GHOST_AZ_RESOURCE_GROUP", "GHOST_AZ_LOCATION", "GHOST_AZ_STORAGE_ACCOUNT", "GHOST_AZ_CONTAINER", "GHOST_OPS_CHANNEL", "GHOST_PATH", "GHOST_JOURNAL_KEY_FILE", "GHOST_HEALTH_ADDR", "GHOST_LOG", "GHOST_LOG_LEVEL",
	"GHOST_WORK_DIR", "GHOST_CAPTURE_KEY_FILE", "GHOST_REDIS_URL", "GHOST_REDIS_PASSWORD_FILE", "GHOST_REDIS_CA_FILE", "GHOST_REDIS_REPLICAS", "GHOST_REDIS_RETENTION", "GHOST_RETENTION", "GHOST_DEPLOYMENT",
	"GHOST_FAULT", "GHOST_FAULT_COUNT",
}

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
	if err := dotenv.Load(); err != nil {
		return c, usageError("%w", err)
	}
	if err := envconfig.Process("", &c); err != nil {
		var p *envconfig.ParseError
		if errors.As(err, &p) {
			return c, usageError("%s: %q is not accepted (accepted: %s)", p.KeyName, p.Value, options.Accepted(p.TypeName))
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
		{"GHOST_RETENTION (0s keeps everything)", cmp.Or(c.Retention, 24*time.Hour), 24 * time.Hour, 100 * 365 * 24 * time.Hour},
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
	if err := cmp.Or(options.URL("SLACK_API_URL", c.SlackURL), options.URL("OTEL_EXPORTER_OTLP_ENDPOINT", c.OTLPEndpoint), c.cloud().Check(c.Anonymize), memory.Check(c.Recall), health.Check(c.HealthAddr), c.logging().Check(), home.Alone(c.redis())); err != nil {
		return usageError("%w", err)
	}
	if c.WorkDir != "" && !filepath.IsAbs(c.WorkDir) {
		return usageError("GHOST_WORK_DIR: %q is not accepted (accepted: an absolute directory)", c.WorkDir)
	}
	if err := c.redis().Check(); c.RedisURL != "" && err != nil {
		return usageError("GHOST_REDIS_URL: %w", err)
	}
	if c.RedisURL != "" && c.JournalKeyFile == "" {
		return usageError("GHOST_REDIS_URL: needs GHOST_JOURNAL_KEY_FILE: whoever can write to Redis could forge answers")
	}
	return nil
}

// redis is where replicas share their state; without URL they do not.
func (c *config) redis() redis.Options {
	o := redis.Options{URL: c.RedisURL, PasswordFile: c.RedisPassword, CAFile: c.RedisCA, Replicas: int(c.RedisReplicas), Deployment: c.Deployment}
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
