package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/coppice-dev/coppice/internal/rawjson"
)

// Graft appends entries that grew elsewhere: each keeps its own id, parent and
// time, which must all be set (a nil parent is a root). A parent must be in the
// session already or come earlier among the entries. All of them are written
// with one write and one sync, or none: ErrExist says that an id is taken,
// ErrNotExist that a parent is missing. The leaf is then the last of them, or
// where that one moves it.
func (s *Session) Graft(entries ...Entry) error {
	own := slices.Clone(entries)
	blobs := heldBlobs{store: s.store}
	defer blobs.release()
	if err := s.makeReady(context.Background(), &blobs, own); err != nil {
		return err
	}
	_, err := s.appendBatch(func() (*batch, error) { return s.prepareGraft(own) })
	return err
}

// Has reports whether the session has an entry of an id.
func (s *Session) Has(id string) (bool, error) {
	has := false
	err := s.withWhole(func(t *tree) error {
		_, has = t.at(id)
		return nil
	})
	return has, err
}

// prepareGraft encodes entries as they are. Grafts are large and come in rows,
// so that their lines share one piece of memory, which is used again.
func (s *Session) prepareGraft(entries []Entry) (*batch, error) {
	if err := s.whole(context.Background()); err != nil {
		return nil, err
	}
	b := &batch{ids: make([]string, 0, len(entries)), leaf: s.tree.leaf}
	inBatch := make(map[string]bool, len(entries))
	text, ends := s.grafted[:0], make([]int, 0, len(entries))
	for i := range entries {
		e := &entries[i]
		if err := s.checkGraft(e, inBatch); err != nil {
			return nil, err
		}
		inBatch[e.ID] = true
		begin := len(text)
		var err error
		if text, err = appendEntry(text, e); err != nil {
			return nil, err
		}
		if line := text[begin:]; len(line) > deepLine && !rawjson.Valid(line) {
			return nil, s.errTooDeep()
		}
		ends = append(ends, len(text))
		b.add(e, nil)
		b.size += int64(len(text)-begin) + 1 + e.external()
	}
	begin := 0
	for i, end := range ends {
		b.lines[i] = text[begin:end:end]
		begin = end
	}
	if s.grafted = text; cap(text) > maxGrafted {
		s.grafted = nil
	}
	return b, nil
}

// maxGrafted is how much memory for grafts a session holds on to.
const maxGrafted = 16 << 20

func (s *Session) checkGraft(e *Entry, inBatch map[string]bool) error {
	fail := func(kind, err error) error {
		return &Error{Op: "graft", Name: s.name, Kind: kind, Err: err}
	}
	if err := s.checkPayload(e); err != nil {
		return err
	}
	_, _, odd := e.Extra.take("timestamp")
	switch {
	case e.ID == "" || !utf8.ValidString(e.ID):
		return fail(ErrInvalid, fmt.Errorf("an entry cannot have the id %q", e.ID))
	case e.Timestamp.IsZero() && !odd:
		return fail(ErrInvalid, fmt.Errorf("entry %q has no time", e.ID))
	}
	if _, taken := s.tree.at(e.ID); taken || inBatch[e.ID] {
		return fail(ErrExist, fmt.Errorf("entry %q", e.ID))
	}
	if e.ParentID == nil || inBatch[*e.ParentID] {
		return nil
	}
	if _, ok := s.tree.at(*e.ParentID); !ok {
		return fail(ErrNotExist, fmt.Errorf("entry %q, the parent of %q", *e.ParentID, e.ID))
	}
	return nil
}

func (s *Session) errTooDeep() error {
	return &Error{Op: "append", Name: s.name, Kind: ErrInvalid, Err: errors.New("the entry is nested too deep to be read again")}
}
