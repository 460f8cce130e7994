// Package blob is the storage of a local Azure: a front for an emulator of the blob
// service, which keeps the data, and the agent on a VM, which writes captures there.
//
// The front answers what the emulator does not know: that the caller has no role,
// that a firewall is in between, that account keys are switched off. Everything else
// passes unchanged, since signatures depend on it.
package blob

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"time"

	"ghostbot/internal/sim/azure/cloud"
)

// Suffix is what follows the account in the name of its host.
const Suffix = ".blob.core.windows.net"

// AccountOf is the account in the name of a host; "" when it is none.
func AccountOf(host string) string {
	name, ok := strings.CutSuffix(strings.ToLower(host), Suffix)
	if !ok || strings.Contains(name, ".") {
		return ""
	}
	return name
}

// Options are what a front needs from outside.
type Options struct {
	// Emulator is the address of the emulator, which speaks TLS; "" when there is none.
	Emulator string
	// TLS trusts it.
	TLS *tls.Config
	// Mint makes a token for storage, for the agent.
	Mint func() string
	// File is what the agent writes when a capture does not say.
	File func(vm string) []byte
}

// Front answers for all storage accounts.
type Front struct {
	cloud *cloud.Cloud
	opt   Options
	proxy *httputil.ReverseProxy
	agent *http.Client
	base  *http.Transport
}

// New makes a front; Close it.
func New(c *cloud.Cloud, opt Options) *Front {
	f := &Front{cloud: c, opt: opt}
	f.base = &http.Transport{TLSClientConfig: opt.TLS, DialContext: f.dial, MaxIdleConnsPerHost: 8, DisableCompression: true}
	f.agent = &http.Client{Transport: f.base, Timeout: time.Minute}
	f.proxy = &httputil.ReverseProxy{Transport: f.base, ModifyResponse: f.note,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = "https", r.In.Host, r.In.Host
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			Refuse(w, 503, "ServerBusy", "The server is busy: "+err.Error())
		}}
	return f
}

// dial goes to the emulator whatever the name of the host is.
func (f *Front) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	if f.opt.Emulator == "" {
		return nil, fmt.Errorf("there is no emulator")
	}
	return new(net.Dialer).DialContext(ctx, network, f.opt.Emulator)
}

// Close ends the connections to the emulator.
func (f *Front) Close() { f.base.CloseIdleConnections() }

// Refuse answers as the blob service does.
func Refuse(w http.ResponseWriter, status int, code, text string) {
	w.Header().Set("x-ms-error-code", code)
	w.Header().Set("x-ms-request-id", "00000000-0000-0000-0000-000000000000")
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	fmt.Fprintf(w, `<?xml version="1.0" encoding="utf-8"?><Error><Code>%s</Code><Message>%s`+"\n"+`RequestId:00000000-0000-0000-0000-000000000000`+"\n"+`Time:%s</Message></Error>`,
		code, text, time.Now().UTC().Format("2006-01-02T15:04:05.0000000Z"))
}

// account finds an account's seed, and what stands in its resource by now.
func (f *Front) account(name string) (cloud.Account, bool) {
	for _, a := range f.cloud.Seed().Accounts {
		if !strings.EqualFold(a.Name, name) {
			continue
		}
		o, there := f.cloud.Get(f.cloud.Seed().ID(a.Group, "Microsoft.Storage/storageAccounts/"+a.Name))
		p, _ := o["properties"].(cloud.Object)
		if acls, _ := p["networkAcls"].(cloud.Object); acls["defaultAction"] == "Deny" {
			a.Deny = "firewall"
		} else if a.Deny == "firewall" {
			a.Deny = ""
		}
		if allowed, ok := p["allowSharedKeyAccess"].(bool); ok {
			a.NoKeys = !allowed
		}
		return a, there
	}
	return cloud.Account{}, false
}

// Known reports whether an account exists.
func (f *Front) Known(name string) bool { _, ok := f.account(name); return ok }

// ServeHTTP answers one request.
func (f *Front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a, _ := f.account(AccountOf(hostOnly(r.Host)))
	keyed := strings.HasPrefix(r.Header.Get("Authorization"), "SharedKey") || r.URL.Query().Has("sig")
	switch {
	case a.Deny == "firewall":
		Refuse(w, 403, "AuthorizationFailure", "This request is not authorized to perform this operation.")
	case a.Deny == "role" && !keyed:
		Refuse(w, 403, "AuthorizationPermissionMismatch", "This request is not authorized to perform this operation using this permission.")
	case a.NoKeys && keyed:
		Refuse(w, 403, "KeyBasedAuthenticationNotPermitted", "Key based authentication is not permitted on this storage account.")
	default:
		f.proxy.ServeHTTP(w, r)
	}
}

func hostOnly(host string) string {
	if h, _, err := net.SplitHostPort(host); err == nil {
		return h
	}
	return host
}

// note writes the ledger: what the emulator has created and deleted.
func (f *Front) note(res *http.Response) error {
	r := res.Request
	u := *r.URL
	q := u.Query()
	u.RawQuery = ""
	if strings.Count(strings.Trim(u.Path, "/"), "/") == 0 || q.Get("comp") != "" {
		return nil // a container, or part of a blob
	}
	switch {
	case r.Method == http.MethodPut && res.StatusCode == http.StatusCreated:
		f.cloud.Created(u.String())
	case r.Method == http.MethodDelete && res.StatusCode == http.StatusAccepted:
		f.cloud.Deleted(u.String())
	}
	return nil
}

// Upload is the agent on a VM at work: it writes the file of a capture that has
// ended. It signs with what the service gave it, so that a missing role does not
// stop it, but an account without keys or a firewall does. The code of a failure is
// one that the service reports for a capture.
func (f *Front) Upload(u cloud.Upload) (code string, err error) {
	a, there := f.account(AccountOf(u.Path.Hostname()))
	if !there || a.NoKeys || a.Deny == "firewall" {
		return "StorageFailed", nil
	}
	data := u.Data
	if data == nil {
		data = f.opt.File(u.VM)
	}
	container := *u.Path
	container.Path, _, _ = strings.Cut(strings.TrimPrefix(u.Path.Path, "/"), "/")
	container.Path = "/" + container.Path
	if u.Demand {
		container.RawQuery = "restype=container"
		if status, err := f.send(http.MethodPut, &container, nil); err != nil || status != 201 && status != 409 {
			return "StorageFailed", err
		}
	}
	status, err := f.send(http.MethodPut, u.Path, data)
	if err != nil || status != http.StatusCreated {
		return "StorageFailed", err
	}
	f.cloud.Created(u.Path.String())
	return "", nil
}

// Container makes a container, as people do beforehand.
func (f *Front) Container(account, name string) error {
	u := &url.URL{Scheme: "https", Host: account + Suffix, Path: "/" + name, RawQuery: "restype=container"}
	status, err := f.send(http.MethodPut, u, nil)
	if err == nil && status != http.StatusCreated && status != http.StatusConflict {
		err = fmt.Errorf("the emulator answers %d", status)
	}
	if err != nil {
		return fmt.Errorf("making container %s: %w", name, err)
	}
	return nil
}

// Empty removes every container of an account, so that tests begin with none.
func (f *Front) Empty(account string) error {
	u := &url.URL{Scheme: "https", Host: account + Suffix, Path: "/", RawQuery: "comp=list"}
	req, _ := http.NewRequest(http.MethodGet, u.String(), nil)
	f.sign(req)
	res, err := f.agent.Do(req)
	if err != nil {
		return fmt.Errorf("listing containers of %s: %w", account, err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		return fmt.Errorf("listing containers of %s: %w", account, err)
	}
	for _, part := range strings.Split(string(b), "<Container><Name>")[1:] {
		name, _, _ := strings.Cut(part, "<")
		u := &url.URL{Scheme: "https", Host: account + Suffix, Path: "/" + name, RawQuery: "restype=container"}
		if _, err := f.send(http.MethodDelete, u, nil); err != nil {
			return fmt.Errorf("deleting container %s: %w", name, err)
		}
	}
	return nil
}

func (f *Front) sign(req *http.Request) {
	req.Header.Set("Authorization", "Bearer "+f.opt.Mint())
	req.Header.Set("x-ms-version", "2022-11-02")
	req.Header.Set("x-ms-date", time.Now().UTC().Format(http.TimeFormat))
}

func (f *Front) send(method string, u *url.URL, data []byte) (int, error) {
	req, err := http.NewRequest(method, u.String(), bytes.NewReader(data))
	if err != nil {
		return 0, err
	}
	f.sign(req)
	if !u.Query().Has("restype") {
		req.Header.Set("x-ms-blob-type", "BlockBlob")
	}
	res, err := f.agent.Do(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	return res.StatusCode, err
}
