package picture

import (
	"fmt"
	"image/color"
	"math"
	"net/netip"

	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"ghostbot/forensics/trace"
)

// drawLadder draws the packets of an exchange between two lines, one for each host.
func (c *Collector) drawLadder() Picture {
	out := Picture{Name: "ladder"}
	list := append(append([]rung{}, c.before...), c.after...)
	if len(list) == 0 {
		return out
	}
	left, right := ends(list[0])
	out.height = min(height, 140+rungStep*len(list))
	out.Title = fmt.Sprintf("Exchange around frame %d: %s and %s", c.req.Frame, left, right)
	out.Alt = c.req.Why
	if out.Alt == "" {
		out.Alt = conclusion(list)
	}
	out.draw = func(cv draw.Canvas) error {
		body := out.head(cv)
		x := [2]vg.Length{body.Min.X + 190, body.Max.X - 120}
		top := body.Max.Y
		for i, name := range []string{left.String(), right.String()} {
			body.FillText(style(textSize, ink, text.XCenter, text.YTop), vg.Point{X: x[i], Y: top}, name)
			body.StrokeLine2(draw.LineStyle{Color: faint, Width: 1}, x[i], top-16, x[i], body.Min.Y)
		}
		step := min((top-body.Min.Y-34)/vg.Length(len(list)), rungPoints)
		for i := range list {
			y := top - 34 - vg.Length(i)*step
			list[i].draw(body, x, y, step, src(list[i]) == left)
			body.FillText(style(labelSize, faint, text.XLeft, text.YCenter), vg.Point{X: body.Min.X, Y: y}, when(list, i))
		}
		return nil
	}
	return out
}

// rungStep is the height of a rung in pixels, as long as there is room; rungPoints is the
// same in points.
const (
	rungStep   = 47
	rungPoints = vg.Length(rungStep) / dpi * vg.Inch
)

// when is the number and the time of a rung, and how long after the one before.
func when(list []rung, i int) string {
	at := float64(list[i].Time-list[0].Time) / 1e9
	s := fmt.Sprintf("%d   %.6f s", list[i].Frame, at)
	if i > 0 {
		s += fmt.Sprintf("   +%s", duration(float64(list[i].Time-list[i-1].Time)/1e9))
	}
	return s
}

// draw makes an arrow, slanting down as time passes, with its label above.
func (r rung) draw(c draw.Canvas, x [2]vg.Length, y, step vg.Length, fromLeft bool) {
	var col color.Color = blue
	if r.mark != Unmarked || r.Flags&trace.RST != 0 && r.Proto == trace.TCP {
		col = red
	}
	a, b := vg.Point{X: x[0], Y: y}, vg.Point{X: x[1], Y: y - step/4}
	if !fromLeft {
		a.X, b.X = x[1], x[0]
	}
	c.StrokeLine2(draw.LineStyle{Color: col, Width: 1.2}, a.X, a.Y, b.X, b.Y)
	angle := math.Atan2(float64(b.Y-a.Y), float64(b.X-a.X))
	var head vg.Path
	head.Move(b)
	for _, turn := range []float64{2.8, -2.8} {
		head.Line(vg.Point{X: b.X + 8*vg.Length(math.Cos(angle+turn)), Y: b.Y + 8*vg.Length(math.Sin(angle+turn))})
	}
	head.Close()
	c.SetColor(col)
	c.Fill(head)
	c.FillText(style(labelSize, ink, text.XCenter, text.YBottom), vg.Point{X: (x[0] + x[1]) / 2, Y: y - step/8 + 2}, r.label())
}

func src(r rung) netip.AddrPort { return netip.AddrPortFrom(r.Src, r.SrcPort) }

func ends(r rung) (a, b netip.AddrPort) { return src(r), netip.AddrPortFrom(r.Dst, r.DstPort) }

func other(f Flow, end netip.AddrPort) netip.AddrPort {
	if end == f.A {
		return f.B
	}
	return f.A
}

// label describes a packet by its headers.
func (r rung) label() string {
	s := ""
	switch r.Proto {
	case trace.TCP:
		s = r.tcpLabel()
	case trace.UDP:
		s = fmt.Sprintf("UDP, %d bytes", r.Len)
		if r.DstPort == 53 {
			s = fmt.Sprintf("DNS query, %d bytes", r.Len)
		} else if r.SrcPort == 53 {
			s = fmt.Sprintf("DNS answer, %d bytes", r.Len)
		}
	case trace.ICMP, trace.ICMPv6:
		s = fmt.Sprintf("ICMP type %d code %d, %d bytes", r.Window>>8, r.Window&255, r.Len)
	default:
		s = fmt.Sprintf("IP protocol %d, %d bytes", r.Proto, r.Len)
	}
	return s + [...]string{"", " (sent again)", " (out of order)"}[r.mark]
}

func (r rung) tcpLabel() string {
	s := ""
	for i, name := range []string{"FIN", "SYN", "RST", "PSH", "ACK"} {
		if r.Flags&(1<<i) != 0 && name != "PSH" {
			s += ", " + name
		}
	}
	if s != "" {
		s = s[2:]
	}
	if r.Len > 0 {
		s += fmt.Sprintf(", %d bytes", r.Len)
	}
	if r.Flags&(trace.SYN|trace.RST) == 0 && r.Window == 0 { // any other number wants its scale to be understood
		s += ", window closed"
	}
	return s
}

// conclusion says how an exchange ends.
func conclusion(list []rung) string {
	last, first := list[len(list)-1], list[0]
	from, answered := src(first), false
	again := 0
	for _, r := range list {
		answered = answered || src(r) != from
		if r.mark == Again {
			again++
		}
	}
	switch {
	case !answered:
		return fmt.Sprintf("%s sends %s and nothing comes back.", from, packets(len(list)))
	case last.Proto == trace.TCP && last.Flags&trace.RST != 0:
		return fmt.Sprintf("It ends with a reset from %s.", src(last))
	case again > 0:
		return fmt.Sprintf("%d of these %d packets were sent before.", again, len(list))
	}
	return fmt.Sprintf("%s; the last one is from %s.", packets(len(list)), src(last))
}

func packets(n int) string {
	if n == 1 {
		return "1 packet"
	}
	return fmt.Sprintf("%d packets", n)
}
