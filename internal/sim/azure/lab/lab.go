// Package lab starts what a local Azure needs beside it, for tests of any package:
// the storage emulator, the real az, and az played from recorded calls. Nothing of
// it is shipped; it is the one simulator that starts processes.
//
// Where the real az or the emulator cannot be had, tests skip, each with a line in
// the file that TEST_SKIPS names, so that make test can end with their number.
package lab

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	azuresim "ghostbot/internal/sim/azure"
	"ghostbot/internal/sim/azure/authority"
)

// Tools are where the programs are.
type Tools struct {
	Az       string // the real one
	Warm     string // a configuration that was used, for new ones
	Emulator string // azurite-blob
}

// Find looks for the tools; what is not here is "".
func Find() (Tools, error) {
	root, err := Root()
	if err != nil {
		return Tools{}, err
	}
	t := Tools{Az: path(root, "azure-cli"), Emulator: path(root, "azurite")}
	if t.Az != "" {
		t.Warm = filepath.Join(filepath.Dir(t.Az), "config")
	}
	return t, nil
}

// Need finds the tools, or skips the test and has it counted.
func Need(t testing.TB) Tools {
	t.Helper()
	tools, err := Find()
	switch {
	case err != nil:
		t.Fatal(err)
	case tools.Az == "":
		Skip(t, "the real az 2.74 is not here: scripts/azure-cli installs it")
	case tools.Emulator == "":
		Skip(t, "the storage emulator is not here: scripts/azurite installs it")
	}
	return tools
}

// Skip skips a test for want of a tool, and has it counted.
func Skip(t testing.TB, why string) {
	t.Helper()
	if name := os.Getenv("TEST_SKIPS"); name != "" {
		f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err == nil {
			_, err = fmt.Fprintf(f, "%s: %s\n", t.Name(), why)
			err = errors.Join(err, f.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Skip(why)
}

// Root is the directory of the module that the present directory is in.
func Root() (string, error) {
	dir, err := os.Getwd()
	for err == nil {
		if _, no := os.Stat(filepath.Join(dir, "go.mod")); no == nil {
			return dir, nil
		}
		if up := filepath.Dir(dir); up != dir {
			dir = up
			continue
		}
		err = errors.New("no go.mod above it")
	}
	return "", fmt.Errorf("finding the module: %w", err)
}

func path(root, script string) string {
	out, err := exec.Command(filepath.Join(root, "scripts", script), "path").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// Storage is a storage emulator that runs.
type Storage struct {
	Addr      string
	Keys      map[string]string // of the accounts
	Authority *authority.Authority

	cmd  *exec.Cmd
	dir  string
	done chan error
}

// startup bounds how long the emulator takes to listen; a loaded machine needs time.
const startup = 90 * time.Second

// StartStorage starts an emulator with the accounts of the default tenant. It is
// slow to start: one is enough for all tests of a package. Stop it.
func StartStorage(tools Tools) (*Storage, error) {
	s := &Storage{Keys: map[string]string{}, done: make(chan error, 1)}
	err := s.start(tools)
	if err != nil {
		s.Stop()
		return nil, fmt.Errorf("starting the storage emulator: %w", err)
	}
	return s, nil
}

func (s *Storage) start(tools Tools) error {
	seed, err := azuresim.DefaultSeed()
	if err != nil {
		return err
	}
	var accounts []string
	for _, a := range seed.Accounts {
		key := make([]byte, 32)
		rand.Read(key)
		s.Keys[a.Name] = base64.StdEncoding.EncodeToString(key)
		accounts = append(accounts, a.Name+":"+s.Keys[a.Name])
	}
	if s.Authority, err = authority.New(azuresim.Names()...); err != nil {
		return err
	}
	if s.dir, err = os.MkdirTemp("", "storage"); err != nil {
		return err
	}
	cert, key, err := s.Authority.Write(s.dir)
	if err != nil {
		return err
	}
	if s.Addr, err = freeAddr(); err != nil {
		return err
	}
	host, port, _ := net.SplitHostPort(s.Addr)
	s.cmd = exec.Command(tools.Emulator, "--disableTelemetry", "--silent", "--blobHost", host, "--blobPort", port, "--inMemoryPersistence", "--oauth", "basic", "--cert", cert, "--key", key)
	s.cmd.Dir = s.dir
	s.cmd.Env = append(os.Environ(), "AZURITE_ACCOUNTS="+strings.Join(accounts, ";"))
	log, err := os.Create(filepath.Join(s.dir, "log"))
	if err != nil {
		return err
	}
	defer log.Close()
	s.cmd.Stdout, s.cmd.Stderr = log, log
	if err := s.cmd.Start(); err != nil {
		return err
	}
	go func() { s.done <- s.cmd.Wait() }()
	return s.listening()
}

func freeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

func (s *Storage) listening() error {
	ctx, stop := context.WithTimeout(context.Background(), startup)
	defer stop()
	for {
		c, err := new(net.Dialer).DialContext(ctx, "tcp", s.Addr)
		if err == nil {
			return c.Close()
		}
		select {
		case err := <-s.done:
			s.done <- err
			log, _ := os.ReadFile(filepath.Join(s.dir, "log"))
			return fmt.Errorf("it ended: %v\n%s", err, log)
		case <-ctx.Done():
			return errors.New("it does not listen")
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// Stop ends the emulator.
func (s *Storage) Stop() {
	if s.cmd != nil && s.cmd.Process != nil {
		s.cmd.Process.Kill()
		<-s.done
	}
	if s.dir != "" {
		os.RemoveAll(s.dir)
	}
}

// Options are those of a local Azure whose storage this is.
func (s *Storage) Options() azuresim.Options {
	return azuresim.Options{Emulator: s.Addr, Keys: s.Keys, Authority: s.Authority}
}

// Start starts a local Azure that ends with the test, which fails when something
// happened that should not have.
func Start(t testing.TB, opt azuresim.Options) *azuresim.Server {
	t.Helper()
	s, err := azuresim.New(opt)
	if err == nil {
		err = s.Start("127.0.0.1:0")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Close()
		for _, p := range s.Problems() {
			t.Errorf("local Azure: %s", p)
		}
	})
	return s
}

// Call is one run of az and how it ended.
type Call struct {
	Stdout, Stderr string
	Exit           int
}

// quiet is what the product gives to every az, too.
var quiet = []string{"AZURE_CORE_COLLECT_TELEMETRY=0", "AZURE_CORE_NO_COLOR=1", "AZURE_CORE_DISABLE_PROGRESS_BAR=1", "AZURE_CORE_ONLY_SHOW_ERRORS=1", "AZURE_CORE_ERROR_RECOMMENDATION=off",
	"AZURE_EXTENSION_USE_DYNAMIC_INSTALL=no", "AZURE_STORAGE_AUTH_MODE=login"}

// Run runs az with an environment as Server.Env makes it, in a directory, and
// nothing else of the caller's environment than PATH.
func Run(ctx context.Context, az, dir string, env []string, args ...string) (Call, error) {
	cmd := exec.CommandContext(ctx, az, args...)
	cmd.Dir = dir
	cmd.Env = append(append([]string{"PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8"}, quiet...), env...)
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() >= 0 {
		err = nil
	}
	if err != nil {
		return Call{}, fmt.Errorf("running az %s: %w\n%s", strings.Join(args, " "), err, errs.String())
	}
	return Call{Stdout: out.String(), Stderr: errs.String(), Exit: cmd.ProcessState.ExitCode()}, nil
}
