package home

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/transcript"
)

// ownForm is the form of a file in Coppice's own format.
type ownForm int

const (
	ownNone     ownForm = iota // it is not ours
	ownLog                     // a log, as in a store: a header, and a line for each entry
	ownDocument                // one document with the header and the entries
)

// byteOrderMark is what some editors put before a text.
const byteOrderMark = "\xef\xbb\xbf"

// documentStart is how a document begins, apart from white space.
const documentStart = `{"header":{`

// formOf recognises such a file by its header: no other program writes sessions of this
// version. Nothing after the header matters.
func formOf(f *transcript.File) ownForm {
	return transcript.Seen(f, func(f *transcript.File) ownForm {
		_, form := headerIn(f)
		return form
	})
}

// ownHeader returns the header of such a file.
func ownHeader(f *transcript.File) session.Header {
	header, _ := headerIn(f)
	return header
}

func headerIn(f *transcript.File) (header session.Header, form ownForm) {
	dec := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(f.Head(), []byte(byteOrderMark))))
	form = ownLog
	if isDocument(f.Head()) {
		form = ownDocument
		for range 2 { // the brace and the name
			if _, err := dec.Token(); err != nil {
				return header, ownNone
			}
		}
	}
	if dec.Decode(&header) != nil || header.Type != session.TypeSession || header.Version != session.Version ||
		header.CreatedAt.IsZero() || store.CheckName(header.ID) != nil {
		return header, ownNone
	}
	return header, form
}

// isDocument reports whether a file begins as a document does.
func isDocument(head []byte) bool {
	at := 0
	for _, c := range bytes.TrimPrefix(head, []byte(byteOrderMark)) {
		switch {
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
		case c != documentStart[at]:
			return false
		default:
			at++
		}
		if at == len(documentStart) {
			return true
		}
	}
	return false
}

// ownLines yields the lines of such a file, whether it is a log or a document.
func ownLines(ctx context.Context, f *transcript.File) iter.Seq2[transcript.Line, error] {
	if formOf(f) == ownLog {
		return f.Lines(ctx)
	}
	return func(yield func(transcript.Line, error) bool) {
		in, err := f.Open()
		if err != nil {
			yield(transcript.Line{}, err)
			return
		}
		defer in.Close()
		text := bufio.NewReader(in)
		if mark, _ := text.Peek(len(byteOrderMark)); string(mark) == byteOrderMark {
			_, _ = text.Discard(len(mark)) // they are in the buffer
		}
		d := documentReader{dec: json.NewDecoder(text), yield: yield}
		err = d.read(ctx)
		if errors.Is(err, errEnough) {
			return
		}
		if _, bad := errors.AsType[*json.SyntaxError](err); bad || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
			yield(transcript.Line{Span: transcript.Span{Pos: d.dec.InputOffset()}, Torn: true, Data: []byte("{")}, nil)
			return
		}
		if err != nil {
			yield(transcript.Line{}, err)
		}
	}
}

var errEnough = errors.New("the caller wants no more")

// documentReader reads a document an entry at a time.
type documentReader struct {
	dec   *json.Decoder
	no    int64
	yield func(transcript.Line, error) bool
}

func (d *documentReader) read(ctx context.Context) error {
	if _, err := d.dec.Token(); err != nil {
		return err
	}
	for d.dec.More() {
		name, err := d.dec.Token()
		if err != nil {
			return err
		}
		switch name {
		case "header":
			err = d.entry(ctx)
		case "entries":
			err = d.entries(ctx)
		default: // the entries say it too
			err = d.dec.Decode(new(json.RawMessage))
		}
		if err != nil {
			return err
		}
	}
	_, err := d.dec.Token()
	return err
}

func (d *documentReader) entries(ctx context.Context) error {
	if open, err := d.dec.Token(); err != nil || open != json.Delim('[') {
		return errors.Join(err, fmt.Errorf("the entries are not a list: %v", open))
	}
	for d.dec.More() {
		if err := d.entry(ctx); err != nil {
			return err
		}
	}
	_, err := d.dec.Token()
	return err
}

// entry yields a value as a line.
func (d *documentReader) entry(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	pos := d.dec.InputOffset()
	var value json.RawMessage
	if err := d.dec.Decode(&value); err != nil {
		return err
	}
	var line bytes.Buffer
	if err := json.Compact(&line, value); err != nil {
		return err
	}
	d.no++
	if !d.yield(transcript.Line{Data: line.Bytes(), No: d.no, Span: transcript.Span{Pos: pos}}, nil) {
		return errEnough
	}
	return nil
}
