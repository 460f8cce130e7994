//go:build gate

package safeexec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"syscall"

	"ghostbot/safeexec/redact"
	"ghostbot/safeexec/truncate"
)

// outcome turns the end of a process into what people and the brain may see.
func (s *Shell) outcome(p Proposal, end ended) Result {
	r := Result{Status: "completed", ExitCode: end.Code, Signal: end.Signal, Duration: end.Duration.Seconds()}
	r.Error, r.Detail = end.failure(p)
	if r.Error != "" {
		r.Status = "error"
	}
	s.notStarted(p, end, &r)
	r.Artefacts = end.artefacts
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
func (e ended) failure(p Proposal) (name, detail string) {
	switch {
	case e.supervisorFailed != nil:
		return "start_failed", "the supervisor did not start: " + e.supervisorFailed.Error()
	case e.Event == "":
		return "outcome_unknown", "the supervisor was killed; " + e.note
	case e.Event == "failed":
		return "start_failed", e.Error
	case len(e.Left) > 0:
		return "outcome_unknown", fmt.Sprintf("processes %v could not be ended", e.Left)
	case e.cancelled == "output_limit" && e.Why != "":
		return "output_limit", fmt.Sprintf("it wrote more than %d bytes and was ended", max(e.stdout.total, e.stderr.total))
	}
	switch e.Why {
	case "":
		return "", ""
	case "timeout":
		return "timeout", fmt.Sprintf("it was ended after its time of %v", p.Timeout)
	case "cancel":
		return "cancelled", "it was ended because the case stopped"
	case "heartbeat":
		return "cancelled", "it was ended because the bot was not heard from"
	}
	return "cancelled", "its supervisor was told to stop"
}

// notStarted makes evidence of a program that is not there or not executable.
func (s *Shell) notStarted(p Proposal, end ended, r *Result) {
	if end.Event != "failed" {
		return
	}
	code := 126
	switch syscall.Errno(end.Errno) {
	case syscall.ENOENT:
		code = 127
	case syscall.EACCES, syscall.ENOEXEC, syscall.EISDIR:
	default:
		return
	}
	r.Status, r.Error, r.Detail, r.ExitCode, r.Stderr = "completed", "", "", &code, end.Error
}

// shown is the metadata of a result: that of the truncation, and what the cap
// did before it.
type shown struct {
	truncate.Metadata
	BytesWritten int64 `json:"bytes_written"`
	BytesDropped int64 `json:"bytes_dropped,omitempty"`
}

var errRedaction = errors.New("redaction did not work")

// show fills in the output: cap, clean, redact the whole, truncate, redact what
// truncation made. A failure of any of it shows nothing.
func (s *Shell) show(p Proposal, end ended, r *Result) (err error) {
	defer func() {
		if recover() != nil {
			err = errRedaction
		}
	}()
	if r.Stderr == "" {
		if r.Stderr, err = s.stream(end.stderr.text(r.Error != ""), p, r, func(t string) string { t, _ = truncate.Stderr(t); return t }); err != nil {
			return err
		}
	}
	var meta truncate.Metadata
	r.Output, err = s.stream(end.stdout.text(r.Error != ""), p, r, func(t string) string { t, meta = truncate.Output(t); return t })
	if err != nil {
		return err
	}
	r.Metadata, err = json.Marshal(shown{meta, end.stdout.total, end.stdout.missing()})
	return err
}

func (s *Shell) stream(raw []byte, p Proposal, r *Result, shorten func(string) string) (string, error) {
	first, err := s.opt.Redactor.RedactFor(redact.Clean(raw), p.Display)
	if err != nil {
		return "", err
	}
	second, err := s.opt.Redactor.RedactFor(shorten(first.Text), p.Display)
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

// text joins what was kept. Where the stream was cut, by the cap or by ending
// the program in the middle of a write, half a credential may stand at the edge,
// which no pattern would recognise: the edge is moved back to a place between
// tokens.
func (c captured) text(cut bool) []byte {
	missing := c.missing()
	if missing == 0 {
		whole := slices.Concat(c.head, c.tail)
		if cut {
			whole = cutEnd(whole)
		}
		return whole
	}
	tail := cutStart(c.tail)
	if cut {
		tail = cutEnd(tail)
	}
	return slices.Concat(cutEnd(c.head), fmt.Appendf(nil, "\n[%d bytes of output were not kept]\n", missing), tail)
}

// edge is how far a key and its value, or a key in PEM on one line, may reach
// across a cut.
const edge = 8 << 10

const between = " \t\r\n\"',;<>()[]{}|"

// cutEnd drops the last, perhaps incomplete, token of b, and a PEM block that
// begins and does not end.
func cutEnd(b []byte) []byte {
	b = b[:bytes.LastIndexAny(b, between)+1]
	if i := bytes.LastIndex(b, []byte("-----BEGIN ")); i >= 0 && !bytes.Contains(b[i:], []byte("-----END ")) {
		b = b[:i]
	}
	return b
}

// cutStart drops what may be the rest of a token, of a value whose name is
// missing, or of a PEM block.
func cutStart(b []byte) []byte {
	i := bytes.IndexByte(b, '\n')
	if i < 0 || i > edge {
		from := min(edge, len(b))
		i = bytes.IndexAny(b[from:], between)
		if i < 0 {
			return nil
		}
		i += from
	}
	b = b[i+1:]
	end := bytes.Index(b, []byte("-----END "))
	begin := bytes.Index(b, []byte("-----BEGIN "))
	if end >= 0 && (begin < 0 || begin > end) {
		_, b, _ = bytes.Cut(b[end:], []byte("\n"))
	}
	return b
}
