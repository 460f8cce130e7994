package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"sync"
	"syscall"
	"time"
)

// listen takes the port, or any other when it is taken.
func listen(port int) (net.Listener, error) {
	l, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", port))
	if taken(err) {
		l, err = net.Listen("tcp4", "127.0.0.1:0")
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %v", errUnavailable, err)
	}
	return l, nil
}

// serve runs an HTTP server on l; the returned function ends and joins it.
func serve(l net.Listener, h http.Handler) func() {
	srv := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second, ErrorLog: log.New(io.Discard, "", 0)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = srv.Serve(l) // always http.ErrServerClosed
	}()
	return func() {
		_ = srv.Close()
		<-done
	}
}

// startCheckout is a gateway in front of nothing: it really connects to its upstream for every
// request, and says what came of it.
func startCheckout(context.Context) (*running, error) {
	upstream, err := closedPort(18081)
	if err != nil {
		return nil, err
	}
	l, err := listen(18080)
	if err != nil {
		return nil, err
	}
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: upstream})
	proxy.Transport = &http.Transport{DialContext: (&net.Dialer{Timeout: 3 * time.Second}).DialContext, DisableKeepAlives: true}
	proxy.ErrorLog = log.New(io.Discard, "", 0)
	proxy.ErrorHandler = func(w http.ResponseWriter, r *http.Request, err error) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Server", "checkout-gateway")
		w.WriteHeader(http.StatusBadGateway)
		_ = json.NewEncoder(w).Encode(map[string]string{ // the client may be gone
			"error": "bad gateway", "upstream": upstream, "detail": plainCause(err)})
	}
	return &running{
		symptom: fmt.Sprintf("checkout gets 502 from %s since %s", l.Addr(), since()),
		stop:    serve(l, proxy)}, nil
}

// plainCause is the innermost part of a dial error, as gateways log it.
func plainCause(err error) string {
	var sys *os.SyscallError
	if errors.As(err, &sys) {
		return sys.Error()
	}
	return err.Error()
}

// closedPort is an address at which nothing listens; the port is the wanted one if it is free.
func closedPort(port int) (string, error) {
	l, err := listen(port)
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

func startHealthy(context.Context) (*running, error) {
	l, err := listen(18090)
	if err != nil {
		return nil, err
	}
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"status":"ok"}`+"\n") // the client may be gone
	})
	return &running{
		symptom: fmt.Sprintf("support says the catalogue at http://%s/ does not load, is it down?", l.Addr()),
		stop:    serve(l, h)}, nil
}

// startAcceptQueue listens with a backlog of one, never accepts, and fills the queue with
// connections of its own. The kernel then leaves further SYNs unanswered.
func startAcceptQueue(ctx context.Context) (*running, error) {
	fd, addr, err := rawListen(18070)
	if err != nil {
		return nil, err
	}
	fill := &filler{addr: addr}
	fill.top()
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		fill.keep(ctx)
	}()
	return &running{
		symptom: fmt.Sprintf("payments at %s hangs, clients time out while connecting since %s", addr, since()),
		stop: func() {
			cancel()
			<-done
			fill.close()
			_ = syscall.Close(fd)
		}}, nil
}

// rawListen is a listening socket that nobody accepts from; net.Listen would take the system's
// backlog, which is thousands.
func rawListen(port int) (int, string, error) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, "", fmt.Errorf("%w: socket: %v", errUnavailable, err)
	}
	_ = syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1) // only spares a wait after a restart
	at := &syscall.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}
	err = syscall.Bind(fd, at)
	if taken(err) {
		at.Port = 0
		err = syscall.Bind(fd, at)
	}
	if err == nil {
		err = syscall.Listen(fd, 1)
	}
	if taken(err) { // with SO_REUSEADDR the clash can come this late
		_ = syscall.Close(fd)
		return rawListen(0)
	}
	name, nameErr := syscall.Getsockname(fd)
	if err != nil || nameErr != nil {
		_ = syscall.Close(fd)
		return 0, "", fmt.Errorf("%w: listening on port %d: %v", errUnavailable, port, errors.Join(err, nameErr))
	}
	in4, _ := name.(*syscall.SockaddrInet4)
	return fd, fmt.Sprintf("127.0.0.1:%d", in4.Port), nil
}

// filler holds the connections that fill an accept queue.
type filler struct {
	addr  string
	conns []net.Conn
}

// top connects until a connection does not come about any more.
func (f *filler) top() {
	for len(f.conns) < 16 {
		c, err := net.DialTimeout("tcp4", f.addr, 200*time.Millisecond)
		if err != nil {
			return
		}
		f.conns = append(f.conns, c)
	}
}

func (f *filler) keep(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(10 * time.Second):
			f.top()
		}
	}
}

func (f *filler) close() {
	for _, c := range f.conns {
		_ = c.Close()
	}
}

// startExpired is an HTTPS service with a certificate of yesterday.
func startExpired(context.Context) (*running, error) {
	cert, err := expiredCertificate(time.Now())
	if err != nil {
		return nil, err
	}
	l, err := listen(18443)
	if err != nil {
		return nil, err
	}
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "ok\n") })
	return &running{
		symptom: fmt.Sprintf("https://%s/ of the shop fails with a certificate error since %s", l.Addr(), since()),
		stop:    serve(tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}), h)}, nil
}

func expiredCertificate(now time.Time) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("making a certificate: %w", err)
	}
	t := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: "shop.example.com"},
		NotBefore: now.AddDate(0, -3, 0), NotAfter: now.AddDate(0, 0, -1),
		DNSNames: []string{"shop.example.com", "localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	der, err := x509.CreateCertificate(rand.Reader, t, t, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("making a certificate: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}

// startResolver is a DNS server, on UDP and TCP, that fails for one name.
func startResolver(context.Context) (*running, error) {
	pc, l, err := resolverSockets(18053)
	if err != nil {
		return nil, err
	}
	var wg sync.WaitGroup
	wg.Add(2)
	go func() { defer wg.Done(); serveUDP(pc) }()
	go func() { defer wg.Done(); serveTCP(l) }()
	_, port, _ := net.SplitHostPort(pc.LocalAddr().String()) // an address the system wrote
	return &running{
		symptom: fmt.Sprintf("%s does not resolve any more on our resolver 127.0.0.1 port %s", brokenName, port),
		stop: func() {
			_ = pc.Close()
			_ = l.Close()
			wg.Wait()
		}}, nil
}

// resolverSockets binds UDP and TCP to the same port.
func resolverSockets(port int) (net.PacketConn, net.Listener, error) {
	for range 5 {
		pc, err := net.ListenPacket("udp4", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			l, err := net.Listen("tcp4", pc.LocalAddr().String())
			if err == nil {
				return pc, l, nil
			}
			_ = pc.Close()
		}
		port = 0
	}
	return nil, nil, fmt.Errorf("%w: no port for a resolver", errUnavailable)
}
