package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"ghostbot/agent"
	"ghostbot/audit"
	"ghostbot/safeexec"
)

// decided are the decisions and answers in a case's journals, as they are read.
func decided(t *testing.T, state, sid string) (out []string) {
	t.Helper()
	entries, err := audit.Read(filepath.Join(state, "audit"), sid)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		var d safeexec.Decided
		var a agent.AnswerEntry
		switch {
		case e.Kind == "decided" && json.Unmarshal(e.Body, &d) == nil:
			out = append(out, d.Decision+" by "+d.By+": "+d.Reason)
		case e.Kind == agent.KindAnswer && json.Unmarshal(e.Body, &a) == nil:
			out = append(out, a.Key+" by "+a.By)
		}
	}
	return out
}

// tamper changes the session file of a case.
func tamper(t *testing.T, state, sid, by string) {
	t.Helper()
	path := filepath.Join(state, "cases", sid, "ghost_session.json")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, bytes.Replace(b, []byte("502"), []byte(by), 1), 0o600); err != nil {
		t.Fatal(err)
	}
}

// left opens a case that waits at a card, and leaves it.
func left(t *testing.T) (state, sid string) {
	t.Helper()
	state = t.TempDir()
	addr, _ := gateway(t)
	c := openConsole(t, state, "checkout gets 502 from "+addr)
	c.expect("Your choice: ")
	c.send("\x03")
	c.exit()
	return state, c.session()
}

// Whoever leaves decides nothing, wherever they are and however they go; the case
// rests, nobody holds it, and it goes on where it was.
func TestLeavingDecidesNothing(t *testing.T) {
	ways := []struct {
		name string
		do   func(c *console)
		code int
	}{
		{"ctrl-c", func(c *console) { c.send("\x03") }, exitNegative},
		{"ctrl-d", func(c *console) { c.send("\x15\x04") }, exitNegative}, // the line emptied first
		{"SIGTERM", func(c *console) { c.cmd.Process.Signal(syscall.SIGTERM) }, exitNegative},
		{"SIGINT", func(c *console) { c.cmd.Process.Signal(syscall.SIGINT) }, exitNegative},
		{"SIGHUP", func(c *console) { c.cmd.Process.Signal(syscall.SIGHUP) }, exitNegative},
		{"closed", func(c *console) { c.hangUp() }, exitNegative},
		{"SIGKILL", func(c *console) { c.cmd.Process.Kill() }, -1},
	}
	places := []struct {
		name  string
		begin func(t *testing.T) (state string, c *console)
		again string
	}{
		{"card", func(t *testing.T) (string, *console) { return atCard(t) }, "SAFETY SHELL ALERT"},
		{"edit", func(t *testing.T) (string, *console) {
			state, c := atCard(t)
			c.send("m\r")
			c.expect("Command: timeout")
			return state, c
		}, "SAFETY SHELL ALERT"},
		{"at rest", func(t *testing.T) (string, *console) {
			state := t.TempDir()
			c := openConsole(t, state, "it is slow")
			c.expect("The investigation is at rest.")
			c.expect("Your choice: ")
			return state, c
		}, "The investigation is at rest."},
		{"changed files", func(t *testing.T) (string, *console) {
			state, sid := left(t)
			tamper(t, state, sid, "503")
			c := openConsole(t, state, "--resume", sid)
			c.expect("[C] Continue anyway")
			c.expect("Your choice: ")
			return state, c
		}, "[C] Continue anyway"},
	}
	for i, p := range places {
		for j, w := range ways {
			if i > 0 && j%3 != 0 { // every way once, and three of them everywhere
				continue
			}
			t.Run(p.name+"/"+w.name, func(t *testing.T) {
				t.Parallel()
				state, c := p.begin(t)
				w.do(c)
				if code := c.exit(); code != w.code {
					t.Errorf("exit code %d, want %d; the screen:\n%s", code, w.code, c.all())
				}
				sid := c.session()
				if got := decided(t, state, sid); len(got) != 0 {
					t.Errorf("decided: %q", got)
				}
				again := openConsole(t, state, "--resume", sid)
				again.expect(p.again)
				again.expect("Your choice: ")
				again.send("\x03")
				again.exit()
				if got := decided(t, state, sid); len(got) != 0 {
					t.Errorf("decided after it was resumed: %q", got)
				}
			})
		}
	}
}

func atCard(t *testing.T) (state string, c *console) {
	t.Helper()
	state = t.TempDir()
	addr, _ := gateway(t)
	c = openConsole(t, state, "checkout gets 502 from "+addr)
	c.expect("SAFETY SHELL ALERT")
	c.expect("Your choice: ")
	return state, c
}

// A denial stands when whoever denied leaves instead of saying why.
func TestLeavingAtAReason(t *testing.T) {
	for name, leave := range map[string]func(c *console){
		"ctrl-c": func(c *console) { c.send("\x03") }, "killed": func(c *console) { c.cmd.Process.Kill() }, "closed": func(c *console) { c.hangUp() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			state, c := atCard(t)
			c.send("d\r")
			c.expect("Denial reason")
			leave(c)
			c.exit()
			again := openConsole(t, state, "--resume", c.session())
			again.finish()
			if got := decided(t, state, c.session()); len(got) == 0 || !strings.HasPrefix(got[0], "DENIED by local:") {
				t.Errorf("decided: %q", got)
			}
		})
	}
}

// The symptom is asked for in vain.
func TestLeavingBeforeASymptom(t *testing.T) {
	for name, leave := range map[string]func(c *console){
		"ctrl-c": func(c *console) { c.send("\x03") }, "SIGTERM": func(c *console) { c.cmd.Process.Signal(syscall.SIGTERM) }, "closed": func(c *console) { c.hangUp() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			state := t.TempDir()
			c := openConsole(t, state)
			c.expect("What network problem")
			c.expect("Symptom: ")
			leave(c)
			if code := c.exit(); code != exitNegative {
				t.Errorf("exit code %d; the screen:\n%s", code, c.all())
			}
			if es, _ := os.ReadDir(filepath.Join(state, "cases")); len(es) > 0 {
				t.Errorf("a case was opened: %v", es)
			}
		})
	}
}

// What becomes of changed files nobody chooses in a person's name: the case waits,
// and whoever started this is told how to go on.
func TestChangedFilesWaitForAPerson(t *testing.T) {
	state, sid := left(t)
	tamper(t, state, sid, "503")
	for _, args := range [][]string{{"--resume", sid}, {"--resume", sid, "--yes-safe-only"}, {"--yes-safe-only", "--resume", sid}} {
		out, errOut, code := pipe(t, "", append([]string{"--state-dir", state}, args...)...)
		if want := "ghostbot: " + sid + " waits: its files were changed, and only a person can say what becomes of it; in a terminal, continue with: ghostbot investigate --resume " + sid + " --state-dir " + state + "\n"; code != exitUnavailable || errOut != want {
			t.Errorf("%q: exit code %d, %q, want %q", args, code, errOut, want)
		}
		if strings.Count(out, "not as they were left: the checksum") != 1 || strings.Contains(out, "[You]") {
			t.Errorf("%q:\n%s", args, out)
		}
	}
	if got := decided(t, state, sid); len(got) != 0 {
		t.Errorf("decided: %q", got)
	}
	if list, err := listCases(context.Background(), state, ""); err != nil || len(list) != 1 || list[0].State != "waiting for an answer" {
		t.Errorf("cases %+v, %v", list, err)
	}
	out, _, code := pipe(t, "c\n", "--state-dir", state, "--resume", sid) // a line is an answer
	if code != exitOK || !strings.Contains(out, "continues although its files were changed") {
		t.Errorf("exit code %d:\n%s", code, out)
	}
}

// "Continue anyway" is said once: a process that is killed right after it does not
// make people say it again, and other changes do.
func TestContinueAnywayIsSaidOnce(t *testing.T) {
	state, sid := left(t)
	tamper(t, state, sid, "503")
	c := openConsole(t, state, "--resume", sid)
	c.expect("[C] Continue anyway")
	c.expect("Your choice: ")
	c.send("c\r")
	c.expect("continues although its files were changed")
	c.cmd.Process.Kill()
	c.exit()

	c = openConsole(t, state, "--resume", sid)
	if got := c.first("[C] Continue anyway", "SAFETY SHELL ALERT"); got != "SAFETY SHELL ALERT" {
		t.Error("people are asked again")
	}
	c.expect("Your choice: ")
	c.send("\x03") // in order: after a kill the store puts back what it was writing
	c.exit()

	tamper(t, state, sid, "504")
	c = openConsole(t, state, "--resume", sid)
	c.expect("[C] Continue anyway")
	c.expect("Your choice: ")
	c.send("a\r")
	c.expect("given up")
	if code := c.exit(); code != exitNegative {
		t.Errorf("exit code %d", code)
	}
	want := []string{"continue by " + person(), "abort by " + person()}
	var got []string
	for _, d := range decided(t, state, sid) {
		if !strings.Contains(d, ": ") {
			got = append(got, d)
		}
	}
	if strings.Join(got, ", ") != strings.Join(want, ", ") {
		t.Errorf("answers %q, want %q", got, want)
	}
}

// A command that a crash left without an outcome is asked about; nobody's silence
// leaves it, and names nobody.
func TestUnknownOutcomeAndNobody(t *testing.T) {
	t.Setenv("GHOST_LEASE", "2s")
	state, c := atCard(t)
	c.send("m\r")
	c.expect("Command: ")
	c.send("\x15sleep 60\r")
	c.expect("SAFETY SHELL ALERT")
	c.expect("Your choice: ")
	c.send("a\r")
	c.expect("APPROVED")
	sid := c.session()
	started := func() bool {
		es, err := audit.Read(filepath.Join(state, "audit"), sid)
		return err == nil && len(es) > 0 && es[len(es)-1].Kind == "started"
	}
	for end := time.Now().Add(20 * time.Second); !started() && time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
	}
	c.cmd.Process.Kill()
	c.exit()
	out, _, _ := pipe(t, "", "--state-dir", state, "--resume", sid)
	if !strings.Contains(out, "Nobody answered: no approver: the input ended") || strings.Contains(out, "[You]") {
		t.Errorf("out:\n%s", out)
	}
	got := decided(t, state, sid)
	if len(got) < 3 || got[2] != agent.AnswerExpired+" by " {
		t.Errorf("decided: %q", got)
	}
	b, err := os.ReadFile(reportPath(filepath.Join(state, "audit"), sid))
	if err != nil || !strings.Contains(string(b), "nobody answered (no approver: the input ended): It is not known what came of this command") {
		t.Errorf("report (%v):\n%s", err, b)
	}
}

// When whoever reads goes away the case is left in order: it rests, nobody holds it,
// and standard error says how to go on.
func TestOutputThatEnds(t *testing.T) {
	addr, _ := gateway(t)
	for name, args := range map[string][]string{"asked": nil, "silent": {"--yes-safe-only"}} {
		t.Run(name, func(t *testing.T) {
			state := t.TempDir()
			cmd := exec.Command("ghostbot", append(append([]string{"investigate", "--state-dir", state}, args...), "checkout gets 502 from "+addr)...)
			cmd.Env = keyless()
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			var errOut bytes.Buffer
			cmd.Stdout, cmd.Stderr = w, &errOut
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			defer in.Close()
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			w.Close()
			io.ReadFull(r, make([]byte, 10))
			r.Close()
			var x *exec.ExitError
			if err := cmd.Wait(); !errors.As(err, &x) || x.ExitCode() != exitNegative || !strings.HasPrefix(errOut.String(), "ghostbot: session saved; continue with: ghostbot investigate --resume ghost_") {
				t.Errorf("Wait = %v, %q", err, errOut.String())
			}
			list, err := listCases(context.Background(), state, "")
			if err != nil || len(list) != 1 || list[0].Closed {
				t.Fatalf("cases %+v, %v", list, err)
			}
			out, _, code := pipe(t, "", "--state-dir", state, "--resume", list[0].SessionID)
			if code != exitOK || !strings.Contains(out, "RCA REPORT WRITTEN:") {
				t.Errorf("resumed: exit code %d\n%s", code, out)
			}
		})
	}
	t.Run("full", func(t *testing.T) {
		full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		if err != nil {
			t.Skip(err)
		}
		defer full.Close()
		var errOut bytes.Buffer
		cmd := exec.Command("ghostbot", "investigate", "--state-dir", t.TempDir(), "checkout gets 502 from "+addr)
		cmd.Env, cmd.Stdout, cmd.Stderr = keyless(), full, &errOut
		err = cmd.Run()
		var x *exec.ExitError
		if !errors.As(err, &x) || x.ExitCode() != exitInternal || !strings.Contains(errOut.String(), "no space left on device; session saved; continue with: ") {
			t.Errorf("Run = %v, %q", err, errOut.String())
		}
	})
}

// One case, two terminals: the second one is told, and takes nothing away.
func TestTwoTerminals(t *testing.T) {
	state, c := atCard(t)
	sid := c.session()
	out, errOut, code := pipe(t, "a\n", "--state-dir", state, "--resume", sid)
	if code != exitUnavailable || errOut != "ghostbot: "+sid+" is carried by another ghostbot just now\n" {
		t.Errorf("exit code %d, %q:\n%s", code, errOut, out)
	}
	if got := decided(t, state, sid); len(got) != 0 {
		t.Errorf("decided: %q", got)
	}
	c.send("stop\r")
	c.expect("RCA REPORT WRITTEN:")
	c.exit()
}

// What is typed or pasted before the box is on the screen decides nothing.
func TestTypedAhead(t *testing.T) {
	state := t.TempDir()
	addr, _ := gateway(t)
	c := openConsole(t, state, "checkout gets 502 from "+addr)
	c.send("a\ra\ra\r") // at once, before there is anything
	c.expect("SAFETY SHELL ALERT")
	c.expect("Your choice: ")
	c.send("\x1b[200~a\r\na\na\r\x1b[201~") // a paste whose lines end
	time.Sleep(300 * time.Millisecond)
	if got := decided(t, state, c.session()); len(got) != 0 {
		t.Errorf("decided: %q", got)
	}
	c.send("\x15stop\r")
	c.expect("RCA REPORT WRITTEN:")
	c.exit()
	for _, d := range decided(t, state, c.session()) {
		if strings.HasPrefix(d, "APPROVED") {
			t.Errorf("decided: %q", d)
		}
	}
}
