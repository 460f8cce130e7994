package e2e

import "testing"

// TestEntryInTheBrowser is what people do outside of cards: the menu of a message, the
// list, the question whether to join, the Home tab, what they think of a report.
func TestEntryInTheBrowser(t *testing.T) {
	l := newLab(t)
	needBrowser(t)
	l.run()
	addr, _ := gateway(t)
	ts := l.alert(addr)
	l.browse("entry.mjs", "entry ok", nil, "ALERT="+ts, "TARGET="+addr)
	sid := l.sid("incidents", "checkout gets 502")
	l.closed(sid)
	l.checkCase("incidents", "checkout gets 502", sid)
}
