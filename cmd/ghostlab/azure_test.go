package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	azuresim "ghostbot/internal/sim/azure"
)

// bare makes sure that no tools are found, which would take seconds to start.
func bare(t *testing.T) {
	t.Helper()
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
}

func TestAzureVerb(t *testing.T) {
	bare(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	r, w := io.Pipe()
	var log bytes.Buffer
	done := make(chan int, 1)
	go func() {
		code := run(ctx, []string{"azure", "--addr", "127.0.0.1:0", "--speed", "0"}, w, &log)
		w.Close()
		done <- code
	}()
	env := map[string]string{}
	lines := bufio.NewScanner(r)
	for len(env) < 7 && lines.Scan() {
		name, value, _ := strings.Cut(strings.TrimPrefix(lines.Text(), "export "), "=")
		env[name] = value
	}
	if env["GHOST_AZ_STORAGE_ACCOUNT"] != "ghostcaps" || env["GHOST_AZ_LOCATION"] != "westeurope" {
		t.Fatalf("%v", env)
	}
	if _, err := os.Stat(filepath.Join(env["AZURE_CONFIG_DIR"], "azureProfile.json")); err != nil {
		t.Error(err)
	}
	res, err := http.Get(env["HTTPS_PROXY"] + "/lab/state")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var state azuresim.State
	if err := json.NewDecoder(res.Body).Decode(&state); err != nil || len(state.Resources) == 0 {
		t.Errorf("%v, %d resources", err, len(state.Resources))
	}
	stop()
	select {
	case code := <-done:
		if code != exitOK || !strings.Contains(log.String(), "storage accounts cannot be reached") {
			t.Errorf("exit %d\n%s", code, log.String())
		}
	case <-time.After(10 * time.Second):
		t.Fatal("it does not end")
	}
	if _, err := os.Stat(env["AZURE_CONFIG_DIR"]); !os.IsNotExist(err) {
		t.Errorf("the configuration is left: %v", err)
	}
}

func TestAzureVerbRefuses(t *testing.T) {
	bare(t)
	broken := filepath.Join(t.TempDir(), "seed.json")
	if err := os.WriteFile(broken, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{"--addr 192.0.2.1:80", "--addr x", "--speed -1", "--seed /nowhere", "--seed " + broken, "more"} {
		var out, log bytes.Buffer
		if code := run(t.Context(), append([]string{"azure"}, strings.Fields(args)...), &out, &log); code != exitUsage {
			t.Errorf("%s: exit %d\n%s", args, code, log.String())
		}
	}
}
