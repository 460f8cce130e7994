package app

import "testing"

func TestLength(t *testing.T) {
	for _, tt := range []struct {
		text    string
		n, head uint32
	}{
		{"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n", 20, 39},
		{"HTTP/1.1 200 OK\r\ncontent-LENGTH:20\r\nServer: x\r\n\r\nbody", 20, 49},
		{"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n", 0, 0}, // the header goes on in the next segment
		{"HTTP/1.1 200 OK\r\nContent-Length: 20\r\nTransfer-Encoding: chunked\r\n\r\n", 0, 0},
		{"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", 0, 0},
		{"HTTP/1.1 200 OK\r\nContent-Length: 3000000000\r\n\r\n", 0, 0},
		{"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n", 0, 0},
		{"HTTP/1.1 200 OK\r\nContent-Length\r\n\r\n", 0, 0},
		{"HTTP/1.1 200 OK\r\n\r\n", 0, 19},
		{"", 0, 0},
	} {
		if n, head := length([]byte(tt.text)); n != tt.n || head != tt.head {
			t.Errorf("%q: %d, %d, want %d, %d", tt.text, n, head, tt.n, tt.head)
		}
	}
}
