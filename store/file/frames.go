package file

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"

	"github.com/coppice-dev/coppice/store"
)

// frame says where a frame is in the archive and in the unpacked whole.
type frame struct {
	packedAt, packedLen int64 // of a lost frame, packedLen is 0
	plainAt, plainLen   int64
}

func (f frame) isLost() bool { return f.packedLen == 0 }

// frameFinder finds the frames of an archive.
type frameFinder struct {
	r    io.ReaderAt
	size int64
	dec  *zstd.Decoder

	damaged bool  // the table or a frame's header is
	left    int64 // how many bytes may still be unpacked in search of frames
}

// find returns the frames. It believes the table as far as it agrees with itself and with the
// frames; if its packed sizes do not fit the file, it looks at the frames one after the other.
func (f *frameFinder) find() ([]frame, error) {
	f.left = max(freePlain, maxRatio*f.size)
	table, err := f.readTable()
	if err == nil {
		return f.checkPlain(table)
	}
	if !errors.Is(err, store.ErrCorrupt) && !errors.Is(err, store.ErrTooLarge) {
		return nil, err
	}
	f.damaged = true
	frames, walkErr := f.walk(table)
	if walkErr != nil || len(frames) > 0 {
		err = walkErr
	}
	return frames, err
}

// readTable reads the table. If its packed sizes cannot be right, it returns
// an error and what there is of it.
func (f *frameFinder) readTable() ([]frame, error) {
	footer := make([]byte, footerSize)
	if err := readFull(f.r, footer, f.size-footerSize); err != nil {
		return nil, fmt.Errorf("reading the end of the archive: %w", err)
	}
	if !isTable(footer) {
		return nil, fmt.Errorf("no seek table at the end: %w", store.ErrCorrupt)
	}
	count := int64(binary.LittleEndian.Uint32(footer))
	tableAt := f.size - footerSize - 8*count
	if tableAt < 8+minPacked*count {
		return nil, fmt.Errorf("a seek table of %d frames does not fit %d bytes: %w", count, f.size, store.ErrCorrupt)
	}
	if count > maxFrames {
		return nil, fmt.Errorf("%d frames, the limit is %d: %w", count, maxFrames, store.ErrTooLarge)
	}
	table := make([]byte, 8*count) // which is less than the file has
	if err := readFull(f.r, table, tableAt); err != nil {
		return nil, fmt.Errorf("reading the seek table: %w", err)
	}
	return parseTable(table, tableAt)
}

// parseTable reads the table of an archive, whose frames are before tableAt.
func parseTable(table []byte, tableAt int64) (frames []frame, err error) {
	frames = make([]frame, len(table)/8)
	var at int64
	for i := range frames {
		frames[i] = frame{
			packedAt: at, packedLen: int64(binary.LittleEndian.Uint32(table[8*i:])),
			plainLen: int64(binary.LittleEndian.Uint32(table[8*i+4:])),
		}
		at += frames[i].packedLen
		if frames[i].packedLen < minPacked && err == nil {
			err = fmt.Errorf("frame %d of the seek table has %d bytes: %w", i, frames[i].packedLen, store.ErrCorrupt)
		}
	}
	if at != tableAt-8 && err == nil {
		err = fmt.Errorf("the frames of the seek table have %d bytes, and there are %d: %w", at, tableAt-8, store.ErrCorrupt)
	}
	return frames, err
}

// checkPlain checks the plain sizes of a table. All of our frames but the last are full, so a
// full one needs no look at the frame: a damaged number is another one. So a reader that wants
// the end of a log still reads only its last frame.
func (f *frameFinder) checkPlain(frames []frame) ([]frame, error) {
	for i := range frames {
		if frames[i].plainLen == frameSize && i < len(frames)-1 {
			continue
		}
		if err := f.checkLength(&frames[i]); err != nil {
			return nil, fmt.Errorf("frame %d: %w", i, err)
		}
	}
	return f.setOffsets(frames)
}

// checkLength compares the plain size in the table with the one in the frame. If they differ,
// the frame is right if it unpacks.
func (f *frameFinder) checkLength(fr *frame) error {
	own, told := *fr, false
	if h, ok := f.header(fr.packedAt); ok && !h.Skippable {
		told = h.HasFCS && h.FrameContentSize <= 1<<32
		own.plainLen = int64(h.FrameContentSize)
		if !h.HasFCS {
			told = f.findLength(&own)
		}
	}
	switch {
	case told && own.plainLen != fr.plainLen:
		f.damaged = true
		if own.plainLen <= maxFrame && (fr.plainLen > maxFrame || f.unpacks(own)) {
			fr.plainLen = own.plainLen
		}
	case !told && fr.plainLen > maxFrame:
		f.damaged = true
		fr.plainLen = frameSize // neither can be right: it counts as lost
	}
	return checkFrame(fr.plainLen)
}

func checkFrame(plain int64) error {
	if plain <= maxFrame {
		return nil
	}
	return fmt.Errorf("it claims to unpack to %d bytes, the limit is %d: %w", plain, maxFrame, store.ErrTooLarge)
}

// setOffsets sets the offsets of the frames in the unpacked whole.
func (f *frameFinder) setOffsets(frames []frame) ([]frame, error) {
	var at int64
	for i := range frames {
		frames[i].plainAt = at
		at += frames[i].plainLen
	}
	if at > max(freePlain, maxRatio*f.size) {
		return nil, fmt.Errorf("it has %d bytes and claims to unpack to %d, more than %d times as many: %w", f.size, at, maxRatio, store.ErrTooLarge)
	}
	return frames, nil
}

// walk finds the frames without trusting the table. Where there is none, it continues at the
// next one that unpacks, and a lost frame represents the bytes in between.
func (f *frameFinder) walk(table []frame) ([]frame, error) {
	var frames []frame
	sound, lost := 0, false
	add := func(fr frame) {
		lost = lost || fr.isLost()
		frames = append(frames, fr)
	}
	for at := int64(0); at < f.size && len(frames) < maxFrames; {
		fr, ok := f.frameAt(at)
		if !ok {
			next := f.search(at + 1)
			if next < 0 {
				break
			}
			add(frame{packedAt: at, plainLen: frameSize})
			at = next
			continue
		}
		at += fr.packedLen
		if fr.plainLen > 0 {
			add(fr)
			sound++
		}
	}
	if f.left < 0 {
		return frames, fmt.Errorf("too much in it looks like frames and is not: %w", store.ErrTooLarge)
	}
	if sound == 0 {
		return nil, nil
	}
	if mayLackEnd(frames) || !lost && framesWereCut(frames, table) {
		add(frame{plainLen: 1})
	}
	return f.setOffsets(frames)
}

// mayLackEnd reports whether other frames may have come after the last one, whose table is
// lost: only the last of our frames is not full.
func mayLackEnd(frames []frame) bool {
	last := frames[len(frames)-1]
	return !last.isLost() && last.plainLen == frameSize
}

// framesWereCut reports whether a table has all frames that were found, and a run of further ones
// among them, which were cut out.
func framesWereCut(frames, table []frame) bool {
	cut, at := len(table)-len(frames), 0
	if cut <= 0 {
		return false
	}
	for at < len(frames) && frames[at].packedLen == table[at].packedLen {
		at++
	}
	for i := range frames[at:] {
		if frames[at+i].packedLen != table[at+cut+i].packedLen {
			return false
		}
	}
	gone := table[at] // or a wrong number in the table
	return minPacked <= gone.packedLen && gone.packedLen <= maxPacked && 0 < gone.plainLen && gone.plainLen <= maxFrame
}

// frameAt returns the frame at an offset. What follows a frame is another one, the table or the
// end of the file; if not, its blocks may be damaged, and it is one only if it unpacks.
func (f *frameFinder) frameAt(at int64) (frame, bool) {
	fr, ok := f.measure(at)
	if !ok {
		return fr, false
	}
	end := at + fr.packedLen
	if _, follows := f.header(end); follows || end == f.size {
		return fr, true
	}
	return fr, fr.plainLen > 0 && f.unpacks(fr)
}

var (
	zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}
	skipMagic = []byte{0x5e, 0x2a, 0x4d, 0x18}
)

// search returns where the next frame begins that unpacks, or the table, from an offset on. It
// returns a negative number if there is none.
func (f *frameFinder) search(at int64) int64 {
	buf := make([]byte, 64<<10)
	for at < f.size && f.left >= 0 {
		piece := buf[:min(int64(len(buf)), f.size-at)]
		if readFull(f.r, piece, at) != nil {
			return -1
		}
		for i := 0; i+4 <= len(piece); i++ {
			next := bytes.IndexAny(piece[i:], "\x28\x5e")
			if next < 0 {
				break
			}
			i += next
			isFrame, isTable := bytes.HasPrefix(piece[i:], zstdMagic), bytes.HasPrefix(piece[i:], skipMagic)
			if !isFrame && !isTable {
				continue
			}
			fr, ok := f.measure(at + int64(i))
			if ok && (isFrame && f.unpacks(fr) || isTable && fr.packedAt+fr.packedLen == f.size) {
				return fr.packedAt
			}
		}
		if len(piece) < len(buf) {
			return -1
		}
		at += int64(len(piece)) - 3 // the magic number may be on both sides
	}
	return -1
}

// header reads the header of a frame.
func (f *frameFinder) header(at int64) (h zstd.Header, ok bool) {
	if at < 0 || at >= f.size {
		return h, false
	}
	var head [zstd.HeaderMaxSize]byte
	piece := head[:min(zstd.HeaderMaxSize, f.size-at)]
	return h, readFull(f.r, piece, at) == nil && h.Decode(piece) == nil
}

// measure finds out where the frame at an offset ends, and how long its content
// is. A frame to skip has none.
func (f *frameFinder) measure(at int64) (frame, bool) {
	fr := frame{packedAt: at}
	h, ok := f.header(at)
	if !ok {
		return fr, false
	}
	if h.Skippable {
		fr.packedLen = int64(h.HeaderSize) + int64(h.SkippableSize)
		return fr, fr.packedLen <= f.size-at
	}
	fr.packedLen = f.endOfBlocks(at+int64(h.HeaderSize)) - at
	if h.HasCheckSum {
		fr.packedLen += 4
	}
	if fr.packedLen < 0 || fr.packedLen > min(f.size-at, maxPacked) || h.FrameContentSize > maxFrame {
		return fr, false
	}
	if fr.plainLen = int64(h.FrameContentSize); !h.HasFCS { // a short one
		return fr, f.findLength(&fr)
	}
	return fr, true
}

// endOfBlocks returns where the blocks that begin at an offset end, or a negative number if
// they are cut short.
func (f *frameFinder) endOfBlocks(at int64) int64 {
	const (
		rle, reserved = 1, 3    // types of blocks
		worth         = 1 << 10 // looking at one costs as much as unpacking so many bytes
	)
	header := make([]byte, 4)
	for {
		if f.left -= worth; f.left < 0 || readFull(f.r, header[:3], at) != nil {
			return -f.size
		}
		block := binary.LittleEndian.Uint32(header)
		length, kind := int64(block>>3), block>>1&3
		if kind == rle {
			length = 1
		}
		at += 3 + length
		switch {
		case kind == reserved || at > f.size:
			return -f.size
		case block&1 == 1: // the last one
			return at
		}
	}
}

// findLength unpacks a frame to find out how long its content is. Frames that do not
// say so are short.
func (f *frameFinder) findLength(fr *frame) bool {
	const short = 64 << 10
	if fr.packedLen > short {
		return false
	}
	fr.plainLen = short
	data, err := f.unpack(*fr)
	fr.plainLen = int64(len(data))
	return err == nil
}

// unpacks reports whether a frame unpacks to as much as it should.
func (f *frameFinder) unpacks(fr frame) bool {
	data, err := f.unpack(fr)
	return err == nil && int64(len(data)) == fr.plainLen
}

func (f *frameFinder) unpack(fr frame) ([]byte, error) {
	if f.left -= fr.plainLen + fr.packedLen; f.left < 0 {
		return nil, store.ErrTooLarge
	}
	packed := make([]byte, fr.packedLen)
	if err := readFull(f.r, packed, fr.packedAt); err != nil {
		return nil, err
	}
	return f.dec.DecodeAll(packed, make([]byte, 0, fr.plainLen))
}
