package slack

import (
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ghostbot/bot/slack/pace"
	"ghostbot/bot/slack/shortcut"
)

// called are the methods of the client library that the product calls, what they call
// at Slack, and the scopes that the method's page at docs.slack.dev/reference/methods
// asks of a bot token. Where a page offers one scope for each kind of conversation, those of public
// and of private channels are needed: the bot works in both, and in no other.
var called = map[string][]string{
	"AuthTestContext":                  {"auth.test"},
	"PostMessageContext":               {"chat.postMessage", "chat:write"},
	"PostMessageWithResponseContext":   {"chat.postMessage", "chat:write"},
	"DeleteMessageContext":             {"chat.delete", "chat:write"},
	"UpdateMessageContext":             {"chat.update", "chat:write"},
	"PostEphemeralContext":             {"chat.postEphemeral", "chat:write"},
	"GetPermalinkContext":              {"chat.getPermalink"},
	"SendMessageContext":               {"response_url"}, // no token
	"OpenViewContext":                  {"views.open"},
	"PublishViewContext":               {"views.publish"},
	"UploadFileContext":                {"files.getUploadURLExternal, files.completeUploadExternal", "files:write"},
	"GetUserInfoContext":               {"users.info", "users:read"},
	"GetUserGroupMembersContext":       {"usergroups.users.list", "usergroups:read"},
	"GetConversationInfoContext":       {"conversations.info", "channels:read", "groups:read"},
	"GetConversationsForUserContext":   {"users.conversations", "channels:read", "groups:read"},
	"GetConversationRepliesContext":    {"conversations.replies", "channels:history", "groups:history"},
	"GetConversationHistoryContext":    {"conversations.history", "channels:history", "groups:history"},
	"SetAssistantThreadsStatusContext": {"assistant.threads.setStatus", "chat:write"},
}

// heard are the events that the code takes, by the type of the library, and the scopes
// that docs.slack.dev/reference/events asks for.
var heard = map[string][]string{
	"AppMentionEvent":    {"app_mention", "app_mentions:read"},
	"MessageEvent":       {"message.channels message.groups", "channels:history", "groups:history"},
	"AppHomeOpenedEvent": {"app_home_opened"},
}

// manifest is what is compared of the file: lists by the key above them, and the values of
// keys.
type manifest struct {
	lists  map[string][]string
	values map[string][]string
	bare   []string // items of lists without a reason
}

var (
	listItem = regexp.MustCompile(`^\s*- ([a-z_.:]+)( # .+)?$`)
	keyValue = regexp.MustCompile(`^\s*(?:- )?([a-z_]+):(?: ([^#]*[^# ]))?(?: *#.*)?$`)
)

func readManifest(t *testing.T) manifest {
	t.Helper()
	raw, err := os.ReadFile("../../deploy/slack/manifest.yaml")
	if err != nil {
		t.Fatal(err)
	}
	m := manifest{lists: map[string][]string{}, values: map[string][]string{}}
	key := ""
	for line := range strings.Lines(string(raw)) {
		line = strings.TrimRight(line, "\n")
		if i := listItem.FindStringSubmatch(line); i != nil {
			m.lists[key] = append(m.lists[key], i[1])
			if i[2] == "" {
				m.bare = append(m.bare, i[1])
			}
			continue
		}
		switch kv := keyValue.FindStringSubmatch(line); {
		case strings.HasPrefix(strings.TrimSpace(line), "#"), strings.TrimSpace(line) == "":
		case kv == nil:
			t.Fatalf("manifest: %q is not understood", line)
		case kv[2] == "":
			key = kv[1]
		default:
			m.values[kv[1]] = append(m.values[kv[1]], kv[2])
		}
	}
	return m
}

// uses are the selectors that the product's code under this directory, tests aside, takes of anything: names
// of methods and of types.
func uses(t *testing.T) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		f, err := parser.ParseFile(gotoken.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				if s, ok := n.Fun.(*ast.SelectorExpr); ok && isAPI(s.X) {
					out["call "+s.Sel.Name] = true
				}
			case *ast.StarExpr:
				if s, ok := n.X.(*ast.SelectorExpr); ok {
					if p, ok := s.X.(*ast.Ident); ok && p.Name == "slackevents" && s.Sel.Name != "EventsAPICallbackEvent" {
						out["event "+s.Sel.Name] = true
					}
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// isAPI reports whether an expression is a client of the Web API: f.api, c.o.API, api.
func isAPI(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.SelectorExpr:
		return x.Sel.Name == "api" || x.Sel.Name == "API"
	case *ast.Ident:
		return x.Name == "api"
	}
	return false
}

// TestManifest compares what the app may with what the code does, in both directions.
func TestManifest(t *testing.T) {
	m, scopes, events := readManifest(t), map[string]bool{"commands": true}, map[string]bool{}
	found := uses(t)
	for name := range found {
		kind, sel, _ := strings.Cut(name, " ")
		table := map[string]map[string][]string{"call": called, "event": heard}[kind]
		row, ok := table[sel]
		if !ok {
			t.Errorf("the code uses %s, of which no scope is known here", sel)
			continue
		}
		for _, s := range row[1:] {
			scopes[s] = true
		}
		if kind == "event" {
			for _, e := range strings.Fields(row[0]) {
				events[e] = true
			}
		}
	}
	for table, kind := range map[string]map[string][]string{"call": called, "event": heard} {
		for name := range kind {
			if !found[table+" "+name] {
				t.Errorf("the table has %s, which nothing uses", name)
			}
		}
	}
	sorted := func(in map[string]bool) (out []string) {
		for s := range in {
			out = append(out, s)
		}
		slices.Sort(out)
		return out
	}
	for what, diff := range map[string]string{
		"scopes":    cmp.Diff(sorted(scopes), slices.Sorted(slices.Values(m.lists["bot"]))),
		"events":    cmp.Diff(sorted(events), slices.Sorted(slices.Values(m.lists["bot_events"]))),
		"commands":  cmp.Diff([]string{"/ghost"}, m.values["command"]),
		"shortcuts": cmp.Diff([]string{shortcut.Callback}, m.values["callback_id"]),
		"switches": cmp.Diff([]string{"true", "true", "true"}, append(append(append([]string{}, m.values["home_tab_enabled"]...), m.values["is_enabled"]...),
			m.values["socket_mode_enabled"]...)),
	} {
		if diff != "" {
			t.Errorf("%s: needed (-) and in the manifest (+):\n%s", what, diff)
		}
	}
	if len(m.bare) > 0 {
		t.Errorf("without a reason: %v", m.bare)
	}
	if name := m.values["name"]; !slices.Contains(name, "Investigate this") {
		t.Errorf("names = %q", name)
	}
	for _, limit := range []struct {
		key string
		max int
	}{{"name", 35}, {"callback_id", 255}, {"usage_hint", 1000}, {"description", 140}} {
		for _, v := range m.values[limit.key] {
			if len(v) > limit.max {
				t.Errorf("%s is longer than %d: %s", limit.key, limit.max, v)
			}
		}
	}
}

// TestEveryMethodHasItsRate: whatever Slack limits is counted before it is called. These have
// rules of their own, or no published limit.
func TestEveryMethodHasItsRate(t *testing.T) {
	free := map[string]bool{"auth.test": true, "chat.postMessage": true, "chat.getPermalink": true, "assistant.threads.setStatus": true, "response_url": true}
	for name, row := range called {
		for method := range strings.SplitSeq(row[0], ", ") {
			if (pace.Rate(method) == 0) != free[method] {
				t.Errorf("%s: %s has the rate %d", name, method, pace.Rate(method))
			}
		}
	}
	if pace.Rate("apps.connections.open") == 0 {
		t.Error("connections are opened without a limit")
	}
}
