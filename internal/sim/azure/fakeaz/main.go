// Command fakeaz is az played from recorded calls, for tests: it looks up its
// arguments and prints what the real az printed.
//
// Where the calls are and what has been asked so far is in files beside the program,
// since the product gives its children no environment:
//
//	calls    a cassette (see package cassette)
//	asked    one line of JSON a call: the argument list, and whether it was known
//
// A call that was not recorded ends with status 97.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"ghostbot/internal/sim/azure/cassette"
)

const (
	exitInternal = 96
	exitUnknown  = 97
)

func main() {
	self, err := os.Executable()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(exitInternal)
	}
	os.Exit(run(filepath.Dir(self), os.Args[1:], os.Stdout, os.Stderr))
}

// asked is one line of the file of that name.
type asked struct {
	Argv  []string `json:"argv"`
	Known bool     `json:"known"`
}

func run(dir string, argv []string, out, errs io.Writer) int {
	b, err := os.ReadFile(filepath.Join(dir, "calls"))
	var calls []cassette.Call
	if err == nil {
		calls, err = cassette.Parse(b)
	}
	var c cassette.Call
	known := false
	if err == nil {
		c, known, err = ask(filepath.Join(dir, "asked"), calls, argv)
	}
	if err == nil && c.File != nil {
		err = write(argv, c.File)
	}
	switch {
	case err != nil:
		fmt.Fprintln(errs, "fakeaz:", err)
		return exitInternal
	case !known:
		fmt.Fprintf(errs, "fakeaz: this call was not recorded: %q\n", argv)
		return exitUnknown
	}
	io.WriteString(out, c.Stdout)
	io.WriteString(errs, c.Stderr)
	return c.Exit
}

// ask finds the answer and notes the question. Two at once take turns.
func ask(name string, calls []cassette.Call, argv []string) (c cassette.Call, known bool, err error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return c, false, err
	}
	defer f.Close()
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		return c, false, err
	}
	turn, lines := 0, bufio.NewScanner(f)
	for lines.Scan() {
		var a asked
		if err := json.Unmarshal(lines.Bytes(), &a); err != nil {
			return c, false, err
		}
		if slices.Equal(a.Argv, argv) {
			turn++
		}
	}
	if err := lines.Err(); err != nil {
		return c, false, err
	}
	c, known = cassette.Find(calls, argv, turn)
	line, err := json.Marshal(asked{argv, known})
	if err == nil {
		_, err = f.Write(append(line, '\n'))
	}
	return c, known, err
}

// write plays a download: the file is named by --file.
func write(argv []string, data []byte) error {
	at := slices.Index(argv, "--file")
	if at < 0 || at+1 >= len(argv) {
		return fmt.Errorf("the recorded call wrote a file, and there is no --file")
	}
	return os.WriteFile(argv[at+1], data, 0o600)
}
