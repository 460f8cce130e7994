package safeexec

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"syscall"

	"ghostbot/safeexec/process"
	"ghostbot/safeexec/redact"
	"ghostbot/safeexec/truncate"
)

// ErrStopped is what the cause of a context is, by [errors.Is], when a person stopped the case. Every other end of a context is the
// end of this process or of its right to the case, and then nobody decided that a command should end.
var ErrStopped = errors.New("a person stopped it")

// outcome turns the end of a process into what people and the brain may see; cause is why ctx ended, if it did.
func (s *Shell) outcome(p Proposal, end process.End, left []Artefact, cause error) Result {
	r := Result{Status: "completed", ExitCode: end.Code, Signal: end.Signal, Duration: end.Duration.Seconds()}
	r.Error, r.Detail = failure(p, end)
	if end.Why == process.ByCancel && r.Error == "cancelled" {
		r.Error, r.Detail = cut(p, end, errors.Is(cause, ErrStopped))
	}
	if r.Error != "" {
		r.Status = "error"
	}
	notStarted(end, &r)
	r.Artefacts = left
	for i := range r.Artefacts {
		r.Artefacts[i].Path = s.scrub(r.Artefacts[i].Path)
	}
	if r.Error == "start_failed" {
		return r
	}
	if end.Orphans > 0 && r.Detail == "" {
		r.Detail = fmt.Sprintf("%d processes that it left in the background were ended", end.Orphans)
	}
	if err := s.show(p, end, &r); err != nil {
		r.Output, r.Stderr, r.Metadata, r.Categories, r.Redactions = "", "", nil, nil, 0
		r.Status, r.Error, r.Detail = "error", "redaction_failure", "the output could not be redacted and is withheld"
	}
	return r
}

// failure names what went wrong with the process itself; a non-zero exit code is
// no failure of the gate.
func failure(p Proposal, e process.End) (name, detail string) {
	switch {
	case e.Err != nil:
		return "start_failed", e.Err.Error()
	case e.Lost != "":
		return "outcome_unknown", "the supervisor was killed; " + e.Lost
	case len(e.Stuck) > 0:
		return "outcome_unknown", fmt.Sprintf("processes %v could not be ended", e.Stuck)
	}
	switch e.Why {
	case "":
		return "", ""
	case process.ByOutput:
		return "output_limit", fmt.Sprintf("it wrote more than %d bytes and was ended", max(e.Stdout.Total, e.Stderr.Total))
	case process.ByTimeout:
		return "timeout", fmt.Sprintf("it was ended after its time of %v", p.Timeout)
	case process.ByCancel:
		return "cancelled", "it was cancelled"
	case process.ByHeartbeat:
		return "cancelled", "it was ended because the bot was not heard from"
	}
	return "cancelled", "its supervisor was told to stop"
}

// cut names what became of a command whose context ended. One that may have changed something, and that nobody decided to
// end, is as one whose bot was killed: people are asked, by whoever carries the case on.
func cut(p Proposal, e process.End, stopped bool) (name, detail string) {
	after := fmt.Sprintf("it was ended after %.1f s because ", e.Duration.Seconds())
	const partly = "; it may have taken partial effect"
	switch {
	case e.Started == nil && stopped:
		return "cancelled", "it was not started, because the case was stopped"
	case e.Started == nil:
		return "cancelled", "it was not started, because this bot was stopped or restarted, or lost the case"
	case stopped && p.Class == Safe:
		return "cancelled", after + "the case was stopped"
	case stopped:
		return "cancelled", after + "the case was stopped" + partly
	case p.Class == Safe:
		return "cancelled", after + "this bot was stopped or restarted, or lost the case; the case itself was not stopped"
	}
	return "outcome_unknown", after + "this bot was stopped or restarted, or lost the case" + partly
}

// notStarted makes evidence of a program that is not there or not executable.
func notStarted(end process.End, r *Result) {
	var start *process.StartError
	if !errors.As(end.Err, &start) {
		return
	}
	code := 126
	switch start.Errno {
	case syscall.ENOENT:
		code = 127
	case syscall.EACCES, syscall.ENOEXEC, syscall.EISDIR:
	default:
		return
	}
	r.Status, r.Error, r.Detail, r.ExitCode, r.Stderr = "completed", "", "", &code, start.Text
}

// shown is the metadata of a result: that of the truncation, and what the cap
// did before it.
type shown struct {
	truncate.Metadata
	BytesWritten int64 `json:"bytes_written"`
	BytesDropped int64 `json:"bytes_dropped,omitempty"`
	Anonymized   bool  `json:"anonymization_applied,omitempty"`
}

var errRedaction = errors.New("redaction did not work")

// show fills in the output: cap, clean, redact the whole, truncate, redact what
// truncation made. A failure of any of it shows nothing.
func (s *Shell) show(p Proposal, end process.End, r *Result) (err error) {
	defer func() {
		if recover() != nil {
			err = errRedaction
		}
	}()
	if r.Stderr == "" {
		if r.Stderr, err = s.stream(end.Stderr.Text(r.Error != ""), p, r, func(t string) string { t, _ = truncate.Stderr(t); return t }); err != nil {
			return err
		}
	}
	var meta truncate.Metadata
	r.Output, err = s.stream(end.Stdout.Text(r.Error != ""), p, r, func(t string) string { t, meta = truncate.Output(t); return t })
	if err != nil {
		return err
	}
	r.Metadata, err = json.Marshal(shown{meta, end.Stdout.Total, end.Stdout.Missing(), s.opt.Anonymizer != nil})
	return err
}

func (s *Shell) stream(raw []byte, p Proposal, r *Result, shorten func(string) string) (string, error) {
	first, err := s.opt.Redactor.RedactFor(redact.Clean(raw), p.Display)
	if err != nil {
		return "", err
	}
	text := first.Text
	if s.opt.Anonymizer != nil { // before it is cut: half an address is still one
		text = s.opt.Anonymizer.Hide(text, p.Argv...)
	}
	second, err := s.opt.Redactor.RedactFor(shorten(text), p.Display)
	if err != nil {
		return "", err
	}
	r.Redactions += first.Count + second.Count
	seen := map[string]bool{}
	for _, c := range slices.Concat(r.Categories, first.Categories, second.Categories) {
		seen[c] = true
	}
	r.Categories = slices.Sorted(maps.Keys(seen))
	return second.Text, nil
}
