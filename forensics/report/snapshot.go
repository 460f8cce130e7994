package report

import (
	"math"

	"ghostbot/forensics/compare/baseline"
)

// Snapshot makes what a comparison with a baseline needs of a document: rates and times, so that
// captures of different length compare, and the findings that are worth acting on.
func (d *Document) Snapshot() baseline.Snapshot {
	s := baseline.Snapshot{File: d.Summary.File}
	for _, f := range d.loud() {
		s.Issues = append(s.Issues, baseline.Issue{Code: f.Code, Severity: f.Severity, Summary: f.Summary})
	}
	m := metrics{&s}
	m.tcp(d)
	m.names(d)
	m.echo(d)
	m.http(d)
	if a := d.ARP; a != nil {
		m.share("ARP requests without a reply", a.Requests-min(a.Replies, a.Requests), a.Requests, 5, true)
	}
	return s
}

// metrics adds to a snapshot.
type metrics struct{ s *baseline.Snapshot }

func (m metrics) add(name, unit string, v, noise float64) {
	m.s.Metrics = append(m.s.Metrics, baseline.Metric{Name: name, Unit: unit, Value: v, Noise: noise})
}

// share adds a part of a whole in percent; without a whole there is no figure.
func (m metrics) share(name string, part, whole int64, noise float64, has bool) {
	v := math.NaN()
	if has && whole > 0 {
		v = math.Round(1e4*float64(part)/float64(whole)) / 100
	}
	m.add(name, "%", v, noise)
}

func (m metrics) spread(name string, s Spread, has bool) {
	median, p95 := math.NaN(), math.NaN()
	if has && s.Max > 0 {
		median, p95 = s.Median, s.P95
	}
	m.add(name+", median", "ms", median, 0.5)
	m.add(name+", 95th percentile", "ms", p95, 1)
}

func (m metrics) tcp(d *Document) {
	t := d.TCP
	has := t != nil
	if !has {
		t = &TCP{}
	}
	m.share("TCP retransmissions of all packets", t.Retransmissions, d.Summary.Packets, 0.1, has)
	m.share("duplicate ACKs of all packets", t.DuplicateACKs, d.Summary.Packets, 0.5, has)
	m.share("segments out of order of all packets", t.OutOfOrder, d.Summary.Packets, 0.1, has)
	m.share("zero windows of all packets", t.ZeroWindow, d.Summary.Packets, 0.05, has)
	m.share("resets of TCP streams", t.Resets, t.Streams, 2, has)
	m.share("TCP connections without a handshake", t.Connections.SYN-t.Connections.Handshakes, t.Connections.SYN, 1, has)
	m.spread("TCP round-trip time", t.RTT, has)
}

func (m metrics) names(d *Document) {
	n := d.DNS
	has := n != nil
	if !has {
		n = &DNS{}
	}
	failed := int64(0)
	for code, k := range n.Rcodes {
		if code != "NOERROR" {
			failed += k
		}
	}
	m.share("DNS queries unanswered", n.Unanswered, n.Queries, 0.5, has)
	m.share("DNS responses that say no", failed, n.Responses, 1, has)
	m.spread("DNS latency", n.Latency, has)
}

func (m metrics) echo(d *Document) {
	e := d.ICMP
	has := e != nil && e.Matched+e.Unmatched > 0
	if !has {
		e = &Echo{}
	}
	m.share("echo requests unanswered", e.Unmatched, e.Matched+e.Unmatched, 1, has)
	m.spread("echo round-trip time", e.RTT, has)
}

func (m metrics) http(d *Document) {
	if d.HTTP == nil {
		m.share("HTTP responses of 500 and above", 0, 0, 0.5, false)
		m.spread("HTTP response time", Spread{}, false)
		return
	}
	all, bad := int64(0), int64(0)
	for status, n := range d.HTTP.Status {
		if all += n; status >= "500" {
			bad += n
		}
	}
	m.share("HTTP responses of 500 and above", bad, all, 0.5, true)
	m.spread("HTTP response time", d.HTTP.Time, true)
}
