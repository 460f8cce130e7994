package azuresim_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcapgo"

	azuresim "ghostbot/internal/sim/azure"
	"ghostbot/internal/sim/azure/fault"
)

// client is a program that goes through the proxy, as Env says.
type client struct {
	t *testing.T
	s *azuresim.Server
	http.Client
	token string
}

func newClient(t *testing.T, opt azuresim.Options) *client {
	t.Helper()
	s, err := azuresim.New(opt)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	env, err := s.Surroundings(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	value := func(name string) string {
		at := slices.IndexFunc(env, func(e string) bool { return strings.HasPrefix(e, name+"=") })
		return strings.TrimPrefix(env[at], name+"=")
	}
	pem, err := os.ReadFile(value("REQUESTS_CA_BUNDLE"))
	pool := x509.NewCertPool()
	if err != nil || !pool.AppendCertsFromPEM(pem) {
		t.Fatal("no authority", err)
	}
	proxy, err := url.Parse(value("HTTPS_PROXY"))
	if err != nil {
		t.Fatal(err)
	}
	c := &client{t: t, s: s, Client: http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(proxy), TLSClientConfig: &tls.Config{RootCAs: pool}}, Timeout: 20 * time.Second}}
	t.Cleanup(c.CloseIdleConnections)
	c.token = s.SignIn.Mint("https://management.core.windows.net//.default", "ghost-sp")
	return c
}

// ask returns the status and the body; 0 stands for no answer.
func (c *client) ask(method, address string) (int, string) {
	c.t.Helper()
	r, err := http.NewRequest(method, address, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+c.token)
	r.Header.Set("CommandName", "network nsg list")
	res, err := c.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, err.Error()
	}
	return res.StatusCode, string(b)
}

const lists = "https://management.azure.com" + groups + "prod-rg/providers/Microsoft.Network/networkSecurityGroups"

func TestThroughTheProxy(t *testing.T) {
	c := newClient(t, azuresim.Options{})
	if status, body := c.ask("GET", lists+"?api-version=2022-01-01&sig=abc"); status != 200 || !strings.Contains(body, "web-nsg") {
		t.Errorf("%d %s", status, body)
	}
	if status, _ := c.ask("GET", "https://login.microsoftonline.com/common/discovery/instance"); status != 200 {
		t.Errorf("sign-in: %d", status)
	}
	if err := c.s.Wait(); err != nil {
		t.Fatal(err)
	}
	rs := c.s.Requests()
	if len(rs) != 2 || rs[0].Command != "network nsg list" || rs[0].Status != 200 || strings.Contains(rs[0].Query, "abc") || len(c.s.Problems()) != 0 {
		t.Errorf("%+v %v", rs, c.s.Problems())
	}
	if diff := cmp.Diff([]string{"network nsg list"}, c.s.Commands()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestUnknownHosts(t *testing.T) {
	c := newClient(t, azuresim.Options{})
	for _, address := range []string{"https://www.example.com/", "https://management.azure.com:8443/", "https://ghostcaps.blob.core.windows.net/", "https://nobody.blob.core.windows.net/"} {
		if status, body := c.ask("GET", address); status != 0 || !strings.Contains(body, "Forbidden") {
			t.Errorf("%s: %d %s", address, status, body)
		}
	}
	if got := c.s.Problems(); len(got) != 4 || got[0] != "unknown host www.example.com:443" {
		t.Errorf("problems %v", got)
	}
	res, err := http.Get(c.s.URL + "/")
	if err != nil || res.StatusCode != 404 {
		t.Errorf("the proxy itself: %v, %v", res, err)
	}
}

func TestFaults(t *testing.T) {
	c := newClient(t, azuresim.Options{})
	for _, tt := range []struct {
		fault  fault.Fault
		url    string
		status int
		body   string
	}{
		{fault.Fault{Path: "/networksecuritygroups", Times: 1, Status: 429, Code: "SubscriptionRequestsThrottled", Message: "Too many."}, lists, 429, `"code":"SubscriptionRequestsThrottled"`},
		{fault.Fault{Host: "login.microsoftonline.com", Times: 1, Number: 7000222, Message: "It is expired."}, "https://login.microsoftonline.com/x/oauth2/v2.0/token", 401, "AADSTS7000222: It is expired."},
		{fault.Fault{Times: 1, MS: 5}, lists, 200, "web-nsg"},
	} {
		if err := c.s.Faults.Add(tt.fault); err != nil {
			t.Fatal(err)
		}
		if status, body := c.ask("GET", tt.url); status != tt.status || !strings.Contains(body, tt.body) {
			t.Errorf("%+v: %d %s", tt.fault, status, body)
		}
	}
	if status, _ := c.ask("GET", lists); status != 200 {
		t.Errorf("afterwards: %d", status)
	}
	if err := c.s.Faults.Add(fault.Fault{Method: "POST", Drop: true}); err != nil {
		t.Fatal(err)
	}
	if status, _ := c.ask("POST", lists); status != 0 {
		t.Errorf("a connection that is dropped answers %d", status)
	}
	var wrong int
	for _, r := range c.s.Requests() {
		if r.Fault {
			wrong++
		}
	}
	if wrong < 4 {
		t.Errorf("%d requests are said to have gone wrong", wrong)
	}
}

func TestExpiredTokens(t *testing.T) {
	c := newClient(t, azuresim.Options{})
	c.s.SignIn.Revoke()
	if status, body := c.ask("GET", lists); status != 401 || !strings.Contains(body, "ExpiredAuthenticationToken") {
		t.Errorf("%d %s", status, body)
	}
}

func TestLab(t *testing.T) {
	c := newClient(t, azuresim.Options{})
	post := func(path, body string, header ...string) int {
		r, err := http.NewRequest("POST", c.s.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i+1 < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		return res.StatusCode
	}
	for path, want := range map[string]int{"/lab/advance?by=1h": 204, "/lab/advance?by=soon": 400, "/lab/clear": 204, "/lab/nothing": 404, "/lab/fault": 400} {
		if got := post(path, ""); got != want {
			t.Errorf("%s: %d, want %d", path, got, want)
		}
	}
	if got := post("/lab/clear", "", "Origin", "http://www.example.com"); got != 403 {
		t.Errorf("from a page: %d", got)
	}
	if got := post("/lab/fault", `{"status":500,"paths":"/x"}`); got != 400 {
		t.Errorf("an unknown field: %d", got)
	}
	if got := post("/lab/fault", `{"status":500,"code":"InternalServerError"}`); got != 204 {
		t.Fatalf("a fault: %d", got)
	}
	if status, _ := c.ask("GET", lists); status != 500 {
		t.Errorf("with the fault: %d", status)
	}
	res, err := http.Get(c.s.URL + "/lab/state")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var state azuresim.State
	if err := json.NewDecoder(res.Body).Decode(&state); err != nil || len(state.Resources) < 30 || time.Until(state.Now) < 50*time.Minute {
		t.Errorf("%v: %d resources at %s", err, len(state.Resources), state.Now)
	}
	log, err := http.Get(c.s.URL + "/lab/requests")
	if err != nil {
		t.Fatal(err)
	}
	defer log.Body.Close()
	b, _ := io.ReadAll(log.Body)
	if !bytes.Contains(b, []byte(`"status": 500`)) || bytes.Contains(b, []byte(c.token)) {
		t.Errorf("record: %s", b)
	}
}

func TestEnvSignsIn(t *testing.T) {
	s, err := azuresim.New(azuresim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	dir, warm := t.TempDir(), t.TempDir()
	if _, err := s.Env(dir, warm); err == nil {
		t.Error("a configuration that was never used is taken for one that was")
	}
	for _, name := range []string{"commandIndex.json", "versionCheck.json"} {
		if err := os.WriteFile(filepath.Join(warm, name), []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Env(dir, warm); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"azureProfile.json": subscription, "service_principal_entries.json": s.SignIn.Secret, "commandIndex.json": "{}", "authority.pem": "BEGIN CERTIFICATE"} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		info, _ := os.Stat(filepath.Join(dir, name))
		if err != nil || !bytes.Contains(b, []byte(want)) || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := s.Env("/dev/null/x", ""); err == nil {
		t.Error("a configuration was written nowhere")
	}
}

func TestPackets(t *testing.T) {
	b := azuresim.Packets("web-vm-01")
	if !bytes.Equal(b, azuresim.Packets("web-vm-01")) || bytes.Equal(b, azuresim.Packets("db-vm-01")) {
		t.Error("a capture depends on something else than the name")
	}
	r, err := pcapgo.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for {
		data, _, err := r.ReadPacketData()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		n++
		p := gopacket.NewPacket(data, layers.LayerTypeEthernet, gopacket.Default)
		ip, tcp := p.Layer(layers.LayerTypeIPv4).(*layers.IPv4), p.Layer(layers.LayerTypeTCP).(*layers.TCP)
		if err := tcp.SetNetworkLayerForChecksum(ip); err != nil {
			t.Fatal(err)
		}
		sum := tcp.Checksum
		out := gopacket.NewSerializeBuffer()
		if err := tcp.SerializeTo(out, gopacket.SerializeOptions{ComputeChecksums: true}); err != nil || tcp.Checksum != sum {
			t.Errorf("packet %d: checksum %x, want %x, %v", n, sum, tcp.Checksum, err)
		}
	}
	if n != 6 {
		t.Errorf("%d packets, want 6", n)
	}
}

func TestCloseEndsTunnels(t *testing.T) {
	c := newClient(t, azuresim.Options{})
	if status, _ := c.ask("GET", lists); status != 200 {
		t.Fatal(status)
	}
	if err := c.s.Close(); err != nil {
		t.Fatal(err)
	}
	if status, _ := c.ask("GET", lists); status != 0 {
		t.Errorf("it answers %d when it is closed", status)
	}
}
