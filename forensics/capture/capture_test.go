package capture

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
)

// rec is a packet to be written.
type rec struct {
	ns   int64
	data []byte
	wire uint32
}

// pcapFile writes the classic format.
func pcapFile(o binary.ByteOrder, magic, snap, link uint32, extra int, recs ...rec) []byte {
	b := make([]byte, 24)
	o.PutUint32(b, magic)
	o.PutUint16(b[4:], 2)
	o.PutUint16(b[6:], 4)
	o.PutUint32(b[16:], snap)
	o.PutUint32(b[20:], link)
	tick := int64(1000)
	if magic == 0xa1b23c4d {
		tick = 1
	}
	for _, r := range recs {
		h := make([]byte, 16+extra)
		o.PutUint32(h, uint32(r.ns/1e9))
		o.PutUint32(h[4:], uint32(r.ns%1e9/tick))
		o.PutUint32(h[8:], uint32(len(r.data)))
		o.PutUint32(h[12:], max(r.wire, uint32(len(r.data))))
		b = append(append(b, h...), r.data...)
	}
	return b
}

type appender interface {
	binary.ByteOrder
	binary.AppendByteOrder
}

func section(o appender) []byte {
	return blk(o, blockSection, o.AppendUint64(o.AppendUint32(o.AppendUint32(nil, 0x1a2b3c4d), 1), math.MaxUint64))
}

// blk writes a pcapng block.
func blk(o appender, typ uint32, body []byte) []byte {
	body = append(body, make([]byte, (4-len(body)%4)%4)...)
	n := uint32(len(body) + 12)
	b := o.AppendUint32(o.AppendUint32(nil, typ), n)
	return o.AppendUint32(append(b, body...), n)
}

func iface(o appender, link uint16, snap uint32, options ...byte) []byte {
	return blk(o, blockInterface, append(o.AppendUint32(o.AppendUint16(o.AppendUint16(nil, link), 0), snap), options...))
}

func packet(o appender, id uint32, stamp uint64, data []byte, wire uint32) []byte {
	b := o.AppendUint32(o.AppendUint32(o.AppendUint32(nil, id), uint32(stamp>>32)), uint32(stamp))
	b = o.AppendUint32(o.AppendUint32(b, uint32(len(data))), max(wire, uint32(len(data))))
	return blk(o, blockPacket, append(b, data...))
}

func resol(o appender, v byte) []byte {
	return append(o.AppendUint16(o.AppendUint16(nil, optResolution), 1), v, 0, 0, 0)
}

func offset(o appender, v int64) []byte {
	return o.AppendUint64(o.AppendUint16(o.AppendUint16(nil, optOffset), 8), uint64(v))
}

func write(t testing.TB, b []byte) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "capture.bin")
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

type got struct {
	NS    int64
	Data  string
	Wire  uint32
	Link  Link
	Iface uint16
}

// readAll reads a capture and returns its packets and what it says of itself, the same
// packet by packet and in batches.
func readAll(t testing.TB, b []byte) ([]got, *Info) {
	t.Helper()
	name := write(t, b)
	f, err := Open(context.Background(), name, Options{Hash: true})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []got
	var p Packet
	for {
		err := f.Next(&p)
		if err == io.EOF {
			info := f.Finish()
			if want := fmt.Sprintf("%x", sha256.Sum256(b)); info.SHA256 != want {
				t.Errorf("digest %s, want %s", info.SHA256, want)
			}
			for _, n := range []int{1, 3, 1000} {
				if again, told := readBatches(t, name, n); !cmp.Equal(out, again) || !cmp.Equal(info, told) {
					t.Errorf("in batches of %d: %d packets, %+v; one by one %d, %+v", n, len(again), told, len(out), info)
				}
			}
			return out, info
		}
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, got{p.Time, string(p.Data), p.Wire, p.Link, p.Iface})
	}
}

// readBatches reads a capture with a few batches that are released late.
func readBatches(t testing.TB, name string, n int) (out []got, info *Info) {
	t.Helper()
	f, err := Open(context.Background(), name, Options{Hash: true})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var late []*Batch
	release := func(keep int) {
		for ; len(late) > keep; late = late[1:] {
			for _, p := range late[0].Packets {
				out = append(out, got{p.Time, string(p.Data), p.Wire, p.Link, p.Iface})
			}
			late[0].Release()
		}
	}
	for {
		b := &Batch{Packets: make([]Packet, 0, n)}
		if err := f.Batch(b); err == io.EOF {
			release(0)
			return out, f.Finish()
		} else if err != nil {
			t.Fatal(err)
		}
		late = append(late, b)
		release(3)
	}
}

var (
	le = binary.LittleEndian
	be = binary.BigEndian
)

func gz(t testing.TB, b []byte) []byte {
	var w bytes.Buffer
	z := gzip.NewWriter(&w)
	if _, err := z.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return w.Bytes()
}

func zst(t testing.TB, b []byte) []byte {
	z, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	return z.EncodeAll(b, nil)
}

func TestFormats(t *testing.T) {
	recs := []rec{{1e18 + 123456789, []byte("abcdef"), 0}, {1e18 + 2e9, []byte("gh"), 1500}}
	micro := []got{{1e18 + 123456000, "abcdef", 6, 1, 0}, {1e18 + 2e9, "gh", 1500, 1, 0}}
	nano := []got{{1e18 + 123456789, "abcdef", 6, 1, 0}, {1e18 + 2e9, "gh", 1500, 1, 0}}
	ng := func(o appender, r byte, unit int64) []byte {
		b := append(section(o), iface(o, 1, 65535, resol(o, r)...)...)
		for _, x := range recs {
			b = append(b, packet(o, 0, uint64(x.ns/unit), x.data, x.wire)...)
		}
		return b
	}
	tests := []struct {
		name   string
		file   []byte
		want   []got
		format string
	}{
		{"little endian", pcapFile(le, 0xa1b2c3d4, 65535, 1, 0, recs...), micro, "pcap"},
		{"big endian", pcapFile(be, 0xa1b2c3d4, 65535, 1, 0, recs...), micro, "pcap"},
		{"nanoseconds", pcapFile(le, 0xa1b23c4d, 65535, 1, 0, recs...), nano, "pcap-ns"},
		{"nanoseconds, big endian", pcapFile(be, 0xa1b23c4d, 65535, 1, 0, recs...), nano, "pcap-ns"},
		{"patched kernels", pcapFile(le, 0xa1b2cd34, 65535, 1, 8, recs...), micro, "pcap-modified"},
		{"frame check sequence in the link type", pcapFile(le, 0xa1b2c3d4, 65535, 0x24000001, 0, recs...), micro, "pcap"},
		{"pcapng", ng(le, 6, 1000), micro, "pcapng"},
		{"pcapng, big endian, ns", ng(be, 9, 1), nano, "pcapng"},
		{"gzip", gz(t, pcapFile(le, 0xa1b2c3d4, 65535, 1, 0, recs...)), micro, "pcap"},
		{"two gzip members", append(gz(t, pcapFile(le, 0xa1b2c3d4, 65535, 1, 0, recs[0])), gz(t, pcapFile(le, 0xa1b2c3d4, 65535, 1, 0, recs[1])[24:])...), micro, "pcap"},
		{"zstd", zst(t, ng(le, 9, 1)), nano, "pcapng"},
		{"no packets", pcapFile(le, 0xa1b2c3d4, 65535, 1, 0), nil, "pcap"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			out, info := readAll(t, tt.file)
			if diff := cmp.Diff(tt.want, out); diff != "" {
				t.Errorf("packets (-want +got):\n%s", diff)
			}
			if info.Format != tt.format || len(info.Damage) > 0 {
				t.Errorf("format %q, damage %v", info.Format, info.Damage)
			}
		})
	}
}

func TestTimeStamps(t *testing.T) {
	tests := []struct {
		name    string
		options []byte
		stamp   uint64
		want    int64
	}{
		{"default", nil, 1_500_000, 15e8},
		{"seconds", resol(le, 0), 7, 7e9},
		{"picoseconds", resol(le, 12), 1_500_000_000_999, 1_500_000_000},
		{"2^-10 s", resol(le, 0x80|10), 1536, 15e8},
		{"2^-63 s", resol(le, 0x80|63), 1 << 62, 5e8},
		{"finer than anything", resol(le, 0x80|64), 1 << 62, 0},
		{"10^-19 s", resol(le, 19), 15e18, 15e8},
		{"offset", offset(le, 100), 1, 100_000_001_000},
		{"negative offset", offset(le, -100), 0, -100e9},
		{"beyond the end of time", resol(le, 0), math.MaxUint64, math.MaxInt64},
		{"offset beyond the end of time", offset(le, math.MaxInt64), 1, math.MaxInt64},
		{"offset before its beginning", offset(le, math.MinInt64), 1, math.MinInt64},
	}
	for _, tt := range tests {
		file := append(append(section(le), iface(le, 1, 0, tt.options...)...), packet(le, 0, tt.stamp, []byte("x"), 0)...)
		out, _ := readAll(t, file)
		if len(out) != 1 || out[0].NS != tt.want {
			t.Errorf("%s: got %v, want %d", tt.name, out, tt.want)
		}
	}
}

func TestSectionsInterfacesAndBlocks(t *testing.T) {
	simple := blk(be, blockSimple, append(be.AppendUint32(nil, 900), "hello!!!"...))
	old := le.AppendUint16(le.AppendUint16(nil, 1), 0)
	old = le.AppendUint32(le.AppendUint32(le.AppendUint32(le.AppendUint32(old, 0), 3_000_000), 2), 2)
	var file []byte
	for _, b := range [][]byte{
		section(le), iface(le, 1, 0, append(le.AppendUint16(le.AppendUint16(nil, optName), 4), "eth0"...)...), iface(le, 101, 0),
		blk(le, 0x0bad0bad, bytes.Repeat([]byte("?"), 3<<20)), // unknown, and larger than a read
		packet(le, 1, 1_000_000, []byte("raw"), 0), packet(le, 0, 2_000_000, []byte("eth"), 0),
		blk(le, blockOldPacket, append(old, "ok"...)),
		section(be), iface(be, 113, 8), packet(be, 0, 4_000_000, []byte("cooked"), 0), simple,
	} {
		file = append(file, b...)
	}
	out, info := readAll(t, file)
	want := []got{{1e9, "raw", 3, 101, 1}, {2e9, "eth", 3, 1, 0}, {3e9, "ok", 2, 101, 1}, {4e9, "cooked", 6, 113, 2}, {4e9, "hello!!!", 900, 113, 2}}
	if diff := cmp.Diff(want, out); diff != "" {
		t.Errorf("packets (-want +got):\n%s", diff)
	}
	if info.Sections != 2 || len(info.Interfaces) != 3 || info.Interfaces[0].Name != "eth0" || len(info.Damage) > 0 {
		t.Errorf("info %+v", info)
	}
}

func TestRecordsAcrossBlocks(t *testing.T) {
	var recs []rec
	var want []got
	for i := range 4000 {
		n := i * 37 % 3000
		if i%997 == 5 {
			n = 200_000 // longer than usual, and than what is left of a block
		}
		if i == 1000 {
			n = 3 << 20 // longer than a block
		}
		r := rec{int64(i) * 1e6, bytes.Repeat([]byte{byte(i)}, n), 0}
		recs, want = append(recs, r), append(want, got{r.ns, string(r.data), uint32(n), 1, 0})
	}
	file := pcapFile(le, 0xa1b2c3d4, 4<<20, 1, 0, recs...)
	for name, f := range map[string][]byte{"plain": file, "zstd": zst(t, file), "gzip": gz(t, file)} {
		out, info := readAll(t, f)
		if diff := cmp.Diff(want, out); diff != "" {
			t.Errorf("%s: packets differ: %d of %d", name, len(out), len(want))
		}
		if len(info.Damage) > 0 || info.Bytes != int64(len(f)) {
			t.Errorf("%s: %+v", name, info)
		}
	}
}

func TestDamage(t *testing.T) {
	var recs []rec
	for i := range 10 {
		recs = append(recs, rec{1e18 + int64(i)*1e6, bytes.Repeat([]byte{byte(i)}, 60), 0})
	}
	file := pcapFile(le, 0xa1b2c3d4, 65535, 1, 0, recs...)
	ng := append(section(le), iface(le, 1, 65535)...)
	head := len(ng)
	for i, r := range recs {
		ng = append(ng, packet(le, 0, uint64(1e15)+uint64(i), r.data, 0)...)
	}
	const rsize = 16 + 60
	bsize := (len(ng) - head) / 10
	set := func(b []byte, at int, v uint32) []byte {
		b = bytes.Clone(b)
		le.PutUint32(b[at:], v)
		return b
	}
	alien := func(b []byte, from int) []byte { // the records from one on are of another year
		b = bytes.Clone(b)
		for at := 24 + from*rsize; at < len(b); at += rsize {
			le.PutUint32(b[at:], le.Uint32(b[at:])-300_000_000)
		}
		return b
	}
	tests := []struct {
		name    string
		file    []byte
		packets int
		why     string
	}{
		{"cut in a packet", file[:24+3*rsize+40], 3, "middle of a packet"},
		{"cut in a record header", file[:24+3*rsize+5], 3, "record header"},
		{"cut in the only packet", file[:24+40], 1, "middle of a packet"},
		{"a length that lies, first", set(file, 24+8, 0xffffffff), 9, "cannot be true"},
		{"a length that lies", set(file, 24+4*rsize+8, 0x7fffffff), 9, "cannot be true"},
		{"a length that lies, last", set(file, 24+9*rsize+8, 0x7fffffff), 9, "no other record"},
		{"a length that lies, within the file", set(file, 24+4*rsize+8, 150), 9, "length cannot be true"},
		{"a length that lies, beyond the end", set(file, 24+4*rsize+8, 1500), 9, "length cannot be true"},
		{"a wire length that lies", set(file, 24+4*rsize+12, 0xfffffff0), 9, "cannot be true"},
		{"pcapng cut in a packet", ng[:head+3*bsize+50], 3, "middle of a block"},
		{"pcapng cut in the only packet", ng[:head+50], 1, "middle of a block"},
		{"pcapng block too long", set(ng, head+4*bsize+4, 0x00ff0000), 9, "length cannot be true"},
		{"pcapng block too short", set(ng, head+4*bsize+4, 4), 9, "cannot be true"},
		{"pcapng lengths differ", set(ng, head+5*bsize-4, 999), 9, "cannot be true"},
		{"pcapng of an interface without description", set(ng, head+4*bsize+8, 7), 9, "interface 7"},
		{"pcapng packet longer than its block", set(ng, head+4*bsize+20, 5000), 10, "longer than its block"},
		{"a length that lies behind a time that lies", set(set(file, 24+4*rsize, 722078200), 24+5*rsize+8, 0x7fffffff), 9, "cannot be true"},
		{"a length that lies behind a time that lies, within the file", set(set(file, 24+4*rsize, 722078200), 24+5*rsize+8, 150), 9, "length cannot be true"},
		{"a length that lies behind a first time that lies", set(set(file, 24, 722078200), 24+1*rsize+8, 0x7fffffff), 9, "cannot be true"},
		{"times that go on in another year", set(alien(file, 5), 24+5*rsize+8, 0x7fffffff), 9, "cannot be true"},
		{"two files, one after the other", append(bytes.Clone(file), alien(file, 0)...), 20, "another file"},
		{"three files, one without packets", slices.Concat(file, file[:24], file), 20, "another file"},
		{"two files, of which the first is cut", append(bytes.Clone(file[:24+4*rsize+56]), set(file, 24+4, 500_000)...), 14, "length cannot be true"},
		{"gzip cut", gz(t, file)[:120], 0, "EOF"},
		{"gzip checksum", func() []byte { b := gz(t, file); b[len(b)-6] ^= 1; return b }(), 10, "checksum"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			out, info := readAll(t, tt.file)
			if len(out) < tt.packets || tt.packets > 0 && len(out) != tt.packets {
				t.Errorf("%d packets, want %d", len(out), tt.packets)
			}
			if len(info.Damage) == 0 || !strings.Contains(info.Damage[0].Why, tt.why) {
				t.Errorf("damage %+v, want %q", info.Damage, tt.why)
			}
			for _, p := range out {
				if len(p.Data) > 60 {
					t.Errorf("a packet of %d bytes", len(p.Data))
				}
			}
		})
	}
}

func TestNotACapture(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{
		"empty": write(t, nil), "text": write(t, []byte("hello, world: not a capture")), "three bytes": write(t, []byte{0xd4, 0xc3, 0xb2}),
		"cut file header": write(t, pcapFile(le, 0xa1b2c3d4, 1, 1, 0)[:20]), "gzip of text": write(t, gz(t, []byte("hello, hello"))),
		"broken gzip": write(t, []byte{0x1f, 0x8b, 8, 0xff, 1, 2, 3}), "empty gzip": write(t, gz(t, nil)),
	} {
		f, err := Open(context.Background(), path, Options{Hash: true})
		if err == nil {
			f.Close()
			t.Errorf("%s: opened", name)
		} else if strings.Contains(err.Error(), "\n") || !strings.HasPrefix(err.Error(), path) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, path := range map[string]string{"directory": dir, "device": "/dev/null", "missing": filepath.Join(dir, "none")} {
		if f, err := Open(context.Background(), path, Options{}); err == nil {
			f.Close()
			t.Errorf("%s: opened", name)
		}
	}
	if _, err := Open(context.Background(), write(t, nil), Options{}); !errors.Is(err, ErrFormat) {
		t.Errorf("empty file: %v", err)
	}
}

func TestCancelEndsEverything(t *testing.T) {
	var recs []rec
	for i := range 20_000 {
		recs = append(recs, rec{int64(i), make([]byte, 1400), 0})
	}
	ctx, cancel := context.WithCancel(context.Background())
	f, err := Open(ctx, write(t, pcapFile(le, 0xa1b2c3d4, 65535, 1, 0, recs...)), Options{Hash: true})
	if err != nil {
		t.Fatal(err)
	}
	var p Packet
	if err := f.Next(&p); err != nil {
		t.Fatal(err)
	}
	cancel()
	for err == nil {
		err = f.Next(&p)
	}
	if !errors.Is(err, context.Canceled) && err != io.EOF {
		t.Errorf("after cancel: %v", err)
	}
	if err := f.Close(); err != nil { // hangs when a goroutine is left
		t.Error(err)
	}
	if read, size := f.Progress(); read == 0 || read > size {
		t.Errorf("progress %d of %d", read, size)
	}
}

// FuzzRead checks that whatever the bytes are, reading ends, packets lie within the
// file, and skipped bytes are accounted for.
func FuzzRead(f *testing.F) {
	recs := []rec{{1e18, []byte("abcdefgh"), 0}, {1e18 + 1e6, []byte("ijkl"), 99}, {1e18 + 2e6, bytes.Repeat([]byte("m"), 70), 0}}
	for _, o := range []binary.ByteOrder{le, be} {
		f.Add(pcapFile(o, 0xa1b2c3d4, 65535, 1, 0, recs...))
		f.Add(pcapFile(o, 0xa1b23c4d, 65535, 1, 0, recs...))
	}
	f.Add(pcapFile(le, 0xa1b2cd34, 65535, 1, 8, recs...))
	ng := append(section(le), iface(le, 1, 65535, resol(le, 9)...)...)
	for _, r := range recs {
		ng = append(ng, packet(le, 0, uint64(r.ns), r.data, r.wire)...)
	}
	f.Add(ng)
	f.Add(gz(f, ng))
	f.Fuzz(func(t *testing.T, b []byte) {
		file, err := New(context.Background(), bytes.NewReader(b), int64(len(b)), Options{Hash: true})
		if err != nil {
			return
		}
		defer file.Close()
		var p Packet
		var n, sum int
		for file.Next(&p) == nil {
			n++
			sum += len(p.Data)
			if uint32(len(p.Data)) > p.Wire {
				t.Fatalf("packet %d: %d captured of %d", n, len(p.Data), p.Wire)
			}
		}
		info := file.Finish()
		if info.Packing == "" && (int64(sum)+info.Skipped > int64(len(b)) || info.Skipped < 0) {
			t.Fatalf("%d bytes in packets, %d skipped, of %d", sum, info.Skipped, len(b))
		}
		if info.Packets != uint64(n) {
			t.Fatalf("%d packets counted as %d", n, info.Packets)
		}
	})
}
