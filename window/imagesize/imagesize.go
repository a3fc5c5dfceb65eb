// Package imagesize reads how large a picture is from its first bytes, without
// decoding it.
package imagesize

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Size is a picture's size in pixels.
type Size struct{ Width, Height int }

// ErrUnknown says that the bytes are not the beginning of a PNG, JPEG, GIF or
// WebP picture.
var ErrUnknown = errors.New("not a picture of a known format")

// mostHeader is how far into a picture its size is looked for. JPEG may have
// previews and profiles before it.
const mostHeader = 1 << 20

// Read returns the size of the picture that r holds. It reads no more than it
// needs, and at most 1 MiB.
func Read(r io.Reader) (Size, error) {
	in := bufio.NewReaderSize(io.LimitReader(r, mostHeader), 512)
	begin, err := in.Peek(16)
	if err != nil && len(begin) < 10 {
		return Size{}, fmt.Errorf("%w: only %d bytes", ErrUnknown, len(begin))
	}
	var s Size
	switch {
	case string(begin[:8]) == "\x89PNG\r\n\x1a\n":
		s, err = png(in)
	case string(begin[:6]) == "GIF87a" || string(begin[:6]) == "GIF89a":
		s = Size{int(binary.LittleEndian.Uint16(begin[6:])), int(binary.LittleEndian.Uint16(begin[8:]))}
		err = nil
	case begin[0] == 0xff && begin[1] == 0xd8:
		s, err = jpeg(in)
	case len(begin) == 16 && string(begin[:4]) == "RIFF" && string(begin[8:12]) == "WEBP":
		s, err = webp(in)
	default:
		return Size{}, ErrUnknown
	}
	switch {
	case err != nil:
		return Size{}, err
	case s.Width <= 0 || s.Height <= 0:
		return Size{}, fmt.Errorf("%w: it is %d by %d pixels", ErrUnknown, s.Width, s.Height)
	}
	return s, nil
}

// png reads the header chunk, which comes first.
func png(in *bufio.Reader) (Size, error) {
	var b [24]byte // signature, length, "IHDR", width, height
	if _, err := io.ReadFull(in, b[:]); err != nil {
		return Size{}, fmt.Errorf("%w: PNG header: %w", ErrUnknown, err)
	}
	if string(b[12:16]) != "IHDR" {
		return Size{}, fmt.Errorf("%w: PNG without a header", ErrUnknown)
	}
	return pixels(binary.BigEndian.Uint32(b[16:]), binary.BigEndian.Uint32(b[20:]))
}

// pixels turns numbers that may be nonsense into a size.
func pixels(width, height uint32) (Size, error) {
	const most = 1 << 30
	if width > most || height > most {
		return Size{}, fmt.Errorf("%w: it says it is %d by %d pixels", ErrUnknown, width, height)
	}
	return Size{int(width), int(height)}, nil
}

// jpeg goes from segment to segment until one begins a frame.
func jpeg(in *bufio.Reader) (Size, error) {
	if _, err := in.Discard(2); err != nil {
		return Size{}, err
	}
	for {
		kind, err := segment(in)
		if err != nil {
			return Size{}, fmt.Errorf("%w: JPEG without a frame: %w", ErrUnknown, err)
		}
		if standsAlone(kind) {
			continue
		}
		var b [7]byte // length, precision, height, width
		if beginsFrame(kind) {
			if _, err := io.ReadFull(in, b[:]); err != nil {
				return Size{}, fmt.Errorf("%w: JPEG frame: %w", ErrUnknown, err)
			}
			return Size{int(binary.BigEndian.Uint16(b[5:])), int(binary.BigEndian.Uint16(b[3:]))}, nil
		}
		if _, err := io.ReadFull(in, b[:2]); err != nil {
			return Size{}, fmt.Errorf("%w: JPEG segment: %w", ErrUnknown, err)
		}
		length := int(binary.BigEndian.Uint16(b[:2])) // with itself
		if length < 2 {
			return Size{}, fmt.Errorf("%w: JPEG segment of %d bytes", ErrUnknown, length)
		}
		if _, err := in.Discard(length - 2); err != nil {
			return Size{}, fmt.Errorf("%w: JPEG segment: %w", ErrUnknown, err)
		}
	}
}

// segment returns the kind of the next segment. Any number of 0xff may come before it.
func segment(in *bufio.Reader) (byte, error) {
	b, err := in.ReadByte()
	if err != nil {
		return 0, err
	}
	if b != 0xff {
		return 0, fmt.Errorf("0x%02x where a segment should begin", b)
	}
	for b == 0xff {
		if b, err = in.ReadByte(); err != nil {
			return 0, err
		}
	}
	return b, nil
}

// standsAlone reports whether a segment has no length.
func standsAlone(kind byte) bool { return kind == 0x01 || kind >= 0xd0 && kind <= 0xd7 }

// beginsFrame leaves out the tables that share the range.
func beginsFrame(kind byte) bool {
	return kind >= 0xc0 && kind <= 0xcf && kind != 0xc4 && kind != 0xc8 && kind != 0xcc
}

// webp knows the three kinds of first chunks.
func webp(in *bufio.Reader) (Size, error) {
	var b [30]byte
	n, err := io.ReadFull(in, b[:])
	if n < 25 {
		return Size{}, fmt.Errorf("%w: WebP header: %w", ErrUnknown, err)
	}
	kind, data := string(b[12:16]), b[20:n]
	switch {
	case kind == "VP8L" && data[0] == 0x2f:
		bits := binary.LittleEndian.Uint32(data[1:])
		return Size{int(bits&0x3fff) + 1, int(bits>>14&0x3fff) + 1}, nil
	case kind == "VP8X" && len(data) == 10:
		return Size{int(uint24(data[4:])) + 1, int(uint24(data[7:])) + 1}, nil
	case kind == "VP8 " && len(data) == 10 && data[3] == 0x9d && data[4] == 0x01 && data[5] == 0x2a:
		return Size{int(binary.LittleEndian.Uint16(data[6:]) & 0x3fff), int(binary.LittleEndian.Uint16(data[8:]) & 0x3fff)}, nil
	}
	return Size{}, fmt.Errorf("%w: WebP of kind %q", ErrUnknown, kind)
}

func uint24(b []byte) uint32 { return uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 }
