// Package signin is the sign-in of a local Azure: discovery, tokens for a service
// principal with a secret, and the device code of a person.
//
// Tokens have the claims that the storage emulator looks at (their audience is the
// scope that was asked for, their issuer that of the tenant) and are signed with a
// key that lives as long as the program: only the Resource Manager beside it can
// tell whether one is good.
package signin

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"ghostbot/internal/sim/azure/cloud"
)

// Host is where people and programs sign in.
const Host = "login.microsoftonline.com"

// Person is who signs in with a device code.
const Person = "casey@example.com"

// Server answers for one tenant.
type Server struct {
	// Secret is that of the service principal; generated.
	Secret string

	tenant, client string
	lifetime       time.Duration
	key            []byte

	mu      sync.Mutex
	revoked time.Time         // tokens from before are not accepted
	devices map[string]string // device code -> user code; "" when approved
	refresh string
}

// New makes the sign-in of a tenant; tokens are good for a lifetime.
func New(tenant, client string, lifetime time.Duration) *Server {
	s := &Server{tenant: tenant, client: client, lifetime: lifetime, key: make([]byte, 32), devices: map[string]string{}}
	rand.Read(s.key)
	s.Secret, s.refresh = rand.Text(), rand.Text()
	return s
}

// Revoke lets tokens that were given out so far expire.
func (s *Server) Revoke() { s.mu.Lock(); defer s.mu.Unlock(); s.revoked = time.Now() }

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	tenant, rest, _ := strings.Cut(strings.Trim(r.URL.Path, "/"), "/")
	known := slices.Contains([]string{s.tenant, "organizations", "common"}, strings.ToLower(tenant))
	switch {
	case rest == "discovery/instance":
		s.instance(w)
	case !known && strings.HasSuffix(rest, "openid-configuration"):
		Refuse(w, 400, 90002, "invalid_tenant", "Tenant '"+tenant+"' not found. Check to make sure you have the correct tenant ID and are signing into the correct cloud.")
	case strings.HasSuffix(rest, ".well-known/openid-configuration"):
		s.discover(w, tenant)
	case rest == "oauth2/v2.0/token" && r.Method == http.MethodPost:
		s.token(w, r)
	case rest == "oauth2/v2.0/devicecode" && r.Method == http.MethodPost:
		s.device(w)
	default:
		http.Error(w, "there is nothing at "+r.URL.Path, http.StatusNotFound)
	}
}

func write(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(body)
}

// Refuse answers a request for a token with one of the numbers of the service.
func Refuse(w http.ResponseWriter, status, number int, code, text string) {
	trace, at := "00000000-0000-0000-0000-000000000000", time.Now().UTC()
	write(w, status, map[string]any{
		"error": code, "error_codes": []int{number}, "trace_id": trace, "correlation_id": trace, "timestamp": at.Format("2006-01-02 15:04:05Z"),
		"error_description": fmt.Sprintf("AADSTS%d: %s Trace ID: %s Correlation ID: %s Timestamp: %s", number, text, trace, trace, at.Format("2006-01-02 15:04:05Z")),
		"error_uri":         fmt.Sprintf("https://%s/error?code=%d", Host, number),
	})
}

func (s *Server) instance(w http.ResponseWriter) {
	write(w, 200, map[string]any{"tenant_discovery_endpoint": "https://" + Host + "/common/v2.0/.well-known/openid-configuration", "api-version": "1.1",
		"metadata": []any{map[string]any{"preferred_network": Host, "preferred_cache": "login.windows.net", "aliases": []string{Host, "login.windows.net"}}}})
}

func (s *Server) discover(w http.ResponseWriter, tenant string) {
	at := "https://" + Host + "/" + tenant
	write(w, 200, map[string]any{"token_endpoint": at + "/oauth2/v2.0/token", "authorization_endpoint": at + "/oauth2/v2.0/authorize",
		"device_authorization_endpoint": at + "/oauth2/v2.0/devicecode", "issuer": at + "/v2.0", "jwks_uri": at + "/discovery/v2.0/keys",
		"response_modes_supported": []string{"query"}, "response_types_supported": []string{"code"}, "subject_types_supported": []string{"pairwise"}, "id_token_signing_alg_values_supported": []string{"RS256"}})
}

func (s *Server) token(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		Refuse(w, 400, 900144, "invalid_request", "The request body must contain the following parameter: 'grant_type'.")
		return
	}
	switch grant := r.PostFormValue("grant_type"); grant {
	case "client_credentials":
		s.principal(w, r)
	case "urn:ietf:params:oauth:grant-type:device_code", "device_code":
		s.mu.Lock()
		pending, there := s.devices[r.PostFormValue("device_code")]
		s.mu.Unlock()
		switch {
		case !there:
			Refuse(w, 400, 70020, "bad_verification_code", "The provided value for the input parameter 'device_code' is not valid.")
		case pending != "":
			Refuse(w, 400, 70016, "authorization_pending", "OAuth 2.0 device flow error. Authorization is pending. Continue polling.")
		default:
			s.person(w, r)
		}
	case "refresh_token":
		if r.PostFormValue("refresh_token") != s.refresh {
			Refuse(w, 400, 700082, "invalid_grant", "The refresh token has expired due to inactivity.")
			return
		}
		s.person(w, r)
	default:
		Refuse(w, 400, 70003, "unsupported_grant_type", "The app requested an unsupported grant type '"+grant+"'.")
	}
}

func (s *Server) principal(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.PostFormValue("client_id") != s.client:
		Refuse(w, 400, 700016, "unauthorized_client", "Application with identifier '"+r.PostFormValue("client_id")+"' was not found in the directory 'Example'.")
	case r.PostFormValue("client_secret") != s.Secret:
		Refuse(w, 401, 7000215, "invalid_client", "Invalid client secret provided. Ensure the secret being sent in the request is the client secret value, not the client secret ID, for a secret added to app '"+s.client+"'.")
	default:
		seconds := int(s.lifetime.Seconds())
		write(w, 200, map[string]any{"token_type": "Bearer", "expires_in": seconds, "ext_expires_in": seconds, "access_token": s.Mint(r.PostFormValue("scope"), s.client)})
	}
}

// device begins the sign-in of a person, who is shown a code.
func (s *Server) device(w http.ResponseWriter) {
	device, user := rand.Text(), rand.Text()[:9]
	s.mu.Lock()
	s.devices[device] = user
	s.mu.Unlock()
	write(w, 200, map[string]any{"device_code": device, "user_code": user, "verification_uri": "https://microsoft.com/devicelogin", "expires_in": 900, "interval": 1,
		"message": "To sign in, use a web browser to open the page https://microsoft.com/devicelogin and enter the code " + user + " to authenticate."})
}

// Approve is a person who enters a code, and reports whether somebody waits for it.
func (s *Server) Approve(user string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for device, code := range s.devices {
		if code == user && user != "" {
			s.devices[device] = ""
			return true
		}
	}
	return false
}

func (s *Server) person(w http.ResponseWriter, r *http.Request) {
	seconds, oid := int(s.lifetime.Seconds()), "00000000-0000-4000-8000-000000000001"
	info, _ := json.Marshal(map[string]string{"uid": oid, "utid": s.tenant})
	id := s.sign(map[string]any{"aud": r.PostFormValue("client_id"), "iss": "https://" + Host + "/" + s.tenant + "/v2.0", "iat": time.Now().Unix(), "exp": time.Now().Add(s.lifetime).Unix(),
		"oid": oid, "sub": oid, "tid": s.tenant, "preferred_username": Person, "name": "Casey", "ver": "2.0"})
	write(w, 200, map[string]any{"token_type": "Bearer", "scope": r.PostFormValue("scope"), "expires_in": seconds, "ext_expires_in": seconds, "refresh_token": s.refresh,
		"access_token": s.Mint(r.PostFormValue("scope"), Person), "id_token": id, "client_info": base64.RawURLEncoding.EncodeToString(info)})
}

// Mint makes an access token for a scope.
func (s *Server) Mint(scope, who string) string {
	audience := scope
	for f := range strings.FieldsSeq(scope) { // openid, profile and offline_access beside it
		if a, ok := strings.CutSuffix(f, "/.default"); ok {
			audience = a
		}
	}
	now := time.Now()
	return s.sign(map[string]any{"aud": audience, "iss": "https://sts.windows.net/" + s.tenant + "/", "iat": now.Unix(), "nbf": now.Add(-5 * time.Minute).Unix(),
		"exp": now.Add(s.lifetime).Unix(), "appid": who, "oid": "00000000-0000-4000-8000-000000000001", "tid": s.tenant, "ver": "1.0", "at": now.UnixNano()})
}

func (s *Server) sign(claims map[string]any) string {
	head, _ := json.Marshal(map[string]string{"typ": "JWT", "alg": "RS256", "kid": "local"})
	body, _ := json.Marshal(claims)
	text := base64.RawURLEncoding.EncodeToString(head) + "." + base64.RawURLEncoding.EncodeToString(body)
	return text + "." + base64.RawURLEncoding.EncodeToString(s.mac(text))
}

func (s *Server) mac(text string) []byte {
	m := hmac.New(sha256.New, s.key)
	m.Write([]byte(text))
	return m.Sum(nil)
}

// Verify says why a token is not one for the Resource Manager.
func (s *Server) Verify(token string) *cloud.Error {
	invalid := &cloud.Error{Status: 401, Code: "InvalidAuthenticationToken", Message: "The access token is invalid."}
	at := strings.LastIndexByte(token, '.')
	if at < 0 {
		return invalid
	}
	mac, err := base64.RawURLEncoding.DecodeString(token[at+1:])
	if err != nil || !hmac.Equal(mac, s.mac(token[:at])) {
		return invalid
	}
	_, body, _ := strings.Cut(token[:at], ".")
	b, err := base64.RawURLEncoding.DecodeString(body)
	var c struct {
		Aud string
		Exp int64
		At  int64
	}
	if err != nil || json.Unmarshal(b, &c) != nil {
		return invalid
	}
	s.mu.Lock()
	revoked := s.revoked
	s.mu.Unlock()
	switch {
	case !strings.HasPrefix(c.Aud, "https://management."):
		return &cloud.Error{Status: 401, Code: "InvalidAuthenticationTokenAudience", Message: "The access token has been obtained for wrong audience or resource '" + c.Aud + "'."}
	case time.Now().Unix() >= c.Exp || !time.Unix(0, c.At).After(revoked):
		return &cloud.Error{Status: 401, Code: "ExpiredAuthenticationToken", Message: fmt.Sprintf("The access token expiry UTC time '%s' is earlier than current UTC time '%s'.",
			time.Unix(c.Exp, 0).UTC().Format("1/2/2006 3:04:05 PM"), time.Now().UTC().Format("1/2/2006 3:04:05 PM"))}
	}
	return nil
}
