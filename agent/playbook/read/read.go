// Package read turns the outputs of network tools into values. Every reader is
// total: it takes any text, of any version of the tool or of something that is
// not the tool at all, and returns what it could read; what it could not read
// stays zero. No reader interprets text beyond the forms written down beside it,
// and no text of an output becomes part of a command here.
//
// Outputs are untrusted, bounded by the gate before they come here, and may be
// cut in the middle: the gate leaves the first and the last lines.
package read

import (
	"regexp"
	"strings"
)

// Output is what a command left behind.
type Output struct {
	Stdout string
	Stderr string
	Exit   int
}

// both is everything that was said, for tools that divide it arbitrarily.
func (o Output) both() string { return o.Stdout + "\n" + o.Stderr }

// Failure is how a network operation failed, as far as a tool's text or exit
// code says. The zero value is "it did not".
type Failure string

// The failures.
const (
	None        Failure = ""
	Refused     Failure = "refused"     // a reset answered the connection attempt
	Silent      Failure = "silent"      // nothing came back in time
	Unreachable Failure = "unreachable" // no route, host down, or told so by ICMP
	Prohibited  Failure = "prohibited"  // told by ICMP or the local filter that it is not allowed
	Unresolved  Failure = "unresolved"  // the name gave no address
	NoConnect   Failure = "no-connect"  // did not connect, the tool does not say why
	Reset       Failure = "reset"       // connected, then a reset
	Empty       Failure = "empty"       // connected, then closed without an answer
	Cut         Failure = "cut"         // the answer ended early
	NoAnswer    Failure = "no-answer"   // connected, then no first byte in time
	Stalled     Failure = "stalled"     // the answer began and did not end in time
	Untrusted   Failure = "untrusted"   // the certificate was not accepted
	NotTLS      Failure = "not-tls"     // the other side does not speak TLS
	Alert       Failure = "alert"       // the TLS handshake was refused
	NotHTTP     Failure = "not-http"    // the other side does not speak HTTP
	Permission  Failure = "permission"  // this process may not do that
	Usage       Failure = "usage"       // the tool does not know the option
	Other       Failure = "other"       // failed, and nothing here says how
)

// errnos maps the C library's words for connection errors to failures, in the
// languages in which servers are usually run. Texts without a language are the
// ones that programs use themselves.
var errnos = []struct {
	says *regexp.Regexp
	is   Failure
}{
	{regexp.MustCompile(`(?i)invalid option|unrecognized option|unknown option|illegal option|^usage:|\nusage:|bad option|is unknown\b|option .* requires`), Usage},
	{regexp.MustCompile(`(?i)name or service not known|temporary failure in name|could not resolve|couldn'?t resolve|getaddrinfo|nodename nor servname|name does not resolve|bad address|unknown host|forward host lookup failed|no address associated|name oder dienst nicht bekannt|nom ou service inconnu|nombre o servicio desconocido|nome o servizio sconosciuto`), Unresolved},
	{regexp.MustCompile(`(?i)refused|verbindungsaufbau abgelehnt|connexion refusée|conexión rehusada|connessione rifiutata|conexão recusada|接続を拒否|拒绝连接|в соединении отказано|errno=111\b|errno=61\b`), Refused},
	{regexp.MustCompile(`(?i)connection reset|reset by peer|kommunikationspartner zurückgesetzt|connexion ré-initialisée|conexión reinicializada|connessione interrotta|conexão fechada pela outra ponta|接続が相手からリセット|对方重设|соединение разорвано|errno=104\b|errno=54\b`), Reset},
	{regexp.MustCompile(`(?i)no route to host|host is (down|unreachable)|network is (down|unreachable)|host unreachable|net unreachable|keine route zum|netzwerk ist nicht erreichbar|aucun chemin d'accès|le réseau n'est pas accessible|no existe ninguna ruta|la red es inaccesible|nessun instradamento|rete non raggiungibile|não há rota|rede .*inacess|到主机没有路由|маршрут|errno=11[23]\b|errno=101\b`), Unreachable},
	{regexp.MustCompile(`(?i)administratively prohibited|prohibited|packet filtered|operation not permitted|vorgang nicht zulässig|communication prohibited`), Prohibited},
	{regexp.MustCompile(`(?i)timed? ?out|wartezeit für die verbindung|délai d'attente|expiró el tiempo|tiempo de espera|connessione scaduta|tempo esgotado|タイムアウト|连接超时|время ожидания|in progress|resource temporarily unavailable|errno=110\b|errno=60\b|errno=115\b`), Silent},
	{regexp.MustCompile(`(?i)permission denied|you don't have permission|not permitted|keine berechtigung|permission non accordée|must be root|are you root`), Permission},
}

// failure reads a failure out of words; Other when they say nothing known.
func failure(text string) Failure {
	for _, e := range errnos {
		if e.says.MatchString(text) {
			return e.is
		}
	}
	return Other
}

// lines splits text into lines without the carriage returns of foreign tools.
// At most 4,000 are read: what the gate lets through is shorter.
func lines(text string) []string {
	out := strings.SplitN(strings.ReplaceAll(text, "\r", ""), "\n", 4001)
	if len(out) > 4000 {
		out = out[:4000]
	}
	return out
}
