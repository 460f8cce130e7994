package pcapgen

import "encoding/binary"

// Response codes.
const (
	noError  = 0
	servFail = 2
	nxDomain = 3
)

const (
	nameCount = 5000
	queryLen  = 12 + 22 + 4
	answerLen = queryLen + 16
)

// resolver answers every query.
var resolver = endpoint{0x0a000035, 53}

// query writes a query for the address of name number i.
func (c *capture) query(from endpoint, id uint16, i int) {
	c.stats.Queries++
	b := c.udp(from, resolver, queryLen)
	question(b, id, 0x0100, i)
	c.seal(queryLen)
}

// answer writes the response to it: one address, or none when code says no.
func (c *capture) answer(to endpoint, id uint16, i int, code uint16) {
	n := queryLen
	if code == noError {
		n = answerLen
	}
	b := c.udp(resolver, to, n)
	question(b, id, 0x8180|code, i)
	if code == noError {
		binary.BigEndian.PutUint16(b[6:], 1)
		r := b[queryLen:]
		binary.BigEndian.PutUint32(r, 0xc00c0001) // the name at 12, A
		binary.BigEndian.PutUint32(r[4:], 0x00010000)
		binary.BigEndian.PutUint32(r[8:], 60<<16|4) // TTL 60, four bytes
		binary.BigEndian.PutUint32(r[12:], 0x0a140000|uint32(i))
	}
	c.seal(n)
}

// question writes header and question: svc-1234.example.com, A, IN.
func question(b []byte, id, flags uint16, i int) {
	binary.BigEndian.PutUint32(b, uint32(id)<<16|uint32(flags))
	binary.BigEndian.PutUint32(b[4:], 1<<16)
	binary.BigEndian.PutUint32(b[8:], 0)
	copy(b[12:], "\x08svc-0000\x07example\x03com\x00")
	for at := 20; i > 0; at-- {
		b[at] = byte('0' + i%10)
		i /= 10
	}
	binary.BigEndian.PutUint32(b[34:], 1<<16|1)
}
