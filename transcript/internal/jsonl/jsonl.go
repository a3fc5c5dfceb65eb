// Package jsonl reads files with one JSON object on each line.
package jsonl

import (
	"bytes"
	"context"
	"fmt"
	"iter"

	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
	"github.com/coppice-dev/coppice/transcript/internal/walk"
)

// Object is a JSON object of a file. It shares no memory with the file.
type Object struct {
	loose.Value
	Span transcript.Span // where it is
	No   int64           // the number of its line, counted from 1
}

// Objects yields the objects of a file: one a line, or all that a line holds where lines ran
// together (see transcript.Line.Split). Anything else is reported to the sink and skipped. A
// half-written object at the end of the file is skipped without a report: its program is
// still writing it.
func Objects(ctx context.Context, f *transcript.File, to transcript.Sink) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		for line, err := range f.Lines(ctx) {
			if err != nil {
				yield(Object{}, err)
				return
			}
			objects, problems := Parse(line)
			for _, p := range problems {
				to.Problem(p)
			}
			for _, o := range objects {
				if !yield(o, nil) {
					return
				}
			}
		}
	}
}

// Each calls a function with each of a file's objects, as Objects yields them, until
// it returns an error, which Each returns too.
func Each(ctx context.Context, f *transcript.File, to transcript.Sink, do func(Object) error) error {
	return walk.Each(Objects(ctx, f, to), do)
}

// Parse returns a line's objects, and what is wrong with the rest of it, as Objects yields
// and reports them. If both are empty, the line is still being written.
func Parse(line transcript.Line) (objects []Object, problems []transcript.Problem) {
	if line.Cut {
		return nil, problem(line, fmt.Sprintf("the line is longer than %d MiB", transcript.MaxLine>>20))
	}
	if !line.Lasting {
		line.Data = bytes.Clone(line.Data)
	}
	v, err := loose.Parse(line.Data)
	if err == nil && !v.IsObject() {
		return nil, problem(line, "the line is not a JSON object")
	}
	if err == nil {
		return []Object{{v, line.Span, line.No}}, nil
	}
	whole, pieces := line.Split()
	for _, part := range whole {
		objects = append(objects, Object{loose.Try(bytes.Clone(part.Data)), part.Span, part.No})
	}
	for _, part := range pieces {
		if part.Torn {
			continue
		}
		reason := "the line is not JSON: " + err.Error()
		if len(whole) > 0 {
			reason = "a part of the line is not JSON; the rest was read"
		}
		problems = append(problems, problem(part, reason)...)
	}
	return objects, problems
}

func problem(line transcript.Line, reason string) []transcript.Problem {
	return []transcript.Problem{{Pos: line.Pos, Line: line.No, Reason: reason}}
}

// Head returns the objects among the first lines of a file that its head shows,
// for detecting its format.
func Head(f *transcript.File, most int) []loose.Value {
	h := transcript.Seen(f, func(f *transcript.File) *head { return &head{rest: f.Head()} })
	for len(h.objects) < most && len(h.rest) > 0 {
		line, rest, _ := bytes.Cut(h.rest, []byte{'\n'})
		h.rest = rest
		line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
		if v := loose.Try(line); v.IsObject() {
			h.objects = append(h.objects, v)
		} else if v == nil {
			h.split(line)
		}
	}
	return h.objects[:min(most, len(h.objects))]
}

// head is how far the head of a file was read.
type head struct {
	objects []loose.Value
	rest    []byte
}

// split adds the objects of a line that is not one.
func (h *head) split(line []byte) {
	objects, _ := transcript.Line{Data: line}.Split()
	for _, o := range objects {
		h.objects = append(h.objects, loose.Try(o.Data))
	}
}

// First returns the first object of a file, or nil if its head does not show one.
func First(f *transcript.File) loose.Value {
	if head := Head(f, 1); len(head) > 0 {
		return head[0]
	}
	return nil
}
