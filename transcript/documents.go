package transcript

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/session/rawjson"
)

// Document is one of the JSON values that a file holds.
type Document struct {
	Data []byte // the value's text, which is the caller's
	Span        // where it is
}

// Documents yields the JSON values of a file one by one: the elements of an array
// if the file is one, or else the values that follow each other. Only one of them
// is in memory at a time. What is read is not kept beside the entries: a reader
// gives Sink.Keep each document that it uses.
func (f *File) Documents(ctx context.Context) iter.Seq2[Document, error] {
	return func(yield func(Document, error) bool) {
		r, err := f.open()
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

// maxDocument is the greatest size of a single document in bytes.
const maxDocument = MaxLine

// documents cuts a stream into values without understanding them: it only knows
// brackets and strings. That takes time in proportion to the text whatever it is,
// which a json.Decoder does not promise. Each value is checked as a whole.
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

// skipSpace returns the next byte that is no white space.
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
	depth, inString, escaped := 0, c == '"', false
	if c == '{' || c == '[' {
		depth = 1
	}
	for depth > 0 || inString || !isClosing(data[0]) {
		c, err := d.in.ReadByte()
		if errors.Is(err, io.EOF) && depth == 0 && !inString {
			return data, nil
		}
		if errors.Is(err, io.EOF) {
			return nil, d.damaged(io.ErrUnexpectedEOF)
		}
		if err != nil {
			return nil, err
		}
		if depth == 0 && !inString && (isSpace(c) || c == ',' || c == ']') {
			return data, d.in.UnreadByte() // a number or a word has ended
		}
		d.pos++
		if data = append(data, c); len(data) > maxDocument {
			return nil, d.tooLarge()
		}
		switch {
		case escaped:
			escaped = false
		case inString && c == '\\':
			escaped = true
		case c == '"':
			inString = !inString
		case !inString && (c == '{' || c == '['):
			depth++
		case !inString && (c == '}' || c == ']'):
			depth--
		}
	}
	return data, nil
}

// isClosing reports whether a value that begins so says itself where it ends.
func isClosing(first byte) bool { return first == '{' || first == '[' || first == '"' }

func (d *documents) damaged(err error) error {
	return &session.Error{Op: "read", Path: d.path, Offset: d.pos, At: true, Kind: session.ErrCorrupt, Err: err}
}

func (d *documents) tooLarge() error {
	return &session.Error{
		Op: "read", Path: d.path, Offset: d.pos, At: true, Kind: session.ErrTooLarge,
		Err: fmt.Errorf("a single document of more than %d MiB", maxDocument>>20),
	}
}
