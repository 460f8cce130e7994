package services

import (
	"fmt"

	"ghostbot/forensics/capture"
	"ghostbot/forensics/facts"
	"ghostbot/forensics/finding/statement"
	"ghostbot/forensics/frame"
)

// Nothing says why no packet could be judged: the capture is empty, the filter let
// none through, or the file is damaged. None of these is a healthy network.
func Nothing(f *facts.Facts) statement.Finding {
	x := statement.Finding{Severity: statement.Low, Protocol: "capture", Frames: []uint32{}, Confidence: 1}
	switch c := f.Capture; {
	case c != nil && c.Packets > 0:
		x.Code, x.Summary = "filter-matched-nothing", fmt.Sprintf("The filter matched none of %d packets.", c.Packets)
		x.Detail = "Nothing was judged: this says nothing of the network."
		x.Confirm = "The addresses and ports of the filter against capture_summary and the findings of a run without it."
	case c != nil && (c.Skipped > 0 || len(c.Damage) > 0):
		x.Code, x.Summary = "unreadable-capture", "No packet of the file could be read: it is damaged."
		x.Detail = fmt.Sprintf("%d bytes belong to no record that makes sense. Nothing was judged.", c.Skipped)
		x.Confirm = "capinfos on the file; copy it again from where it was taken, and stop the capture before copying."
	default:
		x.Severity, x.Code, x.Summary = statement.Info, "empty-capture", "The capture holds no packets."
		x.Detail = "Nothing can be said of the network."
		x.Confirm = "The filter and the interface of the capture; whether it was stopped too early."
	}
	return x
}

// Unread says that most of a capture could not be read, so that what little was judged says
// nothing of the network: the file is damaged, of link types that are not decoded, or
// without any protocol that is followed.
func Unread(f *facts.Facts) (x statement.Finding, unread bool) {
	x = statement.Finding{Severity: statement.Low, Protocol: "capture", Code: "unreadable-capture", Frames: []uint32{}, Confidence: 1}
	switch c := f.Capture; {
	case c != nil && c.Skipped > c.Stream-c.Skipped:
		x.Summary = fmt.Sprintf("Most of the file could not be read: it is damaged. %s.", statement.Plural(int(f.Packets), "packet was judged", "packets were judged"))
		x.Detail = fmt.Sprintf("%d bytes belong to no record that makes sense. What was read says nothing of the rest.", c.Skipped)
		x.Confirm = "capinfos on the file; copy it again from where it was taken, and stop the capture before copying."
	case f.Undecoded*2 > f.Packets:
		x.Summary = fmt.Sprintf("%d of %d packets could not be decoded.", f.Undecoded, f.Packets)
		x.Detail = "Not even their link layer is known" + types(c) + ". Nothing of them was judged."
		x.Confirm = "capinfos on the file for its encapsulation; capture on an interface of another kind, or convert the file."
	case f.Packets > 0 && f.Packets == f.Kinds[frame.Other]+f.Kinds[frame.Fragment]:
		x.Summary = "No packet carries a protocol that is followed."
		x.Detail = fmt.Sprintf("%s read. Nothing was judged: this says nothing of the network.", statement.Plural(int(f.Packets), "packet was", "packets were"))
		x.Confirm = "The interface and the filter of the capture: is it where the traffic in question passes?"
		if c != nil && len(c.Damage) > 0 {
			x.Summary = "The file is damaged, and no packet that it still has carries a protocol that is followed."
			x.Confirm = "capinfos on the file; copy it again from where it was taken, and stop the capture before copying."
		}
	default:
		return x, false
	}
	return x, true
}

// types lists the link types of a capture.
func types(c *capture.Info) string {
	if c == nil || len(c.Interfaces) == 0 {
		return ""
	}
	out := ""
	for i, n := range c.Interfaces[:min(len(c.Interfaces), 5)] {
		out += statement.When(i > 0, ", ", "") + fmt.Sprint(n.Link)
	}
	return " (link type " + out + ")"
}

// redirects tell of a gateway that is not the best one.
func redirects(f *facts.Facts) (out []statement.Finding) {
	for _, e := range f.Control.Errors {
		if !e.V6 && e.Type == 5 || e.V6 && e.Type == 137 {
			out = append(out, statement.Finding{Severity: statement.Low, Protocol: statement.When(e.V6, "icmpv6", "icmp"), Code: "icmp-redirect", Confidence: 0.9, Frames: e.Frames,
				Summary: fmt.Sprintf("%v sends %v to another gateway: %v.", e.Src, e.Dst, e.Gateway),
				Detail:  fmt.Sprintf("%d redirects for %v. The host uses a gateway that has to send packets back onto the same link.", e.Count, e.About),
				Confirm: fmt.Sprintf("Compare the host's route (ip route get %v) with the plan; a gateway nobody knows would be an interception.", e.About)})
		}
	}
	return out
}
