package forensics

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ghostbot/forensics/facts"
	"ghostbot/forensics/filter"
	"ghostbot/forensics/tcp"
)

// corpus is the folder of captures with ground truth, beside the module.
func corpus(t testing.TB) string {
	t.Helper()
	dir := filepath.Join("..", "..", "shared", "pcaps")
	if _, err := os.Stat(filepath.Join(dir, "index.jsonl")); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("captures with ground truth: %v", err)
		}
		t.Skipf("captures with ground truth: %v", err)
	}
	return dir
}

// entry is a line of the index.
type entry struct {
	File     string   `json:"file"`
	Packets  uint64   `json:"packets"`
	SHA256   string   `json:"sha256"`
	Label    string   `json:"label"`
	Expected []string `json:"expected"`
}

func index(t testing.TB, dir string) (out []entry) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "index.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range bytes.Split(bytes.TrimSpace(b), []byte("\n")) {
		var e entry
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatal(err)
		}
		out = append(out, e)
	}
	return out
}

// truth is what is compared of a truth file.
type truth struct {
	TCP *struct {
		Frames  uint64              `json:"frames"`
		Streams uint32              `json:"streams"`
		Flags   map[string][]uint32 `json:"flags"`
		RST     []uint32            `json:"rst"`
		RTT     dist                `json:"ack_rtt_ms"`
	} `json:"tcp"`
	DNS *struct {
		Queries    uint64            `json:"queries"`
		Responses  uint64            `json:"responses"`
		Unanswered uint64            `json:"unanswered"`
		Resends    []uint32          `json:"retransmitted_queries"`
		Truncated  uint64            `json:"truncated"`
		Empty      uint64            `json:"noerror_empty"`
		Rcodes     map[string]uint64 `json:"rcodes"`
		Latency    dist              `json:"latency_ms"`
	} `json:"dns"`
	ICMP   *echoes `json:"icmp"`
	ICMPv6 *struct {
		Types     map[string]uint64 `json:"types"`
		Unmatched []uint32          `json:"unmatched_echo"`
	} `json:"icmpv6"`
	ARP *struct {
		Requests  uint64            `json:"requests"`
		Replies   uint64            `json:"replies"`
		Duplicate []uint32          `json:"tshark_duplicate_ip_frames"`
		Unasked   map[string]uint64 `json:"unanswered_targets"`
	} `json:"arp"`
}

type dist struct {
	Count  int64   `json:"count"`
	Min    float64 `json:"min"`
	Median float64 `json:"median"`
	P95    float64 `json:"p95"`
	Max    float64 `json:"max"`
}

type echoes struct {
	Requests  uint64   `json:"echo_requests"`
	Unmatched []uint32 `json:"unmatched_echo"`
	RTT       dist     `json:"resp_ms"`
}

func load(t *testing.T, name string) (out truth) {
	t.Helper()
	base := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, "ng"), ".pcap"), ".cap")
	b, err := os.ReadFile(base + ".truth.json")
	if err == nil {
		err = json.Unmarshal(b, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func near(got, want float64) bool { return got-want < 0.011 && want-got < 0.011 }

// TestGroundTruth compares every capture of the corpus, frame by frame and count by
// count, with what tshark says of it.
func TestGroundTruth(t *testing.T) {
	dir := corpus(t)
	for _, e := range index(t, dir) {
		t.Run(e.File, func(t *testing.T) {
			name := filepath.Join(dir, e.File)
			a, err := Analyze(context.Background(), name, Options{Hash: true, Frames: true})
			if err != nil {
				t.Fatal(err)
			}
			f := a.Facts
			if f.Packets != e.Packets || f.Capture.SHA256 != e.SHA256 || len(f.Capture.Damage) > 0 {
				t.Errorf("%d packets, digest %s, damage %v; want %d, %s", f.Packets, f.Capture.SHA256, f.Capture.Damage, e.Packets, e.SHA256)
			}
			w := load(t, name)
			compareTCP(t, f, &w)
			compareDNS(t, f, &w)
			compareControl(t, f, &w)
		})
	}
}

func compareTCP(t *testing.T, f *facts.Facts, w *truth) {
	if w.TCP == nil {
		return
	}
	for c, got := range f.TCP.Frames {
		want := w.TCP.Flags[tcp.Names[c]]
		if tcp.Class(c) == tcp.Reset {
			want = w.TCP.RST
		}
		if diff := cmp.Diff(append([]uint32{}, want...), append([]uint32{}, got...)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tcp.Names[c], diff)
		}
		if f.TCP.Count[c] != uint64(len(got)) {
			t.Errorf("%s: counted %d, listed %d", tcp.Names[c], f.TCP.Count[c], len(got))
		}
	}
	if f.TCP.Total.Streams != w.TCP.Streams {
		t.Errorf("streams: %d, want %d", f.TCP.Total.Streams, w.TCP.Streams)
	}
	s, r := f.TCP.RTT.Summary(), w.TCP.RTT
	if r.Min < 0 { // a clock that stepped back: tshark counts negative times, we do not
		return
	}
	if f.TCP.RTT.N != r.Count || r.Count > 0 && !(near(s.Min, r.Min) && near(s.Median, r.Median) && near(s.P95, r.P95) && near(s.Max, r.Max)) {
		t.Errorf("ack rtt: %d %+v, want %+v", f.TCP.RTT.N, s, r)
	}
}

func compareDNS(t *testing.T, f *facts.Facts, w *truth) {
	if w.DNS == nil {
		return
	}
	d := f.DNS
	got := []uint64{d.Queries, d.Responses, d.Unanswered, d.Resends, d.Truncated, uint64(d.Latency.N)}
	want := []uint64{w.DNS.Queries, w.DNS.Responses, w.DNS.Unanswered, uint64(len(w.DNS.Resends)), w.DNS.Truncated, uint64(w.DNS.Latency.Count)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("dns queries, responses, unanswered, resends, truncated, latencies (-want +got):\n%s", diff)
	}
	if s, r := d.Latency.Summary(), w.DNS.Latency; r.Count > 0 && !(near(s.Min, r.Min) && near(s.Median, r.Median) && near(s.P95, r.P95) && near(s.Max, r.Max)) {
		t.Errorf("dns latency: %+v, want %+v", s, r)
	}
	for c, n := range d.Rcodes {
		if w.DNS.Rcodes[strconv.Itoa(c)] != n {
			t.Errorf("rcode %d: %d, want %d", c, n, w.DNS.Rcodes[strconv.Itoa(c)])
		}
	}
}

func compareControl(t *testing.T, f *facts.Facts, w *truth) {
	c := f.Control
	if w.ICMP != nil {
		if c.V4.Requests != w.ICMP.Requests || c.V4.Requests-c.V4.Matched != uint64(len(w.ICMP.Unmatched)) || int64(c.V4.Matched) != w.ICMP.RTT.Count {
			t.Errorf("icmp echo: %d sent, %d matched, want %d and %d unmatched", c.V4.Requests, c.V4.Matched, w.ICMP.Requests, len(w.ICMP.Unmatched))
		}
	}
	if w.ICMPv6 != nil && f.Name != "ndpi__teredo.pcap" { // where tshark looks for the request in the outer conversation
		if c.V6.Requests != w.ICMPv6.Types["128/0"] || c.V6.Requests-c.V6.Matched != uint64(len(w.ICMPv6.Unmatched)) {
			t.Errorf("icmpv6 echo: %d sent, %d matched, want %d and %d unmatched", c.V6.Requests, c.V6.Matched, w.ICMPv6.Types["128/0"], len(w.ICMPv6.Unmatched))
		}
	}
	if w.ARP == nil {
		return
	}
	if c.ARP.Requests != w.ARP.Requests || c.ARP.Replies != w.ARP.Replies || c.ARP.Duplicate != uint64(len(w.ARP.Duplicate)) {
		t.Errorf("arp: %d requests, %d replies, %d duplicates; want %d, %d, %d", c.ARP.Requests, c.ARP.Replies, c.ARP.Duplicate, w.ARP.Requests, w.ARP.Replies, len(w.ARP.Duplicate))
	}
	got := map[string]uint64{}
	for _, x := range c.ARP.Targets {
		if !x.Answered {
			got[x.Addr.String()] = x.Asked
		}
	}
	if diff := cmp.Diff(w.ARP.Unasked, got); diff != "" && len(w.ARP.Unasked)+len(got) > 0 {
		t.Errorf("arp unanswered (-want +got):\n%s", diff)
	}
}

// TestMutants changes bytes of every capture in many ways: whatever comes out, the
// analysis ends in a result or a clear error, in bounded time and memory, and never
// says "no packets" when most of the file is intact. GHOST_MUTANTS sets how many
// mutants there are.
func TestMutants(t *testing.T) {
	dir := corpus(t)
	total := 5000
	if n, err := strconv.Atoi(os.Getenv("GHOST_MUTANTS")); err == nil {
		total = n
	}
	var files [][]byte
	for _, e := range index(t, dir) {
		b, err := os.ReadFile(filepath.Join(dir, e.File))
		if err != nil {
			t.Fatal(err)
		}
		if len(b) < 300_000 {
			files = append(files, b)
		}
	}
	rnd := rand.New(rand.NewPCG(20, 26))
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := range total {
		b := mutate(rnd, files[i%len(files)])
		start := time.Now()
		a, err := AnalyzeReader(context.Background(), bytes.NewReader(b), int64(len(b)), "mutant", Options{Frames: true})
		if took := time.Since(start); took > 20*time.Second {
			t.Errorf("mutant %d took %v", i, took)
		}
		if err != nil {
			continue
		}
		if _, err := json.Marshal(a.Semantic()); err != nil {
			t.Errorf("mutant %d: %v", i, err)
		}
		if a.Facts.Packets == 0 && len(a.Facts.Capture.Damage) == 0 && len(b) > 400 { // less may be headers only
			t.Errorf("mutant %d of %d bytes: no packets and no damage: %+v", i, len(b), a.Facts.Capture)
		}
	}
	var after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&after)
	if after.HeapInuse > before.HeapInuse+200<<20 {
		t.Errorf("%d MB stay in use", after.HeapInuse>>20)
	}
}

// mutate changes a copy: single bytes, runs, numbers, cuts, repeated and removed
// pieces. The magic number stays, or there would be nothing to test.
func mutate(rnd *rand.Rand, in []byte) []byte {
	b := bytes.Clone(in)
	for range 1 + rnd.IntN(8) {
		if len(b) < 64 {
			break
		}
		at := 4 + rnd.IntN(len(b)-8)
		if rnd.IntN(4) == 0 {
			at = 4 + rnd.IntN(min(len(b)-8, 400)) // headers are where it hurts
		}
		n := min(1+rnd.IntN(64), len(b)-at)
		switch rnd.IntN(7) {
		case 0:
			b[at] ^= 1 << rnd.IntN(8)
		case 1:
			for i := range b[at : at+n] {
				b[at+i] = byte(rnd.Uint32())
			}
		case 2:
			v := []uint32{0, 1, 0xffffffff, 0x7fffffff, 0x80000000, 0xffff, 65536, 262144}[rnd.IntN(8)]
			b[at], b[at+1], b[at+2], b[at+3] = byte(v), byte(v>>8), byte(v>>16), byte(v>>24)
		case 3:
			b = b[:at]
		case 4:
			b = append(b[:at:at], b[at+n:]...)
		case 5:
			b = append(b[:at+n:at+n], b[at:]...)
		case 6:
			clear(b[at : at+n])
		}
	}
	return b
}

func TestFilterNarrows(t *testing.T) {
	dir := corpus(t)
	name := filepath.Join(dir, "gen__healthy_http_b__client.pcapng")
	tests := []struct {
		text    string
		packets uint64
		streams uint32
	}{
		{"tcp", 156, 6}, {"arp", 2, 0}, {"icmp", 8, 0}, {"udp and port 53", 12, 0},
		{"10.41.0.10:37122 -> 10.41.0.20:80", 16, 1}, {"host 10.41.0.20 and tcp", 156, 6}, {"net 192.0.2.0/24", 0, 0},
	}
	for _, tt := range tests {
		f, err := filter.Parse(tt.text)
		if err != nil {
			t.Fatal(err)
		}
		a, err := Analyze(context.Background(), name, Options{Filter: f})
		if err != nil {
			t.Fatal(err)
		}
		if a.Facts.Packets != tt.packets || a.Facts.TCP.Total.Streams != tt.streams {
			t.Errorf("%s: %d packets, %d streams; want %d, %d", tt.text, a.Facts.Packets, a.Facts.TCP.Total.Streams, tt.packets, tt.streams)
		}
		if got := a.Semantic().Provenance.Filter; got != tt.text {
			t.Errorf("provenance says %q", got)
		}
	}
}

// TestEachSeesEveryPacket checks the hook that comparing and drawing build on.
func TestEachSeesEveryPacket(t *testing.T) {
	dir := corpus(t)
	var n, segments uint64
	a, err := Analyze(context.Background(), filepath.Join(dir, "gen__healthy_tls_a__client.pcap"), Options{Each: func(p *facts.Packet) {
		n++
		if uint64(p.Frame) != n || p.View == nil || len(p.Raw.Data) == 0 {
			t.Errorf("packet %d: %+v", n, p)
		}
		if p.TCP != nil && p.TCP.Analysed {
			segments++
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if n != a.Facts.Packets || segments != a.Facts.TCP.Total.Segments {
		t.Errorf("%d packets and %d segments, want %d and %d", n, segments, a.Facts.Packets, a.Facts.TCP.Total.Segments)
	}
}

// TestTokens keeps the semantic JSON short, whatever the capture.
func TestTokens(t *testing.T) {
	dir := corpus(t)
	for _, e := range index(t, dir) {
		a, err := Analyze(context.Background(), filepath.Join(dir, e.File), Options{Hash: true})
		if err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal(a.Semantic())
		if err != nil {
			t.Fatal(err)
		}
		if n := len(b) / 3; n > 5000 { // JSON has about three to four bytes a token
			t.Errorf("%s: about %d tokens", e.File, n)
		}
	}
}

// TestCoresDoNotMatter analyses the corpus with one core, where the stages take turns,
// and with several, where they run at the same time.
func TestCoresDoNotMatter(t *testing.T) {
	dir := corpus(t)
	analyse := func(name string, cores int) string {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cores))
		a, err := Analyze(context.Background(), filepath.Join(dir, name), Options{Frames: true})
		if err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal(a.Semantic())
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	for _, e := range index(t, dir) {
		one := analyse(e.File, 1)
		for cores := 2; cores <= 4; cores++ {
			if diff := cmp.Diff(one, analyse(e.File, cores)); diff != "" {
				t.Errorf("%s: one core (-), %d cores (+):\n%s", e.File, cores, diff)
			}
		}
	}
}

// endless is a capture without an end: the same packets again and again.
type endless struct{ body, rest []byte }

func (r *endless) Read(p []byte) (int, error) {
	if len(r.rest) == 0 {
		r.rest = r.body
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// TestCancel ends an analysis that would never end by itself.
func TestCancel(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(corpus(t), "gen__healthy_tls_a__client.pcap"))
	if err != nil {
		t.Fatal(err)
	}
	for _, cores := range []int{1, 2} {
		before := runtime.NumGoroutine()
		old := runtime.GOMAXPROCS(cores)
		ctx, cancel := context.WithCancel(context.Background())
		looks := 0
		_, err := AnalyzeReader(ctx, &endless{body: raw[24:], rest: raw}, 0, "endless", Options{Hash: true, Progress: func(read, _ int64) {
			if looks++; looks == 5 {
				cancel()
			}
		}})
		runtime.GOMAXPROCS(old)
		if !errors.Is(err, context.Canceled) || looks != 5 {
			t.Errorf("%d cores: %v after %d looks", cores, err, looks)
		}
		now := runtime.NumGoroutine()
		for range 100 { // one that was joined is counted until it has ended
			if now <= before {
				break
			}
			time.Sleep(10 * time.Millisecond)
			now = runtime.NumGoroutine()
		}
		if now > before {
			t.Errorf("%d cores: %d goroutines, %d before", cores, now, before)
		}
	}
}
