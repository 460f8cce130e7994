package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
)

// stages reads the Dockerfile with the parser of its builder.
func stages(t *testing.T) map[string]instructions.Stage {
	t.Helper()
	f, err := os.Open("Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := parser.Parse(f)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Warnings) > 0 {
		t.Errorf("warnings: %+v", r.Warnings)
	}
	list, _, err := instructions.Parse(r.AST, nil)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]instructions.Stage{}
	for _, s := range list {
		out[s.Name] = s
	}
	return out
}

// TestDockerfile: both targets end as the same user without rights, start the program
// through an init, and the command line is one of the program.
func TestDockerfile(t *testing.T) {
	all := stages(t)
	for _, name := range []string{"build", "slim", "full"} {
		if all[name].Name == "" {
			t.Fatalf("no target %s", name)
		}
	}
	if all["full"].BaseName != "slim" {
		t.Errorf("full is made from %s", all["full"].BaseName)
	}
	for _, name := range []string{"slim", "full"} {
		user := ""
		for _, c := range all[name].Commands {
			if u, ok := c.(*instructions.UserCommand); ok {
				user = u.User
			}
		}
		if user != "10001:10001" {
			t.Errorf("%s ends as user %q", name, user)
		}
	}
	var entry, args []string
	for _, c := range all["slim"].Commands {
		switch c := c.(type) {
		case *instructions.EntrypointCommand:
			entry = c.CmdLine
		case *instructions.CmdCommand:
			args = c.CmdLine
		case *instructions.CopyCommand:
			if c.From != "build" || c.DestPath != "/usr/local/bin/ghostbot" {
				t.Errorf("COPY %v to %s", c.SourcePaths, c.DestPath)
			}
		}
	}
	if !slices.Equal(entry, []string{"/usr/bin/tini", "--", "/usr/local/bin/ghostbot"}) {
		t.Errorf("the entry point is %q", entry)
	}
	runs(t, "the image", args)
}

// shell are all commands of a stage's RUN instructions.
func shell(s instructions.Stage) string {
	var b strings.Builder
	for _, c := range s.Commands {
		if r, ok := c.(*instructions.RunCommand); ok {
			b.WriteString(strings.Join(r.CmdLine, " ") + "\n")
		}
	}
	return b.String()
}

// packages are what apt-get installs in a stage.
func packages(s instructions.Stage) []string {
	var out []string
	for _, m := range regexp.MustCompile(`apt-get install -y --no-install-recommends ([^&]+)&&`).FindAllStringSubmatch(shell(s), -1) {
		out = append(out, strings.Fields(m[1])...)
	}
	return out
}

// TestPackagesOfTheImage: the tools of investigations are in the image, and Debian has
// every package that it names.
func TestPackagesOfTheImage(t *testing.T) {
	all := stages(t)
	installed := packages(all["slim"])
	deps := regexp.MustCompile(`(?s)run\(\) \{(.*?)\n\}`).FindStringSubmatch(read(t, "../scripts/deps"))
	if deps == nil || len(installed) < 8 {
		t.Fatalf("installed: %v", installed)
	}
	for _, m := range regexp.MustCompile(`want \S+ (\S+)`).FindAllStringSubmatch(deps[1], -1) {
		if !slices.Contains(installed, m[1]) {
			t.Errorf("the image lacks %s", m[1])
		}
	}
	if !regexp.MustCompile(`azure-cli==\d+\.\d+\.\d+ `).MatchString(shell(all["full"])) || strings.Contains(shell(all["slim"]), "azure-cli") {
		t.Error("az is not in full with a version, or it is in slim")
	}
	need(t, "apt-cache")
	if out, err := exec.Command("apt-cache", "show", "iputils-ping").Output(); err != nil || len(out) == 0 {
		t.Skip("apt has no lists here: nobody knows whether the packages exist")
	}
	names := slices.Concat(installed, packages(all["full"]))
	out, err := exec.Command("apt-cache", append([]string{"show", "--no-all-versions"}, names...)...).CombinedOutput()
	for _, p := range names {
		if !strings.Contains(string(out), "Package: "+p+"\n") {
			t.Errorf("Debian has no package %s: %v", p, err)
		}
	}
}

// TestBuildContext: what the build needs is not kept out of its context.
func TestBuildContext(t *testing.T) {
	var let []string
	for line := range strings.Lines(read(t, "Dockerfile.dockerignore")) {
		if dir, ok := strings.CutPrefix(strings.TrimSpace(line), "!"); ok {
			let = append(let, dir)
		}
	}
	dirs, err := filepath.Glob("../*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range append(dirs, "../go.mod", "../go.sum") {
		rel := strings.TrimPrefix(f, "../")
		if top, _, _ := strings.Cut(rel, "/"); !strings.HasSuffix(f, "_test.go") && !slices.Contains(let, top) {
			t.Errorf("%s is not in the context", rel)
		}
	}
}

// project reads the compose file as docker does.
func project(t *testing.T) *types.Project {
	t.Helper()
	o, err := cli.NewProjectOptions([]string{"compose.yaml"}, cli.WithWorkingDirectory("."))
	if err != nil {
		t.Fatal(err)
	}
	p, err := o.LoadProject(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestCompose: the file is one, its bots differ in nothing but name and disk, and every
// container gets no more than it needs.
func TestCompose(t *testing.T) {
	p := project(t)
	if got := p.ServiceNames(); !slices.Equal(got, []string{"bot-1", "bot-2", "redis"}) {
		t.Fatalf("services: %v", got)
	}
	disks := map[string]string{}
	for name, s := range p.Services {
		if !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) || len(s.CapAdd) > 0 || !slices.Contains(s.SecurityOpt, "no-new-privileges:true") || s.Privileged || s.MemLimit == 0 {
			t.Errorf("%s has rights that it does not need", name)
		}
		if s.NetworkMode == "host" || s.Pid == "host" || len(s.Ports) > 0 || s.HealthCheck == nil {
			t.Errorf("%s shares the host, opens a port, or is not looked at", name)
		}
		for _, v := range s.Volumes {
			if v.Type != types.VolumeTypeVolume || disks[v.Source] != "" {
				t.Errorf("%s: volume %s of type %s, also of %s", name, v.Source, v.Type, disks[v.Source])
			}
			disks[v.Source] = name
		}
		for _, secret := range s.Secrets {
			if p.Secrets[secret.Source].File == "" {
				t.Errorf("%s: no file of secret %s", name, secret.Source)
			}
		}
		if name == "redis" {
			continue
		}
		checkBot(t, p, s)
	}
	redis := strings.Join(p.Services["redis"].Command, " ")
	for _, want := range []string{"appendonly yes", "maxmemory-policy noeviction", "requirepass"} {
		if !strings.Contains(redis, want) {
			t.Errorf("redis lacks %q", want)
		}
	}
}

func checkBot(t *testing.T, p *types.Project, s types.ServiceConfig) {
	t.Helper()
	if s.Build == nil || stages(t)[s.Build.Target].Name == "" || len(s.Entrypoint) > 0 {
		t.Errorf("%s: no target, or another entry point: %+v", s.Name, s.Build)
	}
	args := []string(s.Command)
	if len(args) == 0 {
		args = []string{"serve"} // the image's own
	}
	runs(t, s.Name, args)
	for name, value := range s.Environment {
		switch {
		case value == nil, slices.Contains(secretVariables, name):
			t.Errorf("%s: %s without a value, or a secret in the file", s.Name, name)
		case strings.HasSuffix(name, "_FILE"):
			if i := slices.IndexFunc(s.Secrets, func(x types.ServiceSecretConfig) bool { return *value == "/run/secrets/"+x.Source }); i < 0 {
				t.Errorf("%s: %s: no secret is mounted at %s", s.Name, name, *value)
			}
		}
	}
	if _, there := s.DependsOn["redis"]; !there {
		t.Errorf("%s does not wait for redis", s.Name)
	}
}
