// Package records reads files that hold many records of one kind: the elements of
// an array, objects one a line, or a single object.
package records

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/jsonl"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
)

// bom is the byte order mark that some programs write before text.
var bom = []byte("\xef\xbb\xbf")

// Record is an object of a file.
type Record struct {
	loose.Value
	Span transcript.Span // its bytes in the source
	Line int64           // the line that it is, or 0
	N    int             // its number in the file, counted from 1
	Only bool            // it is all that the file holds
}

// Bad marks an error as that of one record. Each reports it and continues; other errors end
// it.
func Bad(err error) error {
	if err == nil {
		return nil
	}
	return &badError{err}
}

type badError struct{ err error }

func (e *badError) Error() string { return e.err.Error() }
func (e *badError) Unwrap() error { return e.err }

// Is makes a bad record match session.ErrInvalid, for callers that do not use Each.
func (e *badError) Is(target error) bool { return target == session.ErrInvalid }

// Each calls do with each record of a file. It returns an error if the file is a single bad
// object, or is not JSON at all.
func Each(ctx context.Context, f *transcript.File, to transcript.Sink, do func(r Record) error) error {
	switch head := trim(f.Head()); {
	case IsLines(f):
		return eachLine(ctx, f, to, do)
	case len(head) > 0 && head[0] == '[':
		return eachElement(ctx, f, to, do)
	}
	whole, err := Whole(f)
	if err != nil {
		return err
	}
	err = do(whole)
	if bad := (*badError)(nil); errors.As(err, &bad) {
		return Refuse(f, bad.err)
	}
	return err
}

// Whole returns a file as one record.
func Whole(f *transcript.File) (Record, error) {
	data, err := f.ReadAll()
	if err != nil {
		return Record{}, err
	}
	v, err := loose.Parse(bytes.TrimPrefix(data, bom))
	if err != nil {
		return Record{}, &session.Error{Op: "read", Path: f.Path, Kind: session.ErrCorrupt, Err: err}
	}
	return Record{Value: v, Span: transcript.Span{Len: int64(len(data))}, N: 1, Only: true}, nil
}

// Beside returns the JSON in a file beside another, or nil if there is none.
func Beside(f *transcript.File, name string) loose.Value {
	data, err := f.Beside(name)
	if err != nil {
		return nil
	}
	return loose.Try(data)
}

// Refuse returns the error of a file that is not of the format.
func Refuse(f *transcript.File, err error) error {
	return &session.Error{Op: "read", Path: f.Path, Kind: session.ErrInvalid, Err: err}
}

func trim(head []byte) []byte {
	return bytes.TrimSpace(bytes.TrimPrefix(head, bom))
}

// IsLines reports whether a file has one object on each line: its first line is an object,
// and something follows it. If the first line is too long to be seen whole, the file's name
// decides.
func IsLines(f *transcript.File) bool {
	head := trim(f.Head())
	line, rest, ended := bytes.Cut(head, []byte("\n"))
	if !ended && len(line) > 0 && line[0] == '{' {
		return strings.HasSuffix(f.Path, ".jsonl") || strings.HasSuffix(f.Path, ".ndjson")
	}
	return loose.Try(line).IsObject() && len(bytes.TrimSpace(rest)) > 0
}

func eachLine(ctx context.Context, f *transcript.File, to transcript.Sink, do func(r Record) error) error {
	n := 0
	return jsonl.Each(ctx, f, to, func(o jsonl.Object) error {
		n++
		err := do(Record{Value: o.Value, Span: o.Span, Line: o.No, N: n})
		return report(to, err, transcript.Problem{Pos: o.Span.Pos, Line: o.No})
	})
}

func eachElement(ctx context.Context, f *transcript.File, to transcript.Sink, do func(r Record) error) error {
	n := 0
	for doc, err := range f.Documents(ctx) {
		if err != nil {
			return err
		}
		n++
		span, err := to.Keep("record", doc.Data)
		if err != nil {
			return err
		}
		err = Bad(errors.New("a record must be an object"))
		if v := loose.Value(doc.Data); v.IsObject() {
			err = do(Record{Value: v, Span: span, N: n})
		}
		if err := report(to, err, transcript.Problem{Pos: doc.Pos}); err != nil {
			return err
		}
	}
	return nil
}

// report reports a bad record, and returns other errors.
func report(to transcript.Sink, err error, p transcript.Problem) error {
	bad := (*badError)(nil)
	if !errors.As(err, &bad) {
		return err
	}
	p.Reason = bad.Error()
	to.Problem(p)
	return nil
}

// ID names a conversation by the name that it has in its file, or else by its number. Bytes
// that are not a file are named by their content.
func ID(format string, f *transcript.File, native string, n int, raw []byte) string {
	if !filepath.IsAbs(f.Path) && !strings.HasPrefix(f.Path, "/") {
		return transcript.HashID(format, string(raw))
	}
	if native == "" {
		native = "#" + strconv.Itoa(n)
	}
	return transcript.HashID(format, f.Path, native)
}

// OneLine returns JSON without the white space between its tokens, or nil if it is not JSON.
func OneLine(v []byte) json.RawMessage {
	var buf bytes.Buffer
	if json.Compact(&buf, v) != nil {
		return nil
	}
	return buf.Bytes()
}
