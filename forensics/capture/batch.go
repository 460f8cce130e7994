package capture

// Batches is how many batches may wait for their release while the next one is read. Each
// holds at most one block; one more is being read from, and one read into.
const Batches = inFlight - 2

// Batch is packets whose memory stays good until [Batch.Release]. The capacity of
// Packets is how many it takes.
type Batch struct {
	Packets []Packet
	block   *block
}

// Batch reads the packets that follow, as many as lie in the same piece of memory and
// fit: at least one, or the error of [File.Next].
func (f *File) Batch(b *Batch) error {
	b.Packets = b.Packets[:1]
	if err := f.Next(&b.Packets[0]); err != nil {
		b.Packets = b.Packets[:0]
		return err
	}
	b.Packets = f.format.more(f, b.Packets)
	f.info.Packets += uint64(len(b.Packets) - 1)
	f.w.lend(b)
	return nil
}

// Release gives the memory of the packets back. Any goroutine may do it.
func (b *Batch) Release() {
	if b.block != nil {
		b.block.release()
		b.block = nil
	}
	b.Packets = b.Packets[:0]
}
