package signin

import (
	"encoding/base64"
	"encoding/json"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

const tenant = "10000000-0000-4000-8000-000000000001"

const management = "https://management.core.windows.net//.default"

// form asks for a token and returns the status and the answer.
func form(s *Server, path string, fields ...string) (int, map[string]any) {
	v := url.Values{}
	for i := 0; i+1 < len(fields); i += 2 {
		v.Set(fields[i], fields[i+1])
	}
	r := httptest.NewRequest("POST", "https://"+Host+"/"+path, strings.NewReader(v.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	var body map[string]any
	json.Unmarshal(w.Body.Bytes(), &body)
	return w.Code, body
}

func get(s *Server, path string) (int, map[string]any) {
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest("GET", "https://"+Host+"/"+path, nil))
	var body map[string]any
	json.Unmarshal(w.Body.Bytes(), &body)
	return w.Code, body
}

func number(body map[string]any) any {
	list, _ := body["error_codes"].([]any)
	if len(list) != 1 {
		return nil
	}
	return list[0]
}

func TestDiscovery(t *testing.T) {
	s := New(tenant, "ghost-sp", time.Hour)
	for _, at := range []string{tenant, "organizations", "common"} {
		status, body := get(s, at+"/v2.0/.well-known/openid-configuration")
		if status != 200 || body["token_endpoint"] != "https://"+Host+"/"+at+"/oauth2/v2.0/token" {
			t.Errorf("%s: %d %v", at, status, body)
		}
	}
	if status, body := get(s, "elsewhere/v2.0/.well-known/openid-configuration"); status != 400 || number(body) != 90002.0 {
		t.Errorf("another tenant: %d %v", status, body)
	}
	if status, body := get(s, "common/discovery/instance?api-version=1.1"); status != 200 || body["metadata"] == nil {
		t.Errorf("instances: %d %v", status, body)
	}
	if status, _ := get(s, tenant+"/elsewhere"); status != 404 {
		t.Errorf("elsewhere: %d", status)
	}
}

func TestPrincipal(t *testing.T) {
	s := New(tenant, "ghost-sp", time.Hour)
	token := tenant + "/oauth2/v2.0/token"
	for name, tt := range map[string]struct {
		client, secret, grant string
		status                int
		number                any
	}{
		"good":         {"ghost-sp", s.Secret, "client_credentials", 200, nil},
		"wrong secret": {"ghost-sp", "wrong", "client_credentials", 401, 7000215.0},
		"unknown":      {"somebody", s.Secret, "client_credentials", 400, 700016.0},
		"other grant":  {"ghost-sp", s.Secret, "password", 400, 70003.0},
	} {
		status, body := form(s, token, "grant_type", tt.grant, "client_id", tt.client, "client_secret", tt.secret, "scope", management)
		if status != tt.status || number(body) != tt.number {
			t.Errorf("%s: %d %v", name, status, body)
		}
		if access, _ := body["access_token"].(string); (tt.status == 200) != (access != "") || tt.status == 200 && s.Verify(access) != nil {
			t.Errorf("%s: token %q, %v", name, access, s.Verify(access))
		}
		if d, _ := body["error_description"].(string); tt.status != 200 && !strings.HasPrefix(d, "AADSTS") {
			t.Errorf("%s: %q", name, d)
		}
	}
}

func TestDeviceCode(t *testing.T) {
	s := New(tenant, "ghost-sp", time.Hour)
	token, app := "organizations/oauth2/v2.0/token", "04b07795-8ddb-461a-bbee-02f9e1bf7b46"
	_, begun := form(s, "organizations/oauth2/v2.0/devicecode", "client_id", app)
	device, _ := begun["device_code"].(string)
	user, _ := begun["user_code"].(string)
	poll := func(code string) (int, map[string]any) {
		return form(s, token, "grant_type", "urn:ietf:params:oauth:grant-type:device_code", "device_code", code, "client_id", app, "scope", management+" offline_access openid profile")
	}
	if status, body := poll(device); status != 400 || body["error"] != "authorization_pending" {
		t.Errorf("before: %d %v", status, body)
	}
	if status, body := poll("other"); status != 400 || body["error"] != "bad_verification_code" {
		t.Errorf("another code: %d %v", status, body)
	}
	if s.Approve("") || s.Approve("other") || !s.Approve(user) {
		t.Error("approving says something else than whether somebody waits")
	}
	status, body := poll(device)
	access, _ := body["access_token"].(string)
	if status != 200 || s.Verify(access) != nil || body["id_token"] == nil || body["client_info"] == nil {
		t.Fatalf("after: %d %v", status, body)
	}
	refresh, _ := body["refresh_token"].(string)
	if status, body := form(s, token, "grant_type", "refresh_token", "refresh_token", refresh, "client_id", app, "scope", management); status != 200 || body["access_token"] == "" {
		t.Errorf("refreshed: %d %v", status, body)
	}
	if status, body := form(s, token, "grant_type", "refresh_token", "refresh_token", "old", "scope", management); status != 400 || number(body) != 700082.0 {
		t.Errorf("refreshed with an old one: %d %v", status, body)
	}
}

func TestVerify(t *testing.T) {
	s := New(tenant, "ghost-sp", time.Hour)
	good := s.Mint(management, "ghost-sp")
	head, rest, _ := strings.Cut(good, ".")
	body, mac, _ := strings.Cut(rest, ".")
	for name, tt := range map[string]struct{ token, want string }{
		"good":             {good, ""},
		"storage":          {s.Mint("https://storage.azure.com/.default", "x"), "InvalidAuthenticationTokenAudience"},
		"of another":       {New(tenant, "ghost-sp", time.Hour).Mint(management, "ghost-sp"), "InvalidAuthenticationToken"},
		"old":              {New(tenant, "ghost-sp", -time.Minute).Mint(management, "ghost-sp"), "InvalidAuthenticationToken"},
		"empty":            {"", "InvalidAuthenticationToken"},
		"no signature":     {head + "." + body + ".", "InvalidAuthenticationToken"},
		"changed":          {head + "." + base64.RawURLEncoding.EncodeToString([]byte(`{"aud":"https://management.x"}`)) + "." + mac, "InvalidAuthenticationToken"},
		"bad base64":       {head + "." + body + ".%", "InvalidAuthenticationToken"},
		"signed no claims": {s.sign(nil), "InvalidAuthenticationTokenAudience"},
	} {
		got := ""
		if err := s.Verify(tt.token); err != nil {
			got = err.Code
		}
		if got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
	s.Revoke()
	if err := s.Verify(good); err == nil || err.Code != "ExpiredAuthenticationToken" {
		t.Errorf("revoked: %v", err)
	}
	if err := s.Verify(s.Mint(management, "ghost-sp")); err != nil {
		t.Errorf("a new one after that: %v", err)
	}
	short := New(tenant, "ghost-sp", -time.Second)
	if err := short.Verify(short.Mint(management, "ghost-sp")); err == nil || err.Code != "ExpiredAuthenticationToken" {
		t.Errorf("expired: %v", err)
	}
}

// TestClaims holds what the storage emulator looks at.
func TestClaims(t *testing.T) {
	s := New(tenant, "ghost-sp", time.Hour)
	parts := strings.Split(s.Mint("https://storage.azure.com/.default", "ghost-sp"), ".")
	b, err := base64.RawURLEncoding.DecodeString(parts[1])
	var c struct {
		Aud, Iss string
		Nbf, Exp int64
	}
	if err != nil || json.Unmarshal(b, &c) != nil {
		t.Fatal(err, string(b))
	}
	now := time.Now().Unix()
	if len(parts) != 3 || c.Aud != "https://storage.azure.com" || c.Iss != "https://sts.windows.net/"+tenant+"/" || c.Nbf >= now || c.Exp <= now {
		t.Errorf("%+v", c)
	}
}
