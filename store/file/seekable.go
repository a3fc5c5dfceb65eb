package file

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
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
// All of it is decided from the table, before anything is unpacked; and a frame
// that unpacks to more or less than the table says is damage.
//
// # Damage stays where it is
//
// Frames are independent. One that does not unpack reads as NULs, as a block that a disk has
// lost does in a plain file: readers of the log find a damaged line there, and everything
// else. A table that is damaged, or lost with the end of the file, is rebuilt from the
// frames, which say how long they are. All of our frames but the last are full, so if the last
// one that is left is full too, others may have come after it: then a line with only a NUL
// follows, so that no reader takes the rest for the whole, also once the log is unpacked. The
// archive as a whole is corrupt only if no frame is intact. A caller that replaces an archive must ask isDamaged and keep a damaged one; a
// caller that needs all of it must stop there.
const (
	maxFrame  = 16 << 20
	maxFrames = 1 << 20
	freePlain = 1 << 30
	maxRatio  = 300
	minPacked = 9 // bytes of the smallest possible frame
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
	sound  bool       // a frame was unpacked
	cached [2]struct {
		index int // of a frame, plus one: zero is empty
		data  []byte
	}
	victim int
}

// frame says where a frame is in the archive and in the unpacked whole.
type frame struct {
	packedAt, packedLen int64
	plainAt, plainLen   int64
}

func openSeekable(r io.ReaderAt, size int64) (*seekable, error) {
	// The decoder stops at a frame that unpacks to more than the table says.
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxFrame), zstd.WithDecodeAllCapLimit(true))
	if err != nil {
		return nil, err
	}
	z := &seekable{r: r, dec: dec}
	z.frames, err = readSeekTable(r, size)
	if errors.Is(err, store.ErrCorrupt) {
		if walked, walkErr := z.walkFrames(size); len(walked) > 0 {
			z.frames, z.broken, err = markEnd(walked), true, walkErr
		}
	}
	if err != nil {
		dec.Close()
		return nil, err
	}
	if n := len(z.frames); n > 0 {
		z.size = z.frames[n-1].plainAt + z.frames[n-1].plainLen
	}
	return z, nil
}

// lostEnd stands for what an archive had after its last frame.
const lostEnd = "\x00\n"

// markEnd adds lostEnd, as a frame that is nowhere in the file, if the last frame is full.
func markEnd(frames []frame) []frame {
	last := frames[len(frames)-1]
	if last.plainLen != frameSize {
		return frames
	}
	return append(frames, frame{packedAt: last.packedAt + last.packedLen, plainAt: last.plainAt + last.plainLen, plainLen: int64(len(lostEnd))})
}

func readSeekTable(r io.ReaderAt, size int64) ([]frame, error) {
	footer := make([]byte, footerSize)
	if err := readFull(r, footer, size-footerSize); err != nil {
		return nil, fmt.Errorf("reading the end of the archive: %w", err)
	}
	if binary.LittleEndian.Uint32(footer[5:]) != seekTableMagic || footer[4] != 0 {
		return nil, fmt.Errorf("no seek table at the end: %w", store.ErrCorrupt)
	}
	count := int64(binary.LittleEndian.Uint32(footer))
	tableAt := size - footerSize - 8*count
	if tableAt < 8+minPacked*count {
		return nil, fmt.Errorf("a seek table of %d frames does not fit %d bytes: %w", count, size, store.ErrCorrupt)
	}
	if count > maxFrames {
		return nil, fmt.Errorf("%d frames, the limit is %d: %w", count, maxFrames, store.ErrTooLarge)
	}
	table := make([]byte, 8*count) // which is less than the file has
	if err := readFull(r, table, tableAt); err != nil {
		return nil, fmt.Errorf("reading the seek table: %w", err)
	}
	return parseSeekTable(table, tableAt, size)
}

// parseSeekTable reads the table of an archive, whose frames are before tableAt.
func parseSeekTable(table []byte, tableAt, size int64) ([]frame, error) {
	frames := make([]frame, len(table)/8)
	var packedAt, plainAt int64
	for i := range frames {
		f := frame{
			packedAt: packedAt, packedLen: int64(binary.LittleEndian.Uint32(table[8*i:])),
			plainAt: plainAt, plainLen: int64(binary.LittleEndian.Uint32(table[8*i+4:])),
		}
		packedAt += f.packedLen
		plainAt += f.plainLen
		if packedAt > tableAt || f.packedLen < minPacked {
			return nil, fmt.Errorf("frame %d of the seek table is out of bounds: %w", i, store.ErrCorrupt)
		}
		if f.plainLen > maxFrame {
			return nil, fmt.Errorf("frame %d claims to unpack to %d bytes, the limit is %d: %w", i, f.plainLen, maxFrame, store.ErrTooLarge)
		}
		frames[i] = f
	}
	if err := checkRatio(plainAt, size); err != nil {
		return nil, err
	}
	if packedAt != tableAt-8 {
		return nil, fmt.Errorf("the frames of the seek table have %d bytes, and there are %d: %w", packedAt, tableAt-8, store.ErrCorrupt)
	}
	return frames, nil
}

func checkRatio(plain, size int64) error {
	if plain <= max(freePlain, maxRatio*size) {
		return nil
	}
	return fmt.Errorf("it has %d bytes and claims to unpack to %d, more than %d times as many: %w", size, plain, maxRatio, store.ErrTooLarge)
}

// walkFrames finds the frames of an archive without its table, up to the first that is cut
// short.
func (z *seekable) walkFrames(size int64) ([]frame, error) {
	var frames []frame
	var plainAt int64
	for at := int64(0); at < size && len(frames) < maxFrames; {
		f, ok := z.measureFrame(at, size)
		if !ok {
			break
		}
		at += f.packedLen
		if f.plainLen > 0 {
			f.plainAt = plainAt
			plainAt += f.plainLen
			frames = append(frames, f)
		}
	}
	return frames, checkRatio(plainAt, size)
}

// measureFrame finds out where the frame at an offset ends, and how long its content
// is. A frame to skip has none.
func (z *seekable) measureFrame(at, size int64) (frame, bool) {
	f := frame{packedAt: at}
	head := make([]byte, min(zstd.HeaderMaxSize, size-at))
	var h zstd.Header
	if readFull(z.r, head, at) != nil || h.Decode(head) != nil {
		return f, false
	}
	if h.Skippable {
		f.packedLen = int64(h.HeaderSize) + int64(h.SkippableSize)
		return f, f.packedLen <= size-at
	}
	f.packedLen = z.endOfBlocks(at+int64(h.HeaderSize), size) - at
	if h.HasCheckSum {
		f.packedLen += 4
	}
	if f.packedLen < 0 || f.packedLen > size-at || h.FrameContentSize > maxFrame {
		return f, false
	}
	if f.plainLen = int64(h.FrameContentSize); !h.HasFCS { // a short one
		return f, z.findLength(&f)
	}
	return f, true
}

// endOfBlocks returns where the blocks that begin at an offset end, or a negative number if
// they are cut short.
func (z *seekable) endOfBlocks(at, size int64) int64 {
	const rle, reserved = 1, 3 // types of blocks
	header := make([]byte, 4)
	for {
		if readFull(z.r, header[:3], at) != nil {
			return -size
		}
		block := binary.LittleEndian.Uint32(header)
		length, kind := int64(block>>3), block>>1&3
		if kind == rle {
			length = 1
		}
		at += 3 + length
		switch {
		case kind == reserved || at > size:
			return -size
		case block&1 == 1: // the last one
			return at
		}
	}
}

// findLength unpacks a frame to find out how long its content is. Frames that do not
// say so are short.
func (z *seekable) findLength(f *frame) bool {
	const short = 64 << 10
	packed := make([]byte, min(f.packedLen, short))
	if int64(len(packed)) < f.packedLen || readFull(z.r, packed, f.packedAt) != nil {
		return false
	}
	data, err := z.dec.DecodeAll(packed, make([]byte, 0, short))
	f.plainLen = int64(len(data))
	return err == nil
}

// isDamaged reports whether a part of the archive was found damaged. The answer is certain
// once all of it was read.
func (z *seekable) isDamaged() bool {
	z.mu.Lock()
	defer z.mu.Unlock()
	return z.broken
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
		z.broken, err = true, nil
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
	if f.packedLen == 0 {
		*into = []byte(lostEnd)
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
		if i != but && z.frames[i].plainLen > 0 && z.frames[i].packedLen > 0 {
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
