package scan

import (
	"net/netip"
	"slices"
	"testing"

	"ghostbot/triage/proc"
)

// TestUnowned: who waits for others and is no record's is known by its port.
func TestUnowned(t *testing.T) {
	at := func(proto, local, remote string, state uint8) proc.Socket {
		s := proc.Socket{Proto: proto, Local: netip.MustParseAddrPort(local), Remote: netip.MustParseAddrPort(remote)}
		if state != 0 {
			s.State = proc.Listen
		}
		return s
	}
	w := &world{sockets: map[string]map[uint64]proc.Socket{
		"net:[1]": {
			1: at("tcp", "127.0.0.1:8080", "0.0.0.0:0", 1), 2: at("tcp", "0.0.0.0:443", "0.0.0.0:0", 1), 3: at("tcp", "127.0.0.1:9000", "127.0.0.1:50000", 0),
			4: at("udp", "0.0.0.0:53", "0.0.0.0:0", 0), 5: at("udp", "0.0.0.0:40000", "0.0.0.0:0", 0), 6: at("udp", "127.0.0.1:514", "127.0.0.1:1", 0),
		},
		"net:[2]": {7: at("tcp6", "[::]:8080", "[::]:0", 1)},
	}}
	seen := Record{}
	seen.Net.Ports = []int{443}
	if got := w.unowned([]Record{seen}); !slices.Equal(got, []int{53, 8080}) {
		t.Errorf("unowned %v, want 53 and 8080", got)
	}
}
