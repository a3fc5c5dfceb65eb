package dataset

import (
	"context"

	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
	"github.com/coppice-dev/coppice/transcript/internal/records"
	"github.com/coppice-dev/coppice/transcript/internal/shape"
)

// Formats returns the formats.
func Formats() []*transcript.Format {
	return []*transcript.Format{ShareGPT(), LlamaFactory(), Alpaca(), OASST(), Chats(), Preference(), UltraChat(), MTBench(), BFCL()}
}

// simple returns a format whose files are records, each a conversation.
func simple(name, title string, looks func(s *shape.Shape) bool, read func(r *recordReader, rec records.Record) error) *transcript.Format {
	return &transcript.Format{
		Name: name, Title: title,
		Detect: func(f *transcript.File) bool { return looks(shape.OfFile(f)) },
		Read: func(ctx context.Context, f *transcript.File, to transcript.Sink) error {
			r := &recordReader{format: name, file: f, to: to}
			return records.Each(ctx, f, to, func(rec records.Record) error { return read(r, rec) })
		},
	}
}

// recordReader is what the readers of records have in common.
type recordReader struct {
	format string
	file   *transcript.File
	to     transcript.Sink

	questions map[string]loose.Value // of MT-bench, by their id; nil until they are needed
}

// begin begins the conversation of a record. The members named are its messages,
// all others are facts.
func (r *recordReader) begin(rec records.Record, native string, c transcript.Conversation, messages ...string) (*builder, error) {
	return begin(r.to, r.format, r.file, rec, native, c, rec.Value.Except(messages...))
}

// has reports whether all the members are there, in lines or in an array.
func has(s *shape.Shape, paths ...string) bool {
	for _, path := range paths {
		if !s.Has(path, "[]."+path) {
			return false
		}
	}
	return true
}
