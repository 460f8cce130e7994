package services

import (
	"fmt"

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

// halves finds responses that end before they are complete. A response says how long it is,
// so that this does not hang on who closes.
func halves(f *facts.Facts) (out []statement.Finding) {
	open := map[uint32]*app.Session{}
	for _, s := range f.App.Sessions {
		if s.HTTP.Body.Length > 0 {
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
		if what, ok := half(f, x, s, d); ok {
			what.Flow = name(k)
			out = append(out, what)
		}
		return true
	})
	return out
}

// half judges the last response of one connection.
func half(f *facts.Facts, x *app.Session, s *tcp.Stream, d *tcp.Detail) (statement.Finding, bool) {
	b := &x.HTTP.Body
	sv, cl, side := &s.Half[b.Dir], &s.Half[b.Dir^1], &d.Side[b.Dir]
	end, ok := sv.End()
	if sv.FIN { // which has a number of its own
		end--
	}
	left := int32(b.End - end)
	if !ok || left <= 0 || uint32(left) > b.Length || sv.RSTs > 0 || side.OpenRun > 0 || s.Missing(int(b.Dir)) > 1 || d.Sum(tcp.ZeroWindow) > 0 {
		return statement.Finding{}, false // complete, or there is a reason that another rule tells
	}
	last := side.LastData()
	z := statement.Finding{Severity: statement.High, Protocol: "http", Code: "server-no-response", Confidence: 0.85, Frames: []uint32{b.Frame},
		Confirm: "The log of the server at that time: a worker that died, a limit of time or size, a source behind it that stopped; the same request again, at the server itself."}
	sent := fmt.Sprintf("%d of %d bytes", b.Length-uint32(left), b.Length)
	switch {
	case s.EndedBy() == int(b.Dir) && sv.LastTime()-last < stopped:
		z.Summary = fmt.Sprintf("The server ended the connection in the middle of a response, after %s.", sent)
		z.Detail = "It closed by itself, in good order: no loss and no reset. The program that answers gave up or was stopped, and the one in front of it closed."
	case s.Last-last >= stopped && sv.LastTime()-last >= alive:
		z.Summary = fmt.Sprintf("The server stopped in the middle of a response, after %s.", sent)
		z.Detail = fmt.Sprintf("Its host still acknowledged %s later, and all of its data had been acknowledged: the path works, and the program does not go on.", statement.Duration(sv.LastTime()-last))
	case s.Last-last >= stopped || f.Last-last >= stopped && cl.RSTs == 0 && s.EndedBy() < 0:
		z.Confidence = 0.7
		z.Summary = fmt.Sprintf("A response stops in the middle, after %s, and nothing more comes from the server.", sent)
		z.Detail = fmt.Sprintf("Nothing came for %s. All that had come was acknowledged, with an open window, so that the client is not what stopped.", statement.Duration(max(s.Last, f.Last)-last))
		z.Limits = "Whether the server stopped or the path to the client broke cannot be told from this side: neither data nor an acknowledgement of the server came after it."
	default:
		return statement.Finding{}, false // under way, or the client had enough
	}
	return z, true
}
