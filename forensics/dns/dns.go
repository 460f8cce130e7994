// Package dns pairs queries with answers, over UDP and TCP, as tshark does: by
// conversation and ID, the newest transaction first. Names are counted, never what
// they resolve to.
//
// tshark calls a query a retransmission only within one conversation. Resolvers
// change their source port on a retry, so this package also recognises a [Retry]:
// the same client, server, name and type again while the first is unanswered.
package dns

import (
	"cmp"
	"encoding/binary"
	"hash/maphash"
	"slices"
	"strings"

	"ghostbot/forensics/flow"
	"ghostbot/forensics/stat"
)

const (
	resend     = int64(5e9) // ns within which an unanswered query with the same ID is a resend
	maxOpen    = 1 << 16    // transactions that are remembered
	maxNames   = 20_000
	maxServers = 4096
	maxSlow    = 256
	maxRetry   = 1 << 14
	maxAgain   = 1000
	hintBits   = 13
)

// Query is one transaction.
type Query struct {
	Key       flow.Key
	Dir       uint8 // who asks: 0 is end A
	ID        uint16
	Type      uint16
	TCP       bool
	Answered  bool
	Retried   bool // asked again, in this conversation or another
	Retry     bool // asks again what an earlier query asked
	Recovered bool // was answered when it was asked again; complete after Finish
	Name      uint32
	Frame     uint32
	Answer    uint32 // frame
	Time      int64
	Latency   int64
	Resent    uint32 // frame of the last resend; 0: none
	ResentAt  int64
	Empty     bool // the answer was NOERROR without records
	Rcode     uint8
	Truncated bool
}

// Client is the end that asks.
func (q *Query) Client() flow.Addr { a, _ := q.Key.End(int(q.Dir)); return a }

// Server is the end that is asked.
func (q *Query) Server() flow.Addr { a, _ := q.Key.End(int(q.Dir ^ 1)); return a }

// Server is what one server was asked and answered.
type Server struct {
	Addr       flow.Addr
	Queries    uint64
	Answers    uint64
	Unanswered uint64
	Retries    uint64
	Rcodes     [16]uint64
	Empty      uint64 // NOERROR without answers, authority or not
	Truncated  uint64
	Late       uint64 // answers that came after the client had asked again
	Repaired   uint64 // of these, the answers to the repetition: the first query or its answer was lost; complete after Finish
	Void       uint64 // of Empty, those about names that have no address of the other kind either; complete after Finish
	again      []again
	Latency    stat.Dist
	Evidence   map[string][]uint32 // first frames of each kind of trouble
}

// Name counts one name.
type Name struct {
	Text  string
	Count uint64
	NX    uint64
	Fail  uint64
	Full  uint64 // answers with records
	Odd   uint64 // queries of types that carry free bytes: TXT, NULL, KEY, private ones
	Bytes uint64 // of the answers' messages
	First uint32 // frame
}

// Slow is an answer that took long.
type Slow struct {
	Latency int64
	Name    string
	Frame   uint32
}

// Log is everything seen of DNS.
type Log struct {
	Queries, Responses uint64
	Unanswered         uint64 // complete after Finish
	Resends            uint64 // queries that tshark calls retransmitted
	Retries            uint64
	Unsolicited        uint64
	Truncated          uint64
	Empty              uint64
	Rcodes             [16]uint64
	Types              map[uint16]uint64 // complete after Finish
	Latency            stat.Dist
	Slowest            []Slow
	Names              []Name
	Servers            map[flow.Addr]*Server
	Forgotten          uint64
	Open               []Query // what was not answered, complete after Finish
	names              map[string]uint32
	ring               []Query
	next               uint32
	byID               flow.Index // by the hash of conversation and ID; index + 1
	asked              flow.Index // by the hash of a question; index + 1
	message            message
	frame              uint32 // of the message
	size               int    // of the message
	last               *Server
	seed               uint64
	hash               uint64                // of the message's transaction
	hints              [1 << hintBits]uint32 // see hint
	types              [256]uint64           // of Types
	look               uint32                // queries since the last one was stored, in Ahead
	streams            map[flow.Key]*[2][]byte
}

// transaction hashes a conversation and an ID. Whoever finds something by it
// compares the rest.
func (l *Log) transaction(k *flow.Key, id uint16) uint64 {
	return k.Hash(l.seed+uint64(id)<<1) ^ uint64(id)
}

// find returns the newest transaction of a conversation and ID.
func (l *Log) find(k *flow.Key, id uint16) *Query {
	if i := l.byID.Get(l.hash); i != 0 {
		if q := &l.ring[i-1]; q.ID == id && q.Key == *k {
			return q
		}
	}
	return nil
}

// question hashes what makes two queries ask the same.
func (l *Log) question(client, server flow.Addr, name uint32, typ uint16) uint64 {
	k := flow.Key{A: client, B: server, Ports: uint64(name)<<16 | uint64(typ)}
	return k.Hash(l.seed)
}

// hint is where the number of the name that a message asks for may stand, plus one: whoever
// uses it compares the text. It saves most searches of the map, and tells what will be needed
// before the message is read.
func (l *Log) hint(b []byte) *uint32 {
	var h uint64
	for i := 12; i+8 <= len(b) && i <= 12+2*8; i += 8 {
		h = (h ^ binary.LittleEndian.Uint64(b[i:])) * 0x9e3779b97f4a7c15
		h ^= h >> 32
	}
	return &l.hints[h>>(32-hintBits)&(1<<hintBits-1)]
}

type message struct {
	id, flags       uint16
	qd, an, ns, add uint16
	typ             uint16
	name            []byte
	buf             [256]byte
}

// parse reads the header and the first question.
func (m *message) parse(b []byte) bool {
	if len(b) < 12 {
		return false
	}
	u := binary.BigEndian.Uint16
	m.id, m.flags, m.qd, m.an, m.ns, m.add = u(b), u(b[2:]), u(b[4:]), u(b[6:]), u(b[8:]), u(b[10:])
	m.typ, m.name = 0, m.buf[:0]
	if m.qd == 0 {
		return true
	}
	rest := m.readName(b[12:])
	if len(rest) >= 2 {
		m.typ = u(rest)
	}
	return true
}

// readName reads an uncompressed name in lower case, with dots; what is no letter,
// digit or usual sign becomes a question mark, as names reach reports.
func (m *message) readName(b []byte) []byte {
	for len(b) > 0 {
		n := int(b[0])
		if n == 0 {
			return b[1:]
		}
		if n > 63 || n >= len(b) || len(m.name)+n+1 > len(m.buf) {
			return nil
		}
		if len(m.name) > 0 {
			m.name = append(m.name, '.')
		}
		for _, c := range b[1 : n+1] {
			switch {
			case c >= 'A' && c <= 'Z':
				c += 'a' - 'A'
			case c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '_':
			default:
				c = '?'
			}
			m.name = append(m.name, c)
		}
		b = b[n+1:]
	}
	return nil
}

// New makes a log.
func New() *Log {
	return &Log{seed: maphash.Bytes(maphash.MakeSeed(), nil), Types: map[uint16]uint64{}, Servers: map[flow.Addr]*Server{}, names: map[string]uint32{},
		streams: map[flow.Key]*[2][]byte{}, Latency: stat.Dist{Limit: 1 << 15}}
}

// UDP takes the payload of a datagram from or to port 53.
func (l *Log) UDP(src, dst flow.Addr, sport, dport uint16, payload []byte, frame uint32, now int64) {
	var k flow.Key
	reverse := k.Set(&src, &dst, sport, dport, 17)
	l.add(&k, dir(reverse), payload, frame, now, false)
}

// Ahead reads what a datagram is about to need. It changes nothing that counts; what it
// returns only keeps the reading from being left out.
func (l *Log) Ahead(src, dst flow.Addr, sport, dport uint16, payload []byte) (sum uint32) {
	if len(payload) < 12 {
		return 0
	}
	var k flow.Key
	k.Set(&src, &dst, sport, dport, 17)
	if i := l.byID.Get(l.transaction(&k, binary.BigEndian.Uint16(payload))); i != 0 {
		q := &l.ring[i-1]
		sum = q.Frame + uint32(q.Key.Ports)
	}
	if payload[2]&0x80 != 0 { // an answer
		return sum
	}
	if n := *l.hint(payload); n != 0 {
		name := &l.Names[n-1]
		sum += uint32(name.Count)
		if at := 12 + len(name.Text) + 2; at+2 <= len(payload) && len(name.Text) > 0 {
			sum += uint32(name.Text[0])
			if i := l.asked.Get(l.question(src, dst, n-1, binary.BigEndian.Uint16(payload[at:]))); i != 0 {
				sum += l.ring[i-1].Frame
			}
		}
	}
	if len(l.ring) == maxOpen { // what it takes the place of
		old := &l.ring[(l.next+l.look)%maxOpen]
		l.look++
		sum += l.byID.Get(l.transaction(&old.Key, old.ID))
	}
	return sum
}

func dir(reverse bool) uint8 {
	if reverse {
		return 1
	}
	return 0
}

const (
	maxStreams = 4096
	maxMessage = 1 << 16
)

// TCP takes the payload of a segment from or to port 53, in order. Messages have a
// length in front and may span segments.
func (l *Log) TCP(k *flow.Key, d int, payload []byte, frame uint32, now int64) {
	s := l.streams[*k]
	if s == nil {
		if len(l.streams) >= maxStreams {
			clear(l.streams)
		}
		s = &[2][]byte{}
		l.streams[*k] = s
	}
	b := payload
	if len(s[d]) > 0 {
		b = append(s[d], payload...)
	}
	for len(b) >= 2 {
		n := int(binary.BigEndian.Uint16(b))
		if len(b) < 2+n {
			break
		}
		l.add(k, uint8(d), b[2:2+n], frame, now, true)
		b = b[2+n:]
	}
	s[d] = append([]byte(nil), b[:min(len(b), maxMessage)]...)
}

func (l *Log) add(k *flow.Key, d uint8, b []byte, frame uint32, now int64, tcp bool) {
	if !l.message.parse(b) {
		return
	}
	l.frame, l.size = frame, len(b)
	l.hash = l.transaction(k, l.message.id)
	if l.message.flags&0x8000 == 0 {
		l.query(k, d, l.hint(b), now, tcp)
	} else {
		l.response(k, d, frame, now)
	}
}

// asks is the number of the message's name, which a hint may know.
func (l *Log) asks(hint *uint32) uint32 {
	if i := *hint; i != 0 && l.Names[i-1].Text == string(l.message.name) {
		return i - 1
	}
	i := l.name(l.message.name)
	if int(i) < len(l.Names) {
		*hint = i + 1
	}
	return i
}

func (l *Log) name(b []byte) uint32 {
	if i, ok := l.names[string(b)]; ok {
		return i
	}
	if len(l.Names) >= maxNames {
		return uint32(len(l.Names)) // names beyond the budget are not counted one by one
	}
	i := uint32(len(l.Names))
	l.Names = append(l.Names, Name{Text: string(b), First: l.frame})
	l.names[l.Names[i].Text] = i
	return i
}

// nameOf is the number of the message's name, which mostly is that of its query.
func (l *Log) nameOf(q *Query) uint32 {
	if q != nil && int(q.Name) < len(l.Names) && l.Names[q.Name].Text == string(l.message.name) {
		return q.Name
	}
	return l.name(l.message.name)
}

// Text is the name with this number.
func (l *Log) Text(i uint32) string {
	if int(i) < len(l.Names) {
		return l.Names[i].Text
	}
	return ""
}

func (l *Log) server(a flow.Addr) *Server {
	if l.last != nil && l.last.Addr == a {
		return l.last
	}
	s := l.Servers[a]
	if s == nil {
		if len(l.Servers) >= maxServers {
			return &Server{Addr: a, Evidence: map[string][]uint32{}}
		}
		s = &Server{Addr: a, Evidence: map[string][]uint32{}, Latency: stat.Dist{Limit: 4096}}
		l.Servers[a] = s
	}
	l.last = s
	return s
}

// Note keeps the first frames of one kind of trouble.
func (s *Server) Note(kind string, frame uint32) {
	if f := s.Evidence[kind]; len(f) < 5 {
		s.Evidence[kind] = append(f, frame)
	}
}

func (l *Log) query(k *flow.Key, d uint8, hint *uint32, now int64, tcp bool) {
	m, frame := &l.message, l.frame
	l.Queries++
	if int(m.typ) < len(l.types) {
		l.types[m.typ]++
	} else {
		l.Types[m.typ]++
	}
	if q := l.find(k, m.id); q != nil && !q.Answered && uint64(now)-uint64(q.Time) < uint64(resend) {
		l.Resends++
		q.Resent, q.ResentAt, q.Retried = frame, now, true
		l.server(q.Server()).Retries++
		l.Retries++
		return
	}
	q := Query{Key: *k, Dir: d, ID: m.id, Type: m.typ, TCP: tcp, Name: l.asks(hint), Frame: frame, Time: now}
	s := l.server(q.Server())
	s.Queries++
	if int(q.Name) < len(l.Names) {
		n := &l.Names[q.Name]
		n.Count++
		if m.typ == 16 || m.typ == 10 || m.typ == 25 || m.typ >= 65280 && m.typ < 65535 {
			n.Odd++
		}
	}
	asks := l.question(q.Client(), s.Addr, q.Name, q.Type)
	l.retry(&q, s, asks, now)
	i := l.store(&q)
	l.byID.Put(l.hash, i+1)
	if l.asked.Len() >= maxRetry {
		l.asked.Clear()
	}
	l.asked.Put(asks, i+1)
}

// retry recognises a question that is asked again from another port.
func (l *Log) retry(q *Query, s *Server, asks uint64, now int64) {
	i := l.asked.Get(asks)
	if i == 0 {
		return
	}
	before := &l.ring[i-1]
	if !before.Answered && before.Name == q.Name && before.Type == q.Type && before.Client() == q.Client() && now-before.Time < 30e9 {
		before.Retried, q.Retry = true, true
		l.Retries++
		s.Retries++
	}
}

// store keeps a query in the ring and gives up the one that was there.
func (l *Log) store(q *Query) uint32 {
	l.look = 0
	if len(l.ring) < maxOpen {
		if len(l.ring) == cap(l.ring) { // by two, as append grows large slices in small steps
			l.ring = append(make([]Query, 0, min(max(64, 2*cap(l.ring)), maxOpen)), l.ring...)
		}
		l.ring = append(l.ring, *q)
		return uint32(len(l.ring) - 1)
	}
	i := l.next
	l.next = (l.next + 1) % maxOpen
	old := &l.ring[i]
	l.retire(old)
	if id := l.transaction(&old.Key, old.ID); l.byID.Get(id) == i+1 {
		l.byID.Delete(id)
	}
	if !old.Answered && q.Time-old.Time < 30e9 {
		l.Forgotten++
	}
	*old = *q
	return i
}

// retire counts a transaction that will not be looked at again.
func (l *Log) retire(q *Query) {
	if q.Answered {
		if q.Empty && q.Type != 0 && !l.otherKind(q) { // of a question that was cut, nothing is known
			s := l.server(q.Server())
			s.Void++
			s.Note("void", q.Answer)
		}
		return
	}
	l.Unanswered++
	s := l.server(q.Server())
	s.Unanswered++
	s.Note("unanswered", q.Frame)
	if len(l.Open) < 1000 {
		l.Open = append(l.Open, *q)
	}
}

func (l *Log) response(k *flow.Key, d uint8, frame uint32, now int64) {
	m := &l.message
	rcode := uint8(m.flags & 15)
	l.Responses++
	l.Rcodes[rcode]++
	addr, _ := k.End(int(d))
	s := l.server(addr)
	s.Rcodes[rcode]++
	s.Answers++
	if m.flags&0x0200 != 0 {
		l.Truncated++
		s.Truncated++
		s.Note("truncated", frame)
	} else if rcode == 0 && m.an == 0 && m.flags&0x7800 == 0 {
		l.Empty++
		s.Empty++
		s.Note("empty", frame)
	}
	q := l.find(k, m.id)
	n := l.nameOf(q)
	if rcode != 0 {
		s.Note(RcodeName(rcode), frame)
	}
	if int(n) < len(l.Names) {
		l.Names[n].Bytes += uint64(l.size)
		switch rcode {
		case 3:
			l.Names[n].NX++
		case 2:
			l.Names[n].Fail++
		}
	}
	if q == nil {
		l.Unsolicited++
		return
	}
	if q.Answered {
		return
	}
	q.Answered, q.Answer, q.Latency, q.Rcode, q.Truncated = true, frame, now-q.Time, rcode, m.flags&0x0200 != 0
	q.Empty = rcode == 0 && m.an == 0 && m.flags&0x7a00 == 0
	if rcode == 0 && m.an > 0 && int(n) < len(l.Names) {
		l.Names[n].Full++
	}
	if q.Retried {
		if q.Resent > 0 && len(s.again) < maxAgain {
			s.again = append(s.again, again{now - q.ResentAt, q.Resent})
		}
		s.Late++
		s.Note("late", frame)
	}
	l.Latency.Add(q.Latency)
	s.Latency.Add(q.Latency)
	l.slow(q, n)
}

// slow keeps the slowest answers.
func (l *Log) slow(q *Query, name uint32) {
	if len(l.Slowest) == maxSlow && q.Latency <= l.Slowest[maxSlow-1].Latency {
		return
	}
	e := Slow{q.Latency, l.Text(name), q.Answer}
	i, _ := slices.BinarySearchFunc(l.Slowest, e, func(a, b Slow) int {
		if a.Latency != b.Latency {
			return int(min(max(b.Latency-a.Latency, -1), 1))
		}
		return int(a.Frame) - int(b.Frame)
	})
	l.Slowest = slices.Insert(l.Slowest, i, e)
	l.Slowest = l.Slowest[:min(len(l.Slowest), maxSlow)]
}

// again is an answer to a query that was repeated in the same conversation.
type again struct {
	since int64  // ns after the last repetition
	frame uint32 // of the repetition
}

// otherKind reports a name that has records, asked for an address of a kind that it does
// not have: dual-stack clients ask for all kinds, and most hosts have one.
func (l *Log) otherKind(q *Query) bool {
	return (q.Type == 1 || q.Type == 28 || q.Type == 64 || q.Type == 65) && int(q.Name) < len(l.Names) && l.Names[q.Name].Full > 0
}

// repaired tells answers to a repetition from late answers to the first query: they take as
// long after the repetition as the server's answers usually do.
func (s *Server) repaired() {
	prompt := s.Latency.N - int64(s.Late) // what was asked once is answered first
	if prompt <= 0 || prompt < int64(len(s.again)) {
		return
	}
	usual := 2*s.Latency.At(prompt*9/10) + 20e6
	for _, a := range s.again {
		if a.since <= usual {
			s.Repaired++
			s.Note("repaired", a.frame)
		}
	}
}

// Finish counts what stayed unanswered.
func (l *Log) Finish() {
	for t, n := range l.types {
		if n > 0 {
			l.Types[uint16(t)] += n
		}
	}
	clear(l.types[:])
	for _, s := range l.Servers {
		s.repaired()
	}
	for i := range l.ring {
		l.retire(&l.ring[i])
	}
	l.recover()
	slices.SortFunc(l.Open, func(a, b Query) int { return int(a.Frame) - int(b.Frame) })
}

// recover marks the unanswered queries whose question was answered when it was
// asked again.
func (l *Log) recover() {
	type ask struct {
		client flow.Addr
		name   uint32
		typ    uint16
	}
	last := map[ask]int64{} // when it was asked with success
	for i := range l.Open {
		q := &l.Open[i]
		last[ask{q.Client(), q.Name, q.Type}] = 0
	}
	if len(last) == 0 {
		return
	}
	for i := range l.ring {
		q := &l.ring[i]
		k := ask{q.Client(), q.Name, q.Type}
		if at, ok := last[k]; ok && q.Answered && q.Time > at {
			last[k] = q.Time
		}
	}
	for i := range l.Open {
		q := &l.Open[i]
		at := last[ask{q.Client(), q.Name, q.Type}]
		q.Recovered = at > q.Time && at-q.Time < 60e9
	}
}

// Top returns the names with the largest figure, at most n.
func (l *Log) Top(n int, figure func(*Name) uint64) []Name {
	order := func(a, b *Name) int {
		return cmp.Or(cmp.Compare(figure(b), figure(a)), strings.Compare(a.Text, b.Text))
	}
	var top []*Name
	for i := range l.Names {
		x := &l.Names[i]
		if figure(x) == 0 || len(top) == n && (n == 0 || order(x, top[n-1]) > 0) {
			continue
		}
		at, _ := slices.BinarySearchFunc(top, x, order)
		top = slices.Insert(top[:min(len(top), n-1)], at, x)
	}
	var out []Name
	for _, x := range top {
		out = append(out, *x)
	}
	return out
}
