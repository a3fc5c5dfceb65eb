package transcript

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/session"
)

// Document is one of the JSON values that a file holds.
type Document struct {
	Data []byte // the value's text; the caller may keep it
	Span        // where it is
}

// Documents yields the JSON values of a file one by one: the elements of an array
// if the file is one, or else the values that follow each other. Only one of them
// is in memory at a time. The bytes are not kept automatically: a reader passes each
// document that it uses to Sink.Keep.
func (f *File) Documents(ctx context.Context) iter.Seq2[Document, error] {
	return func(yield func(Document, error) bool) {
		r, err := f.begin()
		if err != nil {
			yield(Document{}, err)
			return
		}
		defer r.Close()
		d := documents{path: f.Path, in: bufio.NewReaderSize(r, 256<<10)}
		for first := true; ctx.Err() == nil; first = false {
			doc, err := d.next(first)
			if errors.Is(err, io.EOF) {
				return
			}
			if !yield(doc, err) || err != nil {
				return
			}
		}
		yield(Document{}, ctx.Err())
	}
}

// maxDocument is the maximum size, in bytes, of one of several documents in a file. A
// file that is one document may be larger: see maxWhole.
const maxDocument = 256 << 20

// documents cuts a stream into values without understanding them: it only knows
// brackets and strings. That takes linear time for any text, which a json.Decoder does
// not promise. Each value is checked as a whole.
type documents struct {
	path    string
	in      *bufio.Reader
	pos     int64 // of the next byte
	inArray bool
}

// next returns the next value, or io.EOF.
func (d *documents) next(first bool) (Document, error) {
	c, err := d.skipSpace(first)
	if first && err == nil && c == '[' {
		d.inArray = true
		c, err = d.skipSpace(false)
	}
	if d.inArray && err == nil && c == ',' && !first {
		c, err = d.skipSpace(false)
	}
	switch {
	case errors.Is(err, io.EOF) && d.inArray:
		return Document{}, d.damaged(io.ErrUnexpectedEOF)
	case err != nil:
		return Document{}, err
	case d.inArray && c == ']':
		return Document{}, io.EOF
	}
	from := d.pos - 1
	data, err := d.value(c)
	if err != nil {
		return Document{}, err
	}
	if !rawjson.Valid(data) {
		return Document{}, d.damaged(fmt.Errorf("not JSON in the %d bytes before it", len(data)))
	}
	return Document{Data: data, Span: Span{Pos: from, Len: int64(len(data))}}, nil
}

// skipSpace returns the next byte that is not white space.
func (d *documents) skipSpace(first bool) (byte, error) {
	if mark, _ := d.in.Peek(3); first && bytes.Equal(mark, []byte("\xef\xbb\xbf")) {
		n, _ := d.in.Discard(3)
		d.pos += int64(n)
	}
	for {
		c, err := d.in.ReadByte()
		if err != nil {
			return 0, err
		}
		d.pos++
		if !isSpace(c) {
			return c, nil
		}
	}
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

// value reads the value that begins with c to its end.
func (d *documents) value(c byte) ([]byte, error) {
	data := []byte{c}
	e := extent{inString: c == '"', word: c != '"' && c != '{' && c != '['}
	if c == '{' || c == '[' {
		e.depth = 1
	}
	for {
		if _, err := d.in.Peek(1); errors.Is(err, io.EOF) {
			if e.word {
				return data, nil // a number or a word may end with the text
			}
			return nil, d.damaged(io.ErrUnexpectedEOF)
		} else if err != nil {
			return nil, err
		}
		chunk, _ := d.in.Peek(d.in.Buffered()) // what is buffered can be peeked at
		n, ended := e.in(chunk)
		data = append(data, chunk[:n]...)
		d.pos += int64(n)
		if _, err := d.in.Discard(n); err != nil {
			return nil, err
		}
		if len(data) > maxDocument {
			return nil, d.tooLarge()
		}
		if ended {
			return data, nil
		}
	}
}

// extent finds where a value ends, piece by piece.
type extent struct {
	depth             int  // of open brackets
	inString, escaped bool // the next byte is in a string, or after a backslash in it
	word              bool // the value is a number or a word, and ends before the first byte that cannot be in one
}

// in returns how many bytes of a piece belong to the value, and whether it ends
// there.
func (e *extent) in(piece []byte) (n int, ended bool) {
	for n < len(piece) {
		c := piece[n]
		switch {
		case e.word && (isSpace(c) || c == ',' || c == ']'):
			return n, true
		case e.escaped:
			e.escaped = false
		case e.inString:
			skipped := bytes.IndexAny(piece[n:], `"\`)
			if skipped < 0 {
				return len(piece), false
			}
			n += skipped
			e.escaped, e.inString = piece[n] == '\\', piece[n] != '"'
		case c == '"':
			e.inString = true
		case c == '{' || c == '[':
			e.depth++
		case c == '}' || c == ']':
			e.depth--
		}
		n++
		if !e.word && e.depth == 0 && !e.inString {
			return n, true
		}
	}
	return n, false
}

func (d *documents) damaged(err error) error {
	return &session.Error{Op: "read", Path: d.path, Offset: d.pos, At: true, Kind: session.ErrCorrupt, Err: err}
}

func (d *documents) tooLarge() error {
	return &session.Error{
		Op: "read", Path: d.path, Offset: d.pos, At: true, Kind: session.ErrTooLarge,
		Err: fmt.Errorf("a single document of more than %d MiB", maxDocument>>20),
	}
}
