package triage

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	core "ghostbot/triage"
	"ghostbot/triage/act"
	"ghostbot/triage/scan"
	"ghostbot/triage/session"
	"ghostbot/triage/view"
)

// failure is the document of an error.
type failure struct {
	SchemaVersion string       `json:"schema_version"`
	SessionID     *string      `json:"session_id"`
	GeneratedAt   time.Time    `json:"generated_at"`
	HostID        string       `json:"host_id"`
	Error         *act.Problem `json:"error"`
}

// gate is an error of a gate that concerns the whole run.
type gate struct{ text, code string }

func (e *gate) Error() string { return e.text }

func blocked(format string, args ...any) error {
	return &gate{fmt.Sprintf(format, args...), act.GateFailed}
}

func protected(format string, args ...any) error {
	return &gate{fmt.Sprintf(format, args...), act.ProtectedProcess}
}

// kinds are the errors of the contract: what they are called, how the program
// ends, and whether trying again can help.
var kinds = []struct {
	err         error
	code        string
	exit        int
	recoverable bool
	recovery    string
}{
	{session.ErrNotFound, "SESSION_NOT_FOUND", exitSession, false, ""},
	{session.ErrExpired, "SESSION_EXPIRED", exitSession, false, ""},
	{session.ErrTampered, act.InternalError, exitInternal, false, ""},
	{session.ErrBroken, act.InternalError, exitInternal, false, ""},
	{session.ErrLocked, act.GateFailed, exitLocked, true, "Wait until the other apply has ended"},
	{session.ErrTransition, act.GateFailed, exitBlocked, true, "Generate fresh plan with: ghostbot agent plan"},
	{session.ErrVersion, act.InternalError, exitVersion, false, ""},
	{act.ErrForeign, act.GateFailed, exitBlocked, true, "Generate fresh plan with: ghostbot agent plan"},
	{core.ErrNoPlan, act.GateFailed, exitBlocked, true, "Generate a plan with: ghostbot agent plan --session ID"},
	{core.ErrReplay, act.GateFailed, exitBlocked, false, ""},
	{act.ErrNothing, act.GateFailed, exitBlocked, true, "Apply first with: ghostbot agent apply --session ID"},
	{act.ErrRobot, act.GateFailed, exitBlocked, true, "Ask a person to approve it with: ghostbot agent approve"},
	{act.ErrApproval, act.GateFailed, exitBlocked, true, "Ask for a new approval"},
	{scan.ErrTimeout, act.InternalError, exitTimeout, true, "Try again with a longer --timeout"},
	{scan.ErrInterrupted, act.InternalError, exitInterrupted, true, "Try again"},
	{fs.ErrPermission, act.PermissionDenied, exitPermission, true, "Run as the owner of the state directory, or as root"},
}

// storage are the errors of a file system that takes nothing more.
var storage = []syscall.Errno{syscall.EROFS, syscall.ENOSPC, syscall.EDQUOT, syscall.EIO, syscall.EFBIG}

// fail prints an error and returns the exit code. A usage error has no document:
// nothing was asked that could be answered.
func (c *call) fail(err error) int {
	var u *usageError
	if errors.As(err, &u) || errors.Is(err, session.ErrMalformed) || errors.Is(err, core.ErrConfig) {
		fmt.Fprintln(c.s.Err, "ghostbot: "+c.s.Line(err.Error()))
		return exitUsage
	}
	p, exit := problem(err)
	doc := failure{SchemaVersion: session.SchemaVersion, GeneratedAt: time.Now().UTC().Truncate(time.Second), Error: p}
	if doc.HostID, _ = os.Hostname(); c.engine != nil {
		doc.HostID = c.engine.Host()
	}
	if c.session != "" {
		doc.SessionID = &c.session
	}
	if b, err := view.Encode(doc, c.pretty); err == nil && c.format != "exitcode" {
		c.s.Out.Write(b)
	}
	fmt.Fprintln(c.s.Err, "ghostbot: "+c.s.Line(err.Error()))
	return exit
}

func problem(err error) (*act.Problem, int) {
	var g *gate
	if errors.As(err, &g) {
		return &act.Problem{Code: g.code, Message: g.text, Recoverable: g.code == act.GateFailed}, exitBlocked
	}
	for _, k := range kinds {
		if errors.Is(err, k.err) {
			return &act.Problem{Code: k.code, Message: err.Error(), Recoverable: k.recoverable, Recovery: k.recovery}, k.exit
		}
	}
	p := &act.Problem{Code: act.InternalError, Message: err.Error()}
	var path *fs.PathError
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax), errors.As(err, &kind), strings.Contains(err.Error(), "unexpected end of JSON"):
		return p, exitInternal
	case errors.As(err, &path), slices.ContainsFunc(storage, func(e syscall.Errno) bool { return errors.Is(err, e) }):
		return p, exitIO
	}
	return p, exitInternal
}
