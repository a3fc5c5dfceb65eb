package coppice

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"path/filepath"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/session/clean"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/memory"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/all"
	"github.com/coppice-dev/coppice/transcript/bulk"
	"github.com/coppice-dev/coppice/transcript/discover"
)

// ownFormat is what an import calls our own session files.
const ownFormat = "coppice"

// isOwn reports whether a file is a session of ours. Other programs have similar
// headers, so a file that one of them may have written is theirs.
func isOwn(src discover.Source) bool {
	if src.Err != nil || src.Format != nil || filepath.Ext(src.Path) != ".jsonl" {
		return false
	}
	f, err := transcript.OpenFile(src.Path)
	if err != nil {
		return false
	}
	line, _, _ := bytes.Cut(f.Head(), []byte("\n"))
	var header session.Header
	return json.Unmarshal(line, &header) == nil && header.Type == session.TypeSession && header.Version == session.Version &&
		store.CheckName(header.ID) == nil && !header.CreatedAt.IsZero() && all.Detect(f) == nil
}

// importOwn brings session files of ours into the store, and takes them off the list of
// sources. It adds what became of them to the result.
func (h *Home) importOwn(ctx context.Context, st *file.Store, r *ImportRequest, sources []discover.Source, result *ImportResult) (rest []discover.Source, err error) {
	var total ImportTotal
	for _, src := range sources {
		if r.Format != "" || !isOwn(src) {
			rest = append(rest, src)
			continue
		}
		f := h.importSession(ctx, st, r, src)
		total.Files++
		total.Bytes += f.Bytes
		switch {
		case f.Err != nil:
			f.Error = f.Err.Error()
			total.Failed++
			result.Failures = append(result.Failures, f)
		case f.Unchanged:
			total.Unchanged++
		default:
			total.Sessions++
			total.Entries += f.New()
		}
		if r.Each != nil {
			if err := r.Each(f); err != nil {
				return nil, err
			}
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	if total.Files > 0 {
		result.ByFormat = append(result.ByFormat, bulk.FormatTotal{Format: ownFormat, Title: "Coppice", Total: total})
	}
	return rest, nil
}

// addOwn puts what became of our own files before what became of others.
func addOwn(result, own *ImportResult) {
	result.ByFormat = append(own.ByFormat, result.ByFormat...)
	result.Failures = append(own.Failures, result.Failures...)
	for _, t := range own.ByFormat {
		result.Files += t.Files
		result.Bytes += t.Bytes
		result.Unchanged += t.Unchanged
		result.Sessions += t.Sessions
		result.Entries += t.Entries
		result.Failed += t.Failed
	}
}

// importSession copies a session file of ours into the store. The session and its entries
// keep their ids. What must not be in the store is taken out on the way, as from
// everything that is imported.
func (h *Home) importSession(ctx context.Context, st *file.Store, r *ImportRequest, src discover.Source) *ImportedFile {
	f := &ImportedFile{Path: src.Path, Format: ownFormat, Bytes: src.Size, Sessions: []ImportedSession{}}
	fail := func(err error, hint string) *ImportedFile {
		f.Err = &session.Error{Op: "import", Path: src.Path, Err: err, Hint: hint}
		return f
	}
	from, err := readOwn(ctx, src.Path)
	if err != nil {
		return fail(err, "export the session again with its content in it, or repair it where it is from")
	}
	defer from.Close()
	copied, n, err := h.copyOwn(ctx, from, r.Redact)
	if err != nil {
		return fail(err, "")
	}
	defer copied.Close()
	same, err := sameAs(ctx, st, copied)
	switch {
	case err != nil:
		return fail(err, "")
	case same:
		f.Unchanged = true
		return f
	case !r.DryRun:
		if err := publishOwn(ctx, st, copied); err != nil {
			return fail(err, "")
		}
	}
	name, _ := copied.Name()
	f.Sessions = append(f.Sessions, ImportedSession{ID: copied.ID(), Key: copied.Header().Key, Title: name, Created: true, New: n, Fidelity: []transcript.Fidelity{}})
	return f
}

// readOwn reads a session file of ours into memory. A damaged one is refused: what is
// damaged in it would be lost.
func readOwn(ctx context.Context, path string) (*session.Session, error) {
	f, err := transcript.OpenFile(path)
	if err != nil {
		return nil, err
	}
	data, err := f.ReadAll()
	if err != nil {
		return nil, err
	}
	lines := bytes.Split(bytes.TrimSuffix(data, []byte("\n")), []byte("\n"))
	var header session.Header
	if err := json.Unmarshal(lines[0], &header); err != nil {
		return nil, err
	}
	st := memory.New(nil)
	log, err := st.Create(ctx, header.ID, func(yield func([]byte, error) bool) {
		for _, line := range lines {
			if !yield(line, nil) {
				return
			}
		}
	})
	if err != nil {
		return nil, err
	}
	if err := log.Close(); err != nil {
		return nil, err
	}
	s, err := session.Open(ctx, st, header.ID, nil)
	if err != nil {
		return nil, err
	}
	problems, err := s.Problems()
	for _, p := range problems {
		switch p.Kind {
		case session.ProblemHeader, session.ProblemDamaged, session.ProblemDuplicate, session.ProblemBlob:
			err = errors.Join(err, p)
		}
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// copyOwn copies a session without what must not be in the home, and counts its entries.
func (h *Home) copyOwn(ctx context.Context, from *session.Session, redacts bool) (copied *session.Session, n int, err error) {
	cleanEntry := func(e *session.Entry) error {
		n++
		if redacts {
			if _, err := clean.Entry(e); err != nil {
				return err
			}
		}
		return h.clean(e)
	}
	copied, err = session.Create(ctx, memory.New(nil), from.Header(), &session.Options{Clean: cleanEntry, BlobThreshold: -1})
	if err != nil {
		return nil, 0, err
	}
	if err := graftAll(copied.WithContext(ctx), from.WithContext(ctx)); err != nil {
		return nil, 0, errors.Join(err, copied.Close())
	}
	if leaf := from.LeafID(); leaf != "" && leaf != copied.LeafID() {
		if err := copied.Branch(leaf); err != nil {
			return nil, 0, errors.Join(err, copied.Close())
		}
	}
	return copied, n, nil
}

// sameAs reports whether the store has a session already, with all its entries. Another
// one of the same id is store.ErrExist.
func sameAs(ctx context.Context, st *file.Store, s *session.Session) (bool, error) {
	there, err := session.Open(ctx, st, s.ID(), nil)
	if errors.Is(err, session.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer there.Close()
	have := make(map[string][]byte)
	for e, err := range there.WithContext(ctx).Entries() {
		if err != nil {
			return false, err
		}
		if have[e.ID], err = json.Marshal(e); err != nil {
			return false, err
		}
	}
	for e, err := range s.WithContext(ctx).Entries() {
		if err != nil {
			return false, err
		}
		line, err := json.Marshal(e)
		if err != nil {
			return false, err
		}
		if e.Type != session.TypeLeaf && !bytes.Equal(line, have[e.ID]) {
			return false, &session.Error{
				Op: "create", Name: s.ID(), Kind: session.ErrExist, Err: errors.New("the store has a session of this id with other content"),
				Hint: "remove or fork that one first",
			}
		}
	}
	return true, nil
}

// publishOwn writes a session into the store: all of it, or nothing.
func publishOwn(ctx context.Context, st *file.Store, s *session.Session) error {
	log, err := st.Create(ctx, s.ID(), linesOf(ctx, s))
	if err != nil {
		return err
	}
	return log.Close()
}

// linesOf yields the lines of a session as its log has them.
func linesOf(ctx context.Context, s *session.Session) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		header, err := json.Marshal(s.Header())
		if !yield(header, err) || err != nil {
			return
		}
		for e, err := range s.WithContext(ctx).Entries() {
			var line []byte
			if err == nil {
				line, err = json.Marshal(e)
			}
			if !yield(line, err) || err != nil {
				return
			}
		}
	}
}
