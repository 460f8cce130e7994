package services

import (
	"fmt"

	"ghostbot/forensics/app"
	"ghostbot/forensics/facts"
	"ghostbot/forensics/finding/statement"
	"ghostbot/forensics/flow"
	"ghostbot/forensics/tcp"
)

// slow is what people notice, ns.
const slow = 500e6

// late finds responses that are slow, and that only their framing tells: an interim response
// came at once, or further requests were sent before the answer.
func late(f *facts.Facts) (out []statement.Finding) {
	by := map[uint32]*app.Exchange{}
	for _, s := range f.App.Sessions {
		if s.Kind == app.HTTP && s.HTTP.Slowest > slow {
			by[s.Stream] = &s.HTTP
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
		rtt := s.InitialRTT
		if told := d.Turns.Server.Max-rtt > slow; told || x.Slowest-rtt < max(slow, 3*rtt) || d.Sum(tcp.ZeroWindow) > 0 || lossy(&d.Side[0]) || lossy(&d.Side[1]) {
			return true // another rule says so, or something else takes the time
		}
		out = append(out, statement.Finding{Severity: statement.Medium, Protocol: "http", Code: "slow-server", Confidence: 0.84, Frames: []uint32{x.SlowAsk, x.SlowFrame}, Flow: name(k),
			Summary: fmt.Sprintf("The server needs up to %s for the first byte of a response; the network takes %s of it.", statement.Duration(x.Slowest), statement.Duration(rtt)),
			Detail:  "The time is that of one response: from the end of its request, or of the response before it, to its status line. An interim response came earlier, or further requests were sent meanwhile, which hides it from a look at packets alone. Nothing was lost.",
			Confirm: "The server's own request log: the same times there mean the application, or what it waits for."})
		return true
	})
	return out
}

func lossy(s *tcp.Side) bool { return s.Resent+s.Filled > 0 }
