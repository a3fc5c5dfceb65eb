package session

import (
	"bytes"
	"context"
	"iter"

	"github.com/coppice-dev/coppice/store"
)

// The size of an entry is what a reader gets of it: its line, and the content
// that the line refers to in blobs. The size of a session is that of its entries.
// So moving content into blobs is no way around a limit, and a limit means the
// same wherever content is kept. What a custom entry names in its data does not
// count: no reader is given it.

// admit refuses entries that are over a limit, before anything of them is kept.
// Without content in blobs there is nothing to do: the store measures lines.
func (s *Session) admit(entries []Entry, m *mover) error {
	limits := s.store.Limits()
	if len(m.external) == 0 || limits.Entry <= 0 && limits.Log <= 0 {
		return nil
	}
	var line []byte
	total := int64(0)
	for i := range entries {
		var err error
		if line, err = appendEntry(line[:0], &entries[i]); err != nil {
			return err
		}
		size := int64(len(line)) + m.external[i]
		if err := store.MaxEntry.Check("append", s.name, size, limits.Entry); err != nil {
			return err
		}
		total += size + 1
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return s.errClosed("append")
	}
	return s.checkRoom(m.ctx, total)
}

// external returns how many bytes of an entry's content its blobs hold.
func (e *Entry) external() (size int64) { return externalIn(e.content()) }

func externalIn(blocks []Content) (size int64) {
	for i := range blocks {
		if ref, _ := blocks[i].blobRef(); ref != "" {
			size += blocks[i].blobSize()
		}
		if r := blocks[i].ToolResult; r != nil {
			size += externalIn(r.Parts)
		}
	}
	return size
}

// blobSize is how large a block says that its blob is.
func (c *Content) blobSize() int64 {
	if s := c.Source(); s != nil {
		return max(0, s.Size)
	}
	if c.ToolResult != nil {
		return max(0, c.ToolResult.Size)
	}
	return 0
}

// externalOf is external for an entry that is still a line.
func externalOf(line []byte) int64 {
	if !bytes.Contains(line, []byte(`"blob"`)) {
		return 0
	}
	e, err := decodeEntry(bytes.Clone(line))
	if err != nil {
		return 0 // a reader gets no more of it than the line
	}
	return e.external()
}

// weight is the size of a session up to a position, which grows with what is
// appended: the log is read once for each handle, and only if its size is limited.
type weight struct {
	bytes int64
	upTo  store.Pos
}

// in begins with the last log of a chain.
func (w *weight) in(p *chainPart) {
	if w.upTo < p.shift {
		*w = weight{upTo: p.shift}
	}
}

// add counts what we have appended, if we knew the weight of all before it.
func (w *weight) add(bytes int64, at, end store.Pos) {
	if w.upTo == at && at > 0 {
		w.bytes += bytes
		w.upTo = end
	}
}

// checkRoom refuses to make the session larger than it may become. It is called
// with mu held for writing.
func (s *Session) checkRoom(ctx context.Context, more int64) error {
	limit := s.store.Limits().Log
	if limit <= 0 {
		return nil
	}
	return s.weighAndCheck(ctx, more, limit)
}

// weighAndCheck is checkRoom where there is a limit. (It is a function of its own
// because its loop would cost every append an allocation.)
func (s *Session) weighAndCheck(ctx context.Context, more, limit int64) error {
	if s.weight.upTo > s.tree.end {
		s.weight = weight{} // the log became shorter
	}
	if chain, ok := s.log.(*chainLog); ok {
		s.weight.in(chain.last())
	}
	for line, err := range s.log.Forward(ctx, s.weight.upTo) {
		if err != nil && s.weight.upTo > 0 {
			s.weight = weight{} // the log was rewritten: count again
			return s.weighAndCheck(ctx, more, limit)
		}
		if err != nil {
			return err
		}
		if line.Next > s.tree.end {
			break // lines that others appended since are a conflict first
		}
		s.weight.bytes += int64(len(line.Data)) + 1 + externalOf(line.Data)
		s.weight.upTo = line.Next
	}
	return store.MaxSession.Check("append", s.name, s.weight.bytes+more, limit)
}

// limited yields the lines with which a session is to begin, up to one that is
// over a limit of the store.
func limited(st store.Store, name string, lines iter.Seq2[[]byte, error]) iter.Seq2[[]byte, error] {
	limits := st.Limits()
	if limits.Entry <= 0 && limits.Log <= 0 {
		return lines
	}
	return func(yield func([]byte, error) bool) {
		total := int64(0)
		for line, err := range lines {
			if err == nil {
				size := int64(len(line)) + externalOf(line)
				total += size + 1
				if err = store.MaxEntry.Check("create", name, size, limits.Entry); err == nil {
					err = store.MaxSession.Check("create", name, total, limits.Log)
				}
			}
			if !yield(line, err) {
				return
			}
		}
	}
}
