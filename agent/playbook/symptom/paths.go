package symptom

import "ghostbot/agent/playbook/pattern"

var (
	// pathWord is a path that stands by itself: "GET /cart on HOST", "/cart fails".
	pathWord = pattern.New("(?:^|[\\s\"'`(])(/[A-Za-z][A-Za-z0-9/._~%?&=+-]{0,99})(?:$|[\\s\"'`,;)]|[.:!?](?:\\s|$))")
	// filePath is a path of a file system, of a module or of a socket.
	filePath = pattern.New(`(?i)^/(etc|var|usr|proc|sys|dev|tmp|home|opt|root|bin|sbin|lib\w*|run|mnt|srv|users|app|src)(/|$)|\.(go|pyc?|js|ts|java|rb|c|h|so|sock|log|conf|service|pem|crt|key|pid|sh|ya?ml|toml|ini)$`)
)

// withPaths gives the first web endpoint the paths that the text names apart
// from it; more than one path makes more than one target, because one of them
// often works.
func withPaths(targets []Endpoint, text string) []Endpoint {
	i := 0
	for i < len(targets) && !targets[i].HTTP() {
		i++
	}
	if i == len(targets) {
		return targets
	}
	for _, m := range pathWord.FindAllStringSubmatch(text, 8) {
		e, ok := ParseEndpoint("http://localhost" + m[1])
		known := false
		for _, t := range targets {
			known = known || t.Path == e.Path
		}
		switch {
		case !ok || e.Path == "" || filePath.MatchString(m[1]) || known && targets[i].Path != "":
		case targets[i].Path == "":
			targets[i].Path = e.Path
		case !known && len(targets) < maxTargets:
			more := targets[i]
			more.Path = e.Path
			targets = append(targets, more)
		}
	}
	return targets
}
