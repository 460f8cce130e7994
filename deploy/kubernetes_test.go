package deploy

import (
	"bytes"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"
)

// cluster is everything that one kustomization gives, decoded.
type cluster struct {
	set      apps.StatefulSet
	account  core.ServiceAccount
	service  core.Service
	budget   policy.PodDisruptionBudget
	network  networking.NetworkPolicy
	settings map[string]core.ConfigMap
}

// decode reads documents into the types of Kubernetes; a field that a type does not
// have is an error.
func decode(t *testing.T, text string) cluster {
	t.Helper()
	c := cluster{settings: map[string]core.ConfigMap{}}
	for doc := range strings.SplitSeq(text, "\n---\n") {
		var kind struct{ Kind, APIVersion string }
		if err := yaml.Unmarshal([]byte(doc), &kind); err != nil {
			t.Fatal(err)
		}
		var config core.ConfigMap
		into := map[string]any{"apps/v1 StatefulSet": &c.set, "v1 ServiceAccount": &c.account, "v1 Service": &c.service,
			"policy/v1 PodDisruptionBudget": &c.budget, "networking.k8s.io/v1 NetworkPolicy": &c.network, "v1 ConfigMap": &config}[kind.APIVersion+" "+kind.Kind]
		if into == nil {
			t.Errorf("%s %s is not expected", kind.APIVersion, kind.Kind)
			continue
		}
		if err := yaml.UnmarshalStrict([]byte(doc), into); err != nil {
			t.Errorf("%s: %v", kind.Kind, err)
		}
		if config.Name != "" {
			c.settings[config.Name] = config
		}
	}
	return c
}

// TestBaseDecodes holds each file of the base against the types, without kubectl.
func TestBaseDecodes(t *testing.T) {
	files, err := filepath.Glob("kubernetes/base/*.yaml")
	if err != nil || len(files) < 6 {
		t.Fatalf("%v, %v", files, err)
	}
	var docs []string
	listed := read(t, "kubernetes/base/kustomization.yaml")
	for _, f := range files {
		if filepath.Base(f) == "kustomization.yaml" {
			continue
		}
		docs = append(docs, strings.TrimSpace(read(t, f)))
		if !strings.Contains(listed, "- "+filepath.Base(f)+"\n") {
			t.Errorf("%s is not a resource of the base", f)
		}
	}
	checkCluster(t, decode(t, strings.Join(docs, "\n---\n")))
}

// TestKustomizations: what kubectl makes of the base, the example and each component.
func TestKustomizations(t *testing.T) {
	may(t, "kubectl")
	for _, components := range [][]string{nil, {"net-raw"}, {"azure"}, {"net-raw", "azure"}} {
		t.Run(strings.Join(components, "+"), func(t *testing.T) {
			c := decode(t, kustomize(t, components))
			checkCluster(t, c)
			main := c.set.Spec.Template.Spec.Containers[0]
			raw := slices.Equal(main.SecurityContext.Capabilities.Add, []core.Capability{"NET_RAW"}) && *main.SecurityContext.AllowPrivilegeEscalation
			if raw != slices.Contains(components, "net-raw") || !raw && (len(main.SecurityContext.Capabilities.Add) > 0 || *main.SecurityContext.AllowPrivilegeEscalation) {
				t.Errorf("rights: %+v", main.SecurityContext)
			}
			az := c.set.Spec.Template.Labels["azure.workload.identity/use"] == "true" && c.account.Annotations["azure.workload.identity/client-id"] != "" && strings.HasSuffix(main.Image, ":full")
			if az != slices.Contains(components, "azure") {
				t.Errorf("workload identity: labels %v, annotations %v, image %s", c.set.Spec.Template.Labels, c.account.Annotations, main.Image)
			}
		})
	}
	out, err := exec.Command("kubectl", "kustomize", "kubernetes/example").Output()
	if err != nil {
		t.Fatal(err)
	}
	c := decode(t, string(out))
	checkCluster(t, c)
	from := c.set.Spec.Template.Spec.Containers[0].EnvFrom
	if len(from) != 1 || len(c.settings[from[0].ConfigMapRef.Name].Data) == 0 {
		t.Errorf("the example's settings do not reach the program: %v of %v", from, c.settings)
	}
	for name := range c.settings[from[0].ConfigMapRef.Name].Data {
		if !slices.Contains(variables(t), name) || slices.Contains(secretVariables, name) {
			t.Errorf("%s is no setting", name)
		}
	}
}

// kustomize makes the base with components of it.
func kustomize(t *testing.T, components []string) string {
	t.Helper()
	here, err := filepath.Abs("kubernetes")
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "kubernetes")
	if err := os.CopyFS(dir, os.DirFS(here)); err != nil {
		t.Fatal(err)
	}
	text := "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [../base]\n"
	if len(components) > 0 {
		text += "components: [../components/" + strings.Join(components, ", ../components/") + "]\n"
	}
	if err := os.MkdirAll(filepath.Join(dir, "made"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "made", "kustomization.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("kubectl", "kustomize", filepath.Join(dir, "made"))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, &stderr)
	}
	return string(out)
}

// checkCluster holds a deployment against what every one has to keep.
func checkCluster(t *testing.T, c cluster) {
	t.Helper()
	pod := c.set.Spec.Template
	if c.set.Spec.Replicas == nil || *c.set.Spec.Replicas != 2 || c.budget.Spec.MinAvailable.IntValue() != 1 {
		t.Errorf("replicas %v, available %v", c.set.Spec.Replicas, c.budget.Spec.MinAvailable)
	}
	for what, labels := range map[string]map[string]string{"stateful set": c.set.Spec.Selector.MatchLabels, "budget": c.budget.Spec.Selector.MatchLabels,
		"network policy": c.network.Spec.PodSelector.MatchLabels, "service": c.service.Spec.Selector} {
		if len(labels) == 0 {
			t.Errorf("%s: it selects everything", what)
		}
		for k, v := range labels {
			if pod.Labels[k] != v {
				t.Errorf("%s: %s=%s selects no pod of %v", what, k, v, pod.Labels)
			}
		}
	}
	if c.set.Spec.ServiceName != c.service.Name || pod.Spec.ServiceAccountName != c.account.Name || *pod.Spec.AutomountServiceAccountToken || *c.account.AutomountServiceAccountToken {
		t.Error("service, account, or a token of the cluster in the pod")
	}
	if len(c.network.Spec.PolicyTypes) != 2 || len(c.network.Spec.Ingress) != 1 || len(c.network.Spec.Ingress[0].From) == 0 {
		t.Errorf("network policy: %+v", c.network.Spec)
	}
	for _, peer := range c.network.Spec.Egress[0].To {
		if len(peer.IPBlock.Except) == 0 {
			t.Errorf("%s reaches the metadata service", peer.IPBlock.CIDR)
		}
	}
	checkEgress(t, c.network.Spec.Egress)
	s := pod.Spec.SecurityContext
	if !*s.RunAsNonRoot || *s.RunAsUser != 10001 || *s.RunAsGroup != 10001 || s.SeccompProfile.Type != core.SeccompProfileTypeRuntimeDefault {
		t.Errorf("pod: %+v", s)
	}
	if pod.Spec.HostNetwork || pod.Spec.HostPID || pod.Spec.HostIPC || *pod.Spec.TerminationGracePeriodSeconds < 30 {
		t.Error("the pod shares the host, or has no time to drain")
	}
	for _, k := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		checkContainer(t, pod.Spec, k)
	}
	checkProbes(t, pod.Spec.Containers[0])
	runs(t, "the stateful set", pod.Spec.Containers[0].Args)
}

// checkEgress: which addresses and ports outside of the cluster's own pods are let through.
func checkEgress(t *testing.T, rules []networking.NetworkPolicyEgressRule) {
	t.Helper()
	for _, tc := range []struct {
		what, addr string
		port       int32
		protocol   core.Protocol
		want       bool
	}{
		{"Slack", "198.51.100.7", 443, core.ProtocolTCP, true},
		{"Redis", "10.0.0.7", 6379, core.ProtocolTCP, true},
		{"a collector", "10.0.0.8", 4318, core.ProtocolTCP, true},
		{"the cluster's names", "10.96.0.10", 53, core.ProtocolUDP, true},
		{"names over TCP", "10.96.0.10", 53, core.ProtocolTCP, true},
		{"the node's cache of names", "169.254.20.10", 53, core.ProtocolUDP, true},
		{"another port of the cache", "169.254.20.10", 80, core.ProtocolTCP, false},
		{"a metadata service", "169.254.169.254", 80, core.ProtocolTCP, false},
		{"names of a metadata service", "169.254.169.254", 53, core.ProtocolUDP, false},
		{"something over IPv6", "2001:db8::7", 443, core.ProtocolTCP, true},
		{"link-local IPv6", "fe80::1", 80, core.ProtocolTCP, false},
	} {
		if got := lets(t, rules, netip.MustParseAddr(tc.addr), tc.port, tc.protocol); got != tc.want {
			t.Errorf("%s (%s %s/%d): let through %v", tc.what, tc.addr, tc.protocol, tc.port, got)
		}
	}
}

// lets reports whether a rule lets a packet to an address through; pods are not looked at.
func lets(t *testing.T, rules []networking.NetworkPolicyEgressRule, addr netip.Addr, port int32, protocol core.Protocol) bool {
	t.Helper()
	in := func(cidr string) bool { return netip.MustParsePrefix(cidr).Contains(addr) }
	for _, r := range rules {
		open := len(r.Ports) == 0
		for _, p := range r.Ports {
			open = open || p.Port != nil && p.Port.IntVal == port && p.Protocol != nil && *p.Protocol == protocol
		}
		for _, peer := range r.To {
			if open && peer.IPBlock != nil && in(peer.IPBlock.CIDR) && !slices.ContainsFunc(peer.IPBlock.Except, in) {
				return true
			}
		}
	}
	return false
}

func checkContainer(t *testing.T, pod core.PodSpec, k core.Container) {
	t.Helper()
	s := k.SecurityContext
	if !*s.ReadOnlyRootFilesystem || s.Privileged != nil || s.RunAsUser != nil || !slices.Equal(s.Capabilities.Drop, []core.Capability{"ALL"}) {
		t.Errorf("%s: %+v", k.Name, s)
	}
	if k.Resources.Requests.Cpu().IsZero() || k.Resources.Requests.Memory().IsZero() || k.Resources.Limits.Memory().IsZero() {
		t.Errorf("%s: resources %+v", k.Name, k.Resources)
	}
	volumes := map[string]bool{"state": true} // a claim
	for _, v := range pod.Volumes {
		volumes[v.Name] = true
		if v.HostPath != nil || v.Secret != nil && *v.Secret.DefaultMode&0o007 != 0 {
			t.Errorf("volume %s: a path of the host, or a secret for everybody", v.Name)
		}
	}
	writable := false
	for _, m := range k.VolumeMounts {
		writable = writable || m.Name == "state" && !m.ReadOnly
		if !volumes[m.Name] {
			t.Errorf("%s: no volume %s in %v", k.Name, m.Name, sorted(volumes))
		}
	}
	if !writable {
		t.Errorf("%s has no place for its state", k.Name)
	}
	for _, e := range k.Env {
		known := slices.Contains(variables(t), e.Name) || e.Name == "AZURE_CONFIG_DIR"
		secret := slices.Contains(secretVariables, e.Name)
		if !known || secret && (e.Value != "" || e.ValueFrom == nil || e.ValueFrom.SecretKeyRef == nil) {
			t.Errorf("%s: %s is not known, or a secret that is not by reference", k.Name, e.Name)
		}
		if file := strings.HasSuffix(e.Name, "_FILE"); file && !mounted(pod, k, e.Value) {
			t.Errorf("%s: nothing mounts %s", k.Name, e.Value)
		}
	}
}

// mounted reports whether a file is an item of a secret that is mounted.
func mounted(pod core.PodSpec, k core.Container, file string) bool {
	for _, m := range k.VolumeMounts {
		for _, v := range pod.Volumes {
			if v.Name != m.Name || v.Secret == nil {
				continue
			}
			for _, it := range v.Secret.Items {
				if filepath.Join(m.MountPath, it.Path) == file {
					return true
				}
			}
		}
	}
	return false
}

func checkProbes(t *testing.T, k core.Container) {
	t.Helper()
	port := ""
	for _, e := range k.Env {
		if e.Name == "GHOST_HEALTH_ADDR" {
			_, port, _ = strings.Cut(e.Value, ":")
		}
	}
	for what, p := range map[string]*core.Probe{"/healthz live": k.LivenessProbe, "/healthz start": k.StartupProbe, "/readyz ready": k.ReadinessProbe} {
		path, _, _ := strings.Cut(what, " ")
		if p == nil || p.HTTPGet == nil || p.HTTPGet.Path != path {
			t.Errorf("%s: %+v", what, p)
			continue
		}
		if want := p.HTTPGet.Port.String(); want != k.Ports[0].Name || fmt.Sprint(k.Ports[0].ContainerPort) != port {
			t.Errorf("%s asks %s, the program listens on %s", what, want, port)
		}
	}
	if patience := k.LivenessProbe.PeriodSeconds * k.LivenessProbe.FailureThreshold; patience < 300 {
		t.Errorf("the bot is killed when Slack is away for %d s", patience)
	}
}
