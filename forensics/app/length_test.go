package app

import "testing"

func TestLength(t *testing.T) {
	for _, tt := range []struct {
		text    string
		n, head uint32
		chunks  bool
	}{
		{"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n", 20, 39, false},
		{"HTTP/1.1 200 OK\r\ncontent-LENGTH:20\r\nServer: x\r\n\r\nbody", 20, 49, false},
		{"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n", 0, 0, false}, // the header goes on in the next segment
		{"HTTP/1.1 200 OK\r\nContent-Length: 20\r\nTransfer-Encoding: chunked\r\n\r\n", 0, 67, true},
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", 0, 44, false},
		{"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", 0, 0, false},
		{"HTTP/1.1 200 OK\r\nContent-Length: 3000000000\r\n\r\n", 0, 0, false},
		{"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n", 0, 0, false},
		{"HTTP/1.1 200 OK\r\nContent-Length\r\n\r\n", 0, 0, false},
		{"HTTP/1.1 200 OK\r\n\r\n", 0, 19, false},
		{"", 0, 0, false},
	} {
		if n, head, chunks := length([]byte(tt.text)); n != tt.n || head != tt.head || chunks != tt.chunks {
			t.Errorf("%q: %d, %d, %v, want %d, %d, %v", tt.text, n, head, chunks, tt.n, tt.head, tt.chunks)
		}
	}
}
