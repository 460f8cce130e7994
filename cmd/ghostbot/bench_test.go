package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
)

// everyday are commands as investigations propose them.
var everyday = []string{
	"ss -ltn", "ping -c 3 -W 2 192.0.2.7", "dig +short db.example.com A", "curl -sS -o /dev/null -w '%{http_code}' --max-time 5 http://192.0.2.7:8080/health",
	"ip route get 198.51.100.9", "getent hosts db.example.com", "nc -zv -w 3 192.0.2.7 5432", "tcpdump -i eth0 -c 100 host 192.0.2.7",
	"openssl s_client -connect www.example.com:443 -servername www.example.com -brief", "traceroute -n -m 12 198.51.100.9",
	"az network nsg list --resource-group rg1 --output json", "systemctl status nginx", "cat /proc/net/dev", "journalctl -u nginx -n 50",
	"ss -tnp | grep 5432", "rm -rf /",
}

// outputs are texts as such commands print them.
var outputs = []string{
	"PING 192.0.2.7 (192.0.2.7) 56(84) bytes of data.\n64 bytes from 192.0.2.7: icmp_seq=1 ttl=64 time=0.041 ms\n\n--- 192.0.2.7 ping statistics ---\n3 packets transmitted, 3 received, 0% packet loss, time 2040ms\n",
	"State  Recv-Q Send-Q Local Address:Port Peer Address:Port\nLISTEN 0      128          0.0.0.0:22        0.0.0.0:*\nLISTEN 0      511        127.0.0.1:8080      0.0.0.0:*\n",
	"HTTP/1.1 502 Bad Gateway\nServer: nginx\nContent-Type: text/html\n\n<html><head><title>502 Bad Gateway</title></head></html>\n",
	"Mar 14 10:45:12 web1 nginx[812]: upstream timed out (110: Connection timed out) while connecting to upstream, client: 198.51.100.9\n",
}

// jsonLines makes n lines of {"id":I,name:text}.
func jsonLines(name string, texts []string, n int) []byte {
	var b bytes.Buffer
	for i := range n {
		text, _ := json.Marshal(texts[i%len(texts)])
		fmt.Fprintf(&b, "{\"id\":%d,%q:%s}\n", i, name, text)
	}
	return b.Bytes()
}

func benchFilter(b *testing.B, in []byte, args ...string) {
	n := bytes.Count(in, []byte("\n"))
	b.SetBytes(int64(len(in)))
	b.ReportAllocs()
	for b.Loop() {
		c := &cli{in: bytes.NewReader(in), out: io.Discard, err: io.Discard}
		if code := run(context.Background(), c, args); code != exitOK {
			b.Fatalf("code %d", code)
		}
	}
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "lines/s")
}

func BenchmarkClassifyJSONL(b *testing.B) {
	benchFilter(b, jsonLines("command", everyday, 20000), "classify", "--jsonl")
}

func BenchmarkRedactJSONL(b *testing.B) {
	benchFilter(b, jsonLines("text", outputs, 5000), "redact", "--jsonl")
}

// BenchmarkRedactJSONLBig is one command's long output a line.
func BenchmarkRedactJSONLBig(b *testing.B) {
	benchFilter(b, jsonLines("text", []string{strings.Repeat(strings.Join(outputs, ""), 80)}, 50), "redact", "--jsonl")
}

// BenchmarkFloorJSONL reads and writes the same lines and does nothing between:
// what no filter of these lines can be faster than.
func BenchmarkFloorJSONL(b *testing.B) {
	for _, tc := range []struct {
		name string
		in   []byte
	}{
		{"commands", jsonLines("text", everyday, 20000)},
		{"outputs", jsonLines("text", outputs, 5000)},
		{"big", jsonLines("text", []string{strings.Repeat(strings.Join(outputs, ""), 80)}, 50)},
	} {
		b.Run(tc.name, func(b *testing.B) {
			n := bytes.Count(tc.in, []byte("\n"))
			b.SetBytes(int64(len(tc.in)))
			b.ReportAllocs()
			type line struct {
				ID   json.RawMessage `json:"id"`
				Text string          `json:"text"`
			}
			for b.Loop() {
				c := &cli{in: bytes.NewReader(tc.in), out: io.Discard}
				if err := eachLine(c, "", func(in line) any { return in }); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "lines/s")
		})
	}
}
