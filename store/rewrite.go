package store

import (
	"context"
	"io"
	"iter"
)

// RawLine is a line of a Raw.
type RawLine struct {
	Line
	// Torn: it is the last one and has no line end. Next is then where the bytes
	// end.
	Torn bool
}

// Piece is a part of a log's new content: bytes of the old content, as they
// are, or a line.
type Piece struct {
	// Line is a line without its line end. Nil means From and To.
	Line []byte
	// From and To say which part of the old content is kept.
	From, To Pos
}

// Raw is the bytes of a log at one moment, for repairs: unlike a Log it also has the
// bytes after the last whole line. It must be closed.
type Raw interface {
	io.ReaderAt
	io.Closer
	// Size is how many bytes there are.
	Size() int64
	// Lines yields the lines. As for a Log, the data of each is valid until the next,
	// and a line over the limit has only its beginning.
	Lines(ctx context.Context) iter.Seq2[RawLine, error]
	// Rewrite replaces the content of the log by the given pieces, if the log is
	// still as it was when the Raw was opened; if not, nothing changes and the
	// error matches ErrConflict. The old content is kept, and Rewrite returns where. A
	// crash leaves the old content or the new.
	Rewrite(ctx context.Context, pieces iter.Seq2[Piece, error]) (kept string, err error)
	// Replace is Rewrite without keeping the old content: it is for content that must
	// not survive.
	Replace(ctx context.Context, pieces iter.Seq2[Piece, error]) error
}

// Rewriter is an optional interface of a Store whose logs can be repaired.
type Rewriter interface {
	// OpenRaw returns the bytes of a log, or ErrNotExist.
	OpenRaw(ctx context.Context, name string) (Raw, error)
	// HasBackup reports whether there is a backup of a log, and where.
	HasBackup(name string) (path string, ok bool)
	// RestoreBackup replaces a log by its backup, and keeps the log as it was. It
	// returns ErrNotExist if there is no backup, and ErrCorrupt if the backup is
	// no better.
	RestoreBackup(ctx context.Context, name string) error
}
