// Package hints finds what no single packet shows: names that carry data, names that a
// program made up, echo messages that carry something else, and bits that changed on the
// way. They are hints, because harmless programs can look alike; each says how to tell.
package hints

import (
	"fmt"
	"slices"
	"strings"

	"ghostbot/forensics/control"
	"ghostbot/forensics/facts"
	"ghostbot/forensics/finding/statement"
	"ghostbot/forensics/flow"
	"ghostbot/forensics/semantic/text"
)

// All returns the hints that the facts give.
func All(f *facts.Facts) []statement.Finding {
	zones := survey(f.DNS.Names)
	var out []statement.Finding
	for _, rule := range []func(*facts.Facts, []*zone) []statement.Finding{tunnels, generated, subdomains, numbered} {
		out = append(out, rule(f, zones)...)
	}
	return append(append(out, echoes(f)...), sums(f)...)
}

// tunnels finds zones below which names are data: many, long, each asked for once, and
// dense.
func tunnels(_ *facts.Facts, zones []*zone) (out []statement.Finding) {
	for _, z := range zones {
		long := z.names >= 15 && z.mean() >= 30 && z.entropy() >= 3.2
		odd := z.odd >= 10 && z.odd*5 >= z.queries && z.names >= 8 && z.mean() >= 15 && z.entropy() >= 3
		if !long && !odd || z.names*10 < z.queries*6 {
			continue
		}
		x := statement.Finding{Severity: statement.High, Protocol: "dns", Code: "dns-tunnel", Confidence: 0.75, Frames: z.frames,
			Summary: fmt.Sprintf("Names below %s look like data in transit: %d different ones in %d queries.", z.name, z.names, z.queries),
			Detail: fmt.Sprintf("The part in front of the zone is %.0f characters long on average, with %.1f bits of entropy a character; %d queries are of types that carry free bytes (TXT, NULL); the answers have %d bytes.",
				z.mean(), z.entropy(), z.odd, z.bytes),
			Confirm: fmt.Sprintf("Who owns %s, and which process asks; reputation and anti-virus services look alike and are known by their zone.", z.name)}
		if long && odd {
			x.Confidence = 0.85
		}
		out = append(out, x)
	}
	return out
}

// generated finds many names that do not exist, in as many zones, none of which is a word.
func generated(f *facts.Facts, zones []*zone) []statement.Finding {
	missing, strange := 0, 0
	var frames []uint32
	var examples []string
	for _, z := range zones {
		if z.missing == 0 || z.missing < z.names {
			continue
		}
		missing++
		if label, _, _ := strings.Cut(z.name, "."); random(label) {
			strange++
			frames = append(frames, z.frames...)
			if len(examples) < 3 {
				examples = append(examples, z.name)
			}
		}
	}
	if strange < 10 || strange*10 < missing*6 {
		return nil
	}
	return []statement.Finding{{Severity: statement.High, Protocol: "dns", Code: "dns-generated-names", Confidence: 0.75, Frames: frames,
		Summary: fmt.Sprintf("%d domains that do not exist were asked for, and their names look made up (%s).", strange, strings.Join(examples, ", ")),
		Detail:  fmt.Sprintf("%d of %d domains that do not exist are no words. Malware looks for its server among names that it computes; a browser that probes for a captive portal asks for three such names, without a domain.", strange, missing),
		Confirm: fmt.Sprintf("The process on the client that asks (%s), and the names against a list of known families.", asker(f))}}
}

// subdomains finds one zone that is asked for random names: an attack on its servers, or
// a tunnel that finds no end.
func subdomains(_ *facts.Facts, zones []*zone) (out []statement.Finding) {
	for _, z := range zones {
		if z.missing < 20 || z.strange*10 < z.missing*6 || z.mean() >= 30 {
			continue
		}
		out = append(out, statement.Finding{Severity: statement.Medium, Protocol: "dns", Code: "dns-random-subdomains", Confidence: 0.87, Frames: z.frames,
			Summary: fmt.Sprintf("%d random names below %s were asked for, and none exists.", z.missing, z.name),
			Detail:  "No cache can answer them, so that each reaches the servers of the zone: that is how they are flooded through resolvers. A client with a broken list of names does the same.",
			Confirm: "Whether other resolvers see the same zone; the clients that ask, and since when."})
	}
	return out
}

// numbered finds somebody who counts through names.
func numbered(_ *facts.Facts, zones []*zone) (out []statement.Finding) {
	for _, z := range zones {
		prefix, n := z.counted()
		if n < 10 {
			continue
		}
		out = append(out, statement.Finding{Severity: statement.Low, Protocol: "dns", Code: "dns-enumeration", Confidence: 0.7, Frames: z.frames,
			Summary: fmt.Sprintf("Somebody counts through names below %s: %d of the kind %sNUMBER do not exist.", z.name, n, prefix),
			Detail:  "Scanners find hosts like this; so do scripts with a list of hosts that are gone.",
			Confirm: "The client that asks, and whether the numbers have a gap where hosts exist."})
	}
	return out
}

func asker(f *facts.Facts) string {
	for _, q := range f.DNS.Open {
		return q.Client().String()
	}
	return "see the frames"
}

// echoes finds pings that are no pings: answers that do not repeat what was asked.
func echoes(f *facts.Facts) (out []statement.Finding) {
	for i, e := range []*control.Echoes{&f.Control.V4, &f.Control.V6} {
		for _, p := range e.Pairs {
			packets := p.Sent + p.Matched + p.Foreign
			if p.Foreign < 10 || p.Foreign < p.Matched || p.Carried < 1500 || p.Carried < 30*packets {
				continue
			}
			out = append(out, statement.Finding{Severity: statement.High, Protocol: []string{"icmp", "icmpv6"}[i], Code: "icmp-tunnel", Confidence: 0.8, Frames: p.ForeignAt,
				Flow:    p.Src.String() + " -> " + p.Dst.String(),
				Summary: fmt.Sprintf("Echo messages between %v and %v carry data: %d answers do not repeat the request.", p.Src, p.Dst, p.Foreign),
				Detail:  fmt.Sprintf("%d requests, %d answers that fit, %d bytes of payload in both directions. A host that answers a ping returns the bytes that it got.", p.Sent, p.Matched, p.Carried),
				Confirm: "The process that holds a raw socket on either host (ss -w); answers of ordinary pings to the same host fit."})
		}
	}
	return out
}

// sums finds bits that changed on the way: the checksum of few packets of a host does not
// hold. Of most packets it means that the file was rewritten.
func sums(f *facts.Facts) (out []statement.Finding) {
	var bad, checked uint64
	for _, s := range f.Sums {
		bad, checked = bad+s.Bad, checked+s.Checked
	}
	for _, a := range damaged(f) {
		s := f.Sums[a]
		share := 100 * float64(s.Bad) / float64(s.Checked)
		x := statement.Finding{Severity: statement.Medium, Protocol: "ip", Code: "corruption", Confidence: 0.92, Frames: s.Frames,
			Flow:    text.End(&s.Flow, int(s.Dir)) + " -> " + text.End(&s.Flow, int(s.Dir^1)),
			Summary: fmt.Sprintf("Packets of %v are damaged on the way: the checksum of %d of %d does not hold (%.1f %%).", a, s.Bad, s.Checked, share),
			Detail:  "The field is neither right nor left to a network card, so that it is no matter of offloading. Receivers drop such packets without a word, and senders see loss.",
			Confirm: "Error counters (FCS, CRC, symbol) of the interfaces on the path, and of the memory of the devices between; a capture at the sender has the right checksums."}
		switch {
		case s.Bad < 3:
			x.Severity, x.Confidence = statement.Low, 0.6
		case share > 3:
			x.Severity = statement.High
		}
		out = append(out, x)
	}
	if bad*2 > checked && bad >= 10 {
		return []statement.Finding{{Severity: statement.Info, Protocol: "capture", Code: "checksums-rewritten", Confidence: 0.8, Frames: []uint32{},
			Summary: fmt.Sprintf("The checksums of %d of %d packets do not hold.", bad, checked),
			Detail:  "That many speak for a file whose addresses or contents were changed after it was taken, not for the network. Damage on the way cannot be judged here.",
			Confirm: "The file as it was taken."}}
	}
	return out
}

// damaged are the hosts of which more than one checksum does not hold, but most do.
func damaged(f *facts.Facts) (out []flow.Addr) {
	for a, s := range f.Sums {
		if s.Bad >= 2 && s.Bad*2 <= s.Checked {
			out = append(out, a)
		}
	}
	slices.SortFunc(out, func(a, b flow.Addr) int { return strings.Compare(a.String(), b.String()) })
	return out
}
