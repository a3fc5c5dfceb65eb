package transcript

import (
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"slices"
)

// Line is one line of a file.
type Line struct {
	// Data is the line without its line end, and without a byte order mark or a
	// carriage return around it. It is valid until the next line, or for good if
	// Lasting is set.
	Data []byte
	Span       // where it is, including what was left out of Data
	No   int64 // counted from 1
	// Torn: the file ends without a line end. It may be half of a line that is still
	// being written.
	Torn bool
	// Cut: the line is longer than MaxLine, and Data is its beginning.
	Cut bool
	// Lasting: Data will not change, so it can be kept without a copy. It is set for
	// long lines, where a copy is expensive.
	Lasting bool

	lead int64 // how much of the Span comes before Data
}

// MaxLine is the length in bytes above which a line is not read as a whole.
const MaxLine = 256 << 20

const (
	readSize = 1 << 20
	// cutSize is how much of a line above the limit is given.
	cutSize = 64 << 10
)

// Lines yields the file's lines that are not empty.
func (f *File) Lines(ctx context.Context) iter.Seq2[Line, error] { return f.LinesFrom(ctx, 0, 0) }

// LinesFrom yields the lines from a position on. A line must begin there; before is the
// number of lines before it.
func (f *File) LinesFrom(ctx context.Context, pos, before int64) iter.Seq2[Line, error] {
	return func(yield func(Line, error) bool) {
		r, err := f.openAt(pos)
		if err != nil {
			yield(Line{}, err)
			return
		}
		defer r.Close()
		l := lineReader{from: r, tap: f.tap, max: MaxLine, pos: pos, no: before}
		if rest := f.data; rest != nil {
			rest = rest[min(pos, int64(len(rest))):]
			l.from, l.buf, l.end, l.eof = nil, rest, len(rest), true
		}
		cleaner := cleaner{clean: f.clean, tap: f.tap}
		if f.clean != nil {
			l.tap = nil
		}
		if l.from == nil {
			l.tapUpTo(l.end)
		}
		defer func() { l.tapUpTo(max(l.tapped, l.start)) }()
		for {
			if err := ctx.Err(); err != nil {
				yield(Line{}, err)
				return
			}
			line, err := l.next()
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(Line{}, err)
				return
			}
			if f.clean != nil {
				cleaner.line(&line)
			}
			if len(line.Data) > 0 && !yield(line, nil) {
				return
			}
		}
	}
}

// lineReader splits a stream into lines. Its memory is that of the longest line.
type lineReader struct {
	from io.Reader // nil: all of it is in buf
	tap  tap       // or nil
	max  int

	buf        []byte // what was read
	tapped     int    // how much of buf the tap has seen
	start, end int    // of the bytes that were not given out yet
	pos        int64  // of start, in the stream
	no         int64
	eof        bool
}

func (l *lineReader) next() (Line, error) {
	searched := 0
	for {
		at := bytes.IndexByte(l.buf[l.start+searched:l.end], '\n')
		length := searched + at
		if at < 0 {
			searched = l.end - l.start
			length = searched
		}
		switch {
		case length > l.max:
			return l.cut()
		case at >= 0:
			return l.giveOut(length+1, false), nil
		case l.eof && length == 0:
			return Line{}, io.EOF
		case l.eof:
			return l.giveOut(length, true), nil
		}
		if err := l.fill(); err != nil {
			return Line{}, err
		}
	}
}

// giveOut returns the next n bytes as a line.
func (l *lineReader) giveOut(n int, torn bool) Line {
	raw := l.buf[l.start : l.start+n]
	l.no++
	line := Line{Data: raw, Span: Span{Pos: l.pos, Len: int64(n)}, No: l.no, Torn: torn}
	if !torn {
		line.Data = raw[:n-1]
	}
	if line.Pos == 0 {
		text := bytes.TrimPrefix(line.Data, []byte("\xef\xbb\xbf"))
		line.Data, line.lead = text, int64(len(line.Data)-len(text))
	}
	line.Data = bytes.TrimSuffix(line.Data, []byte("\r"))
	if len(bytes.TrimSpace(line.Data)) == 0 {
		line.Data = nil
	}
	l.start += n
	l.pos += int64(n)
	if l.from != nil && n > readSize && 2*n > len(l.buf)-readSize { // the line fills the buffer, so it takes the buffer over
		line.Lasting = true
		if l.tap != nil {
			l.tapUpTo(l.start - n)
			l.tap.line(line.Pos, raw)
		}
		l.buf = bytes.Clone(l.buf[l.start:l.end])
		l.tapped, l.start, l.end = 0, 0, len(l.buf)
	}
	return line
}

// tapUpTo passes the lines up to a place in the buffer to the tap.
func (l *lineReader) tapUpTo(upTo int) {
	if l.tap == nil {
		return
	}
	for piece := range slices.Chunk(l.buf[l.tapped:upTo], readSize) {
		l.tap.part(l.pos-int64(l.start-l.tapped), piece)
		l.tapped += len(piece)
	}
}

// cut gives out the beginning of a line that is too long, and skips the rest.
func (l *lineReader) cut() (Line, error) {
	l.no++
	line := Line{Data: bytes.Clone(l.buf[l.start : l.start+min(cutSize, l.max)]), Span: Span{Pos: l.pos}, No: l.no, Cut: true}
	for {
		at := bytes.IndexByte(l.buf[l.start:l.end], '\n')
		skip := l.end - l.start
		if at >= 0 {
			skip = at + 1
		}
		l.start += skip
		l.pos += int64(skip)
		line.Len += int64(skip)
		if at >= 0 || l.eof {
			return line, nil
		}
		if err := l.fill(); err != nil {
			return Line{}, err
		}
	}
}

// fill reads more.
func (l *lineReader) fill() error {
	l.tapUpTo(l.start)
	if l.start > 0 {
		copy(l.buf, l.buf[l.start:l.end])
		l.end -= l.start
		l.tapped, l.start = 0, 0
	}
	if len(l.buf)-l.end < readSize/2 {
		grown := make([]byte, max(readSize, min(2*len(l.buf), l.max+readSize)))
		copy(grown, l.buf[:l.end])
		l.buf = grown
	}
	n, err := l.from.Read(l.buf[l.end:])
	l.end += n
	if errors.Is(err, io.EOF) {
		l.eof = true
		return nil
	}
	return err
}

// cleaner changes lines before they are used. Their places are then those in the
// changed text.
type cleaner struct {
	clean func([]byte) []byte
	tap   tap
	pos   int64
}

func (c *cleaner) line(line *Line) {
	if len(line.Data) > 0 {
		line.Data = c.clean(line.Data)
	}
	text := append(line.Data[:len(line.Data):len(line.Data)], '\n')
	line.Span, line.lead = Span{Pos: c.pos, Len: int64(len(text))}, 0
	if c.tap != nil {
		c.tap.part(c.pos, text)
	}
	c.pos += line.Len
}
