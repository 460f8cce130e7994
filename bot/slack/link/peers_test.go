package link

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/slack-go/slack/socketmode"
)

// Several connections are a fault of one process, and what replicas have. Ten are all
// that an app gets, whoever has them.
func TestPeers(t *testing.T) {
	for _, tc := range []struct {
		peers int
		many  bool
		warns string
	}{
		{0, false, ""}, {1, false, ""}, {1, true, ""},
		{2, false, "more than one connection"}, {2, true, ""}, {9, true, ""}, {9, false, "more than one connection"},
		{10, true, "no connection left"}, {10, false, "no connection left"}, {11, true, "no connection left"},
	} {
		var out bytes.Buffer
		told := 0
		l := New(Options{Many: tc.many, Log: slog.New(slog.NewTextHandler(&out, nil)), Connected: func(bool) { told++ }})
		l.hello(&socketmode.Request{NumConnections: tc.peers})
		got := strings.Contains(out.String(), "level=WARN")
		if got != (tc.warns != "") || !strings.Contains(out.String(), tc.warns) {
			t.Errorf("%d connections, replicas %v: %s", tc.peers, tc.many, &out)
		}
		if s := l.State(); !s.Connected || s.Peers != tc.peers || told != 1 {
			t.Errorf("state %+v, told %d times", s, told)
		}
	}
}
