package blob

import (
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ghostbot/internal/sim/azure/authority"
	"ghostbot/internal/sim/azure/cloud"
)

// store is a blob service in so many lines as the front needs of one: containers
// and blobs by host and path.
type store struct {
	mu    sync.Mutex
	blobs map[string]string
	seen  []string
}

func (s *store) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := r.Host + r.URL.Path
	s.seen = append(s.seen, r.Method+" "+at+" "+strings.SplitN(r.Header.Get("Authorization"), " ", 2)[0])
	container := r.Host + "/" + strings.SplitN(strings.Trim(r.URL.Path, "/"), "/", 2)[0]
	_, there := s.blobs[at]
	_, hasContainer := s.blobs[container]
	b, _ := io.ReadAll(r.Body)
	status := 200
	switch {
	case r.URL.Query().Get("comp") == "list":
		for name := range s.blobs {
			if rest, ok := strings.CutPrefix(name, r.Host+"/"); ok && !strings.Contains(rest, "/") {
				fmt.Fprintf(w, "<Container><Name>%s</Name></Container>", rest)
			}
		}
		return
	case r.URL.Query().Get("restype") == "container" && r.Method == "PUT" && there:
		status = 409
	case r.URL.Query().Get("restype") == "container" && r.Method == "PUT":
		s.blobs[at], status = "", 201
	case !hasContainer:
		status = 404
	case r.Method == "PUT":
		s.blobs[at], status = string(b), 201
	case !there:
		status = 404
	case r.Method == "DELETE":
		delete(s.blobs, at)
		status = 202
	default:
		io.WriteString(w, s.blobs[at])
		return
	}
	w.WriteHeader(status)
}

type bench struct {
	*Front
	c *cloud.Cloud
	s *store
}

func newBench(t *testing.T) bench {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "testdata", "seed.json"))
	if err != nil {
		t.Fatal(err)
	}
	seed, err := cloud.ReadSeed(b)
	if err != nil {
		t.Fatal(err)
	}
	c, err := cloud.New(seed, &cloud.Clock{})
	if err != nil {
		t.Fatal(err)
	}
	ca, err := authority.New("*" + Suffix)
	if err != nil {
		t.Fatal(err)
	}
	s := &store{blobs: map[string]string{}}
	emulator := httptest.NewUnstartedServer(s)
	emulator.TLS = ca.Server()
	emulator.StartTLS()
	t.Cleanup(emulator.Close)
	f := New(c, Options{Emulator: emulator.Listener.Addr().String(), TLS: ca.Client(), Mint: func() string { return "minted" }, File: func(vm string) []byte { return []byte("file of " + vm) }})
	t.Cleanup(f.Close)
	return bench{f, c, s}
}

func (b bench) ask(method, address, authorization, body string) (int, string, string) {
	r := httptest.NewRequest(method, address, strings.NewReader(body))
	r.Header.Set("Authorization", authorization)
	w := httptest.NewRecorder()
	b.ServeHTTP(w, r)
	return w.Code, w.Header().Get("x-ms-error-code"), w.Body.String()
}

func TestAccountOf(t *testing.T) {
	for host, want := range map[string]string{"ghostcaps.blob.core.windows.net": "ghostcaps", "GhostCaps.Blob.core.windows.net": "ghostcaps", "a.b.blob.core.windows.net": "", "blob.core.windows.net": "", "ghostcaps.example.com": ""} {
		if got := AccountOf(host); got != want {
			t.Errorf("%s: %q, want %q", host, got, want)
		}
	}
}

func TestDenials(t *testing.T) {
	b := newBench(t)
	for _, tt := range []struct{ account, authorization, query, want string }{
		{"ghostfenced", "Bearer x", "", "AuthorizationFailure"},
		{"ghostfenced", "SharedKey x", "", "AuthorizationFailure"},
		{"ghostnorole", "Bearer x", "", "AuthorizationPermissionMismatch"},
		{"ghostnorole", "SharedKey x", "", ""}, // a key needs no role
		{"ghostnokeys", "SharedKey x", "", "KeyBasedAuthenticationNotPermitted"},
		{"ghostnokeys", "", "?sig=x", "KeyBasedAuthenticationNotPermitted"},
		{"ghostnokeys", "Bearer x", "", ""},
		{"ghostcaps", "Bearer x", "", ""},
	} {
		status, code, body := b.ask("GET", "https://"+tt.account+Suffix+"/c/x"+tt.query, tt.authorization, "")
		if code != tt.want || (status == 403) != (tt.want != "") {
			t.Errorf("%+v: %d %s", tt, status, code)
		}
		var e struct{ Code, Message string }
		if tt.want != "" && (xml.Unmarshal([]byte(body), &e) != nil || e.Code != tt.want || !strings.Contains(e.Message, "RequestId:")) {
			t.Errorf("%+v: %s", tt, body)
		}
	}
	// What people change in the account counts from then on.
	at := b.c.Seed().ID("prod-rg", "Microsoft.Storage/storageAccounts/")
	for id, change := range map[string]func(string) error{
		"ghostfenced": func(id string) error { return b.c.Set(id, "properties.networkAcls.defaultAction", "Allow") },
		"ghostnokeys": func(id string) error { return b.c.Set(id, "properties.allowSharedKeyAccess", true) },
	} {
		if err := change(at + id); err != nil {
			t.Fatal(err)
		}
		if status, code, _ := b.ask("GET", "https://"+id+Suffix+"/c/x", "SharedKey x", ""); status == 403 {
			t.Errorf("%s after the change: %s", id, code)
		}
	}
}

func TestPassesUnchanged(t *testing.T) {
	b := newBench(t)
	if err := b.Container("ghostcaps", "captures"); err != nil {
		t.Fatal(err)
	}
	if err := b.Container("ghostcaps", "captures"); err != nil { // it may be there
		t.Fatal(err)
	}
	at := "https://ghostcaps" + Suffix + "/captures/a/b.cap"
	if status, _, _ := b.ask("PUT", at, "SharedKey ghostcaps:x", "bytes"); status != 201 {
		t.Fatal(status)
	}
	if status, _, body := b.ask("GET", at+"?timeout=3", "Bearer x", ""); status != 200 || body != "bytes" {
		t.Errorf("%d %q", status, body)
	}
	if diff := cmp.Diff([]string{at}, b.c.Left()); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
	if status, _, _ := b.ask("DELETE", at, "Bearer x", ""); status != 202 || len(b.c.Left()) != 0 {
		t.Errorf("%d, left %v", status, b.c.Left())
	}
	if status, _, _ := b.ask("DELETE", at, "Bearer x", ""); status != 404 || len(b.c.Ledger()) != 2 {
		t.Errorf("%d, ledger %v", status, b.c.Ledger())
	}
	if last := b.s.seen[len(b.s.seen)-1]; last != "DELETE ghostcaps"+Suffix+"/captures/a/b.cap Bearer" {
		t.Errorf("the emulator saw %q", last)
	}
}

func upload(b bench, account, path string, demand bool, data []byte) (string, error) {
	u := &url.URL{Scheme: "https", Host: account + Suffix, Path: path}
	return b.Upload(cloud.Upload{ID: "/x", VM: "web-vm-01", Path: u, Data: data, Demand: demand})
}

func TestUpload(t *testing.T) {
	b := newBench(t)
	for _, tt := range []struct {
		account, path string
		demand        bool
		data          []byte
		want, content string
	}{
		{"ghostcaps", "/captures/x.cap", false, nil, "StorageFailed", ""}, // there is no container
		{"ghostcaps", "/logs/a/x.cap", true, nil, "", "file of web-vm-01"},
		{"ghostcaps", "/logs/a/y.cap", true, []byte("own"), "", "own"}, // the container is there
		{"ghostcaps", "/logs/a/z.cap", true, []byte{}, "", ""},
		{"ghostnorole", "/logs/x.cap", true, nil, "", "file of web-vm-01"}, // an agent needs no role
		{"ghostfenced", "/logs/x.cap", true, nil, "StorageFailed", ""},
		{"ghostnokeys", "/logs/x.cap", true, nil, "StorageFailed", ""},
		{"nobody", "/logs/x.cap", true, nil, "StorageFailed", ""},
	} {
		code, err := upload(b, tt.account, tt.path, tt.demand, tt.data)
		at := tt.account + Suffix + tt.path
		content, there := b.s.blobs[at]
		if err != nil || code != tt.want || there != (tt.want == "") || content != tt.content {
			t.Errorf("%s: %q, %v, %q; want %q, %q", at, code, err, content, tt.want, tt.content)
		}
	}
	if n := len(b.c.Left()); n != 4 {
		t.Errorf("the ledger has %d files, want 4", n)
	}
	for _, a := range []string{"ghostcaps", "ghostnorole"} {
		if err := b.Empty(a); err != nil {
			t.Fatal(err)
		}
	}
}

func TestWithoutEmulator(t *testing.T) {
	b := newBench(t)
	b.opt.Emulator = ""
	if status, code, _ := b.ask("GET", "https://ghostcaps"+Suffix+"/c/x", "Bearer x", ""); status != 503 || code != "ServerBusy" {
		t.Errorf("%d %s", status, code)
	}
	if code, err := upload(b, "ghostcaps", "/logs/x.cap", true, nil); code != "StorageFailed" || err == nil {
		t.Errorf("%q, %v", code, err)
	}
	if b.Container("ghostcaps", "c") == nil || b.Empty("ghostcaps") == nil {
		t.Error("a container was made or emptied nowhere")
	}
}
