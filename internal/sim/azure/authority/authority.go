// Package authority is a certificate authority that nobody keeps: a new one for each
// run, whose key never leaves the process.
package authority

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// Authority signs certificates for the names of a local Azure.
type Authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	leaf tls.Certificate
}

// lifetime is that of a run, with room.
const lifetime = 48 * time.Hour

// New makes an authority and a certificate of it for names, which may begin with
// "*.". Addresses are told from names.
func New(names ...string) (*Authority, error) {
	a := &Authority{}
	err := a.root()
	if err == nil {
		err = a.sign(names)
	}
	if err != nil {
		return nil, fmt.Errorf("making a certificate authority: %w", err)
	}
	return a, nil
}

func template(name string) *x509.Certificate {
	serial, _ := rand.Int(rand.Reader, big.NewInt(1<<62))
	return &x509.Certificate{SerialNumber: serial, Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(lifetime), BasicConstraintsValid: true}
}

func (a *Authority) root() error {
	var err error
	if a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return err
	}
	t := template("throw-away authority of a local Azure")
	t.IsCA, t.KeyUsage = true, x509.KeyUsageCertSign|x509.KeyUsageCRLSign
	der, err := x509.CreateCertificate(rand.Reader, t, t, a.key.Public(), a.key)
	if err != nil {
		return err
	}
	a.cert, err = x509.ParseCertificate(der)
	return err
}

func (a *Authority) sign(names []string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	t := template("local Azure")
	t.KeyUsage, t.ExtKeyUsage = x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	for _, n := range names {
		if ip := net.ParseIP(n); ip != nil {
			t.IPAddresses = append(t.IPAddresses, ip)
		} else {
			t.DNSNames = append(t.DNSNames, n)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, t, a.cert, key.Public(), a.key)
	if err != nil {
		return err
	}
	a.leaf = tls.Certificate{Certificate: [][]byte{der, a.cert.Raw}, PrivateKey: key}
	return nil
}

// PEM is the certificate of the authority, for clients.
func (a *Authority) PEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})
}

// Server is how a server shows itself.
func (a *Authority) Server() *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{a.leaf}, NextProtos: []string{"http/1.1"}, MinVersion: tls.VersionTLS12}
}

// Client is how a client trusts this authority, and no other.
func (a *Authority) Client() *tls.Config {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
}

// Write puts the certificate and its key into files of a directory, for a server
// that is another program.
func (a *Authority) Write(dir string) (cert, key string, err error) {
	der, err := x509.MarshalPKCS8PrivateKey(a.leaf.PrivateKey)
	if err != nil {
		return "", "", fmt.Errorf("writing a certificate: %w", err)
	}
	var chain []byte
	for _, c := range a.leaf.Certificate {
		chain = append(chain, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c})...)
	}
	cert, key = filepath.Join(dir, "local.pem"), filepath.Join(dir, "local.key")
	for name, b := range map[string][]byte{cert: chain, key: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})} {
		if err := os.WriteFile(name, b, 0o600); err != nil {
			return "", "", fmt.Errorf("writing a certificate: %w", err)
		}
	}
	return cert, key, nil
}
