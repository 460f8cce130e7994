package authority

import (
	"crypto/tls"
	"net"
	"os"
	"testing"
)

// shake makes a connection between a server and a client that asks for a name.
func shake(t *testing.T, server, client *tls.Config, name string) error {
	t.Helper()
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	client = client.Clone()
	client.ServerName = name
	done := make(chan error, 1)
	go func() { done <- tls.Server(a, server).Handshake() }()
	err := tls.Client(b, client).Handshake()
	if err != nil {
		b.Close()
	}
	<-done
	return err
}

func TestNames(t *testing.T) {
	a, err := New("one.example.com", "*.many.example.com", "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	for name, ok := range map[string]bool{"one.example.com": true, "x.many.example.com": true, "127.0.0.1": true, "two.example.com": false, "x.y.many.example.com": false, "192.0.2.1": false} {
		if err := shake(t, a.Server(), a.Client(), name); ok != (err == nil) {
			t.Errorf("%s: %v", name, err)
		}
	}
	b, err := New("one.example.com")
	if err != nil {
		t.Fatal(err)
	}
	if shake(t, a.Server(), b.Client(), "one.example.com") == nil {
		t.Error("a client trusts another authority")
	}
}

func TestWrite(t *testing.T) {
	a, err := New("one.example.com")
	if err != nil {
		t.Fatal(err)
	}
	cert, key, err := a.Write(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	if err := shake(t, &tls.Config{Certificates: []tls.Certificate{pair}}, a.Client(), "one.example.com"); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(key); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key's file: %v, %v", info.Mode(), err)
	}
	if _, _, err := a.Write("/nowhere/at/all"); err == nil {
		t.Error("it was written nowhere")
	}
}
