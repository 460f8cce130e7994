package e2e

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// plotsScript is a model that captures on the loopback interface, has the capture read, and
// concludes.
const plotsScript = `
model gemini-3-flash
-- 1 expect --
last slow answers
-- 1 answer --
text H1: the network passes everything.
call manage_hypotheses {"add":[{"id":"H1","description":"The network passes everything."}]}
call run_shell_cmd {"command":"timeout 6 tcpdump -i lo -nn -U -w seen.pcap tcp port PORT","reasoning":"Shows the conversations on the wire.","hypothesis_id":"H1","effect":"reads packets of this host for six seconds"}
-- 2 expect --
response run_shell_cmd status=completed
-- 2 answer --
text The capture is there. It is read next.
call run_shell_cmd {"command":"BIN pcap seen.pcap --json --report-dir . --plots .","reasoning":"Says what is wrong in the capture, with pictures.","hypothesis_id":"H1"}
-- 3 expect --
response run_shell_cmd exit_code=0
-- 3 answer --
call manage_hypotheses {"update":[{"id":"H1","state":"CONFIRMED","evidence":["${audit:timeout 6 tcpdump}"],"why":"The capture shows whole conversations."}]}
call complete_investigation {"confidence":"medium","verdict":"root_cause","root_cause_summary":"The conversations on port PORT are whole on the wire.","causes":[{"statement":"The conversations on port PORT are whole on the wire.","evidence":["${audit:timeout 6 tcpdump}"]}],"confirmed_hypotheses":["H1"],"recommended_actions":["Look at the application; the network is not it."]}
`

// talk makes requests until the test ends, so that there is something to capture.
func talk(t *testing.T, addr string) {
	t.Helper()
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		c := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
		for {
			select {
			case <-stop:
				return
			case <-time.After(60 * time.Millisecond):
			}
			if r, err := c.Get("http://" + addr + "/"); err == nil {
				io.Copy(io.Discard, r.Body)
				r.Body.Close()
			}
		}
	}()
	t.Cleanup(func() { close(stop); <-ended })
}

// TestPlotsOfALocalCapture is a case that captures packets of this machine with the real
// tcpdump, reads them, and reports with pictures: the page shows them, and says what they show.
func TestPlotsOfALocalCapture(t *testing.T) {
	t.Parallel()
	addr, _ := gateway(t)
	port := addr[strings.LastIndexByte(addr, ':')+1:]
	talk(t, addr)
	model, env := scripted(t, "gemini", strings.NewReplacer("PORT", port, "BIN", filepath.Join(binDir, "ghostbot")).Replace(plotsScript))
	l := newLab(t, env...)
	l.run()
	l.command("incidents", l.approver(0), "/ghost investigate slow answers of "+addr)
	card := l.find(caseLimit, "incidents", "slow", "Approval needed: timeout 6 tcpdump")
	if o := l.click("incidents", l.approver(1), card.TS, "Approve"); !o.OK || o.private() != "" {
		t.Fatalf("%+v", o)
	}
	sid := l.sid("incidents", "slow")
	l.until(90*time.Second, "the report", func() bool { return l.resting("incidents", "slow") })
	l.closed(sid)
	for _, p := range model.Problems() {
		t.Error(p)
	}
	l.pictures("incidents", "slow")
	if t.Failed() {
		return
	}
	needBrowser(t)
	env = nil
	if dir := os.Getenv("RECORD"); dir != "" {
		env = append(env, "RECORD="+dir)
	}
	l.browse("plots.mjs", "plots ok", nil, append(env, fmt.Sprintf("CASE=%s", sid))...)
}
