package services

import (
	"cmp"
	"fmt"
	"slices"

	"ghostbot/forensics/dns"
	"ghostbot/forensics/facts"
	"ghostbot/forensics/finding/statement"
)

// failures finds name servers that answer most queries with codes beside those that have rules of
// their own. A few are usual: FORMERR and NOTIMP tell a client to ask without EDNS.
func failures(f *facts.Facts) (out []statement.Finding) {
	for _, s := range f.DNS.Servers {
		var n uint64
		var at []uint32
		list := ""
		for code, k := range s.Rcodes {
			if k == 0 || code == 0 || code == 2 || code == 3 || code == 5 {
				continue
			}
			name := dns.RcodeName(uint8(code))
			list += statement.When(n > 0, ", ", "") + fmt.Sprintf("%s (%d times)", name, k)
			n, at = n+k, append(at, s.Evidence[name]...)
		}
		if n == 0 || n*2 <= s.Queries {
			continue
		}
		out = append(out, statement.Finding{Severity: statement.High, Protocol: "dns", Code: "dns-error", Confidence: 0.88, Frames: at,
			Summary: fmt.Sprintf("%v answers %d of %d queries with an error: %s.", s.Addr, n, s.Queries, list),
			Detail:  "FORMERR: the server, or a device before it, does not understand the query, often its EDNS options. NOTIMP: it does not know that kind of query. Others belong to updates and zone transfers that the server does not permit.",
			Confirm: fmt.Sprintf("dig @%v NAME, then with +noedns: an answer would mean that the options are what it does not understand.", s.Addr)})
	}
	slices.SortFunc(out, func(a, b statement.Finding) int { return cmp.Compare(a.Summary, b.Summary) }) // not as a map happens to be
	return out
}
