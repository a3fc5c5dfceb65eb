// Package jsonl reads files that are JSON objects, one a line.
package jsonl

import (
	"bytes"
	"context"
	"fmt"
	"iter"

	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
)

// Object is a line that is a JSON object. Its memory is its own.
type Object struct {
	loose.Value
	Span transcript.Span // where the line is
	No   int64           // its number, counted from 1
}

// Objects yields the objects of a file. A line that is no object is reported to
// the sink and passed over; one that is half written because the file ends in it
// is passed over in silence: whoever writes it is not done yet.
func Objects(ctx context.Context, f *transcript.File, to transcript.Sink) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		for line, err := range f.Lines(ctx) {
			if err != nil {
				yield(Object{}, err)
				return
			}
			v, reason := parse(line)
			if reason != "" {
				to.Problem(transcript.Problem{Pos: line.Pos, Line: line.No, Reason: reason})
			}
			if v != nil && !yield(Object{Value: v, Span: line.Span, No: line.No}, nil) {
				return
			}
		}
	}
}

// parse returns the line's object, or else why there is none; neither for a line
// that is still being written.
func parse(line transcript.Line) (v loose.Value, reason string) {
	if line.Cut {
		return nil, fmt.Sprintf("the line is longer than %d MiB", transcript.MaxLine>>20)
	}
	v, err := loose.Parse(bytes.Clone(line.Data))
	switch {
	case err != nil && line.Torn:
		return nil, ""
	case err != nil:
		return nil, "the line is not JSON: " + err.Error()
	case !v.IsObject():
		return nil, "the line is not a JSON object"
	}
	return v, ""
}

// Head returns the objects among the first lines of a file, as far as its head
// shows them, for telling what it is.
func Head(f *transcript.File, most int) []loose.Value {
	h := transcript.Seen(f, func(f *transcript.File) *head { return &head{rest: f.Head()} })
	for len(h.objects) < most && len(h.rest) > 0 {
		line, rest, _ := bytes.Cut(h.rest, []byte{'\n'})
		h.rest = rest
		if v := loose.Try(bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))); v.IsObject() {
			h.objects = append(h.objects, v)
		}
	}
	return h.objects[:min(most, len(h.objects))]
}

// head is how far the head of a file was read.
type head struct {
	objects []loose.Value
	rest    []byte
}
