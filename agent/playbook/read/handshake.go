package read

import (
	"bytes"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"slices"
	"strconv"
	"strings"
	"time"

	"ghostbot/agent/playbook/pattern"
)

// Handshake is what `openssl s_client` says about a TLS server.
type Handshake struct {
	Connected bool // TCP
	Done      bool // a certificate came and a cipher was agreed on
	Fail      Failure
	Codes     []int  // verification errors, in order of appearance (openssl-verify)
	Text      string // the tool's word for the last one
	NotBefore time.Time
	NotAfter  time.Time
	Subject   string
	Issuer    string
	Names     []string // DNS names and addresses the certificate is for
	Protocol  string
	Old       string // the version before TLS 1.2 that the server chose, "" when it did not
	Asks      bool   // the server asked for a client certificate
	Weak      string // why the key or the signature is weak by today's measure, "" when it is not
	leaf      *x509.Certificate
}

// Verification errors of openssl that are told apart here.
const (
	NotYetValid = 9
	Expired     = 10
	SelfSigned  = 18
	SelfInChain = 19
	WeakKey     = 66 // of the certificate itself
	WeakCAKey   = 67
	WeakCAHash  = 68
	NoIssuer    = 20
	NoIssuer1   = 21
	WrongHost   = 62
	WrongIP     = 64
)

var (
	verifyNum  = pattern.New(`verify error:num=(\d+):([^\n]{0,100})`)
	verifyCode = pattern.New(`Verify return code: (\d+) \(([^)\n]{0,100})`)
	notDates   = pattern.New(`[Nn]ot(Before|After)\s*[=:]\s*([A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4} GMT)`)
	subjectOf  = pattern.New(`(?m)^subject=([^\n]{0,200})`)
	issuerOf   = pattern.New(`(?m)^issuer=([^\n]{0,200})`)
	asksClient = pattern.New(`(?m)^(?:Acceptable client certificate CA names|Client Certificate Types:|Requested Signature Algorithms:)`)
	oldVersion = pattern.New(`(?m)^\s+Protocol\s*: (SSLv3|TLSv1(?:\.[01])?)\s*$`)
	newCipher  = pattern.New(`(?m)^New, (\S+), Cipher is ([^\s(]+)`)
)

// SClient reads openssl 1.0.2 to 3.x. The certificate itself is in the output
// of every version and says more than the words around it, so it is read first;
// the words are the fallback for when a redactor or a cut took it away.
func SClient(o Output) Handshake {
	text := o.both()
	h := Handshake{Connected: strings.Contains(text, "CONNECTED(")}
	for _, m := range verifyNum.FindAllStringSubmatch(text, 20) {
		h.code(m[1], m[2])
	}
	if m := verifyCode.FindStringSubmatch(text); m != nil {
		h.code(m[1], m[2])
	}
	h.dates(text)
	h.Subject, h.Issuer = first(subjectOf, text), first(issuerOf, text)
	if m := newCipher.FindStringSubmatch(text); m != nil && m[1] != "(NONE)," {
		h.Protocol = m[1]
	}
	h.Asks = asksClient.MatchString(text)
	h.certificate(text)
	if h.Seen() { // before the server has spoken it is what was offered
		h.Old = first(oldVersion, text)
	}
	h.Done = h.Protocol != "" && (h.Subject != "" || h.leaf != nil)
	h.Fail = h.failed(o, text)
	return h
}

func first(re *pattern.Pattern, text string) string {
	if m := re.FindStringSubmatch(text); m != nil {
		return strings.TrimSpace(m[1])
	}
	return ""
}

func (h *Handshake) code(num, text string) {
	n, _ := strconv.Atoi(num)
	if n != 0 && !slices.Contains(h.Codes, n) {
		h.Codes = append(h.Codes, n)
		h.Text = text
	}
}

// dates reads the first pair: the chain is listed from the leaf.
func (h *Handshake) dates(text string) {
	for _, m := range notDates.FindAllStringSubmatch(text, 20) {
		t, err := time.Parse("Jan _2 15:04:05 2006 MST", m[2])
		switch {
		case err != nil:
		case m[1] == "Before" && h.NotBefore.IsZero():
			h.NotBefore = t
		case m[1] == "After" && h.NotAfter.IsZero():
			h.NotAfter = t
		}
	}
}

func (h *Handshake) certificate(text string) {
	i := strings.Index(text, "-----BEGIN CERTIFICATE-----")
	if i < 0 {
		return
	}
	block, _ := pem.Decode([]byte(text[i:]))
	if block == nil {
		return
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return
	}
	h.leaf = c
	h.NotBefore, h.NotAfter = c.NotBefore.UTC(), c.NotAfter.UTC()
	h.Names = append(h.Names, c.DNSNames...)
	for _, ip := range c.IPAddresses {
		h.Names = append(h.Names, ip.String())
	}
	if len(h.Names) > 20 {
		h.Names = h.Names[:20]
	}
	self := bytes.Equal(c.RawIssuer, c.RawSubject)
	h.Weak = weak(c, self)
	if self && !slices.Contains(h.Codes, SelfSigned) {
		h.Codes = append(h.Codes, SelfSigned)
	}
}

// weak measures by what current libraries and browsers refuse (openssl's security
// level 2, the CA/Browser Forum's baseline requirements 6.1.5). Nobody checks the
// signature of a self-signed certificate.
func weak(c *x509.Certificate, self bool) string {
	if k, is := c.PublicKey.(*rsa.PublicKey); is && k.N.BitLen() < 2048 {
		return "an RSA key of " + strconv.Itoa(k.N.BitLen()) + " bits"
	}
	switch c.SignatureAlgorithm {
	case x509.MD5WithRSA, x509.SHA1WithRSA, x509.ECDSAWithSHA1, x509.DSAWithSHA1:
		if !self {
			return "a signature by " + c.SignatureAlgorithm.String()
		}
	}
	return ""
}

// Seen reports whether the certificate itself came, though the handshake may have
// failed after it.
func (h Handshake) Seen() bool { return h.leaf != nil }

// Matches reports whether the certificate is for host; known is false when the
// certificate itself could not be read.
func (h Handshake) Matches(host string) (ok, known bool) {
	if h.leaf == nil {
		return !slices.Contains(h.Codes, WrongHost) && !slices.Contains(h.Codes, WrongIP), slices.Contains(h.Codes, WrongHost) || slices.Contains(h.Codes, WrongIP)
	}
	host, _, _ = strings.Cut(host, "%")
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return h.leaf.VerifyHostname(host) == nil, true
}

func (h Handshake) failed(o Output, text string) Failure {
	switch {
	case h.Done:
		return None
	case notTLS.MatchString(text):
		return NotTLS
	case !h.Connected:
		if f := failure(text); f != Other {
			return f
		}
		return NoConnect
	case failure(text) == Reset || strings.Contains(text, "unexpected eof"):
		return Reset
	case alertText.MatchString(text):
		return Alert
	}
	return Other
}
