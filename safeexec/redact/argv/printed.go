package argv

import (
	"strings"
	"sync"

	"ghostbot/safeexec/redact/shape"
	"ghostbot/safeexec/redact/words"
)

// An Output is what a command prints.
type Output uint8

// What commands print, from what is known least to what is known best.
const (
	Unknown Output = iota // nothing is known
	Fields                // secrets among other fields: those called "value", and what looks random
	Pairs                 // names and values in turn, each on its line
	Last                  // public words with a secret behind them on each line
	Cells                 // secrets alone, or in the cells of lines without labels
	Bare                  // a secret and nothing else
)

// Kinds of commands in the table. Those without a kind of their own say what
// they print whatever their flags are.
const (
	kindValue = Bare + 1 + iota // Cells when flags ask for the value alone, else Fields
	kindNamed                   // Bare when the words name a secret, else Fields
)

// printers is the table of commands that print a secret by design: a program or
// several, then a subcommand as Match has it, and what is printed. The first row
// that fits decides. A dash is no subcommand. It is parsed at first use: the program
// also starts where nothing is redacted.
var printers = sync.OnceValue(func() map[string][]printer { return parsePrinters(printerText) })

const printerText = `
	az | keyvault key|certificate | none
	az | ** get-access-token | value
	az | ** keys|key list|renew|show|set|create|regenerate|update | value
	az | ** list-keys|listkeys|list-key|show-keys|regenerate-key*|renew-key*|list-secrets|list-admin-key* | value
	az | ** *connection-string* | value
	az | ** credential|credentials show|list|reset|renew|create | value
	az | ** get-credentials|show-credentials|list-credentials|reset-credentials|list-publishing*|create-for-rbac | value
	az | ** *generate-sas*|*shared-access-signature*|list-service-sas|list-account-sas | value
	az | ** secret show|set|download | value
	az | ** shared-key show|reset|update|list | value
	az | ** admin-key|query-key|api-key | value
	az | ** express-route|port authorization|auth show|list|create | value
	az | ** authorization show | value
	az | network express-route show|list|create|update | value
	az | acr login +--expose-token | value
	az | ** appsettings list|set | fields
	aws | sts assume-role*|get-session-token|get-federation-token | value
	aws | iam create-access-key|*service-specific-credential* | value
	aws | secretsmanager *get-secret-value|get-random-password | value
	aws | ssm get-parameter* +--with-decryption | value
	aws | ecr|ecr-public get-login-password | bare
	aws | ecr|ecr-public|codeartifact get-authorization-token | value
	aws | ec2 get-password-data|create-key-pair | value
	aws | configure get | named
	aws | configure export-credentials | value
	aws | rds generate-db-auth-token | bare
	aws | redshift* get-c* | value
	aws | eks get-token | value
	aws | kms decrypt|generate-data-key* | value
	aws | apigateway get-api-key* +--include-value* | value
	gcloud | ** secrets versions access | bare
	gcloud | ** print-access-token|print-identity-token|print-refresh-token | bare
	gcloud | ** api-keys get-key-string | value
	gcloud | ** reset-windows-password | value
	kubectl oc k | get secret|secrets|secret/*|secrets/*|secret.*|secrets.*|secret,*|secrets,* | value
	kubectl oc k | create token | bare
	kubectl oc k | config view +--raw | value
	oc | whoami +-t|--show-token | bare
	oc | extract secret*|secrets* | cells
	kubeadm | token create|generate|list | cells
	kubeadm | certs certificate-key | bare
	kubeadm | init phase upload-certs | cells
	talosctl | gen secrets | fields
	terraform tofu terragrunt | output | named
	pulumi | config|stack get|output | named
	vault bao | print token | bare
	vault bao | read|unwrap|write | value
	vault bao | kv|token get|create|renew | value
	consul etcdctl | ** get | named
	uci | get|show | named
	git | config | named
	heroku | config:get | named
	printenv | - | named
	wg | genkey|genpsk | bare
	wg awg | show * preshared-keys | last
	wg awg | show * private-key | last
	wg awg | showconf | fields
	nmcli | con*|c show|s +-s|--show-secrets|-*s* +-g|--get-values|-t|--terse|-*g*|-*t* | cells
	nmcli | con*|c show|s +-s|--show-secrets|-*s* | value
	gh glab fly flyctl | auth token | bare
	redis-cli valkey-cli keydb-cli | config get | pairs
	pass gopass passage | show | bare
	op | read | bare
	op | item get | value
	bw | get password|totp | bare
	lpass | show +--password | bare
	secret-tool | lookup | bare
	keyring | get | bare
	security | find-generic-password|find-internet-password +-w|-*w | bare
	doppler | secrets get|download | value
	cf | oauth-token | bare
	argocd | account generate-token | bare
	argocd | admin initial-password | cells
	helm | get values | fields
	docker podman nerdctl | inspect | fields
	docker podman nerdctl | container|image|service inspect | fields
	docker | swarm join-token +-q|--quiet | bare
	docker | swarm unlock-key +-q|--quiet | bare
	podman | secret inspect +--showsecret | value
	openssl | rand | bare
	pwgen apg | - | cells
	ceph rados | ** auth get-key|print-key|print_key | bare
	ceph | auth get|get-or-create|list|ls|export | fields
	rclone | reveal | bare
	chronyc | keygen | cells
	ansible-vault | view|decrypt | fields
	sops | decrypt | value
	sops | +-d|--decrypt | value
`

// A printer is a row of the table.
type printer struct {
	path []string
	out  Output
}

func parsePrinters(text string) map[string][]printer {
	kinds := map[string]Output{"none": Unknown, "fields": Fields, "pairs": Pairs, "last": Last, "cells": Cells, "bare": Bare, "value": kindValue, "named": kindNamed}
	table := map[string][]printer{}
	for line := range strings.Lines(strings.TrimSpace(text)) {
		f := strings.Split(line, " | ")
		if len(f) != 3 {
			panic("redact/argv: a row without three parts: " + line)
		}
		out, ok := kinds[strings.TrimSpace(f[2])]
		if !ok {
			panic("redact/argv: a row of no kind: " + line)
		}
		for name := range strings.FieldsSeq(f[0]) {
			table[name] = append(table[name], printer{strings.Fields(strings.TrimPrefix(f[1], "-")), out})
		}
	}
	return table
}

// wrappers run the command that their words hold.
var wrappers = shape.Words("sudo doas env time timeout nice ionice nohup setsid stdbuf chrt taskset watch xargs exec command chroot nsenter unshare ip ssh su runuser " +
	"sh bash dash zsh ksh ash busybox cmd powershell pwsh docker podman nerdctl kubectl oc crictl lxc incus systemd-run strace ltrace flock")

// Printed is what the command line prints, as far as the table knows. Of several
// commands the one decides that is known best to print secrets.
func Printed(line string) Output { return printed(line, 2) }

func printed(line string, depth int) (out Output) {
	for _, words := range Split(line) {
		out = max(out, one(words, depth))
	}
	return out
}

// one is what the command with these words prints.
func one(words []string, depth int) Output {
	wrapped := false
	for i, w := range words {
		name := Name(w)
		for _, p := range printers()[name] {
			if Match(words[i+1:], p.path) {
				return p.out.with(words[i+1:])
			}
		}
		if wrapped && depth > 0 && strings.IndexByte(w, ' ') > 0 { // sh -c "..."
			if out := printed(w, depth-1); out != Unknown {
				return out
			}
		}
		if wrapped = wrapped || wrappers[name]; !wrapped && strings.IndexByte(w, '=') < 1 { // NAME=value stands before commands
			break
		}
	}
	return Unknown
}

// with says what a kind of command prints with these words.
func (o Output) with(args []string) Output {
	switch o {
	case kindValue:
		if narrowed(args) {
			return Cells
		}
		return Fields
	case kindNamed:
		if names(args) {
			return Bare
		}
		return Fields
	}
	return o
}

// forms are the values of flags for output that print values without their names.
var forms = []string{"tsv", "text", "table", "jsonpath", "go-template", "template", "custom-columns", "value", "get(", "plain", "csv", "{{"}

// narrowed says whether flags ask for values without their names, and not only
// for public ones.
func narrowed(args []string) bool {
	short, public := false, false
	for i, w := range args {
		if len(w) < 2 || w[0] != '-' {
			continue
		}
		name, value, ok := strings.Cut(w, "=")
		if !ok && i+1 < len(args) {
			value = args[i+1]
		}
		if !ok && len(w) > 2 && w[1] == 'o' { // -otsv
			name, value = "-o", w[2:]
		}
		switch strings.TrimLeft(name, "-") {
		case "o", "output", "format", "template":
			for _, form := range forms {
				if n := strings.Index(strings.ToLower(value), form); n == 0 || n > 0 && form == "{{" {
					short = true
				}
			}
			if _, query, ok := strings.Cut(value, "="); ok {
				public = public || isPublic(query)
			} else if strings.ContainsAny(value, "({") {
				public = public || isPublic(value)
			}
		case "query", "field", "fields", "extract", "jsonpath":
			short = true
			public = public || isPublic(value)
		case "plain":
			short = true
		}
	}
	return short && !public
}

// publicFields are what commands that print secrets print beside them.
var publicFields = shape.Words("id ids name names kid type kind location region length count keys version versions enabled created updated expires expireson expires_on " +
	"createdate creationtimestamp contenttype tags status state provisioningstate attributes resourcegroup keyid displayname enddatetime startdatetime description " +
	"username user email arn namespace metadata labels annotations lastmodifieddate uuid timestamp expiration accountid tenant subscription keyname permissions bandwidthinmbps ttl lease_duration accessor policies")

// isPublic says whether all that a query selects is public: the last names of its
// paths.
func isPublic(query string) bool {
	any := false
	for i := 0; i < len(query); {
		if !shape.Letter(query[i]) {
			i++
			continue
		}
		end := shape.SetURL.End(query, i, len(query))
		word := query[i:end]
		next := byte(0)
		if end < len(query) {
			next = query[end]
		}
		i = end
		if next == '.' || next == '[' || next == ':' { // on the way, or an alias
			continue
		}
		switch word {
		case "value", "get", "range", "end", "index", "items": // of the form, not of the path
			if next == '(' || word == "range" || word == "end" {
				continue
			}
		case "length", "keys":
			if next == '(' {
				return true
			}
		}
		if next == '(' {
			continue
		}
		if any = true; !shape.Fold(word, publicFields) && !publicEnd(word) {
			return false
		}
	}
	return any
}

// publicEnd says whether a field ends in a word for what is public: provisioningState.
func publicEnd(field string) bool {
	field = strings.ToLower(field)
	for _, end := range [...]string{"state", "status", "time", "date", "type", "name", "location"} {
		if strings.HasSuffix(field, end) {
			return true
		}
	}
	return false
}

// names says whether one of the words names a secret: db_password, prod/db/token.
func names(args []string) bool {
	for _, w := range args {
		if w == "" || w[0] == '-' {
			continue
		}
		w = w[strings.LastIndexAny(strings.TrimRight(w, "/"), "/:@]")+1:]
		if w != "" && len(w) <= 64 {
			if tail := w[strings.LastIndexByte(w, '.')+1:]; classified(w) || tail == "key" && tail != w || tail != "" && classified(tail) {
				return true
			}
		}
	}
	return false
}

func classified(w string) bool {
	_, ok := words.Classify("", w)
	return ok
}
