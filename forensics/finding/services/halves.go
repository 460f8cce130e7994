package services

import (
	"fmt"
	"strings"

	"ghostbot/forensics/app"
	"ghostbot/forensics/facts"
	"ghostbot/forensics/finding/statement"
	"ghostbot/forensics/flow"
	"ghostbot/forensics/tcp"
)

const (
	stopped = 5e9 // ns without the rest of a response until it counts as not coming
	alive   = 1e9 // ns after its last data in which a host that sends anything lives
)

// part is a response that is not complete, as far as the capture has it.
type part struct {
	dir   int
	frame uint32 // where it begins
	what  string
	sent  string
	tls   bool
}

// halves finds responses that end before they are complete. A response says how long it is,
// its chunks end with an empty line, and a TLS record says its length, so that this does not
// hang on who closes.
func halves(f *facts.Facts) (out []statement.Finding) {
	open := map[uint32]*app.Session{}
	for _, s := range f.App.Sessions {
		if b := &s.HTTP.Body; b.Length > 0 || b.Unfinished() || s.Cut(0)+s.Cut(1) > 0 {
			open[s.Stream] = s
		}
	}
	if len(open) == 0 {
		return nil
	}
	f.TCP.Table.All(func(_ uint32, k *flow.Key, s *tcp.Stream) bool {
		x := open[s.Number]
		d := f.TCP.Detail(s)
		if x == nil || d == nil {
			return true
		}
		if p, ok := rest(x, k, s); ok {
			if what, ok := half(f, p, s, d); ok {
				what.Flow = name(k)
				out = append(out, what)
			}
		}
		return true
	})
	return out
}

// rest returns what is missing of the last response of a connection.
func rest(x *app.Session, k *flow.Key, s *tcp.Stream) (part, bool) {
	if x.Kind == app.TLS {
		dir := int(s.Client) ^ 1
		if s.Client < 0 {
			dir = 0
			if k.PortA() > k.PortB() {
				dir = 1
			}
		}
		return part{dir, x.Cut(dir), "a TLS record of its response", "the beginning of it", true}, x.Cut(dir) > 0
	}
	b := &x.HTTP.Body
	end, ok := s.Half[b.Dir].End()
	if s.Half[b.Dir].FIN { // which has a number of its own
		end--
	}
	p := part{dir: int(b.Dir), frame: b.Frame, what: "a response"}
	if b.Chunks {
		p.sent = fmt.Sprintf("%d bytes and without the last chunk", end-b.Begin)
		return p, ok && b.Unfinished()
	}
	left := int32(b.End - end)
	p.sent = fmt.Sprintf("%d of %d bytes", b.Length-uint32(left), b.Length)
	return p, ok && left > 0 && uint32(left) <= b.Length
}

// half judges the last response of one connection.
func half(f *facts.Facts, p part, s *tcp.Stream, d *tcp.Detail) (statement.Finding, bool) {
	sv, cl, side := &s.Half[p.dir], &s.Half[p.dir^1], &d.Side[p.dir]
	if sv.RSTs > 0 || side.OpenRun > 0 || s.Missing(p.dir) > 1 || d.Sum(tcp.ZeroWindow) > 0 {
		return statement.Finding{}, false // there is a reason that another rule tells
	}
	last := side.LastData()
	z := statement.Finding{Severity: statement.High, Protocol: statement.When(p.tls, "tls", "http"), Code: "server-no-response", Confidence: 0.85, Frames: []uint32{p.frame},
		Confirm: "The log of the server at that time; a worker that died, a limit of time or size, a source behind it that stopped; the same request again, at the server itself."}
	switch {
	case s.EndedBy() == p.dir && sv.LastTime()-last < stopped:
		z.Summary = fmt.Sprintf("The server ended the connection in the middle of %s, after %s.", p.what, p.sent)
		z.Detail = "It closed by itself, in good order: no loss and no reset. The program that answers gave up or was stopped, and the one in front of it closed."
	case s.Last-last >= stopped && sv.LastTime()-last >= alive:
		z.Summary = fmt.Sprintf("The server stopped in the middle of %s, after %s.", p.what, p.sent)
		z.Detail = fmt.Sprintf("Its host still acknowledged %s later, and all of its data had been acknowledged: the path works, and the program does not go on.", statement.Duration(sv.LastTime()-last))
	case s.Last-last >= stopped || f.Last-last >= stopped && cl.RSTs == 0 && s.EndedBy() < 0:
		z.Confidence = 0.7
		z.Summary = fmt.Sprintf("%s stops in the middle, after %s, and nothing more comes from the server.", strings.ToUpper(p.what[:1])+p.what[1:], p.sent)
		z.Detail = fmt.Sprintf("Nothing came for %s. All that had come was acknowledged, with an open window, so that the client is not what stopped.", statement.Duration(max(s.Last, f.Last)-last))
		z.Limits = "Whether the server stopped or the path to the client broke cannot be told from this side: neither data nor an acknowledgement of the server came after it."
	default:
		return statement.Finding{}, false // under way, or the client had enough
	}
	return z, true
}

// worth is how long a request over TLS is at least: what is shorter may be a message of the
// protocol inside that wants no answer.
const worth = 90

// unanswered finds requests that the client gives up, on connections whose earlier ones were
// answered. Where answers take as long on purpose (a long poll), giving up means nothing.
func unanswered(f *facts.Facts) (out []statement.Finding) {
	by := map[uint32]*app.Session{}
	for _, s := range f.App.Sessions {
		if s.Kind == app.HTTP && s.HTTP.Waiting() > 0 || s.Kind == app.TLS {
			by[s.Stream] = s
		}
	}
	if len(by) == 0 {
		return nil
	}
	f.TCP.Table.All(func(_ uint32, k *flow.Key, s *tcp.Stream) bool {
		x, d := by[s.Number], f.TCP.Detail(s)
		if x == nil || d == nil || s.Client < 0 {
			return true
		}
		u, client := &d.Turns, int(s.Client)
		sv, end := &s.Half[client^1], s.Last
		if x.Kind == app.HTTP && x.HTTP.Responses == 0 && sv.Bytes == 0 && s.EndedBy() == client^1 && s.Done && sv.RSTs == 0 {
			out = append(out, statement.Finding{Severity: statement.Medium, Protocol: "http", Code: "server-no-response", Confidence: 0.8, Frames: []uint32{x.HTTP.Waiting()}, Flow: name(k),
				Summary: "The server closes the connection instead of answering a request.",
				Detail:  fmt.Sprintf("It got the request, sent no byte, and ended the connection in good order after %s: the program behind the port does not want it, speaks something else (TLS), or lost its own source.", statement.Duration(sv.LastTime()-u.AskedAt)),
				Confirm: "The same request with curl -v (empty reply from server), and over https; the server's log."})
			return true
		}
		gave := s.EndedBy() == client || s.EndedBy() < 0 && s.Half[client].RSTs > 0 && sv.RSTs == 0
		quiet := end - u.AskedAt
		if !gave || !u.Waiting || !u.AskACKed || u.Answers == 0 || quiet < stopped || quiet < 2*u.Server.Max || x.Kind == app.TLS && (u.AskBytes < worth || x.Cut(client^1) > 0) ||
			d.Side[client].OpenRun > 0 || s.Missing(client) > 1 || s.Missing(client^1) > 1 || d.Sum(tcp.ZeroWindow) > 0 || patient(f, k, client) {
			return true
		}
		out = append(out, statement.Finding{Severity: statement.High, Protocol: statement.When(x.Kind == app.TLS, "tls", "http"), Code: "server-no-response", Confidence: 0.8, Frames: []uint32{u.AskFrame}, Flow: name(k),
			Summary: fmt.Sprintf("The server acknowledges a request and does not answer it: the client gives up after %s.", statement.Duration(quiet)),
			Detail:  fmt.Sprintf("%d earlier requests of the connection were answered, the slowest after %s. Its TCP is alive, so that the program behind it does not go on.", u.Answers, statement.Duration(u.Server.Max)),
			Confirm: "Thread dumps and upstream calls of the server at that time. A request that waits for an event on purpose (a long poll) looks the same when the client leaves."})
		return true
	})
	return out
}

// patient reports a service that lets others wait as long as for an event.
func patient(f *facts.Facts, k *flow.Key, client int) bool {
	a, p := k.End(client ^ 1)
	found := false
	f.TCP.Table.All(func(_ uint32, o *flow.Key, s *tcp.Stream) bool {
		if s.Client >= 0 {
			if b, q := o.End(int(s.Client) ^ 1); a == b && p == q {
				if d := f.TCP.Detail(s); d != nil && d.Turns.Server.Max > 4e9 {
					found = true
				}
			}
		}
		return !found
	})
	return found
}
