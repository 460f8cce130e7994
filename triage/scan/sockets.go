package scan

import (
	"slices"
	"strings"

	"ghostbot/triage/proc"
)

// Bounds of the queue feature: these and above are full, half of them backlog.
const (
	fullCloseWait = 100
	fullUnread    = 64 << 10
	fullFDs       = 0.9
)

// ephemeral is the first port that the kernel gives to clients.
const ephemeral = 32768

// network draws the net feature: active is an established connection that has
// or moves bytes, or a listener that has accepted somebody.
func (s *scanner) network(r *Record, d *details) {
	if !d.socketsKnown {
		r.Missing["net"] = "unreadable"
		return
	}
	r.Net.Sockets = d.anySocket
	ns := s.world.netOf[r.PID]
	own := map[uint16]bool{}
	for _, sock := range d.sockets {
		if s.listener(r, ns, sock) {
			own[sock.Local.Port()] = true
		}
	}
	moving, idle := false, false
	for _, sock := range d.sockets {
		moved, conn := s.connection(r, ns, sock, own)
		moving, idle = moving || moved, idle || conn
	}
	slices.Sort(r.Net.Ports)
	r.Net.Ports = slices.Compact(r.Net.Ports)
	switch {
	case moving || r.Net.Inbound > 0:
		r.Evidence.Net = "active"
	case len(r.Net.Listens) > 0:
		r.Evidence.Net = "listen_idle"
	case idle:
		r.Evidence.Net = "idle_conn"
	default:
		r.Evidence.Net = "none"
	}
}

func waits(sock proc.Socket) bool {
	if !strings.HasPrefix(sock.Proto, "udp") {
		return sock.State == proc.Listen
	}
	return sock.Remote.Port() == 0 && sock.Local.Port() != 0 && sock.Local.Port() < ephemeral
}

// unowned are the ports of listeners whose owners could not be seen.
func (w *world) unowned(rs []Record) (ports []int) {
	held := map[int]bool{}
	for i := range rs {
		for _, p := range rs[i].Net.Ports {
			held[p] = true
		}
	}
	for _, table := range w.sockets {
		for _, sock := range table {
			if p := int(sock.Local.Port()); waits(sock) && !held[p] {
				ports = append(ports, p)
			}
		}
	}
	slices.Sort(ports)
	return slices.Compact(ports)
}

// listener adds what waits for others: TCP listeners, and UDP sockets on a port
// that no client is given.
func (s *scanner) listener(r *Record, ns string, sock proc.Socket) bool {
	port, udp := sock.Local.Port(), strings.HasPrefix(sock.Proto, "udp")
	if !waits(sock) {
		return false
	}
	l := Listener{Proto: sock.Proto, Address: sock.Local.Addr().String(), Port: int(port), RecvQ: sock.RX, SendQ: -1}
	if diag, ok := s.diag[1][ns][sock.Inode]; ok && !udp {
		l.RecvQ, l.SendQ = uint64(diag.RQ), int64(diag.WQ)
	}
	r.Net.Listens = append(r.Net.Listens, l)
	r.Net.Ports = append(r.Net.Ports, int(port))
	return true
}

func (s *scanner) connection(r *Record, ns string, sock proc.Socket, own map[uint16]bool) (moving, conn bool) {
	udp := strings.HasPrefix(sock.Proto, "udp")
	switch {
	case udp && sock.Remote.Port() == 0:
		return sock.RX > 0, true
	case sock.State == proc.CloseWait && !udp:
		r.Net.CloseWait++
		r.Net.Unread = max(r.Net.Unread, sock.RX)
		return false, true
	case sock.State != proc.Established:
		return false, false
	}
	r.Net.Conns++
	r.Net.Unread = max(r.Net.Unread, sock.RX)
	if !udp && own[sock.Local.Port()] || !udp && s.world.listens[ns][sock.Local.Port()] {
		r.Net.Inbound++
		if a := sock.Remote.Addr(); !a.IsLoopback() && !s.world.locals[ns][a.String()] {
			r.Net.Remote++
		}
	}
	a, ok1 := s.diag[0][ns][sock.Inode]
	b, ok2 := s.diag[1][ns][sock.Inode]
	moved := ok1 && ok2 && (a.Received != b.Received || a.Acked != b.Acked)
	return moved || sock.RX > 0 || sock.TX > 0, true
}

// queue draws the queue feature from what piles up at the process.
func (s *scanner) queue(r *Record, d *details) {
	if !d.socketsKnown {
		r.Missing["queue"] = "unreadable"
		return
	}
	load, unknown := 0.0, false
	for _, l := range r.Net.Listens {
		switch {
		case strings.HasPrefix(l.Proto, "udp"):
			load = max(load, fraction(float64(l.RecvQ), fullUnread))
		case l.SendQ >= 0:
			load = max(load, acceptLoad(l))
		case l.RecvQ > 0:
			unknown = true // how many may wait is known to the kernel only
		}
	}
	load = max(load, fraction(float64(r.Net.CloseWait), fullCloseWait))
	if r.Evidence.IO == "none" {
		load = max(load, fraction(float64(r.Net.Unread), fullUnread))
	}
	if r.Files.Limit > 0 && !r.Files.Unknown {
		load = max(load, fraction(float64(r.Files.Open), fullFDs*float64(r.Files.Limit)))
	}
	switch {
	case load >= 1:
		r.Evidence.Queue = "full"
	case unknown:
		r.Missing["queue"] = "the length of the accept queue is not known"
	case load >= 0.5:
		r.Evidence.Queue = "backlog"
	default:
		r.Evidence.Queue = "ok"
	}
}

// acceptLoad is 1 when the accept queue is longer than it may be, which is when
// the kernel begins to refuse.
func acceptLoad(l Listener) float64 {
	switch {
	case l.RecvQ > uint64(l.SendQ):
		return 1
	case l.RecvQ == 0:
		return 0
	}
	return min(float64(l.RecvQ)/float64(l.SendQ), 0.99)
}

func fraction(x, full float64) float64 {
	if full <= 0 {
		return 0
	}
	return x / full
}
