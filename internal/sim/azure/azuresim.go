// Package azuresim is an Azure on loopback that the real, unmodified az talks to: a
// proxy that knows only CONNECT, and behind it, with a throw-away certificate
// authority, the sign-in, the Resource Manager with Network Watcher, and storage.
//
// az needs no option for it: HTTPS_PROXY leads it here and REQUESTS_CA_BUNDLE makes
// it trust what it finds (Env). A host that is not known is refused and kept in
// Problems, so that a test is sealed: nothing that az does leaves the machine
// unseen. Every request is recorded with the name of the command that made it.
//
// Rooms: cloud remembers resources and captures and has the clock; arm, signin and
// blob speak; fault lets requests go wrong; authority signs. What is kept in blobs
// is kept by a storage emulator that is started beside it (package lab does so for
// tests); without one, storage accounts are hosts that are not known.
//
// What it cannot tell: real codes of the service for a quota, a missing agent, a
// name that is taken and a limit of bytes are not documented, and are made up here
// in such words that their meaning shows.
//
// The server owns its goroutines; Close ends and joins them.
package azuresim

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"ghostbot/internal/sim/azure/arm"
	"ghostbot/internal/sim/azure/authority"
	"ghostbot/internal/sim/azure/blob"
	"ghostbot/internal/sim/azure/cloud"
	"ghostbot/internal/sim/azure/fault"
	"ghostbot/internal/sim/azure/signin"
)

//go:embed testdata/seed.json
var seedFile []byte

// DefaultSeed is the tenant of testdata/seed.json.
func DefaultSeed() (cloud.Seed, error) { return cloud.ReadSeed(seedFile) }

// Options configure a Server. The zero value is the default tenant with the real
// clock and without storage.
type Options struct {
	Seed      *cloud.Seed
	Clock     *cloud.Clock         // nil: the real time
	Authority *authority.Authority // nil: one of its own
	// Emulator is the address of a storage emulator whose certificate is of the
	// authority, and Keys are the keys that it was given for the accounts, in base64.
	Emulator string
	Keys     map[string]string
	// Capture is what agents write; nil: a file with a few packets.
	Capture func(vm string) []byte
	// RetryAfter and Polls say how fast operations are; "" means 0.05 s. A negative
	// number of polls ends an operation at once; 0 means one poll in between.
	RetryAfter string
	Polls      int
	// TokenLifetime is how long a sign-in is good for; 0 means an hour.
	TokenLifetime time.Duration
}

// Names are what a certificate for a local Azure has to be good for.
func Names() []string {
	return []string{arm.Host, signin.Host, "*" + blob.Suffix, "localhost", "127.0.0.1"}
}

// Server is one local Azure.
type Server struct {
	// URL is the address of the proxy. Set by Start.
	URL string
	// Cloud is what it remembers; Faults what goes wrong; SignIn who may come in.
	Cloud  *cloud.Cloud
	Faults fault.List
	SignIn *signin.Server

	ca      *authority.Authority
	arm     *arm.Manager
	blob    *blob.Front
	storage bool
	log     record
	settle  sync.Mutex
	inner   *listener
	proxy   *http.Server
	tls     *http.Server
	wg      sync.WaitGroup
}

// New makes a server; Start it.
func New(opt Options) (*Server, error) {
	if opt.Seed == nil {
		seed, err := DefaultSeed()
		if err != nil {
			return nil, err
		}
		opt.Seed = &seed
	}
	if opt.Clock == nil {
		opt.Clock = &cloud.Clock{}
	}
	c, err := cloud.New(*opt.Seed, opt.Clock)
	if err != nil {
		return nil, err
	}
	s := &Server{Cloud: c, ca: opt.Authority, storage: opt.Emulator != ""}
	if s.ca == nil {
		if s.ca, err = authority.New(Names()...); err != nil {
			return nil, err
		}
	}
	s.assemble(opt)
	return s, nil
}

func (s *Server) assemble(opt Options) {
	if opt.TokenLifetime == 0 {
		opt.TokenLifetime = time.Hour
	}
	if opt.RetryAfter == "" {
		opt.RetryAfter = "0.05"
	}
	if opt.Polls == 0 {
		opt.Polls = 1
	}
	if opt.Capture == nil {
		opt.Capture = Packets
	}
	s.SignIn = signin.New(opt.Seed.Tenant, opt.Seed.Client, opt.TokenLifetime)
	s.arm = arm.New(s.Cloud, arm.Options{Verify: s.SignIn.Verify, RetryAfter: opt.RetryAfter, Polls: opt.Polls,
		Key: func(account string) string { return opt.Keys[account] }})
	s.blob = blob.New(s.Cloud, blob.Options{Emulator: opt.Emulator, TLS: s.ca.Client(), File: opt.Capture,
		Mint: func() string { return s.SignIn.Mint("https://storage.azure.com/.default", "capture-agent") }})
	quiet := log.New(io.Discard, "", 0)
	s.proxy = &http.Server{Handler: http.HandlerFunc(s.connect), ErrorLog: quiet}
	s.tls = &http.Server{Handler: http.HandlerFunc(s.serve), ErrorLog: quiet}
}

// Start listens on a loopback address, as in 127.0.0.1:0.
func (s *Server) Start(addr string) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("starting the local Azure: %w", err)
	}
	s.URL = "http://" + l.Addr().String()
	s.inner = newListener(l.Addr(), s.ca.Server())
	s.wg.Go(func() { s.proxy.Serve(l) })
	s.wg.Go(func() { s.tls.Serve(s.inner) })
	return nil
}

// Close ends it.
func (s *Server) Close() error {
	s.inner.Close()
	err := errors.Join(s.proxy.Close(), s.tls.Close())
	s.wg.Wait()
	s.blob.Close()
	return err
}

// Advance moves the clock, and lets agents write what is due by then.
func (s *Server) Advance(d time.Duration) {
	s.Cloud.Clock.Advance(d)
	s.agents()
}

// agents write the files of captures that have ended.
func (s *Server) agents() {
	s.settle.Lock()
	defer s.settle.Unlock()
	for _, u := range s.Cloud.Due() {
		code, err := s.blob.Upload(u)
		if err != nil {
			s.log.problem(fmt.Sprintf("the agent of %s: %v", u.VM, err))
		}
		if code != "" {
			s.Cloud.Failed(u.ID, code)
		}
	}
}

// Container makes a container in a storage account.
func (s *Server) Container(account, name string) error { return s.blob.Container(account, name) }

// Empty removes what the emulator keeps for the accounts of the tenant.
func (s *Server) Empty() error {
	for _, a := range s.Cloud.Seed().Accounts {
		if err := s.blob.Empty(a.Name); err != nil {
			return err
		}
	}
	return nil
}

// Env is what az needs in its environment, with a directory for its configuration,
// in which the service principal is signed in. warm is as for Surroundings.
func (s *Server) Env(dir, warm string) ([]string, error) {
	seed := s.Cloud.Seed()
	var subscriptions []map[string]any
	for i, sub := range seed.Subscriptions {
		subscriptions = append(subscriptions, map[string]any{"id": sub.ID, "name": sub.Name, "state": "Enabled", "isDefault": i == 0, "tenantId": seed.Tenant, "homeTenantId": seed.Tenant,
			"environmentName": "AzureCloud", "managedByTenants": []any{}, "user": map[string]any{"name": seed.Client, "type": "servicePrincipal"}})
	}
	env, err := s.Surroundings(dir, warm)
	for name, content := range map[string]any{
		"azureProfile.json":              map[string]any{"installationId": "00000000-0000-4000-8000-000000000000", "subscriptions": subscriptions},
		"service_principal_entries.json": []any{map[string]any{"tenant": seed.Tenant, "client_id": seed.Client, "client_secret": s.SignIn.Secret}},
	} {
		b, _ := json.Marshal(content) // strings and booleans only: cannot be refused
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), b, 0o600))
	}
	if err != nil {
		return nil, fmt.Errorf("signing in: %w", err)
	}
	return env, nil
}

// Surroundings is Env without a sign-in. warm is another configuration that was
// used before, whose index of commands is taken, without which the first call is
// slow and noisy, and its note that no newer version has to be looked for; "" does
// without.
func (s *Server) Surroundings(dir, warm string) ([]string, error) {
	bundle := filepath.Join(dir, "authority.pem")
	err := os.MkdirAll(dir, 0o700)
	if err == nil {
		err = os.WriteFile(bundle, s.ca.PEM(), 0o600)
	}
	for _, name := range []string{"commandIndex.json", "versionCheck.json"} {
		if warm == "" || err != nil {
			break
		}
		var b []byte
		if b, err = os.ReadFile(filepath.Join(warm, name)); err == nil {
			err = os.WriteFile(filepath.Join(dir, name), b, 0o600)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("preparing a configuration: %w", err)
	}
	return []string{"AZURE_CONFIG_DIR=" + dir, "HTTPS_PROXY=" + s.URL, "REQUESTS_CA_BUNDLE=" + bundle}, nil
}

// serve answers what came through a tunnel.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	e := s.log.begin(r)
	a := &answer{ResponseWriter: w}
	defer func() { s.log.end(e, a.status) }()
	host := hostOnly(r.Host)
	if f, hit := s.Faults.For(host, r.Method, r.URL.Path); hit {
		s.log.fault(e)
		if s.fail(a, r, host, f) {
			return
		}
	}
	s.agents()
	switch {
	case host == arm.Host:
		s.arm.ServeHTTP(a, r)
	case host == signin.Host:
		s.SignIn.ServeHTTP(a, r)
	default:
		s.blob.ServeHTTP(a, r)
	}
	s.agents() // of a capture that was just ended
}

// fail lets a request go wrong, and reports whether it was answered.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, host string, f fault.Fault) bool {
	select {
	case <-time.After(f.Delay()):
	case <-r.Context().Done():
	}
	for k, v := range f.Header {
		w.Header().Set(k, v)
	}
	switch {
	case f.Drop:
		panic(http.ErrAbortHandler)
	case f.Number != 0:
		signin.Refuse(w, 401, f.Number, "invalid_client", f.Text())
	case f.Status == 0:
		return false
	case blob.AccountOf(host) != "":
		blob.Refuse(w, f.Status, f.Code, f.Text())
	default:
		arm.WriteError(w, &cloud.Error{Status: f.Status, Code: f.Code, Message: f.Text()})
	}
	return true
}

func hostOnly(host string) string {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	return strings.ToLower(host)
}

// answer remembers the status.
type answer struct {
	http.ResponseWriter
	status int
}

func (a *answer) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
	}
	a.ResponseWriter.WriteHeader(status)
}

func (a *answer) Write(b []byte) (int, error) {
	if a.status == 0 {
		a.status = http.StatusOK
	}
	return a.ResponseWriter.Write(b)
}

// Unwrap is for http.ResponseController.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// shutdown bounds how long a caller waits.
const shutdown = 5 * time.Second

// Wait returns when no request is under way, or the time is up.
func (s *Server) Wait() error {
	ctx, stop := context.WithTimeout(context.Background(), shutdown)
	defer stop()
	return s.log.idle(ctx)
}
