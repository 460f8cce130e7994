package dns

import "strconv"

var (
	rcodes = []string{"NOERROR", "FORMERR", "SERVFAIL", "NXDOMAIN", "NOTIMP", "REFUSED"}
	types  = map[uint16]string{1: "A", 2: "NS", 5: "CNAME", 6: "SOA", 12: "PTR", 15: "MX", 16: "TXT", 28: "AAAA", 33: "SRV", 255: "ANY"}
)

// RcodeName is the name of a response code in reports.
func RcodeName(c uint8) string {
	if int(c) < len(rcodes) {
		return rcodes[c]
	}
	return "RCODE_" + strconv.Itoa(int(c))
}

// TypeName is the name of a query type in reports.
func TypeName(t uint16) string {
	if s, ok := types[t]; ok {
		return s
	}
	return "TYPE_" + strconv.Itoa(int(t))
}
