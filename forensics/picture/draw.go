package picture

import (
	"fmt"
	"image/color"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// The colours are told apart also by people who see fewer of them (Okabe and Ito).
var (
	ink    = color.NRGBA{40, 40, 40, 255}
	faint  = color.NRGBA{150, 150, 150, 255}
	pale   = color.NRGBA{225, 225, 225, 255}
	blue   = color.NRGBA{0, 114, 178, 255}
	dim    = color.NRGBA{120, 120, 120, 90}
	haze   = color.NRGBA{0, 114, 178, 70}
	red    = color.NRGBA{213, 94, 0, 255}
	purple = color.NRGBA{204, 121, 167, 255}
	green  = color.NRGBA{0, 158, 115, 255}
	ground = color.NRGBA{255, 255, 255, 255}
)

const (
	margin     = vg.Length(14)
	titleSize  = vg.Length(13)
	textSize   = vg.Length(10)
	labelSize  = vg.Length(9)
	lineHeight = vg.Length(13)
	headHeight = vg.Length(46)
)

// Pictures draws what was collected. A picture without data is left out.
func (c *Collector) Pictures() []Picture {
	var out []Picture
	for _, p := range []Picture{c.throughput(), c.roundTrip(), c.timeSequence(), c.drawLadder()} {
		if p.draw != nil {
			out = append(out, p)
		}
	}
	return out
}

// style is a text style.
func style(size vg.Length, col color.Color, x text.XAlignment, y text.YAlignment) text.Style {
	return text.Style{Color: col, Font: letters(size), XAlign: x, YAlign: y, Handler: plot.DefaultTextHandler}
}

// letters is the font of everything.
func letters(size vg.Length) font.Font {
	return font.Font{Typeface: "Liberation", Variant: "Sans", Size: size}
}

// head writes title and conclusion, and returns what is left of the canvas.
func (p *Picture) head(c draw.Canvas) draw.Canvas {
	c.SetColor(ground)
	c.Fill(c.Rectangle.Path())
	c = draw.Crop(c, margin, -margin, margin/2, -margin)
	bold := style(titleSize, ink, text.XLeft, text.YTop)
	bold.Font.Weight = 3
	width := c.Max.X - c.Min.X
	c.FillText(bold, vg.Point{X: c.Min.X, Y: c.Max.Y}, fitted(bold, p.Title, width))
	plain := style(textSize, ink, text.XLeft, text.YTop)
	lines := wrapped(plain, p.Alt, width)
	for i, l := range lines {
		c.FillText(plain, vg.Point{X: c.Min.X, Y: c.Max.Y - 19 - vg.Length(i)*lineHeight}, l)
	}
	return draw.Crop(c, 0, 0, 0, -headHeight-vg.Length(len(lines)-1)*lineHeight)
}

// fitted cuts a text to a width.
func fitted(s text.Style, t string, width vg.Length) string {
	for r := []rune(t); len(r) > 4 && s.Width(t) > width; r = []rune(t) {
		t = string(r[:len(r)-4]) + "..."
	}
	return t
}

// wrapped breaks a text into two lines; what does not fit is cut.
func wrapped(s text.Style, t string, width vg.Length) []string {
	words, first := strings.Fields(t), ""
	for i, w := range words {
		if next := strings.TrimSpace(first + " " + w); s.Width(next) <= width || i == 0 {
			first = next
			continue
		}
		return []string{fitted(s, first, width), fitted(s, strings.Join(words[i:], " "), width)}
	}
	return []string{fitted(s, first, width)}
}

// axes makes an empty plot.
func axes(x, y string, until float64) *plot.Plot {
	p := plot.New()
	p.BackgroundColor = ground
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		a.Label.TextStyle.Font, a.Label.TextStyle.Color = letters(labelSize), ink
		a.Tick.Label.Font, a.Tick.Label.Color = letters(labelSize), ink
		a.LineStyle.Color, a.Tick.LineStyle.Color = faint, faint
		a.Padding = 2
	}
	p.X.Label.Text, p.Y.Label.Text = x, y
	p.X.Min, p.X.Max = 0, until
	p.Y.Tick.Marker = thousands{}
	p.Legend.TextStyle = style(labelSize, ink, text.XLeft, text.YBottom)
	p.Legend.Padding = 3
	p.Legend.Top, p.Legend.YOffs, p.Legend.XOffs = true, -4, -8
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = nil, pale
	p.Add(grid)
	return p
}

// thousands labels ticks with plain numbers, grouped.
type thousands struct{}

// Ticks implements plot.Ticker.
func (thousands) Ticks(least, most float64) []plot.Tick {
	ticks := plot.DefaultTicks{}.Ticks(least, most)
	for i, t := range ticks {
		if t.Label != "" {
			ticks[i].Label = grouped(t.Value)
		}
	}
	return ticks
}

// whole has ticks at whole numbers only.
type whole struct{}

// Ticks implements plot.Ticker.
func (whole) Ticks(least, most float64) []plot.Tick {
	var out []plot.Tick
	for _, t := range (thousands{}).Ticks(least, most) {
		if t.Value == math.Trunc(t.Value) {
			out = append(out, t)
		}
	}
	return out
}

// grouped writes a number with thin separators between thousands.
func grouped(v float64) string {
	if math.Abs(v) < 10000 {
		return fmt.Sprintf("%.6g", math.Round(v*1e6)/1e6)
	}
	s := fmt.Sprintf("%.0f", v)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + " " + s[i:]
	}
	return s
}

// line adds a line, with a legend when it has a name.
func line(p *plot.Plot, pts []point, name string, col color.Color, wide vg.Length) {
	l := &plotter.Line{XYs: xys(pts), LineStyle: draw.LineStyle{Color: col, Width: wide}}
	p.Add(l)
	if name != "" {
		p.Legend.Add(name, l)
	}
}

// dots adds points.
func dots(p *plot.Plot, pts []point, name string, col color.Color, radius vg.Length, shape draw.GlyphDrawer) {
	s := &plotter.Scatter{XYs: xys(pts), GlyphStyle: draw.GlyphStyle{Color: col, Radius: radius, Shape: shape}}
	p.Add(s)
	if name != "" {
		p.Legend.Add(name, s)
	}
}

func xys(pts []point) plotter.XYs {
	out := make(plotter.XYs, len(pts))
	for i, q := range pts {
		out[i].X, out[i].Y = q.at, q.value
	}
	return out
}

// end is where the time axis ends.
func (c *Collector) end() float64 { return max(c.seconds(c.last), 1e-3) }

// throughput draws Mbit/s, and below it the retransmissions of the same time.
func (c *Collector) throughput() Picture {
	out := Picture{Name: "throughput", Title: "Throughput and retransmissions: " + c.req.File}
	bins, seconds := c.coarse(150), 0.0
	if len(bins) < 2 {
		return out
	}
	seconds = c.end() / float64(len(bins))
	var rate, again []point
	segments, repeated, bytes, peak, worst := 0, 0, int64(0), 0.0, 0
	for i, b := range bins {
		at, v := (float64(i)+0.5)*seconds, float64(b.bytes)*8/1e6/seconds
		rate = append(rate, point{at, v})
		segments, repeated, bytes, peak = segments+b.segments, repeated+b.again, bytes+b.bytes, max(peak, v)
		if b.again > 0 {
			again = append(again, point{at, float64(b.again)})
		}
		if b.again > bins[worst].again {
			worst = i
		}
	}
	out.Alt = fmt.Sprintf("On average %s, at most %s in %s; ", bits(float64(bytes)*8/c.end()), bits(peak*1e6), duration(seconds))
	if repeated == 0 {
		out.Alt += "no TCP segment was sent again or out of order."
	} else {
		out.Alt += fmt.Sprintf("%d of %d TCP segments (%.2g %%) were sent again or are out of order, most of them around %s.", repeated, segments,
			100*float64(repeated)/float64(segments), duration((float64(worst)+0.5)*seconds))
	}
	unit := "Mbit/s"
	if peak < 0.1 {
		unit = "kbit/s"
		for i := range rate {
			rate[i].value *= 1000
		}
	}
	out.draw = func(cv draw.Canvas) error {
		top, low := axes("", "IP throughput ("+unit+")", c.end()), axes("time since the first packet (s)", "again, out of order (segments)", c.end())
		top.Y.Min, low.Y.Min, low.Y.Max = 0, 0, max(1, float64(bins[worst].again))
		low.Y.Tick.Marker = whole{}
		line(top, rate, "", blue, 1.3)
		low.Add(bars{again, seconds})
		rows := plot.Align([][]*plot.Plot{{top}, {low}}, draw.Tiles{Rows: 2, Cols: 1, PadY: 10}, out.head(cv))
		top.Draw(rows[0][0])
		low.Draw(rows[1][0])
		return nil
	}
	return out
}

// coarse merges bins to at most n that cover the capture exactly.
func (c *Collector) coarse(n int) []bin {
	if len(c.bins) == 0 {
		return nil
	}
	per := (len(c.bins) + n - 1) / n
	out := make([]bin, (len(c.bins)+per-1)/per)
	for i := range c.bins {
		out[i/per].add(&c.bins[i])
	}
	return out
}

// bars draws a bar at each point.
type bars struct {
	points []point
	width  float64
}

// Plot implements plot.Plotter. A bar is at least two points wide, so that a single one is seen.
func (b bars) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	for _, q := range b.points {
		left, right := x(q.at-b.width/2), x(q.at+b.width/2)
		if right-left < 2 {
			left, right = x(q.at)-1, x(q.at)+1
		}
		c.SetColor(red)
		c.Fill(vg.Rectangle{Min: vg.Point{X: left, Y: y(0)}, Max: vg.Point{X: right, Y: y(q.value)}}.Path())
	}
}

// roundTrip draws samples and percentiles. Seen from the capture point there are two round trips, to
// the servers and to the clients; the longer one is the path, the other often a host next to it.
func (c *Collector) roundTrip() Picture {
	out := Picture{Name: "rtt", Title: "Round-trip time: " + c.req.File}
	bins := c.coarse(60)
	var all [2]histogram
	for i := range bins {
		for k := range all {
			all[k].merge(&bins[i].rtt[k])
		}
	}
	far := 0
	if all[1].samples >= 3 && (all[0].samples < 3 || all[1].percentile(0.5) > all[0].percentile(0.5)) {
		far = 1
	}
	if all[far].samples < 3 {
		return out
	}
	seconds := c.end() / float64(len(bins))
	var median, high []point
	for i := range bins {
		if h := &bins[i].rtt[far]; h.samples >= 3 {
			at := (float64(i) + 0.5) * seconds
			median, high = append(median, point{at, h.percentile(0.5)}), append(high, point{at, h.percentile(0.95)})
		}
	}
	sides := [2]string{"servers", "clients"}
	h := c.exact(far, &all[far])
	out.Alt = fmt.Sprintf("From the capture point to the %s and back: median %s, 95th percentile %s, 99th %s (%d measurements), %s.", sides[far],
		millis(h(0.5)), millis(h(0.95)), millis(h(0.99)), all[far].samples, shape(h, median))
	out.draw = func(cv draw.Canvas) error {
		p := axes("time since the first packet (s)", "round-trip time (ms)", c.end())
		p.Y.Min, p.Y.Max = 0, 1e-3
		for k := range sides {
			for _, q := range c.samples[k] {
				p.Y.Max = max(p.Y.Max, 1.15*q.value)
			}
		}
		dots(p, c.samples[1-far], "to the "+sides[1-far], dim, 1.5, draw.CircleGlyph{})
		dots(p, c.samples[far], "to the "+sides[far], haze, 1.8, draw.CircleGlyph{})
		if len(median) > 1 {
			line(p, high, "95th percentile", red, 1.2)
			line(p, median, "median", blue, 1.6)
		}
		p.Draw(out.head(cv))
		return nil
	}
	return out
}

// exact returns the percentiles of a side: of all samples as long as they are kept, else those of the
// histogram.
func (c *Collector) exact(side int, h *histogram) func(float64) float64 {
	if c.stride[side] > 1 {
		return h.percentile
	}
	var all []float64
	for _, s := range c.samples[side] {
		all = append(all, s.value)
	}
	slices.Sort(all)
	return func(p float64) float64 { return all[min(int(p*float64(len(all))), len(all)-1)] }
}

// shape says how the round-trip time behaves.
func shape(percentile func(float64) float64, median []point) string {
	least, p50, p95 := percentile(0), percentile(0.5), percentile(0.95)
	if len(median) >= 6 {
		third := len(median) / 3
		early, late := mean(median[:third]), mean(median[len(median)-third:])
		switch {
		case late > 2*early && late-early > 20:
			return fmt.Sprintf("rising from %s to %s: a queue fills, or the path changed", millis(early), millis(late))
		case early > 2*late && early-late > 20:
			return fmt.Sprintf("falling from %s to %s", millis(early), millis(late))
		}
	}
	switch {
	case p50 > 3*least && p50-least > 20:
		return fmt.Sprintf("mostly far above the shortest of %s: packets wait in a queue, or ACKs are delayed", millis(least))
	case p95 > 10*p50 && p95 > 50:
		return "with long waits now and then: queues, or delayed ACKs"
	case p95 > 2*p50 && p95 > 20:
		return "varying"
	}
	return "steady"
}

func mean(pts []point) float64 {
	sum := 0.0
	for _, p := range pts {
		sum += p.value
	}
	return sum / float64(len(pts))
}

// timeSequence draws the direction that carries more: its segments and the ACKs for them.
func (c *Collector) timeSequence() Picture {
	out := Picture{Name: "sequence"}
	h, src := &c.side[0], c.src
	if c.side[1].bytes > h.bytes {
		h, src = &c.side[1], other(c.req.Stream, c.src)
	}
	if len(h.data) < 2 || h.bytes == 0 { // SYNs alone make no graph; the ladder shows them
		return out
	}
	out.Title = fmt.Sprintf("Time-sequence graph of %s, data from %s", c.req.StreamName, src)
	out.Alt = fmt.Sprintf("%d bytes in %d segments, %d of them sent again, %d out of order", h.bytes, h.total, h.marked[Again], h.marked[Disordered])
	if h.quiet > 0.2 {
		out.Alt += fmt.Sprintf("; the longest pause is %s, at %s", duration(h.quiet), duration(h.quietAt))
	}
	out.Alt += "."
	out.draw = func(cv draw.Canvas) error {
		first, last := h.data[0].at, h.data[len(h.data)-1].at
		if n := len(h.acks); n > 0 {
			last = max(last, h.acks[n-1].at)
		}
		p := axes("time since the first packet (s)", "bytes since the first sequence number", last)
		p.X.Min, p.X.Max = first, max(last, first+1e-3)
		line(p, steps(h.acks), "acknowledged", green, 1)
		var by [3][]point
		for _, m := range h.data {
			by[m.mark] = append(by[m.mark], point{m.at, m.end})
		}
		dots(p, by[Unmarked], "segment", blue, 1.3, draw.BoxGlyph{})
		if len(by[Disordered]) > 0 {
			dots(p, by[Disordered], "out of order", purple, 2.5, draw.BoxGlyph{})
		}
		if len(by[Again]) > 0 {
			dots(p, by[Again], "sent again", red, 3.2, draw.PyramidGlyph{})
		}
		p.Legend.Left = true
		p.Legend.XOffs = 8
		p.Draw(out.head(cv))
		return nil
	}
	return out
}

// steps turns values into a line that changes at its points.
func steps(pts []point) []point {
	var out []point
	for i, p := range pts {
		if i > 0 {
			out = append(out, point{p.at, pts[i-1].value})
		}
		out = append(out, p)
	}
	return out
}

func bits(perSecond float64) string {
	switch {
	case perSecond >= 1e9:
		return fmt.Sprintf("%.3g Gbit/s", perSecond/1e9)
	case perSecond >= 1e6:
		return fmt.Sprintf("%.3g Mbit/s", perSecond/1e6)
	}
	return fmt.Sprintf("%.3g kbit/s", perSecond/1e3)
}

func millis(v float64) string {
	if v >= 1000 {
		return fmt.Sprintf("%.2f s", v/1000)
	}
	return fmt.Sprintf("%.3g ms", v)
}

func duration(s float64) string {
	switch {
	case s >= 100:
		return fmt.Sprintf("%.0f s", s)
	case s >= 1:
		return fmt.Sprintf("%.3g s", s)
	}
	return fmt.Sprintf("%.3g ms", 1000*s)
}
