package transcript

import (
	"bytes"
	"errors"

	"github.com/coppice-dev/coppice/internal/rawjson"
)

// Split returns the whole JSON objects on a line, and the pieces of it that are not
// objects. Lines run together when a program dies within one and the next one follows
// directly, or when two programs write to a file at once. Each object and each piece is
// a Line with a Span of its own, and together they cover the line.
//
// An object inside a torn piece is not an object of the file. So what follows a torn
// piece counts only if the JSON shows clearly that something else begins there, and if
// there are only whole objects up to the end of the line.
//
// A line that is one object needs no Split, and is faster to read without it.
func (l Line) Split() (objects, pieces []Line) {
	if l.Cut {
		return nil, []Line{l}
	}
	s := splitter{line: l}
	for at := skipGap(l.Data, 0); at < len(l.Data); at = skipGap(l.Data, at) {
		if end := objectEnd(l.Data, at); end >= 0 {
			objects = append(objects, s.upTo(at, end, false))
			at = end
			continue
		}
		next := seam(l.Data, at)
		if next < 0 {
			pieces = append(pieces, s.upTo(at, len(l.Data), l.Torn))
			break
		}
		pieces = append(pieces, s.upTo(at, next, false))
		at = next
	}
	s.close(objects, pieces)
	return objects, pieces
}

// splitter hands out a line in parts.
type splitter struct {
	line Line
	from int // in the line's data
	last int64
}

// upTo returns the next part. Its data begins at the place at; the bytes before it count only
// for the Span.
func (s *splitter) upTo(at, end int, torn bool) Line {
	part := Line{Data: s.line.Data[at:end:end], No: s.line.No, Torn: torn}
	part.Pos = s.line.Pos + s.line.lead + int64(s.from)
	part.Len = int64(end - s.from)
	if s.from == 0 { // include the bytes left out before the data
		part.Pos, part.Len = s.line.Pos, part.Len+s.line.lead
	}
	s.from, s.last = end, part.Pos
	return part
}

// close adds the bytes left out after the data to the last part.
func (s *splitter) close(lists ...[]Line) {
	for _, list := range lists {
		if n := len(list); n > 0 && list[n-1].Pos == s.last {
			list[n-1].Len = s.line.Pos + s.line.Len - s.last
		}
	}
}

// skipGap returns the first place from at on that is neither white space nor zero: some file
// systems leave zeros where data was not yet written when the power failed.
func skipGap(data []byte, at int) int {
	return len(data) - len(bytes.TrimLeft(data[at:], " \t\r\x00"))
}

// objectEnd returns the end of the whole object that begins at a place, or -1.
func objectEnd(data []byte, at int) int {
	if data[at] != '{' {
		return -1
	}
	return rawjson.Skip(data, at)
}

// seam returns where a torn piece that begins at a place ends and whole objects
// begin, or -1. The first byte that is wrong in the piece is either the brace of
// the next object, or follows `{"`, whose quote ended a string that was torn.
func seam(data []byte, at int) int {
	var wrong *rawjson.SyntaxError
	err := rawjson.Object(data[at:], func(_, _ []byte) error { return nil })
	if !errors.As(err, &wrong) || data[at] != '{' {
		return -1
	}
	next := skipGap(data, at+wrong.Offset)
	if next < len(data) && data[next] != '{' {
		before := bytes.TrimRight(bytes.TrimSuffix(data[at:next], []byte{'"'}), " \t")
		next = at + len(before) - 1
	}
	if next <= at || next >= len(data) || data[next] != '{' {
		return -1
	}
	for end := next; end < len(data); end = skipGap(data, end) {
		if end = objectEnd(data, end); end < 0 {
			return -1
		}
	}
	return next
}
