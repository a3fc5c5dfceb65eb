package transcript

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/store"
)

// Ledger remembers what was imported and exported, so that an unchanged file is not
// read again and a grown file is read from its old end. It is only an optimisation:
// without it, everything is read and known records are skipped. It may be used by
// several goroutines at once.
//
// A file that is imported alone, or again and again because it grows, has a note of
// its own. Files that are imported many at a time share a list: a note with a line
// for each, because thousands of small notes would take more of the disk than the
// sessions. A file's own note counts; without one, the newest list does.
type Ledger struct {
	notes store.Notes // where the ledger is kept

	mu      sync.Mutex // guards what follows
	listing []store.Note
	own     map[string]bool   // the notes of single files
	lines   map[string]listed // what lists say about a path
	alive   map[string]int    // how many paths a list has the last word on
	pending []*Source         // for the next list
}

// listed is a line of a list.
type listed struct {
	list string // "" if it is pending
	line []byte
}

// LedgerRoom is the room of a store where its ledger is.
const LedgerRoom = "imports"

// LedgerOf returns the ledger of a store. A nil ledger remembers nothing.
func LedgerOf(st store.Store) *Ledger {
	if st == nil {
		return nil
	}
	return &Ledger{notes: st.Notes(LedgerRoom)}
}

// Source is what the ledger remembers about a file.
type Source struct {
	Path     string    `json:"path"`
	Format   string    `json:"format"`
	Size     int64     `json:"size"`     // when it was read
	Modified time.Time `json:"modified"` // zero: it may have changed since with the same size and time
	Sessions []string  `json:"sessions,omitempty"`
	Chunks   []Kept    `json:"chunks,omitempty"`
	// State is what the reader saved for the next time, and At and Line where it stopped: see
	// Resumer.
	State json.RawMessage `json:"state,omitempty"`
	At    int64           `json:"at,omitempty"`
	Line  int64           `json:"line,omitempty"`
	// Exported is the session that an export wrote to this file, and Native the
	// conversation's id there.
	Exported string `json:"exported,omitempty"`
	Native   string `json:"native,omitempty"`
	// Wrote is the entry that each record of the export is, where their ids differ.
	Wrote map[string]string `json:"wrote,omitempty"`
}

// Kept is a piece of a source that is kept.
type Kept struct {
	From int64  `json:"from"`
	Len  int64  `json:"len"`
	Sum  string `json:"sha256"`
	// Blob is where it is, compressed; "" if it is in a session.
	Blob store.Ref `json:"blob,omitempty"`
}

const (
	listPrefix = "list-"
	// maxList is how many files a list has at most. If the program is killed, what
	// waits to be listed is forgotten, and read again the next time.
	maxList = 2048
)

func noteOf(source string) string { return HashID("source", source) + ".json" }

// Get returns what is known of a file, or nil. A ledger that cannot be read knows
// nothing: that only costs time.
func (l *Ledger) Get(ctx context.Context, path string) *Source {
	if l == nil || l.notes == nil {
		return nil
	}
	l.mu.Lock()
	l.load(ctx)
	own, line := l.own[noteOf(path)], l.lines[path].line
	l.mu.Unlock()
	if own {
		if data, err := l.notes.Read(ctx, noteOf(path)); err == nil {
			line = data
		}
	}
	var s Source
	if line == nil || json.Unmarshal(line, &s) != nil || s.Path != path {
		return nil
	}
	return &s
}

// exportPath is the key of an exported conversation in the ledger, whatever file it is
// in. No file has such a path.
func exportPath(format, native string) string { return "exported:" + format + ":" + native }

// ExportOf returns what is known about the export with an id in a format, or nil.
func (l *Ledger) ExportOf(ctx context.Context, format, native string) *Source {
	if s := l.Get(ctx, exportPath(format, native)); s != nil && s.Exported != "" {
		return s
	}
	return nil
}

// Refresh picks up what other processes have since remembered or forgotten.
func (l *Ledger) Refresh(ctx context.Context) {
	if l == nil || l.notes == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	notes, err := l.notes.List(ctx)
	if l.own == nil || err == nil && slices.Equal(notes, l.listing) {
		return // nothing was loaded yet, or nothing has changed
	}
	l.own = nil
	l.load(ctx)
}

// load reads the lists, once. The caller holds mu.
func (l *Ledger) load(ctx context.Context) {
	if l.own != nil {
		return
	}
	l.own, l.lines, l.alive = make(map[string]bool), make(map[string]listed), make(map[string]int)
	l.listing, _ = l.notes.List(ctx) // sorted: newer lists come later
	for _, note := range l.listing {
		if !strings.HasPrefix(note.Name, listPrefix) {
			l.own[note.Name] = true
			continue
		}
		data, err := l.notes.Read(ctx, note.Name)
		if err != nil {
			continue
		}
		for line := range bytes.Lines(data) {
			if path := rawjson.MembersOf(line).Str("path"); path != "" {
				l.list(path, note.Name, line)
			}
		}
	}
	for _, s := range l.pending {
		l.listPending(s)
	}
}

func (l *Ledger) list(path, list string, line []byte) {
	if was, ok := l.lines[path]; ok {
		l.alive[was.list]--
	}
	l.lines[path] = listed{list, line}
	l.alive[list]++
}

func (l *Ledger) listPending(s *Source) {
	if line, err := json.Marshal(s); err == nil {
		l.list(s.Path, "", line)
	}
}

// Put remembers a file in a note of its own.
func (l *Ledger) Put(ctx context.Context, s *Source) error {
	if l == nil || l.notes == nil {
		return nil
	}
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	l.mu.Lock()
	if l.own != nil {
		l.own[noteOf(s.Path)] = true
	}
	l.mu.Unlock()
	// Syncing it would cost more than reading a small file again.
	return l.notes.WriteHint(ctx, noteOf(s.Path), data)
}

// PutAll remembers several files together. They are kept in memory
// until there are enough for a list, or until Flush.
func (l *Ledger) PutAll(ctx context.Context, sources []*Source) error {
	if l == nil || l.notes == nil {
		return nil
	}
	l.mu.Lock()
	l.load(ctx)
	var own []*Source
	for _, s := range sources {
		if l.own[noteOf(s.Path)] {
			own = append(own, s)
			continue
		}
		l.pending = append(l.pending, s)
		l.listPending(s)
	}
	full := len(l.pending) >= maxList
	l.mu.Unlock()
	for _, s := range own {
		if err := l.Put(ctx, s); err != nil {
			return err
		}
	}
	if full {
		return l.Flush(ctx)
	}
	return nil
}

// Flush writes the files that PutAll has remembered.
func (l *Ledger) Flush(ctx context.Context) error {
	if l == nil || l.notes == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch len(l.pending) {
	case 0:
		return nil
	case 1: // a growing file: its next note replaces this one
		s := l.pending[0]
		data, err := json.Marshal(s)
		if err != nil {
			return err
		}
		l.pending, l.own[noteOf(s.Path)] = nil, true
		return l.notes.WriteHint(ctx, noteOf(s.Path), data)
	}
	name := fmt.Sprintf("%s%016x-%s.jsonl", listPrefix, time.Now().UnixNano(), rand.Text()[:8])
	var data []byte
	for _, s := range l.pending {
		line := append(l.lines[s.Path].line, '\n')
		data = append(data, line...)
		l.list(s.Path, name, line)
	}
	if err := l.notes.WriteHint(ctx, name, data); err != nil {
		return err
	}
	l.pending = nil
	return l.dropOutdated(ctx)
}

// dropOutdated removes the lists in which every line is outdated.
func (l *Ledger) dropOutdated(ctx context.Context) error {
	for list, n := range l.alive {
		if n > 0 || list == "" {
			continue
		}
		if err := l.notes.Remove(ctx, list); err != nil {
			return err
		}
		delete(l.alive, list)
	}
	return nil
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

// IsUnchanged reports whether a file looks as it did when it was last imported as
// that format, or exported: then importing it would add nothing. It does not look
// into the file.
func (l *Ledger) IsUnchanged(ctx context.Context, path string, format *Format) bool {
	known := l.Get(ctx, path)
	if known == nil || known.Format != format.Name {
		return false
	}
	info, err := os.Stat(path)
	return err == nil && known.unchanged(info)
}

// keptUpTo returns the chunks before a position.
func (s *Source) keptUpTo(pos int64) []Kept {
	if s == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(s.Chunks), func(k Kept) bool { return k.From+k.Len > pos })
}
