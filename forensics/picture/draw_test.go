package picture

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"math"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"

	"ghostbot/forensics/trace"
)

// drawn returns the picture of a name.
func drawn(t *testing.T, c *Collector, name string) (Picture, image.Image) {
	t.Helper()
	for _, p := range c.Pictures() {
		if p.Name != name {
			continue
		}
		var b bytes.Buffer
		if err := p.PNG(&b); err != nil {
			t.Fatal(err)
		}
		img, err := png.Decode(&b)
		if err != nil {
			t.Fatal(err)
		}
		return p, img
	}
	t.Fatalf("no picture %s", name)
	return Picture{}, nil
}

// pixels counts pixels near a colour within a part of the picture.
func pixels(img image.Image, c color.NRGBA, part image.Rectangle) int {
	n := 0
	for x := part.Min.X; x < part.Max.X; x++ {
		for y := part.Min.Y; y < part.Max.Y; y++ {
			r, g, b, _ := img.At(x, y).RGBA()
			far := math.Abs(float64(r>>8)-float64(c.R)) + math.Abs(float64(g>>8)-float64(c.G)) + math.Abs(float64(b>>8)-float64(c.B))
			n += b2i(far < 60)
		}
	}
	return n
}

var (
	upper      = image.Rect(0, 70, width, height/2)
	lower      = image.Rect(0, height/2, width, height)
	everything = image.Rect(0, 70, width, height)
)

// TestThroughputPicture: the rate is above, what was sent again below, at its time.
func TestThroughputPicture(t *testing.T) {
	list := transfer(40)
	p, img := drawn(t, runAgain(Request{File: "x"}, []int{60, 62}, list...), "throughput")
	if pixels(img, blue, upper) < 200 || pixels(img, red, upper) > 0 || pixels(img, red, lower) < 50 || pixels(img, blue, lower) > 0 {
		t.Errorf("blue %d and %d, red %d and %d", pixels(img, blue, upper), pixels(img, blue, lower), pixels(img, red, upper), pixels(img, red, lower))
	}
	at := (list[59].Time - list[0].Time) * 100 / (list[len(list)-1].Time - list[0].Time) // percent of the time axis
	left := image.Rect(0, height/2, 60+int(at-5)*(width-80)/100, height)
	if pixels(img, red, left) > 0 {
		t.Error("a bar before its time")
	}
	for _, want := range []string{"2 of 42 TCP segments (4.8 %) were sent again or are out of order", "On average"} {
		if !strings.Contains(p.Alt, want) {
			t.Errorf("no %q in %q", want, p.Alt)
		}
	}
	p, img = drawn(t, run(Request{}, list...), "throughput")
	if pixels(img, red, everything) > 0 || !strings.Contains(p.Alt, "no TCP segment was sent again") {
		t.Errorf("nothing was sent again: %q", p.Alt)
	}
}

func TestThroughputUnits(t *testing.T) {
	slow := run(Request{}, seg(1, 0, true, 1, 0, trace.ACK, 100), seg(2, 60_000, true, 101, 0, trace.ACK, 100))
	if alt := slow.throughput().Alt; !strings.Contains(alt, "kbit/s") {
		t.Errorf("%q", alt)
	}
	var list []trace.Packet
	for i := range 5000 {
		list = append(list, seg(i+1, float64(i)*0.01, true, uint32(i), 0, trace.ACK, 1448))
	}
	if alt := run(Request{}, list...).throughput().Alt; !strings.Contains(alt, "1.19 Gbit/s") {
		t.Errorf("%q", alt)
	}
}

// TestSequencePicture: segments, those that were sent again, those out of order and ACKs each have
// their colour; the other direction is not drawn.
func TestSequencePicture(t *testing.T) {
	c := New(Request{Stream: stream, StreamName: "stream 5"})
	for i, p := range transfer(60) {
		mark := Unmarked
		switch i {
		case 43:
			mark = Again
		case 63:
			mark = Disordered
		}
		c.Add(&p, mark, 0)
	}
	p, img := drawn(t, c, "sequence")
	if p.Title != "Time-sequence graph of stream 5, data from 198.51.100.20:443" || p.Alt != "60000 bytes in 61 segments, 1 of them sent again, 1 out of order." {
		t.Errorf("%q, %q", p.Title, p.Alt)
	}
	if pixels(img, blue, everything) < 100 || pixels(img, green, everything) < 100 || pixels(img, red, everything) < 20 || pixels(img, purple, everything) < 20 {
		t.Errorf("blue %d, green %d, red %d", pixels(img, blue, everything), pixels(img, green, everything), pixels(img, red, everything))
	}
}

func TestPauseIsNamed(t *testing.T) {
	list := transfer(10)
	for i := 13; i < len(list); i++ {
		list[i].Time += 3e9
	}
	p := run(Request{Stream: stream, StreamName: "s"}, list...).timeSequence()
	if !strings.Contains(p.Alt, "the longest pause is 3.02 s, at 130 ms") {
		t.Errorf("%q", p.Alt)
	}
}

// TestLadderPicture: arrows of both directions, resets in red.
func TestLadderPicture(t *testing.T) {
	list := append(transfer(2), seg(9, 200, false, 2501, 101, trace.RST, 0))
	_, img := drawn(t, run(Request{Frame: 1, Exchange: stream}, list...), "ladder")
	if pixels(img, blue, everything) < 500 || pixels(img, red, everything) < 200 {
		t.Errorf("blue %d, red %d", pixels(img, blue, everything), pixels(img, red, everything))
	}
}

func TestConclusions(t *testing.T) {
	for _, tt := range []struct {
		name  string
		marks map[int]Mark
		list  []trace.Packet
		want  string
	}{
		{"no answer", nil, []trace.Packet{seg(1, 0, true, 1, 0, trace.SYN, 0), seg(2, 1000, true, 1, 0, trace.SYN, 0)}, "192.0.2.10:40000 sends 2 packets and nothing comes back."},
		{"one", nil, []trace.Packet{seg(1, 0, true, 1, 0, trace.SYN, 0)}, "192.0.2.10:40000 sends 1 packet and nothing comes back."},
		{"reset", nil, []trace.Packet{seg(1, 0, true, 1, 0, trace.SYN, 0), seg(2, 1, false, 0, 2, trace.RST|trace.ACK, 0)}, "It ends with a reset from 198.51.100.20:443."},
		{"again", map[int]Mark{2: Again}, []trace.Packet{seg(1, 0, true, 1, 0, trace.ACK, 5), seg(2, 300, true, 1, 0, trace.ACK, 5), seg(3, 320, false, 1, 6, trace.ACK, 0)}, "1 of these 3 packets were sent before."},
		{"plain", nil, []trace.Packet{seg(1, 0, true, 1, 0, trace.ACK, 5), seg(3, 320, false, 1, 6, trace.ACK, 0)}, "2 packets; the last one is from 198.51.100.20:443."},
	} {
		c := New(Request{Frame: 1})
		for i := range tt.list {
			c.Add(&tt.list[i], tt.marks[tt.list[i].Frame], 0)
		}
		if got := c.drawLadder().Alt; got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestWhen(t *testing.T) {
	list := []rung{{Packet: seg(7, 0, true, 1, 0, 0, 0)}, {Packet: seg(12, 1500.25, true, 1, 0, 0, 0)}}
	if a, b := when(list, 0), when(list, 1); a != "7   0.000000 s" || b != "12   1.500250 s   +1.5 s" {
		t.Errorf("%q, %q", a, b)
	}
}

// TestTexts are cut and wrapped to a width, whatever they hold.
func TestTexts(t *testing.T) {
	s := style(textSize, ink, text.XLeft, text.YTop)
	room := s.Width(strings.Repeat("m", 40))
	for _, tt := range []struct {
		text  string
		lines int
	}{{"", 1}, {"short", 1}, {strings.Repeat("word ", 12), 1}, {strings.Repeat("word ", 30), 2}, {strings.Repeat("x", 500), 1}, {"a " + strings.Repeat("é", 500), 2}} {
		got := wrapped(s, tt.text, room)
		if len(got) != tt.lines {
			t.Errorf("%.20q: %d lines", tt.text, len(got))
		}
		for _, l := range got {
			if s.Width(l) > room {
				t.Errorf("%.20q is wider than its room", l)
			}
		}
	}
}

func TestTicks(t *testing.T) {
	labels := func(ticks []plot.Tick) []string {
		var out []string
		for _, k := range ticks {
			if k.Label != "" {
				out = append(out, k.Label)
			}
		}
		return out
	}
	if got := labels(thousands{}.Ticks(0, 40000)); !slices.Contains(got, "20 000") {
		t.Errorf("%q", got)
	}
	for _, most := range []float64{1, 2, 7, 90} {
		for _, k := range (whole{}).Ticks(0, most) {
			if k.Value != math.Trunc(k.Value) || strings.Contains(k.Label, ".") {
				t.Errorf("up to %v: tick %v %q", most, k.Value, k.Label)
			}
		}
	}
}

func TestSteps(t *testing.T) {
	got := steps([]point{{1, 10}, {2, 20}, {4, 15}})
	if want := []point{{1, 10}, {2, 10}, {2, 20}, {4, 20}, {4, 15}}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if steps(nil) != nil {
		t.Error("steps of nothing")
	}
}

// TestTimeGoesBack: a packet with an earlier time than the first one belongs to the first bin.
func TestTimeGoesBack(t *testing.T) {
	c := run(Request{}, seg(1, 1000, true, 1, 0, trace.ACK, 5), seg(2, 10, true, 6, 0, trace.ACK, 5), seg(3, 1010, true, 11, 0, trace.ACK, 5))
	if len(c.bins) == 0 || c.bins[0].segments != 2 || c.end() > 0.02 {
		t.Errorf("%d bins, %v s", len(c.bins), c.end())
	}
}

// TestExactPercentiles: as long as all samples are kept, percentiles are theirs; beyond that, those of
// the histogram are near.
func TestExactPercentiles(t *testing.T) {
	for _, n := range []int{100, 3 * maxSamples} {
		c := New(Request{})
		for i := range n {
			p := seg(i+1, float64(i), true, 1, 1, trace.ACK, 1)
			c.Add(&p, Unmarked, 0)
			c.sample(0, p.Time, 100+float64(i%100))
		}
		var h histogram
		for _, b := range c.bins {
			h.merge(&b.rtt[0])
		}
		for p, want := range map[float64]float64{0: 100, 0.5: 150, 0.95: 195, 0.99: 199} {
			got, within := c.exact(0, &h)(p), 0.0
			if n > maxSamples {
				within = 0.04 * want
			}
			if math.Abs(got-want) > within {
				t.Errorf("%d samples: percentile %v is %v, want %v", n, p, got, want)
			}
		}
	}
}
