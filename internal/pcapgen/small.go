package pcapgen

const (
	conversations = 2000
	servers       = 37
	firstPort     = 20000
)

// conversation is one connection of small. It is closed when it has no sequence numbers.
type conversation struct {
	client, server endpoint
	seq, other     uint32
	opened         bool
	pings          uint16
}

// small draws one exchange after the other; an exchange stands together in the file.
func small(c *capture, size int64) {
	conns := make([]conversation, conversations)
	for i := range conns {
		conns[i].client = endpoint{0x0a100000 + uint32(i) + 1, firstPort}
		conns[i].server = endpoint{0x0a110001 + uint32(i%servers), uint16(7000 + i%11)}
	}
	for !c.full(size) {
		v := &conns[c.int(conversations)]
		// Weights are the shares of packets divided by the packets of an exchange, in halves.
		switch k := c.int(94); {
		case k < 40:
			c.exchange(v)
		case k < 60:
			c.lookup(v.client.addr)
		case k < 88:
			c.metric(v.client.addr)
		case k < 93:
			c.ping(v)
		default:
			c.who(v)
		}
	}
}

// tick moves the time by 1 to 5 microseconds.
func (c *capture) tick() { c.now += int64(1 + c.int(5)) }

func (c *capture) exchange(v *conversation) {
	if !v.opened {
		c.handshake(v)
	}
	req, resp := 10+c.int(120), 10+c.int(124)
	again, last := c.chance(0.002), c.chance(0.004)
	up := segment{from: v.client, to: v.server, seq: v.seq, ack: v.other, flags: psh | ack, n: req}
	c.tcp(up)
	if again {
		c.now += 300
		c.tcp(up)
		c.stats.Resent++
	}
	v.seq += uint32(req)
	c.tick()
	c.tcp(segment{from: v.server, to: v.client, seq: v.other, ack: v.seq, flags: psh | ack, n: resp})
	v.other += uint32(resp)
	c.tick()
	c.tcp(segment{from: v.client, to: v.server, seq: v.seq, ack: v.other, flags: ack})
	c.tick()
	if last {
		c.close(v)
	}
}

func (c *capture) handshake(v *conversation) {
	v.seq, v.other, v.opened = uint32(c.next()), uint32(c.next()), true
	c.stats.Connections++
	c.tcp(segment{from: v.client, to: v.server, seq: v.seq, flags: syn})
	v.seq++
	c.tick()
	c.tcp(segment{from: v.server, to: v.client, seq: v.other, ack: v.seq, flags: syn | ack})
	v.other++
	c.tick()
	c.tcp(segment{from: v.client, to: v.server, seq: v.seq, ack: v.other, flags: ack})
	c.tick()
}

// close ends the connection; the next exchange opens it on another port.
func (c *capture) close(v *conversation) {
	c.tcp(segment{from: v.client, to: v.server, seq: v.seq, ack: v.other, flags: fin | ack})
	c.tick()
	c.tcp(segment{from: v.server, to: v.client, seq: v.other, ack: v.seq + 1, flags: fin | ack})
	c.tick()
	c.tcp(segment{from: v.client, to: v.server, seq: v.seq + 1, ack: v.other + 1, flags: ack})
	c.tick()
	v.opened = false
	v.client.port++
	if v.client.port == 0 {
		v.client.port = firstPort
	}
}

// lookup asks for a name: 1 % unanswered, 3 % NXDOMAIN, 0.5 % SERVFAIL.
func (c *capture) lookup(client uint32) {
	from := endpoint{client, uint16(32768 + c.int(28000))}
	id, i, luck := uint16(c.next()), c.int(nameCount), c.int(1000)
	c.query(from, id, i)
	c.tick()
	code := uint16(noError)
	switch {
	case luck < 10:
		c.stats.QueriesUnanswered++
		return
	case luck < 40:
		c.stats.NXDomain++
		code = nxDomain
	case luck < 45:
		c.stats.ServFail++
		code = servFail
	}
	c.answer(from, id, i, code)
	c.tick()
}

// metric is a datagram that nobody answers.
func (c *capture) metric(client uint32) {
	n := 22 + c.int(136)
	b := c.udp(endpoint{client, 8125}, endpoint{0x0a120001, 8125}, n)
	c.text.put(b, uint32(n))
	c.seal(n)
	c.tick()
}

// ping is an echo request and its reply, which 0.5 % lack.
func (c *capture) ping(v *conversation) {
	v.pings++
	id, n := uint16(v.client.addr), c.int(113)
	c.echo(8, v.client.addr, v.server.addr, id, v.pings, n)
	c.stats.Echoes++
	c.tick()
	if c.chance(0.005) {
		c.stats.EchoesUnanswered++
		return
	}
	c.echo(0, v.server.addr, v.client.addr, id, v.pings, n)
	c.tick()
}

// who is an ARP request and its reply.
func (c *capture) who(v *conversation) {
	c.arp(1, v.client.addr, v.server.addr)
	c.tick()
	c.arp(2, v.server.addr, v.client.addr)
	c.tick()
}
