package slacksim_test

import (
	"bytes"
	"context"
	"image"
	"image/color"
	"image/png"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slack-go/slack"
	"github.com/slack-go/slack/socketmode"

	slacksim "ghostbot/internal/sim/slack"
)

// missing skips a test whose tool is not installed, visibly; in CI that is a failure.
func missing(t *testing.T, what string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(what)
	}
	t.Skip(what)
}

// runNode runs a script of the conformance directory against s and demands its last line.
func runNode(t *testing.T, s *slacksim.Server, script, want string, env ...string) {
	t.Helper()
	if testing.Short() {
		t.Skip("slow: runs Node")
	}
	if _, err := os.Stat("conformance/node_modules"); err != nil {
		missing(t, "conformance/node_modules is missing: run npm ci in internal/sim/slack/conformance")
	}
	node, err := exec.LookPath("node")
	if err != nil {
		missing(t, "node is not installed")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, node, script)
	cmd.Dir = "conformance"
	cmd.Env = append(append(os.Environ(), s.Env()...), env...)
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), want) {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
}

// The official Node clients, as published, through everything an app does. Each has 150 s in all.
func TestBolt(t *testing.T) {
	t.Parallel()
	s := newServer(t, slacksim.Options{})
	runNode(t, s, "bolt.mjs", "bolt ok")
}

func TestWebClient(t *testing.T) {
	t.Parallel()
	s := newServer(t, slacksim.Options{})
	runNode(t, s, "web.mjs", "web ok")
}

func TestSocketMode(t *testing.T) {
	t.Parallel()
	s := newServer(t, slacksim.Options{NoEcho: true})
	var long []string
	if conformance() {
		long = []string{"LONG=1"}
	}
	runNode(t, s, "socket.mjs", "socket ok", long...)
}

// conformance reports whether the long forms are wanted: make conformance.
func conformance() bool { return os.Getenv("GHOST_CONFORMANCE") != "" }

// Both official clients side by side and idle for more than a minute: a hello each, no reconnect.
// TestIdle and TestPings say the same in fake time.
func TestIdleSideBySide(t *testing.T) {
	if !conformance() {
		t.Skip("slow: make conformance")
	}
	t.Parallel()
	s := newServer(t, slacksim.Options{})
	b := startBot(t, s, &bot{})
	runNode(t, s, "idle.mjs", "idle ok", "IDLE_MS=70000")
	hellos := 0
	for _, e := range s.Requests() {
		if e.Type == "hello" {
			hellos++
		}
	}
	if hellos != 2 || b.count(socketmode.EventTypeConnecting) != 1 {
		t.Errorf("%d hellos, slack-go: %v", hellos, b.kinds)
	}
	eventually(t, "only slack-go is left", func() bool { return s.Sockets() == 1 })
}

// browser is the path of a Chromium; the test is skipped, or fails in CI, without one.
func browser(t *testing.T) string {
	t.Helper()
	chromium := os.Getenv("CHROMIUM")
	if chromium == "" {
		chromium = "/usr/bin/chromium"
	}
	if _, err := os.Stat(chromium); err != nil {
		missing(t, chromium+" is missing: install chromium or set CHROMIUM")
	}
	return chromium
}

// A person at the page, in a real browser.
func TestBrowser(t *testing.T) {
	t.Parallel()
	chromium := browser(t)
	s := newServer(t, slacksim.Options{})
	b := startBot(t, s, cycleBot())
	postEveryBlock(t, s, b)
	upload(t, s, "dots.png", dots(t), "three dots")
	upload(t, s, "notes.md", []byte("# Notes\n\n- one `two`\n"), "")
	runNode(t, s, "browser.mjs", "browser ok", "LAB_URL="+s.URL, "CHROMIUM="+chromium, "SHOTS="+os.Getenv("SHOTS"))
}

// How text is shown, hostile text included.
func TestRender(t *testing.T) {
	t.Parallel()
	chromium := browser(t)
	s := newServer(t, slacksim.Options{})
	runNode(t, s, "render.mjs", "render ok", "LAB_URL="+s.URL, "CHROMIUM="+chromium)
}

// upload puts a file into #incidents.
func upload(t *testing.T, s *slacksim.Server, name string, content []byte, alt string) {
	t.Helper()
	up := call(t, s, "files.getUploadURLExternal", map[string]any{"filename": name, "length": len(content), "alt_txt": alt})
	res, err := http.Post(up["upload_url"].(string), "application/octet-stream", bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	out := call(t, s, "files.completeUploadExternal", map[string]any{"files": []any{map[string]any{"id": up["file_id"]}}, "channel_id": "C0LAB00001"})
	if out["ok"] != true {
		t.Fatalf("%s: %v", name, out)
	}
}

// dots is a picture of 30 x 20.
func dots(t *testing.T) []byte {
	t.Helper()
	img := image.NewRGBA(image.Rect(0, 0, 30, 20))
	for _, x := range []int{5, 15, 25} {
		img.Set(x, 10, color.Black)
	}
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// postEveryBlock posts one message with every block and element of the safe profile.
func postEveryBlock(t *testing.T, s *slacksim.Server, b *bot) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "every_block.json"))
	if err != nil {
		t.Fatal(err)
	}
	out := call(t, s, "chat.postMessage", map[string]any{"channel": "C0LAB00001", "text": "every block", "blocks": string(raw)})
	if out["ok"] != true {
		t.Fatalf("every block: %v", out)
	}
	msgs, err := b.api.GetConversationHistoryContext(context.Background(), &slack.GetConversationHistoryParameters{ChannelID: "C0LAB00001"})
	if err != nil || len(msgs.Messages) != 1 || len(msgs.Messages[0].Blocks.BlockSet) != 12 {
		t.Fatalf("slack-go reads the blocks back as %+v, %v", msgs, err)
	}
}
