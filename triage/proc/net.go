package proc

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// States of TCP sockets as /proc/net/tcp numbers them.
const (
	Established = 1
	CloseWait   = 8
	Listen      = 10
)

// Socket is one row of a table in /proc/PID/net.
type Socket struct {
	Proto  string // tcp, tcp6, udp, udp6
	Local  netip.AddrPort
	Remote netip.AddrPort
	State  int
	TX, RX uint64 // of a listener, RX is how many wait to be accepted
	Inode  uint64 // 0: nobody's yet, or nobody's any more
}

// ParseSockets parses a table. Rows that are not understood are left out.
func ParseSockets(proto string, b []byte) []Socket {
	var out []Socket
	for line := range bytes.Lines(b) {
		if s, err := parseSocket(proto, line); err == nil {
			out = append(out, s)
		}
	}
	return out
}

func parseSocket(proto string, line []byte) (Socket, error) {
	f := strings.Fields(string(line))
	if len(f) < 10 || !strings.HasSuffix(f[0], ":") {
		return Socket{}, ErrFormat
	}
	local, err1 := parseAddr(f[1])
	remote, err2 := parseAddr(f[2])
	state, err3 := strconv.ParseUint(f[3], 16, 8)
	tx, rx, _ := strings.Cut(f[4], ":")
	t, err4 := strconv.ParseUint(tx, 16, 64)
	r, err5 := strconv.ParseUint(rx, 16, 64)
	inode, err6 := strconv.ParseUint(f[9], 10, 64)
	return Socket{proto, local, remote, int(state), t, r, inode}, errors.Join(err1, err2, err3, err4, err5, err6)
}

// parseAddr reads "0100007F:1F90": words of four bytes, each in the byte order
// of the machine.
func parseAddr(s string) (netip.AddrPort, error) {
	host, port, _ := strings.Cut(s, ":")
	p, err := strconv.ParseUint(port, 16, 16)
	raw, err2 := hex.DecodeString(host)
	if err != nil || err2 != nil || len(raw) != 4 && len(raw) != 16 {
		return netip.AddrPort{}, fmt.Errorf("address: %w", ErrFormat)
	}
	for i := 0; i < len(raw); i += 4 {
		binary.BigEndian.PutUint32(raw[i:], binary.NativeEndian.Uint32(raw[i:]))
	}
	a, _ := netip.AddrFromSlice(raw)
	return netip.AddrPortFrom(a.Unmap(), uint16(p)), nil
}

// Sockets reads tables of the network namespace of a process: all of them, when
// none is named.
func (f FS) Sockets(pid int, protos ...string) ([]Socket, error) {
	var out []Socket
	if protos == nil {
		protos = []string{"tcp", "tcp6", "udp", "udp6"}
	}
	for _, proto := range protos {
		b, err := f.Read(pid, "net/"+proto, 64<<20)
		if errors.Is(err, unix.ENOENT) && strings.HasSuffix(proto, "6") {
			continue // a kernel without IPv6
		}
		if err != nil {
			return nil, err
		}
		out = append(out, ParseSockets(proto, b)...)
	}
	return out, nil
}

// Overflows is how often the namespace of a process refused a connection
// because an accept queue was full.
func (f FS) Overflows(pid int) (uint64, error) {
	b, err := f.Read(pid, "net/netstat", 64<<10)
	if err != nil {
		return 0, err
	}
	return ParseOverflows(b)
}

// ParseOverflows finds ListenOverflows in a netstat file: a line of names, then
// a line of numbers.
func ParseOverflows(b []byte) (uint64, error) {
	lines := strings.Split(string(b), "\n")
	for i := 0; i+1 < len(lines); i++ {
		names, values := strings.Fields(lines[i]), strings.Fields(lines[i+1])
		if len(names) == 0 || names[0] != "TcpExt:" || len(names) != len(values) {
			continue
		}
		for j, n := range names {
			if n == "ListenOverflows" {
				return strconv.ParseUint(values[j], 10, 64)
			}
		}
	}
	return 0, fmt.Errorf("netstat: %w", ErrFormat)
}

// Diag is what the kernel's socket diagnosis adds to the tables.
type Diag struct {
	State    int
	RQ, WQ   uint32 // of a listener: waiting, and how many may wait
	Received uint64 // bytes of the connection
	Acked    uint64
	Local    netip.AddrPort
	Remote   netip.AddrPort
}

// Socket is the socket as a table would show it.
func (d Diag) Socket(inode uint64) Socket {
	proto := "tcp"
	if d.Local.Addr().Is6() {
		proto = "tcp6"
	}
	return Socket{Proto: proto, Local: d.Local, Remote: d.Remote, State: d.State, TX: uint64(d.WQ), RX: uint64(d.RQ), Inode: inode}
}

// TCP asks the kernel for the TCP sockets of the network namespace that ns
// names (a path such as /proc/PID/ns/net, "" for our own), by inode.
func TCP(ns string) (map[uint64]Diag, error) {
	if ns == "" {
		return dumpTCP()
	}
	return inNamespace(ns)
}

// inNamespace enters ns with this thread alone and comes back. A thread that
// cannot come back is never used again.
func inNamespace(ns string) (map[uint64]Diag, error) {
	runtime.LockOSThread()
	home, err := unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		runtime.UnlockOSThread()
		return nil, err
	}
	defer unix.Close(home)
	fd, err := unix.Open(ns, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err == nil {
		defer unix.Close(fd)
		err = unix.Setns(fd, unix.CLONE_NEWNET)
	}
	if err != nil {
		runtime.UnlockOSThread()
		return nil, fmt.Errorf("network namespace %s: %w", ns, err)
	}
	out, err := dumpTCP()
	if back := unix.Setns(home, unix.CLONE_NEWNET); back != nil {
		return nil, fmt.Errorf("leave network namespace: %w", back) // the thread stays locked
	}
	runtime.UnlockOSThread()
	return out, err
}

func dumpTCP() (map[uint64]Diag, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return nil, fmt.Errorf("socket diagnosis: %w", err)
	}
	defer unix.Close(fd)
	tv := unix.Timeval{Sec: 2}
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv); err != nil {
		return nil, fmt.Errorf("socket diagnosis: %w", err)
	}
	out := map[uint64]Diag{}
	for _, family := range []byte{unix.AF_INET, unix.AF_INET6} {
		if err := unix.Sendto(fd, diagRequest(family), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
			return nil, fmt.Errorf("socket diagnosis: %w", err)
		}
		if err := receive(fd, out); err != nil {
			return nil, fmt.Errorf("socket diagnosis: %w", err)
		}
	}
	return out, nil
}

const (
	sockDiagByFamily = 20
	headerSize       = 16
	requestSize      = 56
	messageSize      = 72
	attrInfo         = 2
	infoAcked        = 120 // offset of tcpi_bytes_acked
)

func diagRequest(family byte) []byte {
	b := make([]byte, headerSize+requestSize)
	binary.NativeEndian.PutUint32(b[0:], uint32(len(b)))
	binary.NativeEndian.PutUint16(b[4:], sockDiagByFamily)
	binary.NativeEndian.PutUint16(b[6:], unix.NLM_F_REQUEST|unix.NLM_F_DUMP)
	b[headerSize], b[headerSize+1], b[headerSize+2] = family, unix.IPPROTO_TCP, 1<<(attrInfo-1)
	binary.NativeEndian.PutUint32(b[headerSize+4:], 1<<Established|1<<CloseWait|1<<Listen)
	return b
}

// receive reads answers until the kernel says that they are complete.
func receive(fd int, out map[uint64]Diag) error {
	buf := make([]byte, 64<<10)
	for {
		n, _, err := unix.Recvfrom(fd, buf, 0)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return err
		}
		done, err := ParseDiag(buf[:n], out)
		if done || err != nil {
			return err
		}
	}
}

// ParseDiag adds the sockets of one answer; done says that it was the last one.
func ParseDiag(b []byte, out map[uint64]Diag) (done bool, err error) {
	for len(b) >= headerSize {
		size := int(binary.NativeEndian.Uint32(b))
		if size < headerSize || size > len(b) {
			return true, fmt.Errorf("netlink message: %w", ErrFormat)
		}
		body := b[headerSize:size]
		switch binary.NativeEndian.Uint16(b[4:]) {
		case unix.NLMSG_DONE:
			return true, nil
		case unix.NLMSG_ERROR:
			if len(body) >= 4 {
				return true, unix.Errno(-int32(binary.NativeEndian.Uint32(body)))
			}
			return true, fmt.Errorf("netlink error: %w", ErrFormat)
		case sockDiagByFamily:
			addDiag(body, out)
		}
		b = b[min(len(b), (size+3)&^3):]
	}
	return false, nil
}

func diagAddr(family byte, addr, port []byte) netip.AddrPort {
	if family == unix.AF_INET {
		addr = addr[:4]
	}
	a, _ := netip.AddrFromSlice(addr)
	return netip.AddrPortFrom(a.Unmap(), binary.BigEndian.Uint16(port))
}

func addDiag(b []byte, out map[uint64]Diag) {
	if len(b) < messageSize {
		return
	}
	d := Diag{State: int(b[1]), RQ: binary.NativeEndian.Uint32(b[56:]), WQ: binary.NativeEndian.Uint32(b[60:])}
	d.Local, d.Remote = diagAddr(b[0], b[8:24], b[4:6]), diagAddr(b[0], b[24:40], b[6:8])
	inode := uint64(binary.NativeEndian.Uint32(b[68:]))
	for attrs := b[messageSize:]; len(attrs) >= 4; {
		size := int(binary.NativeEndian.Uint16(attrs))
		if size < 4 || size > len(attrs) {
			break
		}
		if info := attrs[4:size]; binary.NativeEndian.Uint16(attrs[2:]) == attrInfo && len(info) >= infoAcked+16 {
			d.Acked = binary.NativeEndian.Uint64(info[infoAcked:])
			d.Received = binary.NativeEndian.Uint64(info[infoAcked+8:])
		}
		attrs = attrs[min(len(attrs), (size+3)&^3):]
	}
	if inode != 0 {
		out[inode] = d
	}
}
