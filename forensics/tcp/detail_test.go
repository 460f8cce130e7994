package tcp

import "testing"

// stamp is a timestamps option.
func stamp(ts uint32) []byte {
	return []byte{1, 1, 8, 10, byte(ts >> 24), byte(ts >> 16), byte(ts >> 8), byte(ts), 0, 0, 0, 1}
}

// side returns what is known of one end: 0 is the client.
func (k *talk) side(e *Event, i int) *Side {
	if int(e.Stream.Client) == 1 {
		i ^= 1
	}
	return &e.Detail.Side[i]
}

// TestMessages: a second part that leaves when the first is acknowledged is told from one
// message after the other, at the sender and at the other end.
func TestMessages(t *testing.T) {
	for _, tt := range []struct {
		what          string
		near          bool // the capture point is at the client
		gap           float64
		begun, paired uint32
	}{
		{"parts, at the sender", true, 0.1, 6, 6}, {"one message after the other", true, 8, 12, 0}, {"parts, at the receiver", false, 20.1, 6, 6},
	} {
		k := newTalk()
		half := 20.0 // of the server's part of the round trip
		if !tt.near {
			half = 0.1
		}
		k.c(0, SYN, 100, 0, 0, 1000)
		k.s(half, SYN|ACK, 500, 101, 0, 1000)
		e := k.c(20.1, ACK, 101, 501, 0, 1000)
		seq, ack := uint32(101), uint32(501)
		for i := range 6 {
			at := 100 + float64(i)*200
			for range 2 {
				k.c(at, ACK, seq, ack, 50, 1000)
				seq += 50
				at += half
				e = k.s(at, ACK, ack, seq, 10, 1000)
				ack += 10
				at += tt.gap
			}
		}
		if s := k.side(e, 0); s.Begun != tt.begun || s.Paired != tt.paired {
			t.Errorf("%s: %d begun, %d in parts", tt.what, s.Begun, s.Paired)
		}
	}
}

// TestHeld: data that comes again in vain right after a silence was held by the path, when
// its time stamps say that it was sent later.
func TestHeld(t *testing.T) {
	for _, tt := range []struct {
		what   string
		stamps [2]uint32 // of the first copy and of the second
		after  float64   // ms between both
		want   uint32
	}{
		{"sent 400 ms apart, together here", [2]uint32{1000, 1400}, 1, 2},
		{"sent 50 ms apart", [2]uint32{1000, 1050}, 50, 0},
		{"sent 400 ms apart and so here", [2]uint32{1000, 1400}, 400, 0},
		{"no stamps", [2]uint32{}, 1, 1},
		{"a clock that wraps", [2]uint32{0xffffff00, 0x100}, 1, 2},
		{"long after the silence", [2]uint32{1000, 9000}, 3000, 0},
	} {
		opt := func(i int) []byte {
			if tt.stamps[0] == 0 {
				return nil
			}
			return stamp(tt.stamps[i])
		}
		k := newTalk().open()
		k.c(21, ACK, 101, 501, 10, 1000)
		k.s(22, ACK, 501, 111, 0, 1000)
		k.s(3000, ACK, 501, 111, 100, 1000, opt(0)...)
		k.c(3000.1, ACK, 111, 601, 0, 1000)
		e := k.s(3000+tt.after, ACK, 501, 111, 100, 1000, opt(1)...)
		if s := k.side(e, 1); s.Needless != 1 || s.Held != tt.want {
			t.Errorf("%s: needless %d, held %d", tt.what, s.Needless, s.Held)
		}
	}
}

// TestAfterGap: what is repaired right after the longest silence, and after it alone.
func TestAfterGap(t *testing.T) {
	k := newTalk().open()
	k.s(21, ACK, 501, 101, 100, 1000)
	k.s(22, ACK, 701, 101, 100, 1000) // 601 is missing
	e := k.s(30, ACK, 601, 101, 100, 1000)
	if s := k.side(e, 1); s.AfterGap != 1 || s.Holes != 1 {
		t.Errorf("after a short silence: %d of %d", s.AfterGap, s.Filled)
	}
	k.s(5000, ACK, 801, 101, 100, 1000)
	e = k.s(5001, ACK, 1001, 101, 100, 1000)
	if s := k.side(e, 1); s.AfterGap != 0 {
		t.Errorf("a longer silence: %d", s.AfterGap)
	}
	e = k.s(5002, ACK, 901, 101, 100, 1000)
	if s := k.side(e, 1); s.AfterGap != 1 || s.Filled != 2 {
		t.Errorf("after the longer silence: %d of %d", s.AfterGap, s.Filled)
	}
	e = k.s(7000, ACK, 501, 101, 100, 1000)
	if s := k.side(e, 1); s.AfterGap != 1 {
		t.Errorf("long after it: %d", s.AfterGap)
	}
	if u := e.Detail.Turns; u.IdleMax != 4970e6 || u.IdleAt != 1e18+5000e6 {
		t.Errorf("silence of %d until %d", u.IdleMax, u.IdleAt)
	}
}

// TestDoubled: a copy that comes late carries an old identification and data that was
// seen; a segment that was overtaken carries data that was not.
func TestDoubled(t *testing.T) {
	k := newTalk().open()
	for i := range uint32(20) {
		k.s(30+float64(i), ACK, 501+i*100, 101, 100, 1000)
	}
	k.no -= 12 // an identification from before
	e := k.s(60, ACK, 501+8*100, 101, 100, 1000)
	k.no += 12
	if s := k.side(e, 1); s.Late != 1 || s.Doubled != 1 || s.Resent+s.Filled != 0 {
		t.Errorf("a copy: %+v", s)
	}
	k.s(61, ACK, 2601, 101, 100, 1000) // 2501 is late
	k.no -= 2
	e = k.s(62, ACK, 2501, 101, 100, 1000)
	if s := k.side(e, 1); s.Late != 2 || s.Doubled != 1 {
		t.Errorf("overtaken: late %d, doubled %d", s.Late, s.Doubled)
	}
}

// TestKnown: at the sender everything was seen, however many segments wait.
func TestKnown(t *testing.T) {
	k := newTalk().open()
	k.c(21, ACK, 101, 501, 100, 1000)
	k.c(22, ACK, 201, 501, 100, 1000)
	e := k.c(300, ACK, 101, 501, 150, 1000) // with another boundary
	if s := k.side(e, 0); s.Resent != 1 || s.Filled != 0 || e.Fresh() {
		t.Errorf("resent %d, filled %d", s.Resent, s.Filled)
	}
	k = newTalk().open()
	k.c(21, ACK, 301, 501, 100, 1000)
	e = k.c(300, ACK, 101, 501, 100, 1000)
	if s := k.side(e, 0); s.Filled != 1 || s.Resent != 0 || !e.Fresh() {
		t.Errorf("behind a hole: resent %d, filled %d", s.Resent, s.Filled)
	}
}

// TestMissing counts what the receiver lacks, and what is in flight.
func TestMissing(t *testing.T) {
	k := newTalk().open()
	e := k.s(21, ACK, 501, 101, 100, 1000)
	server := e.Dir
	if n := e.Stream.Missing(server); n != 100 {
		t.Errorf("not acknowledged yet: %d", n)
	}
	k.s(22, ACK, 701, 101, 100, 1000)
	e = k.c(23, ACK, 101, 601, 0, 1000)
	if n := e.Stream.Missing(server); n != 200 {
		t.Errorf("a hole and what follows: %d", n)
	}
	if n := e.Stream.Missing(server ^ 1); n != 0 {
		t.Errorf("the other way: %d", n)
	}
	if s := &e.Detail.Side[server]; s.InFlight != 300 || s.LastData() != 1e18+22e6 {
		t.Errorf("in flight %d, last data at %d", s.InFlight, s.LastData())
	}
	k = newTalk()
	if e = k.s(0, ACK, 1, 1, 5, 9); e.Stream.Missing(e.Dir) != 0 {
		t.Error("nobody acknowledged anything")
	}
}

// TestLeg splits the round trip at the capture point.
func TestLeg(t *testing.T) {
	for _, tt := range []struct {
		s              Stream
		client, server int64
	}{
		{Stream{Client: 0, InitialRTT: 20, HalfRTT: 19}, 1, 19}, {Stream{Client: 1, InitialRTT: 20, HalfRTT: 1}, 19, 1},
		{Stream{Client: -1, InitialRTT: 20, HalfRTT: 1}, 0, 0}, {Stream{Client: 0, InitialRTT: 20}, 0, 0},
	} {
		c := max(int(tt.s.Client), 0)
		if got, other := tt.s.leg(c), tt.s.leg(c^1); got != tt.client || other != tt.server {
			t.Errorf("%+v: %d, %d", tt.s, got, other)
		}
	}
}

// TestAlien: a RST that does not fit the rest of what its sender sent.
func TestAlien(t *testing.T) {
	for _, tt := range []struct {
		what string
		m    ResetMark
		want bool
	}{
		{"the next one", ResetMark{HasID: true, ID: 101, LastID: 100, Counts: true, Stamped: true}, false},
		{"far away, and without stamps", ResetMark{HasID: true, ID: 40000, LastID: 100, Counts: true, Stamped: true, Bare: true}, true},
		{"before, and without stamps", ResetMark{HasID: true, ID: 60000, LastID: 100, Counts: true, Stamped: true, Bare: true}, true},
		{"far away, with stamps", ResetMark{HasID: true, ID: 30000, LastID: 100, Counts: true, Stamped: true}, false},
		{"nobody uses stamps", ResetMark{HasID: true, ID: 30000, LastID: 100, Counts: true, Since: 5e8}, true},
		{"nobody uses stamps, long after", ResetMark{HasID: true, ID: 30000, LastID: 100, Counts: true, Since: 5e9}, false},
		{"identifications are random", ResetMark{HasID: true, ID: 30000, LastID: 100, Stamped: true, Bare: true}, false},
		{"no socket any more", ResetMark{HasID: true, ID: 0, LastID: 100, Counts: true, Stamped: true, Bare: true}, false},
		{"IPv6", ResetMark{Counts: true, Stamped: true, Bare: true}, false},
		{"a wrap", ResetMark{HasID: true, ID: 3, LastID: 65530, Counts: true, Stamped: true, Bare: true}, false},
	} {
		if got := tt.m.Alien(); got != tt.want {
			t.Errorf("%s: %v", tt.what, got)
		}
	}
}

// TestSwing: how much successive round trips differ, and how often people would notice.
func TestSwing(t *testing.T) {
	var a Side
	for _, ms := range []int64{20, 21, 40, 39, 12, 12, 21} {
		a.swing(ms*1e6, 1e6, false)
	}
	if a.Jumps != 6 || a.Swing != (1+19+1+27+0+9)*1e6 || a.Leaps != 3 {
		t.Errorf("%d jumps, %d ns in all, %d leaps", a.Jumps, a.Swing, a.Leaps)
	}
}

// TestVain: the ACK of a segment that was sent again tells by its time stamp which of the two
// copies arrived, when all before it was acknowledged.
func TestVain(t *testing.T) {
	echo := func(ecr uint32) []byte {
		b := stamp(900)
		b[8], b[9], b[10], b[11] = byte(ecr>>24), byte(ecr>>16), byte(ecr>>8), byte(ecr)
		return b
	}
	for _, tt := range []struct {
		what        string
		echoed      uint32
		ahead, edge bool // something is sent before it; and that is acknowledged first
		want        uint32
	}{
		{"the first copy", 1000, false, false, 1}, {"the second", 1230, false, false, 0},
		{"the first of two segments", 1000, true, false, 0}, // its time stamp says nothing of the second
		{"after the first was acknowledged", 1000, true, true, 1},
	} {
		k := newTalk().open()
		seq := uint32(101)
		if tt.ahead {
			k.c(21, ACK, seq, 501, 100, 1000, stamp(1000)...)
			seq += 100
		}
		k.c(21.1, ACK, seq, 501, 100, 1000, stamp(1000)...)
		k.c(250, ACK, seq, 501, 100, 1000, stamp(1230)...)
		if tt.edge {
			k.s(251, ACK, 501, seq, 0, 1000, echo(1000)...)
		}
		e := k.s(270, ACK, 501, seq+100, 0, 1000, echo(tt.echoed)...)
		if s := k.side(e, 0); s.Vain != tt.want || s.Resent != 1 {
			t.Errorf("%s: vain %d, resent %d", tt.what, s.Vain, s.Resent)
		}
	}
}

// TestAskBytes counts what a client sends until it is answered.
func TestAskBytes(t *testing.T) {
	k := newTalk().open()
	k.c(21, ACK, 101, 501, 100, 1000)
	e := k.c(22, ACK, 201, 501, 50, 1000)
	if got := e.Detail.Turns.AskBytes; got != 150 {
		t.Errorf("%d bytes", got)
	}
	k.s(45, ACK, 501, 251, 10, 1000)
	e = k.c(50, ACK, 251, 511, 7, 1000)
	if got := e.Detail.Turns.AskBytes; got != 7 {
		t.Errorf("%d bytes of the second request", got)
	}
}

// TestWay: what an end waits for before it acknowledges is no part of the way.
func TestWay(t *testing.T) {
	for _, tt := range []struct {
		rtt     int64
		carried bool
		want    int64
	}{{10e6, false, 10e6}, {40e6, false, 40e6}, {50e6, false, 10e6}, {90e6, false, 90e6}, {10e6, true, 10e6}, {49e6, true, 10e6}, {92e6, true, 40e6}} {
		if got := way(tt.rtt, 10e6, tt.carried); got != tt.want {
			t.Errorf("%+v: %d", tt, got)
		}
	}
}
