package transcript

import (
	"encoding/json"
	"io/fs"
	"slices"
	"time"

	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
)

// Ledger remembers what was imported and exported, so that a file that did not
// change is not read again and one that grew is read from where it stood. It is
// only a help: without it, everything is read and what is known is skipped.
type Ledger struct {
	// Notes is where the ledger is kept, one small document for each source.
	Notes *file.Notes
}

// LedgerOf returns the ledger of a store.
func LedgerOf(st *file.Store) *Ledger { return &Ledger{st.Notes("imports")} }

// Source is what is remembered of a file.
type Source struct {
	Path     string    `json:"path"`
	Format   string    `json:"format"`
	Size     int64     `json:"size"`     // when it was read
	Modified time.Time `json:"modified"` // zero: it may have changed since without showing it
	Sessions []string  `json:"sessions,omitempty"`
	Chunks   []Kept    `json:"chunks,omitempty"`
	// State is what the reader left for the next time, and At and Line where it
	// stood: see Resumer.
	State json.RawMessage `json:"state,omitempty"`
	At    int64           `json:"at,omitempty"`
	Line  int64           `json:"line,omitempty"`
	// Exported is the session that an export wrote to this file, and Native the
	// conversation's id there.
	Exported string `json:"exported,omitempty"`
	Native   string `json:"native,omitempty"`
}

// Kept is a piece of a source that is kept.
type Kept struct {
	From int64  `json:"from"`
	Len  int64  `json:"len"`
	Sum  string `json:"sha256"`
	// Blob is where it is, compressed; "" if it stands in a session.
	Blob store.Ref `json:"blob,omitempty"`
}

func noteOf(source string) string { return HashID("source", source) + ".json" }

// Get returns what is known of a file, or nil. A ledger that cannot be read
// knows nothing: that costs time, and nothing else.
func (l *Ledger) Get(path string) *Source {
	if l == nil || l.Notes == nil {
		return nil
	}
	data, err := l.Notes.Read(noteOf(path))
	if err != nil {
		return nil
	}
	var s Source
	if json.Unmarshal(data, &s) != nil || s.Path != path {
		return nil
	}
	return &s
}

// Put remembers a file.
func (l *Ledger) Put(s *Source) error {
	if l == nil || l.Notes == nil {
		return nil
	}
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	// To sync it would cost more than to read a small file again.
	return l.Notes.WriteHint(noteOf(s.Path), data)
}

// racy is how fresh a change may be for a later one to have the same time.
const racy = 2 * time.Second

// stamp notes how a file looks before it is read.
func (s *Source) stamp(info fs.FileInfo, now time.Time) {
	s.Size, s.Modified = info.Size(), time.Time{}
	if now.Sub(info.ModTime()) > racy {
		s.Modified = info.ModTime()
	}
}

// unchanged reports whether a file looks as it did.
func (s *Source) unchanged(info fs.FileInfo) bool {
	return s.Size == info.Size() && !s.Modified.IsZero() && s.Modified.Equal(info.ModTime())
}

// keptUpTo returns the chunks before a position.
func (s *Source) keptUpTo(pos int64) []Kept {
	if s == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(s.Chunks), func(k Kept) bool { return k.From+k.Len > pos })
}
