// Package anonymize hides the shape of a network in text that leaves the
// machine: addresses, hardware addresses and cloud resources become names that
// mean nothing outside of their case.
//
// # Names
//
//	[INTERNAL_IP_3fa91c.07be42]     an address; what stands before the dot is the same
//	                                for all of one /24 (IPv4) or /64 (IPv6)
//	[INTERNAL_SUBNET_3fa91c/24]     a prefix
//	[MAC_51d0aa]                    a hardware address
//	[AZURE_RESOURCE_90ce11]         an id /subscriptions/.../resourceGroups/...
//
// A name is a keyed digest. With the same key the same thing always has the same
// name, over restarts and over commands; without it nobody can try addresses
// until one fits. A name is no address on purpose: a pseudonym that were one
// could belong to another machine, and a command with it would reach that one.
//
// # What is hidden
//
// IPv4: private (RFC 1918), shared (RFC 6598). IPv6: all unicast but the
// loopback, because without address translation an internal host has a global
// address. As they are written in ordinary output, by tcpdump with a port behind
// a dot, in names of the reverse zones, and in names like ip-10-0-0-5. Hardware
// addresses but broadcast and zero. Public IPv4 addresses stay: they are known
// outside. Host names stay: they cannot be told from other words. So does what
// the reader has said himself, in the symptom or in the command.
package anonymize

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/netip"
	"regexp"
	"strings"
	"sync"
)

// Anonymizer hides the topology of one case. It may be used concurrently.
type Anonymizer struct {
	key  []byte
	said map[string]bool

	mu    sync.Mutex
	names map[string]string // name -> what it stands for, of this process
	given map[found]string  // the other way; without places
}

// Key derives the key of one case from a secret of the installation. It is kept
// in memory only.
func Key(secret []byte, session string) []byte {
	m := hmac.New(sha256.New, secret)
	m.Write([]byte("ghostbot anonymize\x00" + session))
	return m.Sum(nil)
}

// New makes the Anonymizer of a case. What the texts in said name is not
// hidden.
func New(key []byte, said ...string) *Anonymizer {
	a := &Anonymizer{key: key, said: map[string]bool{}, names: map[string]string{}, given: map[found]string{}}
	collect(a.said, said)
	return a
}

func collect(into map[string]bool, texts []string) {
	for _, t := range texts {
		for _, f := range find(t) {
			into[f.value] = true
		}
	}
}

// Hide gives text with names in the place of what is hidden, except for what
// the texts in said name.
func (a *Anonymizer) Hide(text string, said ...string) string {
	known := map[string]bool{}
	collect(known, said)
	for range maxRounds {
		next := a.pass(text, known)
		if next == text {
			break
		}
		text = next
	}
	return text
}

// maxRounds bounds how often a text is looked at again: a name in the place of one
// address may set another one free that ran into it.
const maxRounds = 8

func (a *Anonymizer) pass(text string, known map[string]bool) string {
	var b strings.Builder
	at := 0
	for _, f := range find(text) {
		if a.said[f.value] || known[f.value] {
			continue
		}
		b.WriteString(text[at:f.start])
		b.WriteString(a.name(f))
		at = f.end
	}
	if at == 0 {
		return text
	}
	b.WriteString(text[at:])
	return b.String()
}

// nameShape matches the names that Hide puts in.
var nameShape = regexp.MustCompile(`\[(INTERNAL_IP_[0-9a-f]+\.[0-9a-f]+|INTERNAL_SUBNET_[0-9a-f]+/[0-9]{1,3}|MAC_[0-9a-f]+|AZURE_RESOURCE_[0-9a-f]+)\]`)

// Reveal gives text with what names stand for in their place. ok is false when
// it holds one that this process has not given: nobody knows what it means.
func (a *Anonymizer) Reveal(text string) (out string, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	ok = true
	out = nameShape.ReplaceAllStringFunc(text, func(name string) string {
		v, known := a.names[name]
		ok = ok && known
		return v
	})
	return out, ok
}

// Lengths of the digests in names, in hexadecimal digits.
const (
	short = 6
	step  = 4 // more of them, where two things would have one name
)

// name is what f is called.
func (a *Anonymizer) name(f found) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	thing := found{kind: f.kind, value: f.value}
	if name, ok := a.given[thing]; ok {
		return name
	}
	for n := short; ; n += step {
		name := a.spell(f, n)
		if v, taken := a.names[name]; !taken || v == f.value || n > 2*sha256.Size-2*step {
			a.names[name], a.given[thing] = f.value, name
			return name
		}
	}
}

func (a *Anonymizer) spell(f found, n int) string {
	switch f.kind {
	case address:
		ip := netip.MustParseAddr(f.value)
		bits := 24
		if ip.Is6() {
			bits = 64
		}
		net, _ := ip.Prefix(bits)
		return "[INTERNAL_IP_" + a.digest(net.String(), short) + "." + a.digest(f.value, n) + "]"
	case prefix:
		return "[INTERNAL_SUBNET_" + a.digest(f.value, n) + f.value[strings.IndexByte(f.value, '/'):] + "]"
	case hardware:
		return "[MAC_" + a.digest(f.value, n) + "]"
	}
	return "[AZURE_RESOURCE_" + a.digest(f.value, n) + "]"
}

func (a *Anonymizer) digest(v string, n int) string {
	m := hmac.New(sha256.New, a.key)
	m.Write([]byte(v))
	return hex.EncodeToString(m.Sum(nil))[:n]
}
