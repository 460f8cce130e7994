package gemini_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ghostbot/agent/gemini"
	sim "ghostbot/internal/sim/gemini"
	"ghostbot/safeexec"
)

// recorded is where exchanges with a model are kept; make record adds one.
const recorded = "testdata/recorded"

const recordedSymptom = "checkout at 192.0.2.10:8080 answers 502 since 10:40"

// laboratory answers like the hosts of the recorded case: a gateway at 192.0.2.10
// whose upstream at 192.0.2.20:9090 refuses.
func laboratory(command string) safeexec.Result {
	switch {
	case strings.HasPrefix(command, "curl") && strings.Contains(command, "192.0.2.10"):
		return ran(0, "HTTP/1.1 502 Bad Gateway\nContent-Type: application/json\n\n{\"error\":\"bad gateway\",\"upstream\":\"192.0.2.20:9090\",\"detail\":\"connect: connection refused\"}\n")
	case strings.Contains(command, "192.0.2.20") && (strings.HasPrefix(command, "nc") || strings.HasPrefix(command, "curl")):
		return ran(1, "192.0.2.20 9090: Connection refused\n")
	case strings.HasPrefix(command, "ping"):
		return ran(0, "4 packets transmitted, 4 received, 0% packet loss, time 3004ms\n")
	case strings.HasPrefix(command, "ss"):
		return ran(0, "State  Recv-Q Send-Q Local Address:Port Peer Address:Port\nLISTEN 0      128          0.0.0.0:22        0.0.0.0:*\n")
	}
	code := 127
	return safeexec.Result{Status: "completed", Action: "auto_approved", ExitCode: &code, Stderr: "not installed"}
}

// TestRecord plays one case with a real model and keeps what was said, without the
// key. It runs when somebody asks for it: GEMINI_API_KEY=... make record.
func TestRecord(t *testing.T) {
	key, name := os.Getenv("GEMINI_API_KEY"), os.Getenv("GHOST_RECORD")
	if key == "" || name == "" {
		t.Skip("records only when asked: GEMINI_API_KEY=... make record")
	}
	rec := &sim.Recorder{Next: http.DefaultTransport, Keys: []string{key}}
	b, err := gemini.New(gemini.Options{Key: key, Model: os.Getenv("GHOST_MODEL"), URL: os.Getenv("GHOST_GEMINI_URL"), Transport: rec})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, stored: map[string]safeexec.Decision{}, brain: b}
	w.gate = canned{w, laboratory}
	w.open(recordedSymptom)
	end, err := w.investigate()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("ended by %s, %s: %s", end.EndedBy, w.fold().Case().Usage, end.Summary)
	script := rec.Script()
	if strings.Contains(string(script), key) {
		t.Fatal("the key is in the record, nothing is kept")
	}
	file := filepath.Join(recorded, name+time.Now().UTC().Format("-20060102-150405")+".txt")
	if err := os.WriteFile(file, script, 0o644); err != nil {
		t.Fatal(err)
	}
	t.Log("kept as " + file)
}

// TestReplay plays every kept exchange: the conversation must be what the model
// answered to, and the case must come to an end of its own.
func TestReplay(t *testing.T) {
	files, err := filepath.Glob(recorded + "/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no exchanges: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			model := "gemini-3-flash"
			if rest, ok := strings.CutPrefix(string(text), "model "); ok {
				model, _, _ = strings.Cut(rest, "\n")
			}
			w := play(t, recordedSymptom, string(text), func(o *gemini.Options) { o.Model = model })
			w.gate = canned{w, laboratory}
			if end := w.finish(); end.EndedBy != "brain" {
				t.Errorf("%+v", end)
			}
		})
	}
}
