package main

import (
	"encoding/binary"
	"io"
	"net"
	"strings"
	"sync"
	"time"
)

// brokenName is the name that does not resolve; healthyZone is where every other name lives.
const (
	brokenName  = "inventory.shop.example.com"
	healthyZone = "example.com"
)

// Response codes and types of RFC 1035.
const (
	rcodeOK       = 0
	rcodeFormat   = 1
	rcodeServFail = 2
	rcodeNXDomain = 3
	typeA         = 1
)

// answerDNS is the response to a query (RFC 1035, section 4): SERVFAIL for the broken name, an
// address for names in the healthy zone, NXDOMAIN for the rest. What is not a query gets nil.
func answerDNS(query []byte) []byte {
	if len(query) < 12 || query[2]&0x80 != 0 || binary.BigEndian.Uint16(query[4:]) != 1 {
		return nil
	}
	name, end, ok := readName(query, 12)
	if !ok || end+4 > len(query) {
		return dnsReply(query[:12], rcodeFormat, nil)
	}
	kind := binary.BigEndian.Uint16(query[end:])
	question := query[12 : end+4]
	switch lower := strings.ToLower(name); {
	case lower == brokenName:
		return append(dnsReply(query[:12], rcodeServFail, question), question...)
	case lower != healthyZone && !strings.HasSuffix(lower, "."+healthyZone):
		return append(dnsReply(query[:12], rcodeNXDomain, question), question...)
	case kind != typeA:
		return append(dnsReply(query[:12], rcodeOK, question), question...)
	}
	out := append(dnsReply(query[:12], rcodeOK, question), question...)
	out[7] = 1                                  // one answer
	out = append(out, 0xC0, 12, 0, typeA, 0, 1) // the question's name, A, IN
	return append(out, 0, 0, 0, 60, 0, 4, 127, 0, 0, 1)
}

// dnsReply is the header of a response: recursion available, the question count as it is sent.
func dnsReply(header []byte, rcode byte, question []byte) []byte {
	out := make([]byte, 12, 64)
	copy(out, header[:2])
	out[2] = 0x80 | header[2]&0x01
	out[3] = 0x80 | rcode
	if question != nil {
		out[5] = 1
	}
	return out
}

// readName reads an uncompressed name; end is the offset behind it.
func readName(b []byte, at int) (name string, end int, ok bool) {
	var labels []string
	for at < len(b) {
		n := int(b[at])
		at++
		if n == 0 {
			return strings.Join(labels, "."), at, true
		}
		if n > 63 || at+n > len(b) {
			break
		}
		labels = append(labels, string(b[at:at+n]))
		at += n
	}
	return "", 0, false
}

func serveUDP(pc net.PacketConn) {
	buf := make([]byte, 4096)
	for {
		n, from, err := pc.ReadFrom(buf)
		if err != nil {
			return
		}
		if out := answerDNS(buf[:n]); out != nil {
			_, _ = pc.WriteTo(out, from) // as unreliable as UDP is
		}
	}
}

func serveTCP(l net.Listener) {
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		wg.Add(1)
		go func() {
			defer wg.Done()
			defer c.Close()
			_ = c.SetDeadline(time.Now().Add(5 * time.Second))
			answerStream(c)
		}()
	}
}

// answerStream answers one length-prefixed query (RFC 1035, section 4.2.2).
func answerStream(c io.ReadWriter) {
	var size [2]byte
	if _, err := io.ReadFull(c, size[:]); err != nil {
		return
	}
	query := make([]byte, binary.BigEndian.Uint16(size[:]))
	if _, err := io.ReadFull(c, query); err != nil {
		return
	}
	if out := answerDNS(query); out != nil {
		_, _ = c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(out))), out...)) // the client may be gone
	}
}
