package clean

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/redact"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
)

// Receipt says what Apply did.
type Receipt struct {
	Time     time.Time      `json:"time"`
	Kinds    map[string]int `json:"kinds"`    // how many secrets of each kind were taken out
	Sessions []string       `json:"sessions"` // whose logs were written anew
	Copies   []string       `json:"copies"`   // files with copies that were written anew
	// Blobs are those that were replaced, with their new names; Removed are files
	// that were deleted: the blobs as they were, and left-over temporary files.
	Blobs   map[store.Ref]store.Ref `json:"blobs"`
	Removed []string                `json:"removed"`
	// Left are the places that still have one of the secrets, or may have one.
	Left []Left `json:"left"`
}

// Left is a place that still has a secret, and why.
type Left struct {
	Path    string `json:"path"`
	Session string `json:"session,omitempty"`
	Why     string `json:"why"`
}

// Apply takes out what Look has found: new blobs are written, then the logs and
// the copies that refer to them, each so that a crash leaves the old or the new,
// and then the old blobs are deleted if nothing else refers to them. At last every
// file of the store but the index is searched for the secrets, and where one is
// left, the receipt says so. If Apply fails or the machine does, looking and
// applying again does the rest, except where only its value told that something
// was a secret.
//
// Whoever has one of the sessions open must open it again. The index has to be
// made anew.
func (s *Sweep) Apply(ctx context.Context) (*Receipt, error) {
	r := &Receipt{
		Time: time.Now().UTC(), Kinds: make(map[string]int), Sessions: []string{}, Copies: []string{},
		Blobs: make(map[store.Ref]store.Ref), Removed: []string{}, Left: append([]Left{}, s.Unread...),
	}
	for _, secret := range s.Secrets {
		r.Kinds[secret.Kind]++
	}
	if len(s.Secrets) == 0 && len(s.pending) == 0 {
		return r, nil
	}
	if err := s.notePending(); err != nil {
		return r, err
	}
	ed := newEditor(s.scanner(), s.store.Blobs(), true)
	failed := s.rewriteAll(ctx, ed, r)
	if ctx.Err() != nil {
		return r, ctx.Err()
	}
	for old, b := range ed.known {
		if len(b.found) == 0 {
			continue
		}
		r.Blobs[old] = b.ref
		if !slices.Contains(s.pending, old) { // of a line that was appended since
			s.pending = append(s.pending, old)
		}
	}
	if err := s.rewriteOthers(ctx, ed, r); err != nil {
		return r, errors.Join(failed, err)
	}
	if err := s.search(ctx, r); err != nil {
		return r, errors.Join(failed, err)
	}
	return r, errors.Join(failed, s.forgetPending())
}

// rewriteAll writes the logs and the copies anew. One that fails does not keep the
// others from being written.
func (s *Sweep) rewriteAll(ctx context.Context, ed *editor, r *Receipt) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(s.logs)) {
		if err := s.rewriteLog(ctx, name, ed); err != nil {
			errs = append(errs, err)
			continue
		}
		r.Sessions = append(r.Sessions, name)
	}
	for _, c := range s.copies {
		if err := s.rewriteCopy(ctx, c, ed); err != nil {
			errs = append(errs, err)
			continue
		}
		r.Copies = append(r.Copies, c.Path)
	}
	return errors.Join(errs...)
}

// rewriteCopy replaces the secrets in a copy. One that vanished has none.
func (s *Sweep) rewriteCopy(ctx context.Context, c file.Copy, ed *editor) error {
	err := s.store.EditCopy(ctx, c, func(line []byte) ([]byte, error) {
		e, err := ed.edit(ctx, line)
		return e.line, err
	})
	if errors.Is(err, store.ErrNotExist) {
		return nil
	}
	return err
}

// rewriteOthers deals with what else the store's own directory has: notes about
// imports, which name blobs and remember what was read last.
func (s *Sweep) rewriteOthers(ctx context.Context, ed *editor, r *Receipt) error {
	return s.files(ctx, func(path string, room string) error {
		if room != roomOther {
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		cleaned := replaceKnown(ed.scan, data)
		for old, b := range r.Blobs {
			cleaned = []byte(strings.ReplaceAll(string(cleaned), `"`+string(old)+`"`, `"`+string(b)+`"`))
		}
		if string(cleaned) == string(data) {
			return nil
		}
		r.Copies = append(r.Copies, path)
		return replaceFile(path, cleaned)
	})
}

// replaceKnown replaces what was found elsewhere. The rules are not asked: a file
// of another part of the program may have secrets that it needs.
func replaceKnown(s *redact.Scanner, data []byte) []byte {
	var out []byte
	done := 0
	for _, f := range s.Known(data) {
		out = append(append(out, data[done:f.Start]...), redact.Replacement(f.Kind)...)
		done = f.End
	}
	return append(out, data[done:]...)
}

// replaceFile writes a file so that it is there whole or not at all.
func replaceFile(path string, data []byte) (err error) {
	temp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(temp.Name()) // what went wrong is said already
		}
	}()
	_, err = temp.Write(data)
	if err == nil {
		err = temp.Sync()
	}
	if err := errors.Join(err, temp.Close()); err != nil {
		return err
	}
	return os.Rename(temp.Name(), path)
}

// The rooms of a store, by what is to be done about them.
const (
	roomLogs  = "logs"  // logs, archives, trash, quarantine
	roomBlobs = "blobs" // content that others refer to
	roomTemp  = "tmp"   // files on their way
	roomSkip  = "skip"  // the index, which is made anew from the logs, and our own note
	roomOther = "other"
)

// files calls each with every regular file of the store.
func (s *Sweep) files(ctx context.Context, each func(path, room string) error) error {
	return filepath.WalkDir(s.store.Dir(), func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // removed meanwhile
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		err = each(path, s.room(path))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
}

func (s *Sweep) room(path string) string {
	below, err := filepath.Rel(s.store.Dir(), path)
	parts := strings.Split(filepath.ToSlash(below), "/")
	if err != nil || len(parts) < 2 || parts[0] != ".coppice" {
		return roomLogs
	}
	switch parts[1] {
	case "archive", "trash", "quarantine", "locks":
		return roomLogs
	case "blobs":
		return roomBlobs
	case "tmp":
		return roomTemp
	}
	if strings.HasPrefix(parts[1], "index.db") || parts[1] == pendingName {
		return roomSkip
	}
	return roomOther
}

// sessionOf returns the session that a file belongs to, or "".
func (s *Sweep) sessionOf(path string) string {
	base := filepath.Base(path)
	for _, suffix := range []string{".jsonl", ".jsonl.zst", ".jsonl.bak"} {
		if name, ok := strings.CutSuffix(base, suffix); ok {
			if _, is := s.forms[name]; is {
				return name
			}
		}
	}
	return ""
}
