package azuresim

import (
	"bufio"
	"crypto/tls"
	"net"
	"net/http"
	"strings"
	"sync"

	"ghostbot/internal/sim/azure/arm"
	"ghostbot/internal/sim/azure/blob"
	"ghostbot/internal/sim/azure/signin"
)

// connect is the proxy: tunnels to what is known, and the state for people.
func (s *Server) connect(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodConnect {
		s.lab(w, r)
		return
	}
	host, port, _ := net.SplitHostPort(r.Host)
	if !s.known(strings.ToLower(host)) || port != "443" {
		s.log.refuse(r.Host)
		http.Error(w, r.Host+" is not known here", http.StatusForbidden)
		return
	}
	conn, buf, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if _, err := conn.Write([]byte("HTTP/1.1 200 Connection established\r\n\r\n")); err != nil {
		conn.Close()
		return
	}
	s.inner.hand(&tunnel{Conn: conn, r: buf.Reader})
}

func (s *Server) known(host string) bool {
	if host == arm.Host || host == signin.Host {
		return true
	}
	account := blob.AccountOf(host)
	return account != "" && s.storage && s.blob.Known(account)
}

// tunnel is a connection of which the beginning may have been read already.
type tunnel struct {
	net.Conn
	r *bufio.Reader
}

func (t *tunnel) Read(b []byte) (int, error) { return t.r.Read(b) }

// listener gives tunnels to a server as connections with TLS.
type listener struct {
	addr net.Addr
	conf *tls.Config
	in   chan net.Conn
	done chan struct{}
	once sync.Once
}

func newListener(addr net.Addr, conf *tls.Config) *listener {
	return &listener{addr: addr, conf: conf, in: make(chan net.Conn), done: make(chan struct{})}
}

func (l *listener) hand(c net.Conn) {
	select {
	case l.in <- tls.Server(c, l.conf):
	case <-l.done:
		c.Close()
	}
}

// Accept returns the next tunnel.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.in:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// Close ends the listening.
func (l *listener) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

// Addr is the address of the proxy.
func (l *listener) Addr() net.Addr { return l.addr }
