package clean

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/coppice-dev/coppice/redact"
	"github.com/coppice-dev/coppice/store"
)

// Receipt says what Apply did.
type Receipt struct {
	Time     time.Time      `json:"time"`
	Kinds    map[string]int `json:"kinds"`    // how often secrets of each kind were taken out
	Sessions []string       `json:"sessions"` // the logs that were rewritten
	Copies   []string       `json:"copies"`   // the places of copies and notes that were rewritten
	// Blobs are the replaced blobs with their new names. Removed are the places of what was
	// deleted: the old blobs, and temporary files that were left behind.
	Blobs   map[store.Ref]store.Ref `json:"blobs"`
	Removed []string                `json:"removed"`
	// Left are the places that still have, or may have, one of the secrets, among all that
	// were searched. Searched are these: the store first. A
	// caller that keeps something elsewhere, such as an index, adds its own.
	Left     []Left   `json:"left"`
	Searched []string `json:"searched"`
}

// Left is a place that still has a secret, and why.
type Left struct {
	Path    string `json:"path"`
	Session string `json:"session,omitempty"`
	Why     string `json:"why"`
}

// Apply takes out what Look has found. It writes new blobs, then rewrites the logs and
// the copies that refer to them, each so that a crash leaves the old file or the new
// one, and then deletes the old blobs if nothing else refers to them. Finally it
// searches every part of the store except the index, and lists in the receipt where a
// secret is left. If Apply or the machine fails, looking and applying again does the
// rest, except for copies that were recognised only by their value. There is no receipt if it
// fails before it has replaced anything, such as where the store may only be read.
//
// The order of the steps is what makes that safe:
//
//   - The index goes first, so that an interrupted sweep leaves none with a secret.
//   - The list of digests comes before the first change: from then on nothing comes back.
//   - The note of what is pending is written before the first change and removed after the last,
//     so that a later run finishes the changes that a crash interrupted.
//   - New blobs come before the lines that name them, and old blobs go only after no line does.
//   - The index goes once more before the note does, because a reader may have built one from a
//     log that still had the secret.
//
// Sessions that are open must be opened again. Without DropDerived, the caller must
// delete the index after Apply has returned.
func (s *Sweep) Apply(ctx context.Context) (*Receipt, error) {
	r := &Receipt{
		Time: time.Now().UTC(), Kinds: make(map[string]int), Sessions: []string{}, Copies: []string{},
		Blobs: make(map[store.Ref]store.Ref), Removed: []string{}, Left: append([]Left{}, s.Unread...), Searched: []string{s.store.Where()},
	}
	done := false
	defer func() { r.count(s.Secrets, done) }()
	if len(s.secrets) == 0 && len(s.pending.Blobs) == 0 {
		if !s.begun {
			return r, nil
		}
		// Perhaps only the last deletion of the index is missing.
		if err := s.dropDerived(ctx); err != nil {
			return nil, err
		}
		return r, s.forgetPending(ctx)
	}
	if err := s.dropDerived(ctx); err != nil {
		return nil, err
	}
	if err := s.remember(context.WithoutCancel(ctx)); err != nil {
		return nil, err
	}
	if err := s.notePending(context.WithoutCancel(ctx)); err != nil {
		return nil, err
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
	// Before the note goes: as long as it is there, the next writer repeats this.
	if err := s.dropDerived(ctx); err != nil {
		return r, errors.Join(failed, err)
	}
	if s.unsettled {
		return r, failed // keep the note: the next redaction must know about those blobs
	}
	return r, errors.Join(failed, s.forgetPending(ctx))
}

// count counts the secrets that were taken out: those in logs and copies that were
// rewritten. Secrets in blobs that nothing refers to are gone once everything is done.
func (r *Receipt) count(secrets []Secret, done bool) {
	rewritten := make(map[string]bool) // paths and names of sessions cannot collide: only paths have slashes
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
// old blob. It holds the new blobs until everything names them. failed is what went
// wrong with single logs; the rest is done anyway.
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
		s.pending.add(old) // it may belong to a line that was appended since
	}
	return failed, s.rewriteNotes(ctx, ed, r)
}

// rewriteAll rewrites the logs and the copies. If one fails, the others are still rewritten.
func (s *Sweep) rewriteAll(ctx context.Context, ed *editor, r *Receipt) error {
	var errs []error
	total := int64(len(s.logs) + len(s.copies))
	for i, name := range slices.Sorted(maps.Keys(s.logs)) {
		s.report("replacing secrets", int64(i), total)
		if err := s.rewriteLog(ctx, name, ed); err != nil {
			errs = append(errs, err)
			continue
		}
		r.Sessions = append(r.Sessions, name)
	}
	for i, c := range s.copies {
		s.report("replacing secrets", int64(len(s.logs)+i), total)
		if err := s.rewriteCopy(ctx, c, ed); err != nil {
			errs = append(errs, err)
			continue
		}
		r.Copies = append(r.Copies, c.Place)
	}
	return errors.Join(errs...)
}

// rewriteCopy replaces the secrets in a copy. A copy that has vanished has none.
func (s *Sweep) rewriteCopy(ctx context.Context, c store.Part, ed *editor) error {
	err := s.store.Parts().Edit(ctx, c, func(line []byte) ([]byte, error) {
		e, err := ed.edit(ctx, line)
		return e.line, err
	})
	if errors.Is(err, store.ErrNotExist) {
		return nil
	}
	return err
}

// rewriteNotes handles the notes of other parts of the program: those about imports name
// blobs and remember what was read last.
func (s *Sweep) rewriteNotes(ctx context.Context, ed *editor, r *Receipt) error {
	clean := func(line []byte) []byte {
		line = replaceKnown(ed.scan, line)
		for old, b := range r.Blobs {
			line = bytes.ReplaceAll(line, []byte(`"`+old+`"`), []byte(`"`+b+`"`))
		}
		return line
	}
	return s.parts(ctx, func(p store.Part) error {
		if p.Kind != store.PartNote || isOurs(p) {
			return nil
		}
		from, err := s.store.Parts().Open(ctx, p)
		if err != nil {
			return err
		}
		data, err := io.ReadAll(from)
		if err := errors.Join(err, from.Close()); err != nil || bytes.Equal(clean(data), data) {
			return err
		}
		r.Copies = append(r.Copies, p.Place)
		return s.store.Parts().Edit(ctx, p, func(line []byte) ([]byte, error) { return clean(line), nil })
	})
}

// isOurs reports whether a part is a note of sweeps themselves.
func isOurs(p store.Part) bool {
	return p.Kind == store.PartNote && (p.Name == store.PendingNote || p.Name == store.RedactedNote)
}

// replaceKnown replaces secrets that were found elsewhere. It does not use the rules, because a
// file of another part of the program may contain secrets that it needs.
func replaceKnown(s *redact.Scanner, data []byte) []byte {
	var out []byte
	done := 0
	for _, f := range s.Known(data) {
		out = append(append(out, data[done:f.Start]...), redact.Replacement(f.Kind)...)
		done = f.End
	}
	return append(out, data[done:]...)
}

// parts calls each with every part of the store.
func (s *Sweep) parts(ctx context.Context, each func(p store.Part) error) error {
	for p, err := range s.store.Parts().All(ctx) {
		if err == nil {
			err = ctx.Err()
		}
		if err == nil {
			err = each(p)
		}
		if err != nil && !errors.Is(err, store.ErrNotExist) { // removed meanwhile
			return err
		}
	}
	return nil
}

// sessionOf returns the session that a part belongs to, or "".
func (s *Sweep) sessionOf(p store.Part) string {
	if !s.listed[p.Name] || p.Kind != store.PartLog {
		return ""
	}
	return p.Name
}
