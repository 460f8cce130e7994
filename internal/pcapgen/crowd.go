package pcapgen

import (
	"fmt"
	"io"
)

// Crowd writes a capture of n connections that are all open when it ends: a handshake, a request,
// its answer, which is never acknowledged. It is what costs a reader most memory for each.
func Crowd(w io.Writer, n int) (Stats, error) {
	c := newCapture(w, 0x4004)
	for i := 0; i < n && c.err == nil; i++ {
		v := conversation{client: endpoint{0x0a200001 + uint32(i&0xffff), uint16(20000 + i>>16)}, server: endpoint{0x0a140001 + uint32(i%254), 8443}}
		c.handshake(&v)
		c.tcp(segment{from: v.client, to: v.server, seq: v.seq, ack: v.other, flags: psh | ack, n: 40})
		c.tick()
		c.tcp(segment{from: v.server, to: v.client, seq: v.other, ack: v.seq + 40, flags: psh | ack, n: 60})
		c.tick()
	}
	c.flush()
	c.stats.Bytes = c.total
	if c.err != nil {
		return c.stats, fmt.Errorf("writing a capture of %d connections: %w", n, c.err)
	}
	return c.stats, nil
}
