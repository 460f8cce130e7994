package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPcapgen(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "x.pcap")
	var out, log bytes.Buffer
	if code := run(context.Background(), []string{"pcapgen", "--size", "2MiB", "small", "-o", file}, &out, &log); code != 0 {
		t.Fatalf("exit %d: %s", code, log.String())
	}
	b, err := os.ReadFile(file)
	if err != nil || len(b) < 2<<20 || len(b) > 2<<20+64<<10 {
		t.Fatalf("%d bytes, %v", len(b), err)
	}
	if !strings.Contains(log.String(), "packets") || out.Len() != 0 {
		t.Errorf("out %q, log %q", out.String(), log.String())
	}
	out.Reset()
	if code := run(context.Background(), []string{"pcapgen", "small", "-o", "-", "--size", "2048KiB"}, &out, &log); code != 0 || !bytes.Equal(out.Bytes(), b) {
		t.Errorf("to standard output: exit %d, %d bytes", code, out.Len())
	}
	out.Reset()
	if code := run(context.Background(), []string{"pcapgen", "small", "-o", "-", "--size", "2MiB", "--seed", "5"}, &out, &log); code != 0 || bytes.Equal(out.Bytes(), b) {
		t.Errorf("with a seed: exit %d, %d bytes", code, out.Len())
	}
}

func TestPcapgenList(t *testing.T) {
	var out, log bytes.Buffer
	if code := run(context.Background(), []string{"pcapgen", "--list"}, &out, &log); code != 0 {
		t.Fatalf("exit %d: %s", code, log.String())
	}
	for _, name := range []string{"bulk  ", "flows  ", "small  "} {
		if !strings.Contains(out.String(), name) {
			t.Errorf("no %q in\n%s", name, out.String())
		}
	}
}

func TestPcapgenRefuses(t *testing.T) {
	dir := t.TempDir()
	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{nil, 10, `profile "": have bulk, flows, small`},
		{[]string{"huge", "-o", "x"}, 10, `profile "huge"`},
		{[]string{"bulk"}, 10, "-o: want a file"},
		{[]string{"bulk", "small", "-o", "x"}, 10, `unexpected argument "small"`},
		{[]string{"bulk", "-o", "x", "--size", "0"}, 10, `--size "0": want bytes`},
		{[]string{"bulk", "-o", "x", "--size", "-1GiB"}, 10, "--size"},
		{[]string{"bulk", "-o", "x", "--size", "1GB"}, 10, "--size"},
		{[]string{"bulk", "-o", "x", "--size", "9999999999GiB"}, 10, "--size"},
		{[]string{"bulk", "-o", "x", "--seed", "x"}, 10, "seed"},
		{[]string{"bulk", "-o", filepath.Join(dir, "no", "x")}, 3, "-o: open"},
		{[]string{"bulk", "-o", dir}, 3, "-o: open"},
	} {
		var out, log bytes.Buffer
		if code := run(context.Background(), append([]string{"pcapgen"}, tt.args...), &out, &log); code != tt.code || !strings.Contains(log.String(), tt.want) {
			t.Errorf("%v: exit %d, want %d: %s", tt.args, code, tt.code, log.String())
		}
	}
}

func TestPcapgenInterrupted(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.pcap")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var out, log bytes.Buffer
	if code := run(ctx, []string{"pcapgen", "bulk", "-o", file}, &out, &log); code != 2 {
		t.Errorf("exit %d: %s", code, log.String())
	}
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("the file that was begun is there: %v", err)
	}
}
