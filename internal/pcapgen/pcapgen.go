// Package pcapgen writes large packet captures for benchmarks: the same options give the same
// bytes on every machine, frames are valid down to their checksums, and the faults that are planted
// are counted, so that a reader's answer can be checked as well as timed.
//
// A capture is classic little-endian pcap with microseconds, Ethernet, snap length 262144; it
// begins at 2025-01-01 00:00:00 UTC. IPv4 only, DF set, TTL 64, the IP ID counts the IPv4 packets of
// the file. SYN and SYN-ACK carry MSS 1460, SACK permitted, timestamps and window scale 7, duplicate
// ACKs one SACK block, everything else timestamps. Payload is printable and says nothing.
//
// Profiles:
//
//   - bulk: eight transfers at about 1 Gbit/s in full-size segments, with loss and reordering
//   - small: frames of 42 to 200 bytes, mostly TCP exchanges on 2,000 connections, DNS, other UDP,
//     ICMP, ARP
//   - flows: short sessions (DNS, handshake, a few requests, FIN), about 12,000 open at a time
//
// Files are streamed: memory does not grow with their size.
package pcapgen

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
)

// ErrProfile says that a profile is not one of Profiles.
var ErrProfile = errors.New("no such profile")

// Profile is a mix of traffic.
type Profile struct {
	// Name is what a caller asks for.
	Name string
	// Seed is the one that Write uses when the options have none.
	Seed uint64
	// About is one line for people.
	About string

	write func(*capture, int64)
}

// Profiles lists what there is.
func Profiles() []Profile {
	return []Profile{
		{"bulk", 0x1001, "eight transfers at about 1 Gbit/s; 0.1 % of segments lost, 0.05 % late", bulk},
		{"flows", 0x3003, "short sessions (DNS, TCP, 1 to 6 requests), about 12,000 open at a time; 1 % unanswered, 1 % refused", flows},
		{"small", 0x2002, "frames of 42 to 200 bytes: 60 % TCP on 2,000 connections, 20 % DNS, 14 % other UDP, 5 % ICMP, 1 % ARP", small},
	}
}

// Options say what to write.
type Options struct {
	// Profile is the name of one.
	Profile string
	// Size is the size of the file in bytes; the capture ends with the first exchange that reaches
	// it, so that a file is longer by less than 64 KiB.
	Size int64
	// Seed makes another capture of the same kind; 0 means the profile's own.
	Seed uint64
}

// Stats count what was written, by what a reader of the capture should see.
type Stats struct {
	// Packets and Bytes are those of the file, its headers included.
	Packets, Bytes int64
	// TCP, UDP, ICMP and ARP are frames.
	TCP, UDP, ICMP, ARP int64
	// Connections are pairs of addresses and ports with a SYN.
	Connections int64
	// DuplicateACKs, Lost (segments absent from the file, sent again later), Late (segments that the
	// next one overtook) and Resent (segments twice in the file) are TCP faults.
	DuplicateACKs, Lost, Late, Resent int64
	// SYNUnanswered and Refused are connections without a handshake.
	SYNUnanswered, Refused int64
	// Queries, and those of them without an answer or with one that says no.
	Queries, QueriesUnanswered, NXDomain, ServFail int64
	// Echoes are echo requests, and those without a reply.
	Echoes, EchoesUnanswered int64
}

// Write writes a capture to w.
func Write(w io.Writer, o Options) (Stats, error) {
	var names []string
	for _, p := range Profiles() {
		if p.Name != o.Profile {
			names = append(names, p.Name)
			continue
		}
		if o.Seed == 0 {
			o.Seed = p.Seed
		}
		c := newCapture(w, o.Seed)
		p.write(c, o.Size)
		c.flush()
		c.stats.Bytes = c.total
		if c.err != nil {
			return c.stats, fmt.Errorf("writing a capture of profile %s: %w", p.Name, c.err)
		}
		return c.stats, nil
	}
	return Stats{}, fmt.Errorf("%w: %q, have %s", ErrProfile, o.Profile, strings.Join(names, ", "))
}

const (
	fileHeader   = 24
	recordHeader = 16
	bufferSize   = 1 << 20
	snapLen      = 262144
	firstSecond  = 1735689600 // 2025-01-01 00:00:00 UTC
)

// capture is a file under way. now, in microseconds since the first packet, is the time of the next
// frame; profiles move it. After an error everything goes on without effect.
type capture struct {
	rng
	w     io.Writer
	err   error
	buf   []byte
	total int64 // bytes of the file so far, buffered ones included
	now   int64
	id    uint16 // of the last IPv4 packet
	stats Stats
	text  payload
}

func newCapture(w io.Writer, seed uint64) *capture {
	c := &capture{rng: rng{seed}, w: w, buf: make([]byte, 0, bufferSize), text: newPayload()}
	h := c.reserve(fileHeader)
	binary.LittleEndian.PutUint32(h, 0xa1b2c3d4)
	binary.LittleEndian.PutUint16(h[4:], 2)
	binary.LittleEndian.PutUint16(h[6:], 4)
	clear(h[8:16])
	binary.LittleEndian.PutUint32(h[16:], snapLen)
	binary.LittleEndian.PutUint32(h[20:], 1) // Ethernet
	return c
}

// reserve returns room for n bytes at the end of the file. The room holds old bytes.
func (c *capture) reserve(n int) []byte {
	if len(c.buf)+n > cap(c.buf) {
		c.flush()
	}
	c.buf = c.buf[:len(c.buf)+n]
	c.total += int64(n)
	return c.buf[len(c.buf)-n:]
}

func (c *capture) flush() {
	if c.err == nil {
		_, c.err = c.w.Write(c.buf)
	}
	c.buf = c.buf[:0]
}

// full reports whether the file has reached its size, or writing makes no sense any more.
func (c *capture) full(size int64) bool { return c.total >= size || c.err != nil }

// frame returns room for a frame of n bytes at the present time.
func (c *capture) frame(n int) []byte {
	r := c.reserve(recordHeader + n)
	sec := c.now / 1e6
	binary.LittleEndian.PutUint32(r, uint32(firstSecond+sec))
	binary.LittleEndian.PutUint32(r[4:], uint32(c.now-sec*1e6))
	binary.LittleEndian.PutUint32(r[8:], uint32(n))
	binary.LittleEndian.PutUint32(r[12:], uint32(n))
	c.stats.Packets++
	return r[recordHeader:]
}

// rng is xorshift64*; its state is never zero.
type rng struct{ x uint64 }

func (r *rng) next() uint64 {
	r.x ^= r.x >> 12
	r.x ^= r.x << 25
	r.x ^= r.x >> 27
	return r.x * 0x2545F4914F6CDD1D
}

// int returns a number from 0 to n-1.
func (r *rng) int(n int) int { return int((r.next() >> 33) % uint64(n)) }

// chance is true with probability p.
func (r *rng) chance(p float64) bool { return float64(r.next()>>11)/(1<<53) < p }
