// Package semantic writes what a pass found as the semantic JSON: millions of packets
// in a few thousand tokens. Keys and units are those of the specification: durations
// in milliseconds with two decimals, a protocol that does not occur has no key.
// Lists are capped; a "_total" beside a list that was cut says how many there were.
//
// The types of this package are the format. Fields may be added; none may change
// its name, unit or meaning.
package semantic

import (
	"slices"

	"ghostbot/forensics/facts"
	"ghostbot/forensics/finding"
	"ghostbot/forensics/frame"
	"ghostbot/forensics/stat"
)

// Document is the semantic JSON of one capture.
type Document struct {
	Summary    Summary           `json:"capture_summary"`
	ARP        *ARP              `json:"arp,omitempty"`
	ICMP       *ICMP             `json:"icmp,omitempty"`
	ICMPv6     *ICMPv6           `json:"icmpv6,omitempty"`
	TCP        *TCP              `json:"tcp,omitempty"`
	DNS        *DNS              `json:"dns,omitempty"`
	TLS        *TLS              `json:"tls,omitempty"`
	HTTP       *HTTP             `json:"http,omitempty"`
	DHCP       *DHCP             `json:"dhcp,omitempty"`
	QUIC       *QUIC             `json:"quic,omitempty"`
	UDP        *UDP              `json:"udp,omitempty"`
	Findings   []finding.Finding `json:"findings"`
	Provenance Provenance        `json:"provenance"`
	// Executive is the text of the executive summary, in what is printed beside
	// reports: a program that had them written need not read a file.
	Executive string `json:"executive_summary,omitempty"`
}

// Summary is the capture as a whole.
type Summary struct {
	File      string   `json:"file"`
	Packets   uint64   `json:"total_packets"`
	Duration  float64  `json:"duration_seconds"`
	Rate      float64  `json:"avg_packets_per_second"`
	Protocols []string `json:"protocols_present"`
}

// Provenance says where the figures come from, and what they leave out.
type Provenance struct {
	SHA256      string   `json:"sha256,omitempty"`
	Bytes       int64    `json:"bytes"`
	Format      string   `json:"format"`
	Compression string   `json:"compression,omitempty"`
	LinkTypes   []int    `json:"link_types"`
	SnapLen     uint32   `json:"snap_length"`
	Interfaces  int      `json:"interfaces"`
	Packets     uint64   `json:"packets_read"`
	CutPackets  uint64   `json:"packets_cut_by_snap_length,omitempty"`
	Skipped     int64    `json:"bytes_skipped"`
	Skips       []Skip   `json:"skipped,omitempty"`
	Backwards   uint64   `json:"timestamps_backwards,omitempty"`
	Filter      string   `json:"filter,omitempty"`
	FirstTime   float64  `json:"first_timestamp"`
	LastTime    float64  `json:"last_timestamp"`
	Incomplete  []string `json:"incomplete,omitempty"`
	Error       string   `json:"error,omitempty"`
}

// Skip is a damaged place of the file.
type Skip struct {
	Offset int64  `json:"offset"`
	Bytes  int64  `json:"bytes"`
	Why    string `json:"why"`
}

// Options are what the caller knows and the facts do not.
type Options struct {
	Frames bool
	Filter string
}

// Build writes the document of one capture.
func Build(f *facts.Facts, findings []finding.Finding, o Options) *Document {
	if findings == nil {
		findings = []finding.Finding{}
	}
	return &Document{
		Summary: summary(f), ARP: arp(f), ICMP: icmp(f), ICMPv6: icmpv6(f), TCP: tcpBlock(f, o.Frames), DNS: dnsBlock(f),
		TLS: tls(f), HTTP: http(f), DHCP: dhcp(f), QUIC: quic(f), UDP: udp(f), Findings: findings, Provenance: provenance(f, o),
	}
}

func summary(f *facts.Facts) Summary {
	d := float64(f.Stamped[1]-f.Stamped[0]) / 1e9
	s := Summary{File: f.Name, Packets: f.Packets, Duration: round(d, 3), Protocols: protocols(f)}
	if d > 0 {
		s.Rate = round(float64(f.Packets)/d, 1)
	}
	return s
}

// layerNames are the protocols of frame.Layers, by bit.
var layerNames = [32]string{"eth", "vlan", "mpls", "ppp", "sll", "wlan", "ip", "ipv6", "gre", "vxlan", "geneve", "gtp", "teredo", "l2tp", "erspan",
	"ipip", "tcp", "udp", "icmp", "icmpv6", "arp", "fragment", "igmp", "ospf", "vrrp", "esp", "sctp", "malformed"}

func protocols(f *facts.Facts) []string {
	out := []string{}
	for i, n := range f.Layers {
		if n > 0 && layerNames[i] != "" {
			out = append(out, layerNames[i])
		}
	}
	add := func(name string, has bool) {
		if has {
			out = append(out, name)
		}
	}
	add("dns", f.DNS.Queries+f.DNS.Responses > 0)
	add("mdns", f.OtherNames > 0)
	add("http", len(f.App.Methods)+len(f.App.Status) > 0)
	add("tls", tls(f) != nil)
	add("quic", f.App.QUIC.Flows > 0)
	add("dhcp", dhcp(f) != nil)
	return out
}

func provenance(f *facts.Facts, o Options) Provenance {
	c := f.Capture
	p := Provenance{SHA256: c.SHA256, Bytes: c.Bytes, Format: c.Format, Compression: c.Packing, Packets: c.Packets, CutPackets: f.CutFrames,
		LinkTypes: []int{}, Interfaces: len(c.Interfaces), Skipped: c.Skipped, Backwards: f.Backwards, Filter: o.Filter,
		FirstTime: float64(f.Stamped[0]) / 1e9, LastTime: float64(f.Stamped[1]) / 1e9}
	for _, i := range c.Interfaces {
		if !slices.Contains(p.LinkTypes, int(i.Link)) {
			p.LinkTypes = append(p.LinkTypes, int(i.Link))
		}
		p.SnapLen = max(p.SnapLen, i.SnapLen)
	}
	for _, d := range c.Damage {
		p.Skips = append(p.Skips, Skip{d.Offset, d.Skipped, d.Why})
	}
	if len(c.Damage) > 0 {
		p.Error = "the file is damaged: " + c.Damage[0].Why + more(len(c.Damage)-1+c.DamageMore)
	}
	p.Incomplete = incomplete(f)
	return p
}

// known reports how many frames carried something that the analysis follows.
func known(f *facts.Facts) uint64 {
	return f.Packets - f.Kinds[frame.Other] - f.Kinds[frame.Fragment]
}

func ms(ns int64) float64 { return stat.MS(ns) }
