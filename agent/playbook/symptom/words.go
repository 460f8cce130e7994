package symptom

import (
	"strings"

	"ghostbot/agent/playbook/pattern"
)

// words maps what people and programs say to a kind of trouble. The order is
// the rank: a text that says "502" and "connection refused" is an error first,
// because the 502 is what can be asked for again, and a text that names a
// certificate is about the certificate whatever else fails with it.
//
// Phrases are divided by commas, in lower case; < and > at their ends stand for
// the edge of a word, a blank for any white space. The pattern is for what
// phrases cannot say.
var words = []struct {
	kind    Kind
	phrases []string
	pattern *pattern.Pattern
}{
	{Certificate, phrases(`x509:,certificate,<cert>,<certs>,zertifikat,certificat,certificado,cert_,sslcertverification,pkix path,sslhandshake,
		self-signed,self signed,not trusted,not yet trusted,untrusted,hostname mismatch,hostname doesn't match,hostname does not match,err_tls_cert,err_cert,
		verify the first,server identity,verify the identity,identity of the,cannot be authenticated,notafter,curl: (60),not secure,privacy error,not private,padlock,<tls>,<ssl>,ssl_error,browser warn,security warning`), pattern.New(`https\b.*\bexpired|expired.*\bhttps\b`)},
	{Name, phrases(`no such host,nxdomain,servfail,server misbehaving,name or service not known,temporary failure in name,not resolve,n't resolve,no resolve,
		never resolve,fails to resolve,failing to resolve,unable to resolve,stopped resolving,could not resolve,cannot resolve,not be resolved,unresolv,resolution fail,
		resolution error,resolution problem,resolution issue,name resolution,resolves to nothing,resolve to nothing,resolving fails,<dns>,<resolver>,<resolvers>,nameserver,name server,unknownhost,enotfound,
		eai_again,eai_noname,getaddrinfo,gaierror,nameresolutionerror,nodename nor servname,host not found,unknown host,namensauflösung,löst nicht auf,
		server can't find,curl: (6),not known,dns_probe,can't be looked up,look up the name,not resolving,n't resolving,<nslookup>,no address for,look up,looked up,<lookup,<queries for,<query for,<dig>`), pattern.New(`resolv\w+ (fails|failed|errors?|problems?|times? out|timeouts?)`)},
	{Redirect, phrases(`too many redirect,too_many_redirect,redirect loop,redirects in a loop,redirect cycle,redirected you too many,redirecting in a way,keeps redirecting,endless redirect,endless loop,redirect error,maximum redirects,
		max redirects,maximum number of redirects,(47),weiterleitung,umleitung`), nil},
	{Error, phrases(`bad gateway,service unavailable,gateway time-out,gateway timeout,internal error,internal server error,no healthy upstream,upstream connect,
		upstream unreachable,upstream error,upstream prematurely,upstream sent,upstream fail,upstream timed,no live upstreams,server error,error page,fehlerseite,
		internalservererror,badgateway,serviceunavailable,no server is available,errors out,error out,<5xx>,returns error,answers error,answers with error,shows an error,
		gives an error,returns an error,answers with an error,responds with an error,serves error,serving error,throws error`), nil},
	{Refused, phrases(`refus,errno 111>,(111:,(111),os error 111,10061,abgelehnt,rechazad,rehusad,rifiutat,recusad,拒否,拒绝,отказано,geweigerd,odrzucone,can't connect,cannot connect,
		could not connect,couldn't connect,failed to connect,unable to connect,not listening,nothing listen,nothing is listen,nothing there,port closed,port is closed,port seems closed,
		port looks closed,curl: (7),<is down>,<are down>,<went down>,seems down,looks down,appears down,appears to be down,<goes down>,<is dead>,<seems dead>,<are dead>,<looks dead>,<is gone>,
		<is offline>,<be down>,<it down>,unreachable,can't reach,cannot reach,can not reach,could not reach,couldn't reach,can't be reached,cannot be reached,not reachable,can't open,
		not start,n't start,not come up,n't come up,not accept,n't accept,connection failure,can't get to,won't load,not load,n't load`), nil},
	{Reset, phrases(`<reset,econnreset,errno 104>,(104:,(104),os error 104,broken pipe,epipe,unexpected eof,<eof>,empty reply,connection aborted,remotedisconnected,
		closed connection without,socket hang up,socket hangup,prematurely closed,remote end closed,connection closed,connection was closed,connection is closed,
		connection gets closed,closes the connection,closed the connection,connection dropped,connection drops,connection was dropped,connection lost,connection is cut,connection was cut,connections drop,
		zurückgesetzt,ré-initialisée,reinicializada,hangs up,hung up,ends abruptly,drops connection,drops the connection,drops our connection,drops my connection,drops all connection,cut off,curl: (52),curl: (56),curl: (18),
		incompleteread,truncated response,truncated body,truncated transfer,truncated download,breaks off,breaking off,disconnect,torn down,kicked out`), nil},
	{Overload, phrases(`overload,accept queue,backlog,listen queue,somaxconn,too many connections,too many open files,too many requests,too many clients,saturat,
		syn flood,queue is full,queue full,full queue,exhaust,at capacity,maxed out,piling up,pile up,listen overflow,überlast,pool timeout,max clients,maximum clients,max connections,
		maximum connections,cannot assign requested address,eaddrnotavail,time_wait,time-wait,ephemeral port`), nil},
	{Silent, phrases(`timed out,time out,times out,time-out,timeout,timing out,timed-out,etimedout,deadline exceeded,errno 110>,(110:,(110),os error 110,no answer,no response,no reply,
		no connection,unanswered,sits there,nothing answers,nothing responds,nothing comes back,nothing happens,not answer,not respond,n't answer,n't respond,n't reply,n't react,not reply,never answer,
		never respond,never repl,never return,never connect,never come,never finish,never complete,<hang>,<hangs>,<hanging>,<hung>,<stuck>,<stall,frozen,freez,silent,silence,black hole,blackhole,
		unresponsive,zeitüberschreitung,délai d'attente,tiempo de espera,tempo scaduto,tempo esgotado,wartezeit,curl: (28),swallow,forever,10060,<spins>,<spinning>,keeps loading,keeps waiting,antwortet nicht,ne répond pas,no responde`), nil},
	{Slow, phrases(`<slow,latency,latencies,sluggish,lagg,<lag>,<lags>,takes too,takes very,takes so,takes ages,takes forever,takes long,takes several,takes many,takes minutes,takes seconds,taking too,taking very,taking so,
		taking ages,taking forever,taking long,taking several,response time,ttfb,langsam,<lente>,<lent>,<lento>,degraded,performance,delay,crawl`),
		pattern.New(`tak(es|ing) (about |over |more than |up to |around |at least |~|>)?\d|seconds? (to|for|per|each)\b|\bp9\d`)},
	{Path, phrases(`packet loss,packetloss,losing packets,drops packets,dropping packets,drop packets,no route,ehostunreach,enetunreach,host is down,host down,host unreachable,
		host is unreachable,network unreachable,network is unreachable,<routing,<route>,<routes>,traceroute,<ping>,<pings>,<pinging>,<mtu>,fragment,<ttl>,<jitter,firewall,filtered,blocked,nicht erreichbar`), nil},
	{Auth, phrases(`noauth,wrongpass,authenticat,<auth>,<login,log in,sign in,password,credential,unauthori,access denied,permission denied`), nil},
	{Error, phrases(`<error,<fail,<reject,<turns away,<turned away,<broken>,<breaks>,<fault,<outage,fehler,erreur,kaputt`), nil},
}

// spelled corrects what people in a hurry leave out or turn around most often.
var spelled = strings.NewReplacer(
	"cant ", "can't ", "canot ", "cannot ", "can not ", "cannot ", "couldnt ", "couldn't ", "wont ", "won't ", "doesnt ", "doesn't ", "dosnt ", "doesn't ", "dont ", "don't ",
	"didnt ", "didn't ", "isnt ", "isn't ", "arent ", "aren't ", "conect", "connect", "connnect", "connect", "timout", "timeout", "time outs", "timeouts", "timeing", "timing",
	"gatway", "gateway", "gatewy", "gateway", "certifcate", "certificate", "certficate", "certificate", "cerificate", "certificate", "certifikat", "certificate",
	"refusd", "refused", "refussed", "refused", "refusede", "refused", "rejectd", "rejected", "resove", "resolve", "reslove", "resolve", "resolv ", "resolve ", "servfal", "servfail", "sevfail", "servfail",
	"nxdomian", "nxdomain", "overloded", "overloaded", "unavailble", "unavailable", "unavalable", "unavailable", "respnse", "response", "anwser", "answer", "expird", "expired",
	"hangin ", "hanging ", "recieve", "receive", "foreva", "forever", "fo ever", "forever", "latancy", "latency", "slwo", "slow")

// phrases divides a list at its commas.
func phrases(list string) []string {
	var out []string
	for _, p := range strings.Split(list, ",") {
		out = append(out, strings.Trim(p, "\n\t"))
	}
	return out
}

// kinds returns the kinds whose words the text has, strongest first.
func kinds(text string, codes []int) []Kind {
	low := spelled.Replace(" " + strings.Join(strings.Fields(strings.ToLower(text)), " ") + " ")
	var out []Kind
	has := map[Kind]bool{}
	for _, w := range words {
		switch {
		case has[w.kind]:
		case w.kind == Error && len(codes) > 0 && codes[0] >= 500, says(low, w.phrases), w.pattern != nil && w.pattern.MatchString(low):
			has[w.kind] = true
			out = append(out, w.kind)
		}
	}
	if len(codes) > 0 && !has[Error] {
		out = append(out, Error)
	}
	return out
}

func says(low string, list []string) bool {
	for _, p := range list {
		if contains(low, p) {
			return true
		}
	}
	return false
}

// contains looks for one phrase with its word edges.
func contains(low, phrase string) bool {
	word, start := strings.CutPrefix(phrase, "<")
	word, end := strings.CutSuffix(word, ">")
	for i := 0; ; {
		j := strings.Index(low[i:], word)
		if j < 0 {
			return false
		}
		j += i
		k := j + len(word)
		if (!start || j == 0 || !isWord(low[j-1])) && (!end || k == len(low) || !isWord(low[k])) {
			return true
		}
		i = j + 1
	}
}

func isWord(c byte) bool { return isAlnum(c) || c == '_' }
