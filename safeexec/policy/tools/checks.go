package tools

import (
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
)

// checks are the rules that a table cannot say, by name.
var checks = map[string]func(*Call) *Problem{
	"kubectl-get":     kubectlGet,
	"kubectl-logs":    kubectlLogs,
	"template":        template,
	"ps":              psForms,
	"route-get":       routeGet,
	"version-or-verb": versionOrVerb,
	"tshark":          tsharkOutput,
	"sysctl-all":      sysctlAll,
	"lsof":            lsofScope,
	"vtysh":           vtysh,
	"one-of-capture":  captureOrList,
	"delay-count":     delayCount,
	"duration":        duration,
	"s-client":        sClient,
	"systemctl-show":  systemctlShow,
	"nmcli-fields":    nmcliFields,
}

// secretKinds are Kubernetes resources whose objects are credentials, in any
// spelling that the API accepts.
var secretKinds = regexp.MustCompile(`(?i)secret|credential|token|password|kubeconfig|vaultauth`)

// readableKinds may be printed in full (-o yaml and templates): their objects
// describe the network and the cluster, not applications' settings.
var readableKinds = wordSet(`po pod pods svc service services ep endpoints endpointslice endpointslices netpol networkpolicy networkpolicies
 ing ingress ingresses ingressclass ingressclasses no node nodes ns namespace namespaces ev event events deploy deployment deployments ds daemonset daemonsets
 rs replicaset replicasets sts statefulset statefulsets job jobs cj cronjob cronjobs hpa horizontalpodautoscaler horizontalpodautoscalers pdb poddisruptionbudget poddisruptionbudgets
 pv persistentvolume persistentvolumes pvc persistentvolumeclaim persistentvolumeclaims sc storageclass storageclasses crd crds customresourcedefinition customresourcedefinitions
 gateway gateways gatewayclass gatewayclasses httproute httproutes grpcroute grpcroutes tcproute tcproutes tlsroute tlsroutes referencegrant referencegrants virtualservice virtualservices
 vs destinationrule destinationrules dr serviceentry serviceentries sidecar sidecars peerauthentication peerauthentications ippool ippools
 bgppeer bgppeers bgpconfiguration bgpconfigurations felixconfiguration felixconfigurations globalnetworkpolicy globalnetworkpolicies ipamblock ipamblocks
 blockaffinity blockaffinities ciliumnetworkpolicy ciliumnetworkpolicies cnp ccnp ciliumendpoint ciliumendpoints cep ciliumnode ciliumnodes ciliumidentity ciliumidentities
 hostendpoint hostendpoints lease leases apiservice apiservices mutatingwebhookconfiguration mutatingwebhookconfigurations
 validatingwebhookconfiguration validatingwebhookconfigurations runtimeclass runtimeclasses priorityclass priorityclasses pc limits limitrange limitranges
 quota resourcequota resourcequotas sa serviceaccount serviceaccounts role roles rolebinding rolebindings clusterrole clusterroles
 clusterrolebinding clusterrolebindings csr ipaddresses ipaddress servicecidrs networkattachmentdefinitions net-attach-def cs componentstatuses componentstatus all
 l2advertisement l2advertisements ipaddresspool ipaddresspools bgpadvertisement bgpadvertisements certificate certificates cert nodemetrics podmetrics`)

// kubectlGet looks at the kinds of get and describe. Secrets are never SAFE;
// settings (config maps) and unknown kinds only as a table.
func kubectlGet(c *Call) *Problem {
	kinds := kindsOf(c.Args)
	if raw := c.Has("--raw"); raw && len(c.Args) == 0 {
		return nil
	} else if raw {
		return c.problem("args", "kubectl get --raw takes no kind of object")
	}
	if len(c.Args) == 0 {
		return c.problem("args", "kubectl %s: the kind of object is missing", c.Subs[0])
	}
	full := c.Subs[0] == "describe"
	if o, ok := c.Get("-o"); ok {
		full = full || o != "wide" && o != "name"
	}
	full = full || c.Has("--template") // without -o it is a go-template
	for _, k := range kinds {
		plain, group, _ := strings.Cut(strings.ToLower(k), ".")
		switch {
		case secretKinds.MatchString(k):
			return c.problem("secret", "kubectl %s %s: secrets are read only after a person agreed", c.Subs[0], Clip(k))
		case !kindShape(k):
			return c.problem("args", "kubectl %s %s: that is no kind of object", c.Subs[0], Clip(k))
		case full && !readableKinds[plain] || full && group != "" && strings.Contains(group, "secret"):
			return c.problem("settings", "kubectl %s %s: the full text may hold settings with credentials; without -o a table is SAFE", c.Subs[0], Clip(k))
		}
	}
	return nil
}

var kindShape = match(`^[A-Za-z0-9-]{1,63}(\.[A-Za-z0-9.-]{0,190})?$`)

// kindsOf lists the kinds among the operands: the first may name several, and
// in the form kind/name each operand names one.
func kindsOf(args []string) []string {
	var kinds []string
	for i, a := range args {
		for part := range strings.SplitSeq(a, ",") {
			kind, _, slash := strings.Cut(part, "/")
			if i == 0 || slash {
				kinds = append(kinds, kind)
			}
		}
	}
	return kinds
}

// kubectlLogs demands a bound on the lines: a log has any length.
func kubectlLogs(c *Call) *Problem {
	if len(c.Args) == 0 && !c.Has("-l") {
		return c.problem("args", "kubectl logs: the pod is missing")
	}
	return nil
}

// template looks at docker's --format: fields of the network and of the state
// only, never the whole object and never its configuration, which holds the
// environment.
func template(c *Call) *Problem {
	f, ok := c.Get("-f", "--format")
	if !ok {
		return c.problem("need", "%s %s prints the environment too; add -f with the fields you want", c.Name, strings.Join(c.Subs, " "))
	}
	if !strings.Contains(f, "{{") {
		return c.problem("value", "%s -f %s: give a template of fields", c.Name, Clip(f))
	}
	if wholeObject.MatchString(f) {
		return c.problem("value", "%s -f %s: the whole object may hold credentials", c.Name, Clip(f))
	}
	for _, m := range dotted.FindAllString(f, -1) {
		root, _, _ := strings.Cut(strings.TrimLeft(m, ".$"), ".")
		if root == "HostConfig" {
			if !hostConfig.MatchString(m) {
				return c.problem("value", "%s -f %s: that part of the object may hold credentials", c.Name, Clip(m))
			}
			continue
		}
		if !templateRoots[root] {
			return c.problem("value", "%s -f %s: that part of the object may hold credentials", c.Name, Clip(m))
		}
	}
	return nil
}

var (
	wholeObject   = regexp.MustCompile(`\$([^A-Za-z_]|$)`)
	dotted        = regexp.MustCompile(`\.[A-Za-z0-9_.]*`)
	hostConfig    = regexp.MustCompile(`^\.HostConfig\.(NetworkMode|PortBindings|Dns|DnsSearch|ExtraHosts|RestartPolicy|Memory|NanoCpus|PidMode|IpcMode)\b`)
	templateRoots = wordSet(`NetworkSettings State Name Id ID Image Created RestartCount Platform Driver IPAddress Gateway MacAddress GlobalIPv6Address
 IPPrefixLen EndpointID NetworkID Aliases DNSNames Ports HostIp HostPort Status Running Pid ExitCode StartedAt FinishedAt Health Error OOMKilled Subnet IPAM Scope
 Networks Containers IPv4Address IPv6Address Internal EnableIPv6 Names Command Size Labels Key`)
)

// versionOrVerb demands a verb, or a flag for which the program prints what it is.
func versionOrVerb(c *Call) *Problem {
	if len(c.Subs) == 0 && !c.Has("-V", "-v", "--version", "--help") {
		return c.problem("args", "%s: what it should do is missing", c.Name)
	}
	return nil
}

// routeGet demands the address that is looked up, alone or behind "to".
func routeGet(c *Call) *Problem {
	if len(c.Args) == 0 && !c.Has("to") || len(c.Args) > 0 && c.Has("to") {
		return c.problem("args", "ip route get: give one address")
	}
	return nil
}

// psForms reads ps, whose operands and flags mix three dialects. The letter e
// in the BSD dialect prints environments.
func psForms(c *Call) *Problem {
	args := c.raw
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case psBundle(a):
		case psValue(a):
			i++
			if i >= len(args) || !psList(args[i]) || strings.Contains(strings.ToLower(args[i]), "env") || len(args[i]) > 0 && args[i][0] == '-' && a != "--sort" {
				return c.problem("value", "ps %s: give a list of names", a)
			}
		case psLong(a):
		case strings.HasPrefix(a, "-"):
			return c.problem("flag", "ps %s is not on the list of flags that run without a person", Clip(a))
		default:
			return c.problem("args", "ps %s: this form may print environments", Clip(a))
		}
	}
	return nil
}

var (
	psBundle = match(`^(-[AadefFjlLMTyHwcNZ]+|-?aux[wfm]*|[aAfhjlmnrSsTuvwxXHLZ]{1,8})$`)
	psValue  = match(`^-[AadefFjlLMTyHwcN]*[opCuUgGts]$|^(o|axo|--sort|--format|--pid|--ppid|--user)$`)
	psList   = match(`^[A-Za-z0-9_.,:=%+/ -]{1,300}$`)
	psLong   = match(`^(--sort=[a-z0-9_,+%-]{1,80}|--no-headers?|--headers|--forest|--version|--ppid=[0-9,]+|--pid=[0-9,]+|-p[0-9,]+|-C[A-Za-z0-9_.-]+|[0-9]{1,7})$`)
)

// tsharkOutput refuses the outputs that print whole packets.
func tsharkOutput(c *Call) *Problem {
	if !c.Has("-r", "-D", "-v", "--version", "-h") {
		return c.problem("need", "tshark: without -r FILE it captures live traffic")
	}
	switch t, _ := c.Get("-T"); t {
	case "json", "jsonraw", "ek", "pdml":
		if !c.Has("-J", "-j") && !c.Has("-e") {
			return c.problem("payload", "tshark -T %s prints whole packets; add -J with the layers you want, or use -T fields", t)
		}
	case "fields":
		if !c.Has("-e") {
			return c.problem("need", "tshark -T fields needs at least one -e FIELD")
		}
	}
	return nil
}

func captureOrList(c *Call) *Problem {
	if !c.Has("-r", "-D", "--list-interfaces", "--version", "-h", "--help") {
		return c.problem("need", "tcpdump: without -r FILE it captures live traffic")
	}
	return nil
}

// sysctlAll allows -a only for a pattern that leaves out the IPv6 secrets.
func sysctlAll(c *Call) *Problem {
	if !c.Has("-a", "--all", "-A", "-X") {
		if len(c.Args) == 0 && !c.Has("-V", "--version", "-h", "--help") {
			return c.problem("need", "sysctl: name the settings to read")
		}
		return nil
	}
	p, ok := c.Get("-r")
	if !ok || secretSetting(p) {
		return c.problem("need", "sysctl -a prints secrets too; name the settings, or add --pattern 'net.ipv4.tcp_mem'")
	}
	return nil
}

// secretSetting reports a pattern that may take in a setting which is a secret: the
// stable_secret of an IPv6 interface, whatever that is called, or a key. It is none when every
// match holds a word that no such setting has: one with "_" in it, or one of settingWords. A
// folder of the IPv4 settings is let through: of the one key among them only root sees
// anything, and redaction masks it.
func secretSetting(pattern string) bool {
	re, err := syntax.Parse(pattern, syntax.POSIX)
	return err != nil || strings.Contains(pattern, "_key") || !elsewhere(re)
}

// elsewhere reports an expression whose every match is outside of net.ipv6.conf.
func elsewhere(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpLiteral:
		text := strings.ToLower(string(re.Rune))
		for part := range strings.SplitSeq(text, ".") {
			if strings.Contains(part, "_") && !strings.Contains("stable_secret", part) && !strings.Contains(part, "secret") || settingWords[part] {
				return true
			}
		}
	case syntax.OpConcat:
		return slices.ContainsFunc(re.Sub, elsewhere)
	case syntax.OpAlternate:
		return !slices.ContainsFunc(re.Sub, func(s *syntax.Regexp) bool { return !elsewhere(s) })
	case syntax.OpCapture, syntax.OpPlus:
		return elsewhere(re.Sub[0])
	case syntax.OpRepeat:
		return re.Min > 0 && elsewhere(re.Sub[0])
	}
	return false
}

// settingWords are parts of names of settings and of no interface.
var settingWords = wordSet(`ipv4 core kernel netfilter somaxconn rmem wmem conntrack congestion swappiness hugepages forwarding syncookies keepalive backlog
 dirty overcommit unix neigh gc_thresh rp_filter fin_timeout tw_reuse timestamps sack ecn fastopen`)

// lsofScope wants a scope: every open file of every process is long and shows
// all paths.
func lsofScope(c *Call) *Problem {
	if !c.Has("-i", "-p", "-U", "-c", "-u", "-v", "-h", "-g") {
		return c.problem("need", "lsof lists every open file; add -i for sockets or -p PID")
	}
	return nil
}

// vtysh runs the commands of the routing daemons: showing ones only, none that
// prints the configuration with its keys.
func vtysh(c *Call) *Problem {
	n := 0
	for _, f := range c.Flags {
		if f.Name != "-c" {
			continue
		}
		n++
		if !vtyshShow(f.Value) || vtyshSecret.MatchString(f.Value) || shortened(f.Value) {
			return c.problem("value", "vtysh -c %s: only show commands without configuration run without a person", Clip(f.Value))
		}
	}
	if n == 0 {
		return c.problem("need", "vtysh is an interactive shell; add -c 'show ...'")
	}
	return nil
}

// shortened reports a command whose second word vtysh would complete to one that prints the
// configuration: it takes every beginning that fits one word only.
func shortened(command string) bool {
	words := strings.Fields(strings.ToLower(command))
	return len(words) > 1 && slices.ContainsFunc(vtyshWhole, func(s string) bool { return strings.HasPrefix(s, words[1]) })
}

var vtyshWhole = []string{"running-config", "startup-config", "tech-support", "configuration", "history", "logging", "key"}

var (
	vtyshShow   = match(`^(show|sh) [a-z0-9A-Z_ .:/|*-]{1,200}$`)
	vtyshSecret = regexp.MustCompile(`(?i)run|start|tech|key|passw|conf|log|hist|pipe|\|`)
)

// nmcliFields refuses field names that stand for keys.
func nmcliFields(c *Call) *Problem {
	for _, flag := range []string{"-f", "-g"} {
		if v, ok := c.Get(flag); ok && nmcliSecret.MatchString(v) {
			return c.problem("value", "nmcli %s %s: that field is a key", flag, Clip(v))
		}
	}
	return nil
}

var nmcliSecret = regexp.MustCompile(`(?i)psk|secret|passw|wep|pin|key|private`)

// delayCount refuses a delay without a count.
func delayCount(c *Call) *Problem {
	if len(c.Args) == 1 {
		return c.problem("need", "%s %s repeats for ever; add a count, as in \"1 5\"", c.Name, Clip(c.Args[0]))
	}
	return nil
}

// sClient wants to know where to connect to.
func sClient(c *Call) *Problem {
	if len(c.Args) == 0 && !c.Has("-connect", "-host", "-help") {
		return c.problem("need", "openssl s_client needs -connect host:port")
	}
	return nil
}

// maxSeconds is how long a probe may take by its own count and interval.
const maxSeconds = 600

// duration refuses a count and an interval that together take too long.
func duration(c *Call) *Problem {
	count, interval := 10.0, 1.0 // mtr's count, and everybody's interval
	for _, v := range []struct {
		into  *float64
		flags []string
	}{{&count, []string{"-c", "-n"}}, {&interval, []string{"-i"}}} {
		if text, ok := c.Get(v.flags...); ok {
			if n, err := strconv.ParseFloat(strings.TrimRight(text, "s"), 64); err == nil {
				*v.into = n
			}
		}
	}
	if count*interval > maxSeconds {
		return c.problem("value", "%s: that count at that interval takes longer than %d minutes", c.Name, maxSeconds/60)
	}
	return nil
}

// systemctlShow wants named properties: all of them include the environment.
func systemctlShow(c *Call) *Problem {
	switch {
	case len(c.Subs) == 0 && !c.Has("--no-pager", "--version", "--help"):
		return c.problem("need", "systemctl may start a pager; add --no-pager")
	case len(c.Subs) > 0 && c.Subs[0] == "show" && !c.Has("-p"):
		return c.problem("need", "systemctl show prints environments too; add -p with the properties")
	}
	return nil
}
