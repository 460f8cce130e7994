package app

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// said is what one side says at a time, in ms.
type said struct {
	side int
	at   float64
	text string
}

func get(n int) string { return strings.Repeat("GET / HTTP/1.1\r\nHost: www.example.com\r\n\r\n", n) }

func ok(head string, body string) string { return "HTTP/1.1 200 OK\r\n" + head + "\r\n\r\n" + body }

// TestFraming: where a message ends, the next one begins, and each response is that of its request.
func TestFraming(t *testing.T) {
	const chunked, ten = "Transfer-Encoding: chunked", "Content-Length: 10"
	decoy := "HTTP/1.1 500 Internal Server Error\r\n\r\n"
	for _, tt := range []struct {
		what  string
		said  []said
		times []float64 // ms, sorted
		open  int       // requests that wait
		bad   uint32    // responses with 5xx
	}{
		{"pipelined", []said{{0, 0, get(3)}, {1, 900, ok(ten, "0123456789") + ok(ten, "0123456789")}, {1, 1000, ok("Content-Length: 0", "")}}, []float64{0, 100, 900}, 0, 0},
		{"pipelined one after the other", []said{{0, 0, get(1)}, {0, 500, get(1)}, {1, 900, ok(ten, "0123456789")}, {1, 1500, ok(ten, "0123456789")}}, []float64{600, 900}, 0, 0},
		{"a response that looks like two", []said{{0, 0, get(1)}, {1, 10, ok(fmt.Sprintf("Content-Length: %d", 10+len(decoy)), "0123456789")}, {1, 11, decoy}, {0, 20, get(1)}, {1, 60, ok(ten, "0123456789")}},
			[]float64{10, 40}, 0, 0},
		{"chunks, the next response behind the last", []said{{0, 0, get(2)}, {1, 10, ok(chunked, "5\r\nhello\r\n")}, {1, 300, "A;x=y\r\n0123456789\r\n0\r\nX: y\r\n\r\n" + ok(ten, "0123456789")}}, []float64{0, 10}, 0, 0},
		{"chunks that hold a status line", []said{{0, 0, get(1)}, {1, 10, ok(chunked, fmt.Sprintf("%x\r\n", len(decoy)))}, {1, 20, decoy}, {1, 30, "\r\n0\r\n\r\n"}}, []float64{10}, 0, 0},
		{"100 Continue", []said{{0, 0, "PUT / HTTP/1.1\r\nContent-Length: 10\r\nExpect: 100-continue\r\n\r\n"}, {1, 20, "HTTP/1.1 100 Continue\r\n\r\n"}, {0, 400, "0123456789"}, {1, 450, ok(ten, "0123456789")}}, []float64{50}, 0, 0},
		{"early hints", []said{{0, 0, get(1)}, {1, 20, "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"}, {1, 2000, ok(ten, "0123456789")}}, []float64{2000}, 0, 0},
		{"hints and response together", []said{{0, 0, get(1)}, {1, 20, "HTTP/1.1 103 Early Hints\r\n\r\n" + ok(ten, "0123456789")}}, []float64{20}, 0, 0},
		{"HEAD, then GET", []said{{0, 0, "HEAD / HTTP/1.1\r\n\r\n" + get(1)}, {1, 20, ok("Content-Length: 5000", "") + ok(ten, "0123456789")}, {0, 30, get(1)}, {1, 70, ok(ten, "0123456789")}}, []float64{0, 20, 40}, 0, 0},
		{"304 with a length", []said{{0, 0, get(2)}, {1, 20, "HTTP/1.1 304 Not Modified\r\nContent-Length: 5000\r\n\r\n"}, {1, 50, "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"}}, []float64{20, 30}, 0, 1},
		{"a slow upload", []said{{0, 0, "POST / HTTP/1.1\r\nContent-Length: 10\r\n\r\n01234"}, {0, 800, "56789"}, {1, 830, ok(ten, "0123456789")}}, []float64{30}, 0, 0},
		{"an answer before the upload ends", []said{{0, 0, "POST / HTTP/1.1\r\nContent-Length: 10\r\n\r\n01234"}, {1, 30, ok(ten, "0123456789")}, {0, 800, "56789"}, {0, 810, get(1)}, {1, 850, ok(ten, "0123456789")}}, []float64{30, 40}, 0, 0},
		{"no length", []said{{0, 0, get(1)}, {1, 20, ok("Server: x", "body")}, {1, 21, decoy}}, []float64{20}, 0, 1},
		{"another protocol after it", []said{{0, 0, get(1)}, {1, 20, "HTTP/1.1 101 Switching Protocols\r\n\r\n\x81\x05hello"}, {0, 30, "\x81\x85GET / HTTP/1.1"}}, []float64{20}, 0, 0},
		{"no answer to the last", []said{{0, 0, get(2)}, {1, 20, ok(ten, "0123456789")}}, []float64{20}, 1, 0},
	} {
		for _, size := range []int{1 << 16, 40, 13} {
			if size < 1000 && (strings.HasPrefix(tt.what, "no length") || strings.HasPrefix(tt.what, "another")) {
				continue // where the next message begins, only a segment tells
			}
			c := newConn(size)
			for _, s := range tt.said {
				c.say(s.side, s.at, []byte(s.text))
			}
			x := &c.l.Sessions[0].HTTP
			var got []float64
			for i := range c.l.Time.N {
				got = append(got, float64(c.l.Time.At(i))/1e6)
			}
			if !slices.Equal(got, tt.times) || int(x.n) != tt.open || x.Errors5xx != tt.bad {
				t.Errorf("%s in segments of %d: times %v, %d open, %d bad; want %v, %d, %d", tt.what, size, got, x.n, x.Errors5xx, tt.times, tt.open, tt.bad)
			}
		}
	}
}

// TestGaps: what is missing within a body does no harm, elsewhere the next segment that begins a
// message is looked for.
func TestGaps(t *testing.T) {
	c := newConn(1 << 16)
	c.say(0, 0, []byte(get(1)))
	c.say(1, 20, []byte(ok("Content-Length: 100", strings.Repeat("x", 20))))
	c.seq[1] += 70
	c.say(1, 30, []byte(strings.Repeat("x", 10)+"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n"))
	if x := &c.l.Sessions[0].HTTP; x.Responses != 2 || x.Errors5xx != 1 {
		t.Errorf("a gap in a body: %+v", x)
	}
	c.seq[0] += 200
	c.say(0, 40, []byte(get(1)))
	c.seq[1] += 3000
	c.say(1, 50, []byte("the rest of something\r\n\r\n"))
	c.say(1, 90, []byte(ok("Content-Length: 0", "")))
	if x := &c.l.Sessions[0].HTTP; x.Responses != 3 || x.n != 0 || c.l.Time.Max != 50e6 || x.Slowest != 50e6 || x.SlowAsk != 4 || x.SlowFrame != 6 {
		t.Errorf("a gap between: %+v", x)
	}
	// A header that never ends, and a first line that is none.
	c = newConn(1 << 16)
	c.say(0, 0, []byte("GET / HTTP/1.1\r\nX: "+strings.Repeat("y", maxHead)))
	c.say(1, 1, []byte("HTTP/1.1 abc\r\n\r\n"))
	if !c.l.Sessions[0].http[0].lost || !c.l.Sessions[0].http[1].lost {
		t.Error("not given up")
	}
}

// FuzzFraming: whatever two sides say in whatever pieces, the queue of requests stays sound.
func FuzzFraming(f *testing.F) {
	f.Add([]byte(get(2)), []byte(ok("Transfer-Encoding: chunked", "5\r\nhello\r\n0\r\n\r\n")), uint8(7), uint8(3))
	f.Add([]byte("HEAD / HTTP/1.1\r\n\r\n"), []byte("HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\nHTTP/1.1 200 OK\r\n\r\n"), uint8(200), uint8(0))
	f.Fuzz(func(t *testing.T, ask, answer []byte, size, gap uint8) {
		c := newConn(int(size) + 20)
		c.say(0, 0, []byte(get(1)))
		c.say(0, 1, ask)
		c.say(1, 2, answer)
		c.seq[1] += uint32(gap)
		c.say(1, 3, answer)
		x := &c.l.Sessions[0].HTTP
		if x.n > waiting || x.n > 0 && x.Waiting() == 0 || int64(x.Responses) < c.l.Time.N || c.l.Time.N > 0 && c.l.Time.Min < 0 {
			t.Errorf("%+v", x)
		}
	})
}
