package clean

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"slices"
	"time"

	"github.com/coppice-dev/coppice/redact"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
)

// Receipt says what Apply did.
type Receipt struct {
	Time     time.Time      `json:"time"`
	Kinds    map[string]int `json:"kinds"`    // how many secrets of each kind were taken out
	Sessions []string       `json:"sessions"` // whose logs were rewritten
	Copies   []string       `json:"copies"`   // files with copies that were rewritten
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
// Whoever has one of the sessions open must open it again. Without DropDerived, the
// caller deletes the index when Apply has returned.
func (s *Sweep) Apply(ctx context.Context) (*Receipt, error) {
	r := &Receipt{
		Time: time.Now().UTC(), Kinds: make(map[string]int), Sessions: []string{}, Copies: []string{},
		Blobs: make(map[store.Ref]store.Ref), Removed: []string{}, Left: append([]Left{}, s.Unread...),
	}
	done := false
	defer func() { r.count(s.Secrets, done) }()
	if len(s.secrets) == 0 && len(s.pending.Blobs) == 0 {
		if s.begun { // it may have come to the end but for the last deletion of the index
			if err := s.dropDerived(ctx); err != nil {
				return r, err
			}
		}
		return r, s.forgetPending()
	}
	if err := s.dropDerived(ctx); err != nil {
		return r, err
	}
	if err := s.remember(ctx); err != nil {
		return r, err
	}
	if err := s.notePending(); err != nil {
		return r, err
	}
	ed := newEditor(s.scanner(), s.store.Blobs(), true)
	failed, err := s.rewriteStore(ctx, ed, r)
	if err != nil {
		return r, errors.Join(failed, err)
	}
	if err := s.search(ctx, r); err != nil {
		return r, errors.Join(failed, err)
	}
	done = true
	// Before the note goes: as long as it is there, somebody will do this.
	if err := s.dropDerived(ctx); err != nil {
		return r, errors.Join(failed, err)
	}
	if s.unsettled {
		return r, failed // the next redaction is to know of them
	}
	return r, errors.Join(failed, s.forgetPending())
}

// count says how many secrets were taken out: those of the logs and copies that were
// rewritten. What stands in a blob that nothing refers to is gone when all is done.
func (r *Receipt) count(secrets []Secret, done bool) {
	rewritten := make(map[string]bool) // paths have slashes, names of sessions have none
	for _, place := range slices.Concat(r.Copies, r.Sessions) {
		rewritten[place] = true
	}
	for _, secret := range secrets {
		place := cmp.Or(secret.File, secret.Session)
		if rewritten[place] || place == "" && done {
			r.Kinds[secret.Kind]++
		}
	}
}

func (s *Sweep) dropDerived(ctx context.Context) error {
	if s.opts.DropDerived == nil {
		return nil
	}
	return s.opts.DropDerived(ctx)
}

// rewriteStore writes new blobs, and rewrites everything that has a secret or names an
// old blob. The new blobs are held until all of that names them. failed is what
// went wrong with single logs, and does not keep the rest from being done.
func (s *Sweep) rewriteStore(ctx context.Context, ed *editor, r *Receipt) (failed, err error) {
	release, err := s.store.Blobs().Hold(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	failed = s.rewriteAll(ctx, ed, r)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	for old, b := range ed.known {
		if len(b.found) == 0 {
			continue
		}
		r.Blobs[old] = b.ref
		s.pending.add(old) // it may be of a line that was appended since
	}
	return failed, s.rewriteNotes(ctx, ed, r)
}

// rewriteAll rewrites the logs and the copies. One that fails does not keep the
// others from being written.
func (s *Sweep) rewriteAll(ctx context.Context, ed *editor, r *Receipt) error {
	var errs []error
	total := int64(len(s.logs) + len(s.copies))
	for i, name := range slices.Sorted(maps.Keys(s.logs)) {
		s.tell("replacing secrets", int64(i), total)
		if err := s.rewriteLog(ctx, name, ed); err != nil {
			errs = append(errs, err)
			continue
		}
		r.Sessions = append(r.Sessions, name)
	}
	for i, c := range s.copies {
		s.tell("replacing secrets", int64(len(s.logs)+i), total)
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

// rewriteNotes deals with what else the store's own directory has: notes about
// imports, which name blobs and remember what was read last.
func (s *Sweep) rewriteNotes(ctx context.Context, ed *editor, r *Receipt) error {
	return s.files(ctx, func(f file.Found) error {
		if f.Room != file.RoomNote || s.isOurs(f) {
			return nil
		}
		data, err := s.read(f)
		if err != nil {
			return err
		}
		cleaned := replaceKnown(ed.scan, data)
		for old, b := range r.Blobs {
			cleaned = bytes.ReplaceAll(cleaned, []byte(`"`+old+`"`), []byte(`"`+b+`"`))
		}
		if bytes.Equal(cleaned, data) {
			return nil
		}
		r.Copies = append(r.Copies, f.Path)
		return s.store.ReplaceFound(f, cleaned)
	})
}

// isOurs reports whether a note is one of a sweep's own.
func (s *Sweep) isOurs(f file.Found) bool {
	return f.Path == s.notes().Path(pendingName) || f.Path == s.notes().Path(listName)
}

func (s *Sweep) read(f file.Found) (data []byte, err error) {
	from, err := s.store.OpenFound(f)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	return io.ReadAll(from)
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

// files calls each with every regular file of the store.
func (s *Sweep) files(ctx context.Context, each func(f file.Found) error) error {
	for f, err := range s.store.Files(ctx) {
		if err == nil {
			err = ctx.Err()
		}
		if err == nil {
			err = each(f)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // removed meanwhile
			return err
		}
	}
	return nil
}

// sessionOf returns the session that a file belongs to, or "".
func (s *Sweep) sessionOf(f file.Found) string {
	if _, is := s.forms[f.Name]; !is || f.Room != file.RoomLog && f.Room != file.RoomArchive {
		return ""
	}
	return f.Name
}
