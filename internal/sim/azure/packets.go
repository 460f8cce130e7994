package azuresim

import (
	"encoding/binary"
	"hash/fnv"
)

// Packets is a capture of one short conversation of a VM, headers only, with
// numbers that depend on the name.
func Packets(vm string) []byte {
	h := fnv.New32a()
	h.Write([]byte(vm))
	port := uint16(40000 + h.Sum32()%20000)
	b := binary.LittleEndian.AppendUint32(nil, 0xa1b2c3d4)
	b = binary.LittleEndian.AppendUint16(b, 2)
	b = binary.LittleEndian.AppendUint16(b, 4)
	for _, v := range []uint32{0, 0, 65535, 1} { // zone, accuracy, snap length, Ethernet
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	client, server := [4]byte{198, 51, 100, 4}, [4]byte{203, 0, 113, 4}
	const syn, ack, fin = 2, 16, 1
	for i, s := range []struct {
		back     bool
		seq, ack uint32
		flags    byte
	}{
		{false, 1000, 0, syn}, {true, 9000, 1001, syn | ack}, {false, 1001, 9001, ack},
		{false, 1001, 9001, fin | ack}, {true, 9001, 1002, fin | ack}, {false, 1002, 9002, ack},
	} {
		from, to, sp, dp := client, server, port, uint16(443)
		if s.back {
			from, to, sp, dp = to, from, dp, sp
		}
		f := frame(from, to, sp, dp, s.seq, s.ack, s.flags, uint16(i+1))
		for _, v := range []uint32{1767225600, uint32(i) * 1500, uint32(len(f)), uint32(len(f))} {
			b = binary.LittleEndian.AppendUint32(b, v)
		}
		b = append(b, f...)
	}
	return b
}

func frame(from, to [4]byte, sp, dp uint16, seq, ackn uint32, flags byte, id uint16) []byte {
	b := append([]byte{2, 0, 0x5e, 0, 0x53, to[3], 2, 0, 0x5e, 0, 0x53, from[3], 8, 0}, 0x45, 0, 0, 40)
	b = binary.BigEndian.AppendUint16(b, id)
	b = append(b, 0x40, 0, 64, 6, 0, 0)
	b = append(append(b, from[:]...), to[:]...)
	binary.BigEndian.PutUint16(b[24:], sum(b[14:34], 0))
	b = binary.BigEndian.AppendUint16(b, sp)
	b = binary.BigEndian.AppendUint16(b, dp)
	b = binary.BigEndian.AppendUint32(b, seq)
	b = binary.BigEndian.AppendUint32(b, ackn)
	b = append(b, 0x50, flags, 0xff, 0xff, 0, 0, 0, 0)
	pseudo := uint32(6 + 20)
	for _, a := range [][4]byte{from, to} {
		pseudo += uint32(a[0])<<8 + uint32(a[1]) + uint32(a[2])<<8 + uint32(a[3])
	}
	binary.BigEndian.PutUint16(b[50:], sum(b[34:], pseudo))
	return b
}

func sum(b []byte, s uint32) uint16 {
	for i := 0; i+1 < len(b); i += 2 {
		s += uint32(b[i])<<8 | uint32(b[i+1])
	}
	for s > 0xffff {
		s = s>>16 + s&0xffff
	}
	return ^uint16(s)
}
