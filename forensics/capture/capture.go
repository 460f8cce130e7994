// Package capture reads packets out of capture files: classic pcap (both byte
// orders, micro- and nanoseconds, the extended records of patched kernels), pcapng
// (several sections and interfaces, any time resolution and offset; blocks it does
// not know are skipped), each plain or compressed with gzip or zstd. The name of a
// file says nothing: what it is, its first bytes tell.
//
// A file is read once, in blocks. A goroutine of its own computes the digest beside,
// another one unpacks what is compressed; both end with [File.Close]. Packets are slices of
// these blocks, good until the next call of [File.Next], or, when they are read
// many at once with [File.Batch], until the batch is released.
//
// A damaged file yields what can be read. Where a record cannot be true (longer
// than any packet, more captured than there was, a block whose two lengths differ),
// the reader searches for the next place where several records in a row make
// sense, counts the bytes that it skipped, and says so in [Info.Damage].
package capture

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"golang.org/x/sys/unix"
)

// ErrFormat says that the file is no capture of a known format.
var ErrFormat = errors.New("not a capture (accepted: pcap, pcapng, and both compressed with gzip or zstd)")

// maxRecord bounds one packet: wiretap's largest, for the usual link types, is 256
// KiB; USB and D-Bus go further.
const maxRecord = 16 << 20

// zstdMemory bounds what a decoder may allocate for its window.
const zstdMemory = 128 << 20

// Link is a link type as the registry of pcap numbers it.
type Link uint16

// Packet is one record of a capture. Data belongs to the reader.
type Packet struct {
	Time  int64 // ns since 1970
	Data  []byte
	Wire  uint32 // length on the wire
	Link  Link
	Iface uint16 // number of the interface, over all sections
}

// Interface is one point of capture within a file.
type Interface struct {
	Link    Link
	SnapLen uint32
	Name    string
}

// Damage is a place where the file cannot be true.
type Damage struct {
	Offset  int64 // in the decompressed stream
	Skipped int64
	Why     string
}

// Info is what a file says of itself, complete after the last packet.
type Info struct {
	Format     string // "pcap", "pcap-ns", "pcap-modified", "pcapng"
	Packing    string // "", "gzip", "zstd"
	Interfaces []Interface
	Sections   int
	Packets    uint64
	Bytes      int64 // of the file, as stored
	Stream     int64 // of the file, unpacked
	SHA256     string
	Skipped    int64 // bytes that belong to no record
	Damage     []Damage
	DamageMore int // further places
}

// Options say how a file is read.
type Options struct {
	Hash bool // compute the digest
}

// File is an open capture.
type File struct {
	info   Info
	w      window
	packed *windowReader // what a decompressor reads
	format decoder
	closer io.Closer
	stop   context.CancelFunc
	work   sync.WaitGroup
	read   atomic.Int64
	size   int64
	sum    func() string
}

// decoder is one file format.
type decoder interface {
	next(f *File, p *Packet) error
	// more appends, up to their capacity, the packets that follow in the window whole
	// and undamaged; whatever else follows is left to next.
	more(f *File, ps []Packet) []Packet
}

// Open opens a capture. Only regular files are accepted: a device or a pipe has no
// end and no digest.
func Open(ctx context.Context, path string, o Options) (*File, error) {
	h, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0) // which waits for nobody
	if err != nil {
		return nil, plain(err)
	}
	st, err := h.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = fmt.Errorf("%s: not a regular file", path)
	}
	if err != nil {
		h.Close()
		return nil, plain(err)
	}
	f, err := New(ctx, h, st.Size(), o)
	if err != nil {
		h.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	f.closer = h
	return f, nil
}

// New reads a capture from anywhere. size is that of the stream, 0 when it is not
// known; a wrong one only costs time.
func New(ctx context.Context, r io.Reader, size int64, o Options) (*File, error) {
	f := &File{size: size}
	ctx, f.stop = context.WithCancel(ctx)
	if err := f.start(ctx, r, o); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// plain leaves the operation out of an error of the file system: the caller's
// message has it.
func plain(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return fmt.Errorf("%s: %w", p.Path, p.Err)
	}
	return err
}

// start finds out what the stream is and starts the goroutines that read it.
func (f *File) start(ctx context.Context, r io.Reader, o Options) error {
	raw := newPump(ctx, r, f.size, &f.read)
	if o.Hash {
		f.sum = raw.digest(&f.work)
	}
	f.w.src = raw
	head, err := f.w.peek(4)
	if err != nil && len(head) < 4 {
		return short(len(head), err)
	}
	if err := f.unpack(ctx, head); err != nil {
		return err
	}
	if head, err = f.w.peek(4); len(head) < 4 {
		return short(len(head), err)
	}
	return f.detect(head)
}

func short(n int, err error) error {
	if n == 0 && errors.Is(err, io.EOF) {
		return fmt.Errorf("empty file: %w", ErrFormat)
	}
	if errors.Is(err, io.EOF) {
		return ErrFormat
	}
	return err
}

// unpack puts a decompressor between the file and the window when the file is
// compressed. It reads through the window's own blocks.
func (f *File) unpack(ctx context.Context, head []byte) error {
	var r io.Reader
	packed := &windowReader{w: f.w}
	switch magic := binary.LittleEndian.Uint32(head); {
	case magic&0xffffff == 0x088b1f:
		z, err := gzip.NewReader(packed)
		if err != nil {
			return fmt.Errorf("gzip: %w", err)
		}
		r, f.info.Packing = z, "gzip"
	case magic == 0xfd2fb528 || magic&0xfffffff0 == 0x184d2a50:
		z, err := zstd.NewReader(packed, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(zstdMemory), zstd.WithDecoderMaxWindow(zstdMemory))
		if err != nil {
			return fmt.Errorf("zstd: %w", err)
		}
		r, f.info.Packing = z, "zstd"
	default:
		return nil
	}
	p := newPump(ctx, r, 0, new(atomic.Int64))
	p.run(&f.work)
	f.w, f.packed = window{src: p}, packed
	return nil
}

// windowReader gives a decompressor what a window reads.
type windowReader struct{ w window }

// Read implements [io.Reader].
func (r *windowReader) Read(p []byte) (int, error) {
	b, err := r.w.peek(1)
	if len(b) == 0 {
		return 0, err
	}
	n := copy(p, r.w.rest())
	r.w.skip(n)
	return n, nil
}

func (f *File) detect(head []byte) error {
	le, be := binary.LittleEndian.Uint32(head), binary.BigEndian.Uint32(head)
	if le == blockSection {
		f.info.Format = "pcapng"
		f.format = &pcapng{}
		return nil
	}
	for _, m := range []struct {
		magic uint32
		name  string
		tick  int64
		extra int
	}{{0xa1b2c3d4, "pcap", 1000, 0}, {0xa1b23c4d, "pcap-ns", 1, 0}, {0xa1b2cd34, "pcap-modified", 1000, 8}} {
		if le == m.magic || be == m.magic {
			f.info.Format = m.name
			d := &classic{tick: m.tick, header: 16 + m.extra, big: be == m.magic}
			f.format = d
			return d.open(f)
		}
	}
	return ErrFormat
}

// Next reads one packet. After the last one the error is [io.EOF]; any other error
// is of the system, as damage is no error here.
func (f *File) Next(p *Packet) error {
	err := f.format.next(f, p)
	if err == nil {
		f.info.Packets++
		return nil
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if err != io.EOF { // a broken archive, a disk error
		f.damage(f.w.pos(), 0, err.Error())
	}
	return io.EOF
}

// Progress is how many bytes of the file were read, and how many it has.
func (f *File) Progress() (read, size int64) { return f.read.Load(), f.size }

// Info is what the file says of itself so far.
func (f *File) Info() *Info { return &f.info }

// Finish waits for the digest and returns what is known of the file. Packets must
// have been read to the end.
func (f *File) Finish() *Info {
	f.w.drain()
	f.info.Stream = f.w.pos()
	if f.packed != nil { // the decompressor has ended: its reader is ours
		f.packed.w.drain()
	}
	if f.sum != nil {
		f.info.SHA256 = f.sum()
	}
	f.info.Bytes = f.read.Load()
	return &f.info
}

// Close stops what reads the file.
func (f *File) Close() error {
	f.stop()
	f.work.Wait()
	if f.closer == nil {
		return nil
	}
	return f.closer.Close()
}

// maxDamage bounds the list of damages of a hostile file.
const maxDamage = 16

func (f *File) damage(off, skipped int64, why string) {
	f.info.Skipped += skipped
	if len(f.info.Damage) >= maxDamage {
		f.info.DamageMore++
		return
	}
	f.info.Damage = append(f.info.Damage, Damage{off, skipped, why})
}

// hexSum is a digest as it is printed.
func hexSum(b [sha256.Size]byte) string { return hex.EncodeToString(b[:]) }
