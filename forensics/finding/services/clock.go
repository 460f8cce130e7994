package services

import (
	"fmt"

	"ghostbot/forensics/facts"
	"ghostbot/forensics/finding/statement"
)

// clock says that the clock of the capture was set while it ran.
func clock(f *facts.Facts) []statement.Finding {
	if len(f.Steps) == 0 {
		return nil
	}
	x := statement.Finding{Severity: statement.Low, Protocol: "capture", Code: "clock-step", Confidence: 0.9, Frames: []uint32{},
		Detail:  "No time went by there: the TCP time stamps of the hosts count on regardless, or packets stay behind what came before them. All durations of this report are without it; time stamps of packets are as the capture has them.",
		Confirm: "The log of the time daemon on the capturing host at that time (chronyc tracking, journalctl -u chrony -u systemd-timesyncd); a clock that is kept by NTP from its start on is not set later."}
	for i, s := range f.Steps {
		x.Frames = append(x.Frames, s.Frame)
		if i < 3 {
			x.Summary += statement.When(i > 0, ", ", "") + fmt.Sprintf("%s by %s at frame %d", statement.When(s.By > 0, "forward", "back"), statement.Duration(max(s.By, -s.By)), s.Frame)
		}
	}
	x.Summary = "The clock of the capturing host was set while it captured: " + x.Summary + statement.When(len(f.Steps) > 3, fmt.Sprintf(", and %d times more", len(f.Steps)-3), "") + "."
	if !f.Unstepped {
		x.Detail = "No time went by there: the TCP time stamps of the hosts count on regardless, or packets stay behind what came before them."
		x.Limits = "The capture could not be read a second time: durations that span a step are wrong by it, and findings that rest on them too."
	}
	return []statement.Finding{x}
}
