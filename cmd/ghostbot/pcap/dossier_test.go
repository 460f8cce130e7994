package pcap

import (
	"testing"

	"ghostbot/forensics/finding"
	"ghostbot/forensics/semantic"
)

func TestStem(t *testing.T) {
	for name, want := range map[string]string{"a.pcap": "a", "/x/y.z.pcapng": "y.z", "q.cap": "q", "r.pcap.gz": "r", "s.pcap.zst": "s", "t": "t", ".pcap": ".pcap", "u.pcapng.gz": "u"} {
		if got := stem(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// TestRequest: what pictures show is chosen from the document.
func TestRequest(t *testing.T) {
	doc := &semantic.Document{TCP: &semantic.TCP{Issues: []semantic.Stream{
		{ID: 3, Src: "192.0.2.1:4000", Dst: "198.51.100.1:80", Retransmissions: 2}, {ID: 9, Src: "[2001:db8::1]:4000", Dst: "[2001:db8::2]:80", Retransmissions: 7}, {ID: 10}}},
		Findings: []finding.Finding{{Severity: finding.Low, Frames: []uint32{1}}, {Severity: finding.High, Frames: []uint32{40, 41}, Summary: "why", Protocol: "TCP", Flow: "192.0.2.7:1 -> 192.0.2.8:2"}}}
	r := request(doc)
	if r.StreamName != "stream 9" || r.Stream.A.String() != "[2001:db8::1]:4000" || r.Frame != 40 || r.Why != "why" {
		t.Errorf("%+v", r)
	}
	doc.TCP = nil
	if r := request(doc); r.StreamName != "the flow of the first finding" || r.Stream.B.String() != "192.0.2.8:2" {
		t.Errorf("without streams: %+v", r)
	}
	doc.Findings = doc.Findings[:1]
	if r := request(doc); r.Frame != 0 || r.Stream.A.IsValid() {
		t.Errorf("without findings: %+v", r)
	}
}

func TestBeside(t *testing.T) {
	for _, tt := range []struct{ report, plots, want string }{
		{"/a/reports", "/a/plots", "../plots/x.png"}, {"/a", "/a", "x.png"}, {"", "p", "p/x.png"}, {"/a", "/a/b/c", "b/c/x.png"},
	} {
		if got := (&Options{ReportDir: tt.report, Plots: tt.plots}).beside("x.png"); got != tt.want {
			t.Errorf("%+v: %s", tt, got)
		}
	}
}

func TestEach(t *testing.T) {
	c := Comparison{Mode: Baseline}
	if c.each() != nil {
		t.Error("a baseline keeps packets")
	}
	c = Comparison{Mode: Endpoints}
	c.Documents = make([]*semantic.Document, 2)
	if c.each() != nil {
		t.Error("a third capture")
	}
}
