package app

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"errors"

	"ghostbot/forensics/flow"
)

// The keys of QUIC's Initial packets follow from what everybody on the path can read (RFC
// 9001, 5.2; RFC 9369, 3.3): they protect against accidents, not against readers. What
// becomes of a handshake is in them: the name that a client asks for, and the reason when
// one side ends the connection.
var (
	salt1 = []byte{0x38, 0x76, 0x2c, 0xf7, 0xf5, 0x59, 0x34, 0xb3, 0x4d, 0x17, 0x9a, 0xe6, 0xa4, 0xc8, 0x0c, 0xad, 0xcc, 0xbb, 0x7f, 0x0a}
	salt2 = []byte{0x0d, 0xed, 0xe3, 0xde, 0xf7, 0x00, 0xa6, 0xdb, 0x81, 0x93, 0x81, 0xbe, 0x6e, 0x26, 0x9d, 0xcb, 0xf9, 0xbd, 0x2e, 0xd9}
)

const (
	quic1      = 1
	quic2      = 0x6b3343cf
	maxDialogs = 4096
	maxOpened  = 12   // Initial packets of a conversation that are read
	maxHello   = 8192 // bytes of a client's hello
)

// dialog is the beginning of a QUIC conversation.
type dialog struct {
	version uint32
	keys    [2]sealer // of the client and of the server
	ready   bool
	opened  int
	hello   []byte // the client's, as far as it came
	got     []bool // which bytes of it came
	have    int    // how many
	named   bool
}

// sealer protects the packets of one side.
type sealer struct {
	head cipher.Block
	body cipher.AEAD
	iv   [12]byte
}

var errSealed = errors.New("not readable")

// secrets derives the keys of both sides from the connection ID that the client chose.
func secrets(version uint32, id []byte) (out [2]sealer, err error) {
	salt, prefix := salt1, "quic "
	if version == quic2 {
		salt, prefix = salt2, "quicv2 "
	}
	initial, err := hkdf.Extract(sha256.New, id, salt)
	if err != nil {
		return out, err
	}
	for i, name := range []string{"client in", "server in"} {
		secret, err := label(initial, name, 32)
		if err != nil {
			return out, err
		}
		if out[i], err = seal(secret, prefix); err != nil {
			return out, err
		}
	}
	return out, nil
}

func seal(secret []byte, prefix string) (s sealer, err error) {
	var key [3][]byte
	for i, want := range []struct {
		name string
		n    int
	}{{"key", 16}, {"iv", 12}, {"hp", 16}} {
		if key[i], err = label(secret, prefix+want.name, want.n); err != nil {
			return s, err
		}
	}
	block, err := aes.NewCipher(key[0])
	if err != nil {
		return s, err
	}
	if s.body, err = cipher.NewGCM(block); err != nil {
		return s, err
	}
	s.iv = [12]byte(key[1])
	s.head, err = aes.NewCipher(key[2])
	return s, err
}

// label is HKDF-Expand-Label of TLS 1.3 with an empty context.
func label(secret []byte, name string, n int) ([]byte, error) {
	name = "tls13 " + name
	return hkdf.Expand(sha256.New, secret, string([]byte{byte(n >> 8), byte(n), byte(len(name))})+name+"\x00", n)
}

// varint reads a number of variable length (RFC 9000, 16).
func varint(b []byte) (v uint64, rest []byte, ok bool) {
	if len(b) == 0 {
		return 0, nil, false
	}
	n := 1 << (b[0] >> 6)
	if len(b) < n {
		return 0, nil, false
	}
	v = uint64(b[0] & 0x3f)
	for _, c := range b[1:n] {
		v = v<<8 | uint64(c)
	}
	return v, b[n:], true
}

// header is that of an Initial packet.
type header struct {
	to, from []byte // connection IDs
	number   int    // where the packet number begins
	end      int
}

// initialHeader reads the header of an Initial packet.
func initialHeader(p []byte) (h header, ok bool) {
	b := p[5:]
	if h.to, b, ok = take(b, 1); !ok || len(h.to) > 20 {
		return h, false
	}
	if h.from, b, ok = take(b, 1); !ok || len(h.from) > 20 {
		return h, false
	}
	token, b, ok := varint(b)
	if !ok || token > uint64(len(b)) {
		return h, false
	}
	length, b, ok := varint(b[token:])
	if !ok || length > uint64(len(b)) || length < 20 {
		return h, false
	}
	h.number = len(p) - len(b)
	h.end = h.number + int(length)
	return h, true
}

// open takes the protection off an Initial packet. The packet itself is not changed.
func (s *sealer) open(p []byte, h header) ([]byte, error) {
	var mask [16]byte
	s.head.Encrypt(mask[:], p[h.number+4:h.number+20])
	first := p[0] ^ mask[0]&0x0f
	n := int(first&3) + 1
	aad := append([]byte{first}, p[1:h.number+n]...)
	nonce := s.iv
	for i := range n {
		aad[h.number+i] ^= mask[1+i]
		nonce[12-n+i] ^= aad[h.number+i] // the first packets have small numbers
	}
	out, err := s.body.Open(nil, nonce[:], p[h.number+n:h.end], aad)
	if err != nil {
		return nil, errSealed
	}
	return out, nil
}

// retried forgets the keys of a conversation: a Retry gives the client another ID to use.
func (l *Log) retried(k *flow.Key) {
	if d := l.dialogs[*k]; d != nil {
		*d = dialog{version: d.version}
	}
}

// initial reads an Initial packet of a conversation. client tells who sent it.
func (l *Log) initial(k *flow.Key, f *Flow, p []byte, client bool, no uint32) {
	version := binary.BigEndian.Uint32(p[1:])
	if version != quic1 && version != quic2 {
		return
	}
	h, ok := initialHeader(p)
	if !ok {
		return
	}
	d := l.dialogs[*k]
	if d == nil {
		if !client || len(l.dialogs) >= maxDialogs {
			return
		}
		d = &dialog{version: version}
		if l.dialogs == nil {
			l.dialogs = map[flow.Key]*dialog{}
		}
		l.dialogs[*k] = d
	}
	if d.opened++; d.opened > maxOpened {
		return
	}
	if client && (!d.ready || d.version != version) {
		keys, err := secrets(version, h.to)
		if err != nil {
			return
		}
		d.keys, d.ready, d.version = keys, true, version
	}
	if !d.ready {
		return
	}
	side := 1
	if client {
		side = 0
	}
	if frames, err := d.keys[side].open(p, h); err == nil {
		l.initialFrames(f, d, frames, client, no)
	}
}

// initialFrames goes through the frames of an Initial packet (RFC 9000, 19).
func (l *Log) initialFrames(f *Flow, d *dialog, b []byte, client bool, no uint32) {
	ok := true
	for len(b) > 0 && ok {
		typ := b[0]
		b = b[1:]
		switch typ {
		case 0, 1: // padding, ping
		case 2, 3:
			b, ok = skipACK(b, typ == 3)
		case 6:
			var at, n uint64
			if at, b, ok = varint(b); !ok {
				return
			}
			if n, b, ok = varint(b); !ok || n > uint64(len(b)) {
				return
			}
			if client {
				l.quicHello(d, at, b[:n])
			}
			b = b[n:]
		case 0x1c:
			if code, _, ok := varint(b); ok && !f.Marks.Has(Closed) {
				f.Marks |= Closed
				l.QUIC.closed(code, client, no)
			}
			return // the reason phrase is somebody's text
		default:
			return
		}
	}
}

func skipACK(b []byte, ecn bool) ([]byte, bool) {
	var v [4]uint64
	ok := true
	for i := range v {
		if v[i], b, ok = varint(b); !ok {
			return nil, false
		}
	}
	rest := v[2] * 2
	if ecn {
		rest += 3
	}
	for ; rest > 0; rest-- {
		if _, b, ok = varint(b); !ok {
			return nil, false
		}
	}
	return b, true
}

// quicHello takes a part of the client's hello; parts come in any order.
func (l *Log) quicHello(d *dialog, at uint64, part []byte) {
	if d.named || at+uint64(len(part)) > maxHello {
		return
	}
	if need := int(at) + len(part); need > len(d.hello) {
		d.hello = append(d.hello, make([]byte, need-len(d.hello))...)
		d.got = append(d.got, make([]bool, need-len(d.got))...)
	}
	for i, c := range part {
		if p := int(at) + i; !d.got[p] {
			d.hello[p], d.got[p] = c, true
			d.have++
		}
	}
	if len(d.hello) < 4 || d.hello[0] != 1 {
		return
	}
	n := int(d.hello[1])<<16 | int(d.hello[2])<<8 | int(d.hello[3])
	if d.have < 4+n || len(d.hello) < 4+n {
		return
	}
	var h Handshake
	h.clientHello(d.hello[4 : 4+n])
	d.named = true
	d.hello, d.got = nil, nil
	if h.SNI != "" && len(l.QUIC.Names) < 64 {
		l.QUIC.Names = append(l.QUIC.Names, h.SNI)
	}
}

// Close is why connections ended in their handshake.
type Close struct {
	Code     uint64
	ByClient bool
	Count    uint64
	Frames   []uint32
}

// closed counts the end of a connection.
func (q *QUIC) closed(code uint64, client bool, no uint32) {
	for i := range q.Closes {
		if c := &q.Closes[i]; c.Code == code && c.ByClient == client {
			c.Count++
			if len(c.Frames) < evidence {
				c.Frames = append(c.Frames, no)
			}
			return
		}
	}
	if len(q.Closes) < 64 {
		q.Closes = append(q.Closes, Close{code, client, 1, []uint32{no}})
	}
}

var closes = map[uint64]string{0: "NO_ERROR", 1: "INTERNAL_ERROR", 2: "CONNECTION_REFUSED", 3: "FLOW_CONTROL_ERROR", 4: "STREAM_LIMIT_ERROR", 7: "FRAME_ENCODING_ERROR",
	8: "TRANSPORT_PARAMETER_ERROR", 9: "CONNECTION_ID_LIMIT_ERROR", 10: "PROTOCOL_VIOLATION", 11: "INVALID_TOKEN", 12: "APPLICATION_ERROR", 13: "CRYPTO_BUFFER_EXCEEDED"}

// Name is the name of the reason; those from 256 on are alerts of TLS.
func (c *Close) Name() string {
	if c.Code >= 0x100 && c.Code < 0x200 {
		return "TLS alert " + Alert{Code: uint8(c.Code)}.Name()
	}
	if s, ok := closes[c.Code]; ok {
		return s
	}
	return "another reason"
}
