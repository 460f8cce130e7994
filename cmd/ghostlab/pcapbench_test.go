package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// program writes a shell script.
func program(t *testing.T, name, script string) string {
	t.Helper()
	if err := os.WriteFile(name, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return name
}

// TestPcapbench runs the benchmark with programs that take a known time.
func TestPcapbench(t *testing.T) {
	dir := t.TempDir()
	bot := program(t, filepath.Join(dir, "bot"), `[ "$1 $2" = "pcap --json" ] && exec sleep 0.1`)
	program(t, filepath.Join(dir, "tcptrace"), "exec sleep 1")
	program(t, filepath.Join(dir, "tshark"), `case "$*" in *"-e tcp.analysis.retransmission"*) exec sleep 0.3 ;; esac`)
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	var out, log bytes.Buffer
	code := run(context.Background(), []string{"pcapbench", "bulk", "small", "--size", "1MiB", "--runs", "1", "--ghostbot", bot, "--dir", dir}, &out, &log)
	if code != 1 || !strings.Contains(log.String(), "a bar does not hold: 3 of them") {
		t.Errorf("exit %d: %s", code, log.String())
	}
	for _, want := range []string{
		`(?m)^bulk: \d+ packets, 10\d+ bytes, 8 connections$`,
		`(?m)^  cat to /dev/null +\d\.\d\d s +\d+ MB$`,
		`(?m)^  SHA-256 of the file, one core +\d\.\d\d s`,
		`(?m)^  ghostbot pcap --json +0\.\d\d s .*MB resident \(bar: 150 or less, ok\)$`,
		`(?m)^  ghostbot pcap --json --no-hash .* of cat's rate \(bar: 0.25 or more, MISSED\)$`,
		`(?m)^  ghostbot pcap --json --no-hash .* of cat's rate$`,
		`(?m)^  tcptrace -n -l .* of its time \(bar: 0.7 or less, ok\)$`,
		`(?m)^ {45}0\.\d\d of its time with the digest, which alone takes 0\.\d\d$`,
		`(?m)^ {45}\d+\.\d times as fast with the digest; the digest alone is \d+\.\d times as fast$`,
		`(?m)^  tshark, one pass \(0\.\d s x [34]\.\d\) .* times as fast \(bar: 80 or more, MISSED\)$`,
		`(?m)^  tshark, one pass \(0\.\d s x (19|20)\.\d\) `,
	} {
		if !regexp.MustCompile(want).MatchString(out.String()) {
			t.Errorf("nothing like %s in\n%s", want, out.String())
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "pcapbench-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestPcapbenchWithoutTheOthers(t *testing.T) {
	dir := t.TempDir()
	cat := program(t, filepath.Join(dir, "cat"), "exit 0")
	t.Setenv("PATH", dir)
	var out, log bytes.Buffer
	run(context.Background(), []string{"pcapbench", "flows", "--size", "64KiB", "--runs", "1", "--ghostbot", cat}, &out, &log)
	for _, want := range []string{"tcptrace -n -l", "tshark"} {
		if !regexp.MustCompile(want + ` +not measured: .*executable file not found`).MatchString(out.String()) {
			t.Errorf("nothing about %s missing in\n%s%s", want, out.String(), log.String())
		}
	}
}

func TestPcapbenchRefuses(t *testing.T) {
	dir := t.TempDir()
	bot := program(t, filepath.Join(dir, "bot"), "echo 'ghostbot: no verb pcap' >&2; exit 10")
	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"huge"}, 10, `profile "huge": have bulk, flows, small`},
		{[]string{"--size", "0"}, 10, `--size "0"`},
		{[]string{"--runs", "0"}, 10, "--runs 0"},
		{[]string{"--ghostbot", filepath.Join(dir, "none")}, 3, "--ghostbot PATH"},
		{[]string{"--ghostbot", bot, "--dir", filepath.Join(dir, "none")}, 3, "--dir"},
		{[]string{"--ghostbot", bot, "--size", "64KiB"}, 3, "bot: exit status 10 ghostbot: no verb pcap"},
	} {
		var out, log bytes.Buffer
		if code := run(context.Background(), append([]string{"pcapbench"}, tt.args...), &out, &log); code != tt.code || !strings.Contains(log.String(), tt.want) {
			t.Errorf("%v: exit %d, want %d: %s", tt.args, code, tt.code, log.String())
		}
	}
}
