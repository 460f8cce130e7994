package forensics

import (
	"bytes"
	"context"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
)

// snap cuts the packets of a capture, as a snap length does.
func snap(file []byte, limit int) []byte {
	out := bytes.Clone(file[:24])
	for rest := file[24:]; len(rest) > 0; {
		n := int(binary.LittleEndian.Uint32(rest[8:]))
		head := bytes.Clone(rest[:16])
		binary.LittleEndian.PutUint32(head[8:], uint32(min(n, limit)))
		out = append(append(out, head...), rest[16:16+min(n, limit)]...)
		rest = rest[16+n:]
	}
	return out
}

// parts sends a datagram in fragments of 1,480 bytes, the first one alone when the others are lost.
func (w *world) parts(ms float64, from, to string, proto layers.IPProtocol, lost bool, ls ...gopacket.SerializableLayer) {
	b := gopacket.NewSerializeBuffer()
	if err := gopacket.SerializeLayers(b, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, ls...); err != nil {
		w.t.Fatal(err)
	}
	e, ip := w.ip(from, to, proto)
	whole := b.Bytes()
	for at := 0; at < len(whole); at += 1480 {
		end := min(at+1480, len(whole))
		part := *ip
		part.Flags, part.FragOffset = 0, uint16(at/8)
		if end < len(whole) {
			part.Flags = layers.IPv4MoreFragments
		}
		if at == 0 || !lost {
			w.frame(ms, e, &part, gopacket.Payload(whole[at:end]))
		}
	}
}

// text asks a name server for a long text, which comes in fragments.
func (w *world) text(ms float64, id uint16, lost bool) {
	q := []layers.DNSQuestion{{Name: []byte("www.example.com"), Type: layers.DNSTypeTXT, Class: layers.DNSClassIN}}
	e, ip := w.ip(client, server, layers.IPProtocolUDP)
	u := &layers.UDP{SrcPort: layers.UDPPort(4000 + id), DstPort: 53}
	if err := u.SetNetworkLayerForChecksum(ip); err != nil {
		w.t.Fatal(err)
	}
	w.frame(ms, e, ip, u, &layers.DNS{ID: id, RD: true, Questions: q})
	_, ip = w.ip(server, client, layers.IPProtocolUDP)
	r := &layers.UDP{SrcPort: 53, DstPort: u.SrcPort}
	if err := r.SetNetworkLayerForChecksum(ip); err != nil {
		w.t.Fatal(err)
	}
	answer := layers.DNSResourceRecord{Name: []byte("www.example.com"), Type: layers.DNSTypeTXT, Class: layers.DNSClassIN}
	for range 12 {
		answer.TXTs = append(answer.TXTs, bytes.Repeat([]byte("t"), 250))
	}
	w.parts(ms+20, server, client, layers.IPProtocolUDP, lost, r, &layers.DNS{ID: id, QR: true, RD: true, Questions: q, Answers: []layers.DNSResourceRecord{answer}})
}

// echo asks for an echo of 3,000 bytes.
func (w *world) echo(ms float64, seq uint16, lost, answered bool) {
	send := func(ms float64, from, to string, typ uint8) {
		w.parts(ms, from, to, layers.IPProtocolICMPv4, lost, &layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(typ, 0), Id: 7, Seq: seq}, gopacket.Payload(strings.Repeat("e", 3000)))
	}
	send(ms, client, server, 8)
	if answered {
		send(ms+20, server, client, 0)
	}
}

// TestFragments: a datagram is there when its fragments cover it on the wire, however little of
// them a snap length leaves. What is read of it is the beginning.
func TestFragments(t *testing.T) {
	for _, tt := range []struct {
		what           string
		lost, answered bool
		code           string
	}{
		{"fragments that arrive", false, true, "healthy"},
		{"fragments of echoes that nobody answers", false, false, "fragments-dropped"},
		{"first fragments alone", true, false, "fragments-dropped"},
	} {
		for _, limit := range []int{65535, 500, 128, 96} {
			w := newWorld(t)
			for i := range 3 {
				at := float64(i) * 100
				w.dns(at, layers.UDPPort(5000+i), "www.example.com", 20, 0, false)
				w.ping(at+25, uint16(i), true, 20)
				w.text(at+30, uint16(i), tt.lost)
				w.echo(at+60, uint16(100+i), tt.lost, tt.answered)
			}
			file := snap(w.file.Bytes(), limit)
			a, err := AnalyzeReader(context.Background(), bytes.NewReader(file), int64(len(file)), "scenario", Options{})
			if err != nil {
				t.Fatal(err)
			}
			f := a.Findings[0]
			if f.Code != tt.code {
				t.Errorf("%s, %d bytes: %s (%s %s)", tt.what, limit, f.Code, f.Summary, f.Detail)
			}
			if cut := tt.code == "healthy" && limit < 65535; cut != strings.Contains(f.Limits, "cut") {
				t.Errorf("%s, %d bytes: limits %q", tt.what, limit, f.Limits)
			}
			answers := uint64(6)
			if tt.lost && limit == 65535 {
				answers = 3 // what is not complete is not read, as tshark does
			}
			if d := a.Facts.DNS; d.Responses != answers || d.Queries != 6 || d.Unanswered != 6-answers {
				t.Errorf("%s, %d bytes: %d queries, %d answers, %d without", tt.what, limit, d.Queries, d.Responses, d.Unanswered)
			}
		}
	}
}
