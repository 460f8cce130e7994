package orchestrator

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
)

// TestEncryptedCapture: the download goes where commands run, everything else by the name under which the
// capture lies; a task that was made before the key was named goes over to it.
func TestEncryptedCapture(t *testing.T) { synctest.Test(t, encryptedCapture) }

func encryptedCapture(t *testing.T) {
	for name, before := range map[string]string{"from the start": "/spool/case", "named meanwhile": ""} {
		w := azure()
		o := w.orchestrator(func(o *Options) { o.Spool = before })
		w.on("show-status", status("Running"))
		first, err := o.Start(context.Background(), request())
		if err != nil || first.TaskID == "" {
			t.Fatalf("%s: %+v, %v", name, first, err)
		}
		w.on("show-status", status("Stopped"))
		o = w.orchestrator(func(o *Options) { o.Spool = "/spool/case" })
		got, err := o.Check(context.Background(), TaskRequest{TaskID: first.TaskID})
		if err != nil || got.State != Complete || got.Result == nil {
			t.Fatalf("%s: %+v, %v", name, got, err)
		}
		var said []string
		for _, r := range w.requests {
			if k := kind(r.Argv); k == "blob download" || k == "pcap" {
				said = append(said, strings.Join(r.Argv, " "), r.Effect)
			}
		}
		text := strings.Join(said, "\n")
		for _, want := range []string{"--file /spool/case/" + first.TaskID + ".cap ", "writes it encrypted to " + got.Result.PcapPath + "; the blob stays", " pcap " + got.Result.PcapPath + " "} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: %q is not in\n%s", name, want, text)
			}
		}
		if !strings.HasSuffix(got.Result.PcapPath, first.TaskID+".cap.age") || !strings.HasSuffix(got.Result.SemanticPath, first.TaskID+"_semantic.json.age") || !strings.HasSuffix(got.Result.ReportPath, first.TaskID+"_forensic_report.md.age") {
			t.Errorf("%s: %s %s %s", name, got.Result.PcapPath, got.Result.SemanticPath, got.Result.ReportPath)
		}
	}
}

// TestKeyIsGone: a capture that was to be encrypted is not written without the key.
func TestKeyIsGone(t *testing.T) { synctest.Test(t, keyIsGone) }

func keyIsGone(t *testing.T) {
	w := azure().on("show-status", status("Running"))
	first, err := w.orchestrator(func(o *Options) { o.Spool = "/spool/case" }).Start(context.Background(), request())
	if err != nil || first.TaskID == "" {
		t.Fatalf("%+v, %v", first, err)
	}
	w.on("show-status", status("Stopped"))
	got, err := w.orchestrator(func(*Options) {}).Check(context.Background(), TaskRequest{TaskID: first.TaskID})
	if err != nil || got.Error != "no_capture_key" || !strings.Contains(got.Advice, "GHOST_CAPTURE_KEY_FILE") {
		t.Errorf("%+v, %v", got, err)
	}
	for _, r := range w.requests {
		if kind(r.Argv) == "blob download" {
			t.Errorf("%v", r.Argv)
		}
	}
}
