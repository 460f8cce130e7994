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
	"strings"

	"ghostbot/agent/playbook/pattern"
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
	NoConnect   Failure = "unconnected" // did not connect, the tool does not say why
	Reset       Failure = "reset"       // connected, then a reset
	Empty       Failure = "empty"       // connected, then closed without an answer
	Cut         Failure = "cut"         // the answer ended early
	NoAnswer    Failure = "no-answer"   // connected, then no first byte in time
	Stalled     Failure = "stalled"     // the answer began and did not end in time
	Untrusted   Failure = "untrusted"   // the certificate was not accepted
	NotTLS      Failure = "not-tls"     // the other side does not speak TLS
	Alert       Failure = "alert"       // the TLS handshake was refused
	NoPort      Failure = "no-port"     // no local address or port to connect from
	NotHTTP     Failure = "not-http"    // the other side does not speak HTTP
	Permission  Failure = "permission"  // this process may not do that
	Usage       Failure = "usage"       // the tool does not know the option
	Other       Failure = "other"       // failed, and nothing here says how
)

// errnos maps the C library's words for connection errors to failures, in the
// languages in which servers are usually run. Texts without a language are the
// ones that programs use themselves. All are in lower case; the first list of
// which the text has a member decides.
var errnos = []struct {
	is   Failure
	says string // divided by |
}{
	{Usage, "invalid option|unrecognized option|unknown option|illegal option|usage:|bad option|is unknown"},
	{Unresolved, "name or service not known|temporary failure in name|could not resolve|couldn't resolve|getaddrinfo|nodename nor servname|name does not resolve|" +
		"bad address|unknown host|forward host lookup failed|no address associated|name oder dienst nicht bekannt|nom ou service inconnu|nombre o servicio desconocido|nome o servizio sconosciuto"},
	{Refused, "refused|verbindungsaufbau abgelehnt|connexion refusée|conexión rehusada|connessione rifiutata|conexão recusada|接続を拒否|拒绝连接|в соединении отказано|" +
		"is geweigerd|połączenie odrzucone"},
	{NoPort, "cannot assign requested address|can't assign requested address|adresse kann nicht zugewiesen werden|die angeforderte adresse kann nicht|impossible d'assigner l'adresse demandée"},
	{Reset, "connection reset|reset by peer|kommunikationspartner zurückgesetzt|connexion ré-initialisée|connexion réinitialisée|conexión reinicializada|connessione interrotta|" +
		"conexão fechada pela outra ponta|接続が相手からリセット|对方重设|соединение разорвано|verbinding is weggevallen|połączenie zerwane"},
	{Unreachable, "no route to host|host is down|host is unreachable|network is down|network is unreachable|host unreachable|net unreachable|network unreachable|keine route zum|" +
		"netzwerk ist nicht erreichbar|aucun chemin d'accès|le réseau n'est pas accessible|no existe ninguna ruta|la red es inaccesible|nessun instradamento|rete non raggiungibile|" +
		"rete non è raggiungibile|não há rota|rede está fora|経路がありません|ネットワークに届きません|没有到主机的路由|网络不可达|нет маршрута|сеть недоступна|geen route naar|" +
		"netwerk is onbereikbaar|brak trasy|sieć jest niedostępna"},
	{Prohibited, "prohibited|packet filtered|operation not permitted|operation ist nicht erlaubt"},
	{Silent, "timed out|time out|timeout|timedout|wartezeit für die verbindung|délai d'attente|expiró el tiempo|tiempo de espera|connessione scaduta|tempo esgotado|タイムアウト|连接超时|" +
		"время ожидания|verbinding is verlopen|przekroczony czas|in progress|resource temporarily unavailable"},
	{Permission, "permission denied|you don't have permission|not permitted|keine berechtigung|permission non accordée|permiso denegado|permesso negato|permissão negada|許可がありません|权限不够|" +
		"отказано в доступе|toegang geweigerd|brak dostępu|must be root|are you root"},
}

// numbers are the error numbers that openssl prints, of Linux and BSD.
var numbers = map[string]Failure{
	"111": Refused, "61": Refused, "104": Reset, "54": Reset, "113": Unreachable, "112": Unreachable, "101": Unreachable,
	"110": Silent, "60": Silent, "115": Silent,
}

var errno = pattern.New(`errno=(\d+)`)

// failure reads a failure out of words; Other when they say nothing known.
func failure(text string) Failure {
	low := strings.ToLower(text)
	for _, e := range errnos {
		for list := e.says; list != ""; {
			var word string
			word, list, _ = strings.Cut(list, "|")
			if strings.Contains(low, word) {
				return e.is
			}
		}
	}
	if m := errno.FindStringSubmatch(low); m != nil {
		if f, ok := numbers[m[1]]; ok {
			return f
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
