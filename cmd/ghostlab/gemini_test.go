package main

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func scriptFile(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "script.txt")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestGemini(t *testing.T) {
	p := start(t, "gemini", "--addr", "127.0.0.1:0", "--script", scriptFile(t, "-- 1 expect --\nlast slow\n-- 1 answer --\ntext hm\n-- 2 answer --\ntext never\n"))
	p.waitFor(&p.log, "scripted model: ")
	url := regexp.MustCompile(`export GHOST_GEMINI_URL=(\S+)`).FindStringSubmatch(p.out.String())
	if url == nil {
		t.Fatalf("no address in %q", p.out.String())
	}
	resp, err := http.Post(url[1]+"/v1beta/models/gemini-x:generateContent?key=k", "application/json", strings.NewReader(`{"contents":[{"role":"user","parts":[{"text":"fast"}]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if code := p.end(); code != 0 || resp.StatusCode != 200 {
		t.Errorf("exit %d, status %d", code, resp.StatusCode)
	}
	for _, want := range []string{"problem: request 1: step 1: expected last slow", "1 steps of the script were not played"} {
		if !strings.Contains(p.log.String(), want) {
			t.Errorf("no %q in %q", want, p.log.String())
		}
	}
}

func TestGeminiUsage(t *testing.T) {
	good := scriptFile(t, "-- 1 answer --\ntext hm\n")
	for _, tt := range []struct {
		want string
		args []string
	}{
		{"--script: a file is missing", []string{"gemini"}},
		{"no such file", []string{"gemini", "--script", good + "x"}},
		{"step 1 has no answer", []string{"gemini", "--script", scriptFile(t, "-- 1 expect --\nlast a\n")}},
		{"want a loopback", []string{"gemini", "--script", good, "--addr", "0.0.0.0:0"}},
		{"-colour", []string{"gemini", "--colour"}},
	} {
		p := start(t, tt.args...)
		if code := <-p.code; code != exitUsage || !strings.Contains(p.log.String(), tt.want) {
			t.Errorf("%v: exit %d, %q", tt.args, code, p.log.String())
		} else {
			p.code <- code
		}
	}
}
