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
	code := run(context.Background(), []string{"pcapbench", "bulk", "small", "--size", "1MiB", "--runs", "1", "--connections", "100", "--ghostbot", bot, "--dir", dir}, &out, &log)
	if code != 1 || !strings.Contains(log.String(), "a bar does not hold: 5 of them") {
		t.Errorf("exit %d: %s", code, log.String())
	}
	for _, want := range []string{
		`(?m)^bulk: \d+ packets, 10\d+ bytes, 8 connections$`,
		`(?m)^  cat to /dev/null +\d\.\d\d s +\d+ MB$`,
		`(?m)^  SHA-256 of the file, one core +\d\.\d\d s`,
		`(?m)^  ghostbot pcap --json +0\.\d\d s +\d+ MB$`,
		`(?m)^  ghostbot pcap --json --no-hash +0\.\d\d s +\d+ MB$`,
		`(?m)^  tcptrace -n -l +1\.\d\d s`,
		`(?m)^  tshark, one pass \(0\.\d s x [34]\.\d\) `,
		`(?m)^  tshark, one pass \(0\.\d s x (19|20)\.\d\) `,
		`(?m)^crowd: 500 packets, \d+ bytes, 100 connections$`,
		`(?m)^bars \(load average of the last minute: \S+ at the start, \S+ at the end\)$`,
		`(?m)^  bulk +MB resident +\d+\.\d\d +150 or less +held$`,
		`(?m)^  bulk +of cat's rate, without the digest +0\.\d\d +0.25 or more +missed$`,
		`(?m)^  bulk +of tcptrace's time, without the digest +0\.\d\d +0.7 or less +held$`,
		`(?m)^  bulk +of tcptrace's time, with the digest +0\.\d\d +0.7 or less +held$`,
		`(?m)^  bulk +times tshark's pass, without the digest +\d+\.\d\d +80 or more +missed$`,
		`(?m)^  bulk +times tshark's pass, with the digest +\d+\.\d\d +80 or more +missed$`,
		`(?m)^  small +times tshark's pass, with the digest `,
		`(?m)^  crowd +MB resident, 100 connections +\d+\.\d\d +600 or less +held$`,
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
	run(context.Background(), []string{"pcapbench", "flows", "--size", "64KiB", "--runs", "1", "--connections", "0", "--ghostbot", cat}, &out, &log)
	for _, want := range []string{"tcptrace -n -l", "tshark"} {
		if !regexp.MustCompile(want + ` +not measured: .*executable file not found`).MatchString(out.String()) {
			t.Errorf("nothing about %s missing in\n%s%s", want, out.String(), log.String())
		}
	}
	if n := strings.Count(out.String(), "  not measured: "); n != 6 || strings.Contains(out.String(), "crowd") {
		t.Errorf("%d rows and bars without a value in\n%s", n, out.String())
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
		{[]string{"--connections", "-1"}, 10, "--connections -1"},
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

// TestBars: a bar holds, or is missed, or cannot be held because the digest alone takes too long, or
// has no value; only the second counts.
func TestBars(t *testing.T) {
	for _, tt := range []struct {
		bar  bar
		want string
		lost bool
	}{
		{bar{value: 80, least: 80}, "held", false},
		{bar{value: 79.9, least: 80}, "missed", true},
		{bar{value: 0.7, most: 0.7}, "held", false},
		{bar{value: 0.71, most: 0.7}, "missed", true},
		{bar{value: 33, least: 80, floor: 34.4}, "missed, out of reach: the digest alone comes to 34.40", false},
		{bar{value: 60, least: 80, floor: 90}, "missed", true},
		{bar{value: 0.9, most: 0.7, floor: 0.85}, "missed, out of reach: the digest alone comes to 0.85", false},
		{bar{least: 80, missing: "no tshark"}, "not measured: no tshark", false},
	} {
		if got, lost := tt.bar.verdict(); got != tt.want || lost != tt.lost {
			t.Errorf("%+v: %q, %v", tt.bar, got, lost)
		}
	}
}
