package app

import (
	"crypto/x509"
	"encoding/binary"
	"time"

	"ghostbot/forensics/tcp"
)

const (
	recordCipher    = 20
	recordAlert     = 21
	recordHandshake = 22
	recordData      = 23
	maxBuffer       = 32 << 10
)

// Handshake is the visible part of a TLS connection.
type Handshake struct {
	SNI         string
	Offered     uint16 // highest version the client offers
	Version     uint16 // that the server chose
	Cipher      uint16
	Hello       uint32 // frames
	ServerHello uint32
	HelloTime   int64
	ServerTime  int64
	Encrypted   bool // application data was seen
	ClientDone  bool // the client changed its cipher or finished
	NotBefore   time.Time
	NotAfter    time.Time
	CertFrame   uint32
	Alerts      []Alert
	MixedFrame  uint32 // where one side spoke something else
	CertAsked   bool
	Sealed      [2]uint32 // encrypted records of each direction
	Before      uint32    // of these, those of the server before the client's first
	Short       [2]uint32 // frame of the last record, when it is as long as an alert; else 0
	Refusal     uint32    // frame of the server's only record after the handshake, as long as an alert
}

// alertSealed is the length of an encrypted alert in TLS 1.3: two bytes, the type, the tag.
const alertSealed = 19

// sealed counts an encrypted record. What a server says in its alert is not visible;
// that it says nothing else is.
func (s *Session) sealed(e *tcp.Event, n int) {
	h := &s.TLS
	h.Encrypted = true
	d := e.Dir
	if s.client(e) {
		if h.Sealed[d] == 0 {
			h.Before = h.Sealed[d^1]
		}
	} else if h.Sealed[d^1] > 0 {
		h.Refusal = 0
		if n == alertSealed && h.Sealed[d] == h.Before && h.Short[d^1] == 0 {
			h.Refusal = e.Frame
		}
	}
	h.Sealed[d]++
	h.Short[d] = 0
	if n == alertSealed {
		h.Short[d] = e.Frame
	}
}

// Alert is a TLS alert in the clear.
type Alert struct {
	Level, Code uint8
	Dir         uint8
	Frame       uint32
	Stream      uint32
}

// tls follows the records of one direction.
func (l *Log) tls(s *Session, e *tcp.Event, p []byte) {
	r := &s.dir[e.Dir]
	g := e.Segment
	switch {
	case !r.begun:
		r.begun, r.next = true, g.Seq
	case r.lost:
		if Sniff(p) != TLS {
			return
		}
		r.lost, r.buf, r.skip, r.hs, r.next = false, nil, 0, nil, g.Seq
	}
	if d := int32(g.Seq - r.next); d > 0 {
		r.lost = true
		return
	} else if d < 0 {
		if int(-d) >= len(p) {
			return
		}
		p = p[-d:]
	}
	r.next = g.Seq + uint32(g.Len)
	if len(g.Payload) < g.Len {
		r.lost = true // what follows in the record was not captured
		s.begins(e, p)
	}
	if r.skip >= len(p) {
		r.skip -= len(p)
		return
	}
	p, r.skip = p[r.skip:], 0
	if len(r.buf) > 0 {
		p = append(r.buf, p...)
		r.buf = nil
	}
	l.records(s, e, r, p)
}

// begins notes a hello of which no more than the beginning was captured.
func (s *Session) begins(e *tcp.Event, p []byte) {
	switch h := &s.TLS; {
	case len(p) < 6 || p[0] != recordHandshake:
	case p[5] == 1 && h.Hello == 0:
		h.Hello, h.HelloTime = e.Frame, e.Time
	case p[5] == 2 && h.ServerHello == 0:
		h.ServerHello, h.ServerTime = e.Frame, e.Time
	}
}

func (l *Log) records(s *Session, e *tcp.Event, r *reader, p []byte) {
	for len(p) >= 5 {
		typ, n := p[0], int(binary.BigEndian.Uint16(p[3:]))
		if typ < recordCipher || typ > 24 || p[1] != 3 {
			r.lost = true
			return
		}
		if typ == recordData {
			s.sealed(e, n)
			if len(p) < 5+n {
				r.skip, r.cut = 5+n-len(p), e.Frame
				return
			}
			p = p[5+n:]
			continue
		}
		if len(p) < 5+n {
			break
		}
		l.record(s, e, r, typ, p[5:5+n])
		p = p[5+n:]
	}
	if len(p) > maxBuffer {
		r.lost = true
		return
	}
	r.buf = append([]byte(nil), p...)
}

func (l *Log) record(s *Session, e *tcp.Event, r *reader, typ uint8, b []byte) {
	h := &s.TLS
	switch {
	case typ == recordCipher && s.client(e):
		h.ClientDone = true
	case typ == recordAlert && len(b) == 2 && (b[0] == 1 || b[0] == 2):
		a := Alert{b[0], b[1], uint8(e.Dir), e.Frame, s.Stream}
		h.Alerts = append(h.Alerts[:min(len(h.Alerts), evidence)], a)
		if len(l.Alerts) < 1000 {
			l.Alerts = append(l.Alerts, a)
		}
	case typ == recordHandshake && !h.Encrypted:
		if len(r.hs)+len(b) > maxBuffer {
			return
		}
		r.hs = append(r.hs, b...)
		for len(r.hs) >= 4 {
			n := int(r.hs[1])<<16 | int(r.hs[2])<<8 | int(r.hs[3])
			if n > maxBuffer { // encrypted, or not a handshake
				r.hs = nil
				return
			}
			if len(r.hs) < 4+n {
				return
			}
			l.handshake(s, e, r.hs[0], r.hs[4:4+n])
			r.hs = r.hs[4+n:]
		}
	}
}

// client reports whether the sender of a segment opened the TLS connection.
func (s *Session) client(e *tcp.Event) bool {
	return e.Stream.Client >= 0 && int(e.Stream.Client) == e.Dir
}

func (l *Log) handshake(s *Session, e *tcp.Event, typ uint8, b []byte) {
	h := &s.TLS
	switch typ {
	case 1:
		h.Hello, h.HelloTime = e.Frame, e.Time
		if e.Stream.Client < 0 {
			e.Stream.Client = int8(e.Dir)
		}
		h.clientHello(b)
	case 2:
		h.ServerHello, h.ServerTime = e.Frame, e.Time
		h.serverHello(b)
		l.Versions[h.Version]++
	case 11:
		h.certificate(b, e.Frame)
	case 13:
		h.CertAsked = true
	}
}

// take cuts a vector with a length of k bytes off b.
func take(b []byte, k int) (v, rest []byte, ok bool) {
	if len(b) < k {
		return nil, nil, false
	}
	n := 0
	for _, c := range b[:k] {
		n = n<<8 | int(c)
	}
	if len(b) < k+n {
		return nil, nil, false
	}
	return b[k : k+n], b[k+n:], true
}

func (h *Handshake) clientHello(b []byte) {
	if len(b) < 35 {
		return
	}
	h.Offered = binary.BigEndian.Uint16(b)
	_, b, ok := take(b[34:], 1) // session id
	if ok {
		_, b, ok = take(b, 2) // ciphers
	}
	if ok {
		_, b, ok = take(b, 1) // compression
	}
	if !ok {
		return
	}
	extensions(b, func(typ uint16, v []byte) {
		switch {
		case typ == 0 && len(v) >= 5 && v[2] == 0:
			if name, _, ok := take(v[3:], 2); ok {
				h.SNI = clean(name)
			}
		case typ == 43:
			list, _, _ := take(v, 1)
			for ; len(list) >= 2; list = list[2:] {
				if o := binary.BigEndian.Uint16(list); o>>8 == 3 && o > h.Offered { // GREASE is left out
					h.Offered = o
				}
			}
		}
	})
}

func (h *Handshake) serverHello(b []byte) {
	if len(b) < 38 {
		return
	}
	h.Version = binary.BigEndian.Uint16(b)
	_, b, ok := take(b[34:], 1)
	if !ok || len(b) < 3 {
		return
	}
	h.Cipher = binary.BigEndian.Uint16(b)
	extensions(b[3:], func(typ uint16, v []byte) {
		if typ == 43 && len(v) == 2 {
			h.Version = binary.BigEndian.Uint16(v)
		}
	})
}

func extensions(b []byte, f func(typ uint16, v []byte)) {
	list, _, ok := take(b, 2)
	for ok && len(list) >= 4 {
		typ := binary.BigEndian.Uint16(list)
		var v []byte
		if v, list, ok = take(list[2:], 2); ok {
			f(typ, v)
		}
	}
}

// clean keeps a server name readable and harmless.
func clean(b []byte) string {
	b = append([]byte(nil), b[:min(len(b), 253)]...)
	for i, c := range b {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.' || c == ':') {
			b[i] = '?'
		}
	}
	return string(b)
}

// certificate reads the dates of the first certificate.
func (h *Handshake) certificate(b []byte, frame uint32) {
	list, _, ok := take(b, 3)
	if !ok {
		return
	}
	der, _, ok := take(list, 3)
	if !ok || h.CertFrame != 0 {
		return
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		return
	}
	h.NotBefore, h.NotAfter, h.CertFrame = c.NotBefore, c.NotAfter, frame
}

var alerts = map[uint8]string{0: "close_notify", 10: "unexpected_message", 20: "bad_record_mac", 22: "record_overflow", 40: "handshake_failure",
	42: "bad_certificate", 43: "unsupported_certificate", 44: "certificate_revoked", 45: "certificate_expired", 46: "certificate_unknown",
	47: "illegal_parameter", 48: "unknown_ca", 49: "access_denied", 50: "decode_error", 51: "decrypt_error", 70: "protocol_version",
	71: "insufficient_security", 80: "internal_error", 86: "inappropriate_fallback", 90: "user_canceled", 109: "missing_extension",
	112: "unrecognized_name", 116: "certificate_required", 120: "no_application_protocol"}

// Name is the name of an alert in the standard.
func (a Alert) Name() string {
	if s, ok := alerts[a.Code]; ok {
		return s
	}
	return "alert"
}

// VersionName is the name of a TLS version.
func VersionName(v uint16) string {
	switch v {
	case 0x0300:
		return "SSL 3.0"
	case 0x0301:
		return "TLS 1.0"
	case 0x0302:
		return "TLS 1.1"
	case 0x0303:
		return "TLS 1.2"
	case 0x0304:
		return "TLS 1.3"
	}
	return "unknown"
}
