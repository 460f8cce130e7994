// Package report writes about a capture for people: a forensic report and an executive summary in
// Markdown, and the semantic JSON cut to what a model can take in. It reads the semantic JSON, so
// that a report says what the numbers say and nothing else; it follows rules and asks nobody.
//
// Everything that came from packets (names, mostly) is untrusted: it is escaped wherever it stands,
// and never ends up in a command unless it is an address, a port or a host name.
package report

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// Document is what a report needs of the semantic JSON. Other members are ignored; a block that a
// capture does not have is nil.
type Document struct {
	Summary struct {
		File      string   `json:"file"`
		Packets   int64    `json:"total_packets"`
		Seconds   float64  `json:"duration_seconds"`
		Protocols []string `json:"protocols_present"`
	} `json:"capture_summary"`
	ARP *struct {
		Requests   int64             `json:"total_requests"`
		Replies    int64             `json:"total_replies"`
		Unanswered []json.RawMessage `json:"unanswered_requests"`
	} `json:"arp"`
	ICMP *Echo `json:"icmp"`
	TCP  *TCP  `json:"tcp"`
	DNS  *DNS  `json:"dns"`
	TLS  *struct {
		Hellos  int64            `json:"client_hellos"`
		Answers int64            `json:"server_hellos"`
		Alerts  map[string]int64 `json:"alerts"`
		Names   []string         `json:"server_names"`
	} `json:"tls"`
	HTTP *struct {
		Status map[string]int64 `json:"status"`
		Time   Spread           `json:"response_time_ms"`
	} `json:"http"`
	Findings   []Finding `json:"findings"`
	Provenance struct {
		SHA256     string   `json:"sha256"`
		Bytes      int64    `json:"bytes"`
		SnapLen    int64    `json:"snap_length"`
		Cut        int64    `json:"packets_cut_by_snap_length"`
		Skipped    int64    `json:"bytes_skipped"`
		Filter     string   `json:"filter"`
		Incomplete []string `json:"incomplete"`
		Error      string   `json:"error"`
	} `json:"provenance"`
}

// Echo are the figures of ICMP echo.
type Echo struct {
	Matched   int64  `json:"echo_pairs_matched"`
	Unmatched int64  `json:"echo_unmatched"`
	RTT       Spread `json:"rtt_ms"`
}

// TCP are the figures of TCP.
type TCP struct {
	Streams         int64  `json:"streams_total"`
	Retransmissions int64  `json:"retransmissions_total"`
	Resets          int64  `json:"rst_count"`
	DuplicateACKs   int64  `json:"duplicate_ack_total"`
	OutOfOrder      int64  `json:"out_of_order_total"`
	ZeroWindow      int64  `json:"zero_window_total"`
	RTT             Spread `json:"ack_rtt_ms"`
	Connections     struct {
		SYN        int64   `json:"syn_sent"`
		Handshakes int64   `json:"handshakes_completed"`
		Success    float64 `json:"handshake_success_rate_pct"`
	} `json:"connection_stats"`
	Issues []Stream `json:"streams_with_issues"`
}

// Stream is a TCP stream with something to look at.
type Stream struct {
	ID              int64  `json:"stream_id"`
	Src             string `json:"src"`
	Dst             string `json:"dst"`
	Retransmissions int64  `json:"retransmissions"`
}

// DNS are the figures of DNS.
type DNS struct {
	Queries    int64            `json:"queries_total"`
	Responses  int64            `json:"responses_total"`
	Unanswered int64            `json:"unanswered_queries"`
	Rcodes     map[string]int64 `json:"rcode_distribution"`
	Latency    Spread           `json:"latency_ms"`
	NXDomains  []string         `json:"nxdomain_domains"`
	ServFails  []string         `json:"servfail_domains"`
	Slow       []struct {
		Name string `json:"name"`
	} `json:"slow_queries"`
	Top []struct {
		Name string `json:"name"`
	} `json:"top_queried_domains"`
}

// Spread is a distribution in milliseconds.
type Spread struct {
	Min    float64 `json:"min"`
	Median float64 `json:"median"`
	P95    float64 `json:"p95"`
	Max    float64 `json:"max"`
}

// Finding is one statement with its evidence.
type Finding struct {
	Severity   string  `json:"severity"`
	Protocol   string  `json:"protocol"`
	Code       string  `json:"code"`
	Summary    string  `json:"summary"`
	Detail     string  `json:"detail"`
	Confirm    string  `json:"confirm"`
	Limits     string  `json:"limits"`
	Frames     []int64 `json:"frames"`
	Flow       string  `json:"flow"`
	Confidence float64 `json:"confidence"`
}

// Parse reads the semantic JSON.
func Parse(semantic []byte) (*Document, error) {
	var d Document
	if err := json.Unmarshal(semantic, &d); err != nil {
		return nil, fmt.Errorf("reading the semantic JSON: %w", err)
	}
	return &d, nil
}

// loud are the findings that are worth acting on: MEDIUM and above.
func (d *Document) loud() []Finding {
	return slices.DeleteFunc(slices.Clone(d.Findings), func(f Finding) bool { return !f.loud() })
}

func (f *Finding) loud() bool {
	return f.Severity == "CRITICAL" || f.Severity == "HIGH" || f.Severity == "MEDIUM"
}

// ends are the addresses and ports of a finding's flow, "A:P -> B:P"; invalid where it has none.
func (f *Finding) ends() (from, to netip.AddrPort) {
	a, b, _ := strings.Cut(strings.ReplaceAll(f.Flow, " > ", " -> "), " -> ")
	return end(a), end(b)
}

// end reads an address with or without a port.
func end(s string) netip.AddrPort {
	s = strings.TrimSpace(s)
	if e, err := netip.ParseAddrPort(s); err == nil {
		return e
	}
	if a, err := netip.ParseAddr(strings.Trim(s, "[]")); err == nil {
		return netip.AddrPortFrom(a, 0)
	}
	return netip.AddrPort{}
}

// hostName is what may stand in a command.
var hostName = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_.-]{0,250}[A-Za-z0-9_])?$`)

// name is the host name that a finding is about, for commands.
func (d *Document) name(f *Finding) string {
	var list []string
	if d.DNS != nil {
		switch f.Code {
		case "dns-nxdomain":
			list = d.DNS.NXDomains
		case "dns-servfail":
			list = d.DNS.ServFails
		}
		for _, s := range d.DNS.Slow {
			list = append(list, s.Name)
		}
		for _, s := range d.DNS.Top {
			list = append(list, s.Name)
		}
	}
	if d.TLS != nil && f.Code == "tls-failure" {
		list = d.TLS.Names
	}
	for _, n := range list {
		if n = strings.TrimSuffix(n, "."); hostName.MatchString(n) {
			return n
		}
	}
	return "NAME"
}

// fill puts the ends of a finding's flow into a command. What is not known stays a word in capitals.
func (d *Document) fill(command string, f *Finding) string {
	from, to := f.ends()
	if to.IsValid() && from.IsValid() && from.Port() != 0 && from.Port() < 1024 && to.Port() > 1024 {
		from, to = to, from // the flow is told from the server's side
	}
	host := func(e netip.AddrPort, word string) string {
		if !e.IsValid() {
			return word
		}
		return e.Addr().String()
	}
	if !to.IsValid() { // only one host is named, and that is the one to look at
		from, to = to, from
	}
	port := "PORT"
	if to.Port() != 0 {
		port = fmt.Sprint(to.Port())
	}
	return strings.NewReplacer("{client}", host(from, "CLIENT"), "{server}", host(to, "SERVER"), "{port}", port, "{name}", d.name(f)).Replace(command)
}

// escape makes a text of one line that no reader of Markdown takes for markup.
func escape(s string) string {
	var b strings.Builder
	rs := []rune(s)
	for i, r := range rs {
		switch {
		case r == '_' && insideWord(rs, i): // a name: no renderer takes it for emphasis
			b.WriteByte('_')
		case r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 || r == 0x2028 || r == 0x2029:
			b.WriteByte(' ')
		case strings.ContainsRune("\\`*_[]<>|#~&", r):
			b.WriteByte('\\')
			b.WriteRune(r)
		default:
			b.WriteRune(r)
		}
	}
	return strings.TrimSpace(b.String())
}

// insideWord reports whether the underscores around i have a letter or digit on
// both sides.
func insideWord(rs []rune, i int) bool {
	from, to := i, i
	for from >= 0 && rs[from] == '_' {
		from--
	}
	for to < len(rs) && rs[to] == '_' {
		to++
	}
	word := func(i int) bool {
		return i >= 0 && i < len(rs) && (unicode.IsLetter(rs[i]) || unicode.IsDigit(rs[i]))
	}
	return word(from) && word(to)
}

// frames lists frame numbers, the first ones only.
func frames(list []int64, most int) string {
	if len(list) == 0 {
		return "-"
	}
	var out []string
	for _, n := range list[:min(len(list), most)] {
		out = append(out, fmt.Sprint(n))
	}
	s := strings.Join(out, ", ")
	if more := len(list) - most; more > 0 {
		s += fmt.Sprintf(" and %d more", more)
	}
	return s
}

// certainty says in words how sure a finding is.
func certainty(c float64) string {
	switch {
	case c >= 0.9:
		return "as good as certain"
	case c >= 0.7:
		return "likely"
	case c > 0:
		return "possible"
	}
	return "not stated"
}

// count writes a number with a noun.
func count(n int64, one string) string {
	if n == 1 {
		return "1 " + one
	}
	if before, ok := strings.CutSuffix(one, "y"); ok && one != "day" {
		return fmt.Sprintf("%d %sies", n, before)
	}
	return fmt.Sprintf("%d %ss", n, one)
}
