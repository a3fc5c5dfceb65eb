package file

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/coppice-dev/coppice/store"
)

// An archive is a zstd file that any zstd tool unpacks. It is made of frames
// that each hold frameSize bytes of the log, followed by a table of the frames'
// sizes in a frame that other tools skip, as the zstd seekable format has it:
//
//	frame │ frame │ … │ 0x184D2A5E │ size │ (compressed, plain)… │ count │ 0 │ 0x8F92EAB1
//
// all numbers little-endian, four bytes each, but the descriptor 0, which is
// one byte. So a reader that wants the end of a log unpacks only its last frame.
const (
	frameSize      = 1 << 20
	skippableMagic = 0x184D2A5E
	seekTableMagic = 0x8F92EAB1
	footerSize     = 9
)

// An archive may come from anywhere, and a small one must not cost much memory or time. Our
// own have frames of frameSize; a foreign one is not trusted:
//
//   - One frame unpacks to at most maxFrame, and two are in memory at most.
//   - There are at most maxFrames, which is as many as ours have in a terabyte.
//   - The whole unpacks to at most freePlain, or to maxRatio times the archive if that is
//     more. Up to freePlain a log may be as repetitive as it likes; a larger log has many
//     different texts and never comes near such a ratio: logs of agents shrink to between a
//     third and a thirtieth.
//   - Store has an absolute limit on top of that: Options.MaxUnpacked.
//
// All of it is decided from the table and the headers of the frames, before anything that
// is not damaged is unpacked; and a frame that unpacks to more or less than that is damage.
//
// # Damage stays where it is
//
// Frames are independent. One that does not unpack reads as NULs, as a block that a disk has
// lost does in a plain file: readers of the log find a damaged line there, and everything
// else. The table is believed only where it agrees with itself and with the frames. If it does
// not, or is lost with the end of the file, the frames are found without it: they say how long
// they are, and begin with a number that is hardly ever anything else. Where bytes are missing
// or there are too many, one lost frame represents all up to the next that unpacks. All of our
// frames but the last are full, so if the last one that is left is full too, others may have
// come after it: then a NUL follows, which is a damaged line (store.IsLine), so that no reader
// takes the rest for the whole, also once the log is unpacked. The archive as a whole is corrupt
// only if no frame is intact. A caller that replaces an archive must ask isDamaged and keep a
// damaged one; a caller that needs all of it must stop there.
const (
	maxFrame  = 16 << 20
	maxFrames = 1 << 20
	freePlain = 1 << 30
	maxRatio  = 300
	minPacked = 9            // bytes of the smallest possible frame
	maxPacked = 2 * maxFrame // more than the largest ever has
)

// compressSeekable writes r as an archive.
func compressSeekable(w io.Writer, r io.Reader) error {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		return err
	}
	defer enc.Close()
	plain := make([]byte, frameSize)
	var packed, table []byte
	frames := uint32(0)
	for {
		n, err := io.ReadFull(r, plain)
		if n > 0 {
			packed = enc.EncodeAll(plain[:n], packed[:0])
			if _, err := w.Write(packed); err != nil {
				return err
			}
			table = binary.LittleEndian.AppendUint32(table, uint32(len(packed)))
			table = binary.LittleEndian.AppendUint32(table, uint32(n))
			frames++
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			break
		}
		if err != nil {
			return err
		}
	}
	out := binary.LittleEndian.AppendUint32(nil, skippableMagic)
	out = binary.LittleEndian.AppendUint32(out, uint32(len(table)+footerSize))
	out = append(out, table...)
	out = binary.LittleEndian.AppendUint32(out, frames)
	out = append(out, 0)
	out = binary.LittleEndian.AppendUint32(out, seekTableMagic)
	_, err = w.Write(out)
	return err
}

// seekable reads an archive at any offset.
type seekable struct {
	r      io.ReaderAt
	dec    *zstd.Decoder
	frames []frame
	size   int64 // of the unpacked whole

	mu     sync.Mutex // guards what follows
	broken bool       // the table or a frame is damaged
	lost   bool       // a frame is, so a part of the content is lost
	sound  bool       // a frame was unpacked
	cached [2]struct {
		index int // of a frame, plus one: zero is empty
		data  []byte
	}
	victim int
}

func openSeekable(r io.ReaderAt, size int64) (*seekable, error) {
	// The decoder stops at a frame that unpacks to more than the table says.
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxFrame), zstd.WithDecodeAllCapLimit(true))
	if err != nil {
		return nil, err
	}
	z := &seekable{r: r, dec: dec}
	find := frameFinder{r: r, size: size, dec: dec}
	if z.frames, err = find.find(); err != nil {
		dec.Close()
		return nil, err
	}
	z.broken, z.lost = find.damaged, slices.ContainsFunc(z.frames, frame.isLost)
	if n := len(z.frames); n > 0 {
		z.size = z.frames[n-1].plainAt + z.frames[n-1].plainLen
	}
	return z, nil
}

// isDamaged reports whether a part of the archive was found damaged. The answer is certain
// once all of it was read.
func (z *seekable) isDamaged() bool {
	z.mu.Lock()
	defer z.mu.Unlock()
	return z.broken
}

// hasLost reports whether a part of the content is lost. If only the table is damaged, none is. The
// answer is certain once all of it was read.
func (z *seekable) hasLost() bool {
	z.mu.Lock()
	defer z.mu.Unlock()
	return z.lost
}

// ReadAt implements io.ReaderAt on the unpacked whole.
func (z *seekable) ReadAt(p []byte, off int64) (int, error) {
	done := 0
	i := sort.Search(len(z.frames), func(i int) bool { return z.frames[i].plainAt+z.frames[i].plainLen > off })
	for ; done < len(p) && i < len(z.frames); i++ {
		n, err := z.readFrame(p[done:], i, off+int64(done)-z.frames[i].plainAt)
		done += n
		if err != nil {
			return done, err
		}
	}
	if done < len(p) {
		return done, io.EOF
	}
	return done, nil
}

// readFrame copies from an offset of frame i, unpacking it unless it is one of
// the two that were read last.
func (z *seekable) readFrame(p []byte, i int, off int64) (int, error) {
	z.mu.Lock()
	defer z.mu.Unlock()
	for _, c := range z.cached {
		if c.index == i+1 {
			return copy(p, c.data[off:]), nil
		}
	}
	slot := &z.cached[z.victim]
	slot.index = 0
	err := z.unpack(i, &slot.data)
	if errors.Is(err, store.ErrCorrupt) && z.hasSound(i) {
		z.broken, z.lost, err = true, true, nil
		slot.data = slot.data[:z.frames[i].plainLen]
		clear(slot.data)
	}
	if err != nil {
		return 0, err
	}
	slot.index = i + 1
	z.victim = 1 - z.victim
	return copy(p, slot.data[off:]), nil
}

// unpack unpacks a frame into a buffer, which it makes large enough in any case.
func (z *seekable) unpack(i int, into *[]byte) error {
	f := z.frames[i]
	if f.isLost() {
		*into = make([]byte, f.plainLen)
		return nil
	}
	packed := make([]byte, f.packedLen)
	if err := readFull(z.r, packed, f.packedAt); err != nil {
		return err
	}
	if int64(cap(*into)) < f.plainLen {
		*into = make([]byte, 0, f.plainLen) // at most maxFrame
	}
	data, err := z.dec.DecodeAll(packed, (*into)[:0:f.plainLen])
	if err == nil && int64(len(data)) != f.plainLen {
		err = fmt.Errorf("%d bytes instead of %d", len(data), f.plainLen)
	}
	if err != nil {
		return fmt.Errorf("frame %d of the archive: %w: %w", i, store.ErrCorrupt, err)
	}
	*into, z.sound = data, true
	return nil
}

// hasSound reports whether any frame other than but can be unpacked: if none can, nothing is
// left to read.
func (z *seekable) hasSound(but int) bool {
	var into []byte
	for i := 0; i < len(z.frames) && !z.sound; i++ {
		if i != but && z.frames[i].plainLen > 0 && !z.frames[i].isLost() {
			_ = z.unpack(i, &into)
		}
	}
	return z.sound
}

func (z *seekable) Close() { z.dec.Close() }

func readFull(r io.ReaderAt, p []byte, off int64) error {
	if off < 0 {
		return fmt.Errorf("the file is too short: %w", store.ErrCorrupt)
	}
	_, err := io.ReadFull(io.NewSectionReader(r, off, int64(len(p))), p)
	return err
}
