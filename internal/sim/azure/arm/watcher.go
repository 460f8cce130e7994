package arm

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"ghostbot/internal/sim/azure/cloud"
)

// watcher answers for a Network Watcher: sessions of packet captures and the
// questions that it answers at once.
func (m *Manager) watcher(q *request, id string) (reply, *cloud.Error) {
	if q.part(8) != "packetcaptures" {
		return m.ask(q)
	}
	watcher := "/" + strings.Join(q.parts[:8], "/")
	if len(q.parts) == 9 {
		captures, err := m.cloud.CapturesOf(watcher)
		if err != nil {
			return reply{}, err
		}
		return list(captures)
	}
	session := "/" + strings.Join(q.parts[:10], "/")
	if len(q.parts) == 11 && q.Method == http.MethodPost {
		return m.sessionAction(q, session)
	}
	switch {
	case len(q.parts) != 10:
	case q.Method == http.MethodGet:
		o, err := m.cloud.Capture(session)
		if err != nil {
			return reply{}, err
		}
		return ok(o)
	case q.Method == http.MethodPut:
		return m.start(q, watcher)
	case q.Method == http.MethodDelete:
		if !m.cloud.DeleteCapture(session) {
			return reply{}, cloud.NotFound(id)
		}
		return m.accept(202, nil, result{status: 204})
	}
	return reply{}, m.unknown(q)
}

// start answers as the service does: 201 at once, provisioning goes on.
func (m *Manager) start(q *request, watcher string) (reply, *cloud.Error) {
	p, _ := q.body["properties"].(cloud.Object)
	if p == nil {
		return reply{}, &cloud.Error{Status: 400, Code: "InvalidRequestFormat", Message: "Cannot parse the request."}
	}
	o, err := m.cloud.StartCapture(watcher, q.parts[9], p)
	if err != nil {
		return reply{}, err
	}
	id := o["id"].(string)
	return m.accept(201, o, result{status: 200, err: func() *cloud.Error { return m.cloud.Provisioned(id) }})
}

func (m *Manager) sessionAction(q *request, session string) (reply, *cloud.Error) {
	switch q.part(10) {
	case "querystatus":
		o, err := m.cloud.Status(session)
		switch {
		case err != nil:
			return reply{}, err
		case o == nil:
			return reply{status: 200}, nil
		}
		return ok(o)
	case "stop":
		if err := m.cloud.StopCapture(session); err != nil {
			return reply{}, err
		}
		return m.accept(202, nil, result{status: 204})
	}
	return reply{}, m.unknown(q)
}

// ask answers nextHop and ipFlowVerify out of the effective routes and rules.
func (m *Manager) ask(q *request) (reply, *cloud.Error) {
	vm, _ := q.body["targetResourceId"].(string)
	o, there := m.cloud.Get(vm)
	if !there {
		return reply{}, cloud.NotFound(vm)
	}
	nic := interfaceOf(o)
	switch q.part(8) {
	case "nexthop":
		to, _ := q.body["destinationIPAddress"].(string)
		hop, err := m.cloud.NextHop(nic, to)
		if err != nil {
			return reply{}, err
		}
		return m.accept(202, nil, result{status: 200, body: hop})
	case "ipflowverify":
		rules, err := m.cloud.EffectiveRules(nic)
		if err != nil {
			return reply{}, err
		}
		return m.accept(202, nil, result{status: 200, body: verdict(rules, q.body)})
	}
	return reply{}, m.unknown(q)
}

func interfaceOf(vm cloud.Object) string {
	p, _ := vm["properties"].(cloud.Object)
	n, _ := p["networkProfile"].(cloud.Object)
	list, _ := n["networkInterfaces"].([]any)
	if len(list) == 0 {
		return ""
	}
	first, _ := list[0].(cloud.Object)
	id, _ := first["id"].(string)
	return id
}

// verdict is whether groups let a packet pass, and by which rule. Inbound the group
// of the subnet comes first, outbound that of the interface; the first that denies
// decides.
func verdict(groups []cloud.Object, packet cloud.Object) cloud.Object {
	word := func(name string) string { s, _ := packet[name].(string); return s }
	out := strings.EqualFold(word("direction"), "Outbound")
	source, destination, port := word("remoteIPAddress"), word("localIPAddress"), word("localPort")
	if out {
		source, destination, port = destination, source, word("remotePort")
		groups = slices.Clone(groups)
		slices.Reverse(groups)
	}
	answer := cloud.Object{"access": "Allow", "ruleName": "none"}
	for _, g := range groups {
		rules, _ := g["effectiveSecurityRules"].([]any)
		for _, r := range sorted(rules, word("direction")) {
			if !matches(r, "source", source, "") || !matches(r, "destination", destination, port) || !protocol(r, word("protocol")) {
				continue
			}
			answer = cloud.Object{"access": r["access"], "ruleName": r["name"]}
			break
		}
		if answer["access"] == "Deny" {
			break
		}
	}
	return answer
}

func sorted(rules []any, direction string) []cloud.Object {
	var list []cloud.Object
	for _, r := range rules {
		o := r.(cloud.Object)
		if d, _ := o["direction"].(string); strings.EqualFold(d, direction) {
			list = append(list, o)
		}
	}
	slices.SortStableFunc(list, func(a, b cloud.Object) int {
		x, _ := a["priority"].(float64)
		y, _ := b["priority"].(float64)
		return int(x - y)
	})
	return list
}

func protocol(r cloud.Object, want string) bool {
	p, _ := r["protocol"].(string)
	return p == "All" || strings.EqualFold(p, want)
}

func matches(r cloud.Object, side, address, port string) bool {
	prefixes, _ := r[side+"AddressPrefixes"].([]any)
	if expanded, ok := r["expanded"+strings.ToUpper(side[:1])+side[1:]+"AddressPrefix"].([]any); ok {
		prefixes = expanded
	}
	at, err := netip.ParseAddr(address)
	in := slices.ContainsFunc(prefixes, func(x any) bool {
		s, _ := x.(string)
		if !strings.Contains(s, "/") {
			return s == address
		}
		p, bad := netip.ParsePrefix(s)
		return err == nil && bad == nil && p.Contains(at)
	})
	if port == "" || !in {
		return in
	}
	ranges, _ := r[side+"PortRanges"].([]any)
	return slices.ContainsFunc(ranges, func(x any) bool {
		s, _ := x.(string)
		low, high, _ := strings.Cut(s, "-")
		return number(low) <= number(port) && number(port) <= number(high)
	})
}

func number(s string) int {
	n := 0
	for _, c := range s {
		n = n*10 + int(c-'0')
	}
	return n
}
