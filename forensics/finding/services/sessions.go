package services

import (
	"fmt"
	"strings"
	"time"

	"ghostbot/forensics/app"
	"ghostbot/forensics/facts"
	"ghostbot/forensics/finding/statement"
	"ghostbot/forensics/flow"
	"ghostbot/forensics/semantic/text"
)

// soon is how long before its end a certificate is worth a word.
const soon = 14 * 24 * time.Hour

// name is a session's conversation; the server is the end with the smaller port.
func name(k *flow.Key) string {
	client := 0
	if k.PortA() < k.PortB() {
		client = 1
	}
	return text.End(k, client) + " -> " + text.End(k, client^1)
}

// certificates finds those that end soon. What has ended fails, and is told elsewhere.
func certificates(f *facts.Facts) (out []statement.Finding) {
	now := time.Unix(0, f.First)
	seen := map[string]bool{}
	for _, s := range f.App.Sessions {
		h := &s.TLS
		left := h.NotAfter.Sub(now)
		who := statement.When(h.SNI != "", h.SNI, "a server")
		if h.CertFrame == 0 || left < 0 || left > soon || now.Before(h.NotBefore) || seen[who] {
			continue
		}
		seen[who] = true
		out = append(out, statement.Finding{Severity: statement.Low, Protocol: "tls", Code: "certificate-expires", Confidence: 0.95, Frames: []uint32{h.CertFrame}, Flow: name(&s.Key),
			Summary: fmt.Sprintf("The certificate of %s ends %d days after the capture, on %s.", who, int(left.Hours()/24), h.NotAfter.UTC().Format(time.DateOnly)),
			Detail:  "From then on clients refuse it. Certificates that renew themselves are renewed earlier than this as a rule.",
			Confirm: "openssl s_client -connect HOST:PORT -servername NAME shows the dates that are served now."})
	}
	return out
}

// versions finds servers that speak a version of TLS that is given up (RFC 8996).
func versions(f *facts.Facts) []statement.Finding {
	x := statement.Finding{Severity: statement.Low, Protocol: "tls", Code: "tls-old-version", Confidence: 0.95,
		Detail:  "TLS before 1.2 is given up (RFC 8996): current clients refuse it, and what still uses it breaks with their next update.",
		Confirm: "openssl s_client -tls1_2 against the server: when that works, the client is the old one."}
	n := 0
	for _, s := range f.App.Sessions {
		if h := &s.TLS; h.ServerHello > 0 && h.Version >= 0x0300 && h.Version < 0x0303 {
			n++
			x.Frames, x.Flow = append(x.Frames, h.ServerHello), name(&s.Key)
			x.Summary = fmt.Sprintf("%s chooses %s on %s.", statement.When(h.SNI != "", h.SNI, "A server"), app.VersionName(h.Version), statement.Plural(n, "connection", "connections"))
		}
	}
	if n == 0 {
		return nil
	}
	return []statement.Finding{x}
}

// refusals finds servers that answer most requests with an error of the client's.
func refusals(f *facts.Facts) []statement.Finding {
	var errors, all uint32
	x := statement.Finding{Severity: statement.Low, Protocol: "http", Code: "http-client-errors", Confidence: 0.85,
		Detail: "Status", Confirm: "The access log of the server; whether the client's address, name or credentials changed."}
	for _, s := range f.App.Sessions {
		all += s.HTTP.Responses
		if errors += s.HTTP.Errors4xx; s.HTTP.Errors4xx > 0 {
			x.Flow = name(&s.Key)
			x.Frames = append(x.Frames, s.HTTP.Refused...)
		}
	}
	if errors < 3 || errors*2 < all {
		return nil
	}
	for code := 400; code < 500; code++ {
		if n := f.App.Status[code]; n > 0 {
			x.Detail += fmt.Sprintf(" %d (%d times)", code, n)
		}
	}
	x.Summary = fmt.Sprintf("%d of %d HTTP requests are refused as the client's mistake.", errors, all)
	x.Detail += ". The network carries requests and answers; 401 and 403 speak of credentials, 404 of a path or host name, 429 of a limit."
	return []statement.Finding{x}
}

// AlertReason is what an alert means; agreed tells that the server had chosen version and cipher.
func AlertReason(code uint8, agreed bool) string {
	switch code {
	case 40, 71:
		if agreed {
			return "A version and a cipher were agreed on before; what is left is a client certificate that is missing or not accepted, or signature algorithms and groups."
		}
		return "Both sides have no cipher in common."
	case 70, 86:
		return "Both sides have no version in common."
	case 48:
		return "It does not know the authority that signed the certificate."
	case 45:
		return "The certificate is expired."
	case 42, 46, 116:
		return "A certificate is missing or is not accepted."
	case 112:
		return "The server does not know the name."
	}
	return ""
}

// Missing is how bad names are that do not exist: when each is one that exists with a search
// domain behind it, a resolver tried the list that it is set up with, and came to the end.
func Missing(f *facts.Facts) statement.Severity {
	exists := map[string]bool{}
	for i := range f.DNS.Names {
		exists[f.DNS.Names[i].Text] = f.DNS.Names[i].Full > 0
	}
	for i := range f.DNS.Names {
		n := &f.DNS.Names[i]
		if n.NX == 0 {
			continue
		}
		found := false
		for i := strings.LastIndexByte(n.Text, '.'); i > 0 && !found; i = strings.LastIndexByte(n.Text[:i], '.') {
			found = exists[n.Text[:i]]
		}
		if !found {
			return statement.Medium
		}
	}
	return statement.Low
}
