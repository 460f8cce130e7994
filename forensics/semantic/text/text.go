// Package text writes conversations as people read them.
package text

import (
	"strconv"

	"ghostbot/forensics/flow"
)

// End writes one end of a conversation as address and port.
func End(k *flow.Key, i int) string {
	a, p := k.End(i)
	return Service(a, p)
}

// Service writes an address and a port.
func Service(a flow.Addr, p uint16) string {
	if a.Is4() {
		return a.String() + ":" + strconv.Itoa(int(p))
	}
	return "[" + a.String() + "]:" + strconv.Itoa(int(p))
}
