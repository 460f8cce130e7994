// Package picture draws what people look at in a capture: throughput and retransmissions over time,
// round-trip time over time, the time-sequence graph of one stream, and a ladder of one exchange.
// Each picture has a title, units at its axes, and a conclusion of one line, which is also its
// alternative text.
//
// A Collector sees the packets once and keeps a bounded amount, whatever the size of the capture; it
// takes verdicts and round-trip times from its caller, so that pictures and numbers agree. The
// package is pure: it writes to a writer.
package picture

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"image/png"
	"io"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
)

// Picture is one picture.
type Picture struct {
	// Name is what distinguishes its file: throughput, rtt, sequence or ladder.
	Name string
	// Title says what is shown, Alt what it means.
	Title, Alt string

	draw   func(draw.Canvas) error
	height int // in pixels; 0: the usual one
}

// Size of a picture in pixels, at 100 to the inch.
const (
	width  = 1000
	height = 560
	dpi    = 100
)

// PNG writes the picture. Title and conclusion are in it also as text.
func (p *Picture) PNG(w io.Writer) error {
	inch := func(px int) vg.Length { return vg.Length(px) / dpi * vg.Inch }
	tall := height
	if p.height > 0 {
		tall = p.height
	}
	c := vgimg.NewWith(vgimg.UseWH(inch(width), inch(tall)), vgimg.UseDPI(dpi))
	if err := p.draw(draw.New(c)); err != nil {
		return fmt.Errorf("drawing %s: %w", p.Name, err)
	}
	var b bytes.Buffer
	if err := png.Encode(&b, c.Image()); err != nil {
		return fmt.Errorf("drawing %s: %w", p.Name, err)
	}
	_, err := w.Write(withText(b.Bytes(), [2]string{"Title", p.Title}, [2]string{"Description", p.Alt}))
	return err
}

// headerEnd is where the first chunk of a PNG, the header, ends.
const headerEnd = 8 + 12 + 13

// withText puts iTXt chunks behind the header of a PNG (PNG specification, 11.3.3.4).
func withText(file []byte, texts ...[2]string) []byte {
	out := append([]byte{}, file[:headerEnd]...)
	for _, t := range texts {
		body := append([]byte("iTXt"+t[0]), 0, 0, 0, 0, 0)
		body = append(body, t[1]...)
		out = binary.BigEndian.AppendUint32(out, uint32(len(body)-4))
		out = append(out, body...)
		out = binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(body))
	}
	return append(out, file[headerEnd:]...)
}
