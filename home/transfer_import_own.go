package home

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/session/clean"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/vfs"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/bulk"
)

// FormatCoppice is the name of our own format for an import: every file that an export
// writes as JSON or JSONL, and every session file.
const FormatCoppice = "coppice"

// ownFormat imports session files in Coppice's own format.
func (h *Home) ownFormat(st store.Store, r *ImportRequest) *bulk.Own {
	var one sync.Mutex // the same session may be in several files
	return &bulk.Own{
		Name: FormatCoppice, Title: "Coppice", Only: r.Format == FormatCoppice,
		Detect: func(f *transcript.File) bool { return formOf(f) != ownNone },
		Import: func(ctx context.Context, from *transcript.File, to *bulk.File) error {
			one.Lock()
			defer one.Unlock()
			return h.importSession(ctx, st, r, from, to)
		},
	}
}

// importSession copies such a file into the store. The session and its entries
// keep their ids. As in every import, what must not be in the store is removed on the way.
func (h *Home) importSession(ctx context.Context, st store.Store, r *ImportRequest, f *transcript.File, to *bulk.File) (err error) {
	fail := func(err error, hint string) error {
		return &session.Error{Op: "import", Path: f.Path, Err: err, Hint: hint}
	}
	own, err := readOwn(ctx, f, to.Bytes)
	if err != nil {
		return fail(err, "")
	}
	defer func() { err = errors.Join(err, own.close()) }()
	copied, lost, err := h.copyOwn(ctx, own, besideBlobs(f, st), r.Redact)
	if err != nil {
		return fail(err, "")
	}
	defer copied.Close()
	if len(lost) > 0 {
		return fail(errors.New(listProblems(lost)), "export the session again with its content in it, or repair it where it came from")
	}
	there, fresh, err := h.compareOwn(ctx, st, copied)
	if err != nil {
		return fail(err, "")
	}
	if to.Unchanged = there && fresh == 0; !to.Unchanged && !r.DryRun {
		if err := h.publishOwn(ctx, st, copied, there); err != nil {
			return fail(err, "")
		}
	}
	name, _ := copied.Name()
	found := transcript.SessionReport{
		ID: copied.ID(), Key: copied.Header().Key, Title: name, Fidelity: []transcript.Fidelity{},
		ProblemCount: len(own.problems), Problems: own.problems[:min(len(own.problems), maxOwnProblems)],
	}
	to.Problems = len(own.problems)
	if found.Created = !there; there {
		found.New, found.Known = fresh, own.entries-fresh
	} else {
		found.New = own.entries
	}
	to.Sessions = append(to.Sessions, found)
	return nil
}

// maxOwnProblems is how many lines that cannot be read are listed.
const maxOwnProblems = 10

// ownFile is a file in Coppice's own format, opened as a session in a separate store.
type ownFile struct {
	*session.Session
	entries    int                  // that could be read
	problems   []transcript.Problem // what could not
	size       int64
	assemblies []assembly
}

func (f *ownFile) close() error {
	err := f.Close()
	for _, d := range f.assemblies {
		err = errors.Join(err, d.close())
	}
	return err
}

// assembly is a store in which a session is assembled: in memory or, if it is large, in temporary
// files.
type assembly struct {
	store.Store
	dir string // or "" if it is in memory
}

// maxPassing is the maximum size of an entry, in bytes, in a session that is assembled only
// to be read or written: whatever fits on a line of a file.
const maxPassing = transcript.MaxLine

// largeOwn is the size from which a session is assembled in files instead of memory.
const largeOwn = 8 << 20

// newAssembly opens a store that exists until the file is closed.
func (f *ownFile) newAssembly(ctx context.Context) (st store.Store, err error) {
	dir := ""
	if f.size >= largeOwn {
		if dir, err = os.MkdirTemp("", "coppice-import-"); err != nil {
			return nil, err
		}
	}
	if st, err = openScratch(ctx, dir); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	f.assemblies = append(f.assemblies, assembly{st, dir})
	return st, nil
}

func (d assembly) close() error {
	err := d.Close()
	if d.dir != "" {
		err = errors.Join(err, os.RemoveAll(d.dir))
	}
	return err
}

// readOwn reads such a file. It records lines that are not entries, and reads the rest.
func readOwn(ctx context.Context, f *transcript.File, size int64) (own *ownFile, err error) {
	if formOf(f) == ownNone {
		return nil, bulk.ErrNoFormat
	}
	own = &ownFile{size: size}
	defer func() {
		if err != nil {
			for _, d := range own.assemblies {
				err = errors.Join(err, d.close())
			}
		}
	}()
	st, err := own.newAssembly(ctx)
	if err != nil {
		return nil, err
	}
	name := ownHeader(f).ID
	log, err := st.Create(ctx, name, own.checked(ownLines(ctx, f)))
	if err != nil {
		return nil, err
	}
	if err := log.Close(); err != nil {
		return nil, err
	}
	own.Session, err = session.Open(ctx, st, name, nil)
	return own, err
}

// checked yields the lines of a log, and records those that are not entries. They are yielded
// too, because a session finds out from them where an entry is missing.
func (f *ownFile) checked(lines iter.Seq2[transcript.Line, error]) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		seen := make(map[string][sha256.Size]byte)
		first := true
		for line, err := range lines {
			if err != nil {
				yield(nil, err)
				return
			}
			if !first && !f.note(&line, seen) {
				continue
			}
			if first = false; !yield(line.Data, nil) {
				return
			}
		}
	}
}

// note inspects a line, and reports whether it belongs in the log.
func (f *ownFile) note(line *transcript.Line, seen map[string][sha256.Size]byte) bool {
	var e session.Entry
	bad := func(reason string) {
		f.problems = append(f.problems, transcript.Problem{Line: line.No, Pos: line.Pos, Reason: reason})
	}
	err := e.UnmarshalJSON(line.Data)
	sum := sha256.Sum256(line.Data)
	before, twice := seen[e.ID]
	switch {
	case err != nil && line.Torn:
		bad("the file ends in the middle of an entry")
		return false
	case err != nil || line.Cut:
		bad("it is not an entry")
		return true
	case e.Type == session.TypeGap:
		return false // it replaces nothing
	case e.Type == session.TypeSession:
		bad("it is a second header")
		return false
	case twice:
		if sum != before {
			bad(fmt.Sprintf("another entry has the id %s", e.ID))
		}
		return false
	}
	seen[e.ID] = sum
	f.entries++
	return true
}

// copyOwn copies a session, without what must not be in the home, and with its content from
// blobs. It returns what is missing.
func (h *Home) copyOwn(ctx context.Context, from *ownFile, blobs func(store.Ref) ([]byte, error), redacts bool) (copied *session.Session, lost []session.Problem, err error) {
	cleanEntry := func(e *session.Entry) error {
		if redacts {
			if _, err := clean.Entry(e); err != nil {
				return err
			}
		}
		return h.clean(ctx, e)
	}
	st, err := from.newAssembly(ctx)
	if err != nil {
		return nil, nil, err
	}
	entries := func(yield func(session.Entry, error) bool) {
		for e, err := range eachPeeked(ctx, from.Session) {
			if err == nil {
				e = e.Unsigned() // what waits in the file, or was allowed in it, is history here
				lost = append(lost, e.FillFrom(blobs)...)
			}
			if !yield(e, err) {
				return
			}
		}
	}
	o := &session.Options{Clean: cleanEntry, BlobThreshold: h.settings.blobThreshold()}
	copied, err = copyEntries(ctx, st, from.Session, entries, o)
	return copied, lost, err
}

// besideBlobs finds the content that a file refers to: in the home, or in the store that the
// file is in.
func besideBlobs(f *transcript.File, st store.Store) func(store.Ref) ([]byte, error) {
	return func(ref store.Ref) ([]byte, error) {
		data, err := st.Blobs().Get(context.Background(), ref)
		if err == nil || !filepath.IsAbs(f.Path) {
			return data, err
		}
		other := storeIn(context.Background(), filepath.Dir(f.Path))
		if other == nil {
			return data, err
		}
		defer other.Close()
		return other.Blobs().Get(context.Background(), ref)
	}
}

// compareOwn reports whether the store has a session already, and how many entries are new to
// it. If each has something that the other lacks, or an entry differs, that is
// store.ErrExist: it would be unclear which of them counts.
func (h *Home) compareOwn(ctx context.Context, st store.Store, s *session.Session) (there bool, fresh int, err error) {
	older, err := session.Open(ctx, st, s.ID(), nil)
	if errors.Is(err, session.ErrNotExist) {
		return false, 0, nil
	}
	if err != nil {
		return false, 0, err
	}
	defer older.Close()
	have, err := digests(ctx, older.WithContext(ctx))
	if err != nil {
		return true, 0, err
	}
	brought, err := digests(ctx, s.WithContext(ctx))
	if err != nil {
		return true, 0, err
	}
	other := func(how string) error {
		return &session.Error{
			Op: "create", Name: s.ID(), Kind: session.ErrExist, Err: errors.New("the store has a session with this id and other content: " + how),
			Hint: "remove or fork that one first",
		}
	}
	for id, sum := range brought {
		switch was, known := have[id]; {
		case !known:
			fresh++
		case was != sum:
			return true, 0, other(fmt.Sprintf("entry %s differs", id))
		}
	}
	if fresh == 0 {
		return true, 0, nil
	}
	next, err := h.continuedWith(ctx, s)
	switch {
	case next != "":
		return true, 0, other(fmt.Sprintf("session %s, which continues it, has some of its entries", next))
	case len(brought)-fresh < len(have):
		return true, 0, other("each has entries that the other does not have")
	}
	return true, fresh, err
}

// continuedWith returns the session of the same conversation that has entries of s, other than
// copies. Then s is the conversation written as one session, and adding its entries would double
// them.
func (h *Home) continuedWith(ctx context.Context, s *session.Session) (string, error) {
	chain, err := h.chainOf(ctx, s.ID())
	if err != nil {
		return "", err
	}
	var ours []string
	before, theirs := make(map[string]bool), make(map[string]string) // entries: theirs with their sessions
	for _, link := range chain.Links {
		if link == s.ID() {
			if _, ours, err = ownIDs(s, before); err != nil {
				return "", err
			}
		}
		c, err := h.openSession(ctx, link, session.Linked{})
		if err != nil {
			return "", err
		}
		beginning, own, err := ownIDs(c.Session, before)
		if err = errors.Join(err, c.Close()); err != nil {
			return "", err
		}
		for _, id := range own {
			before[id] = true
			if link != s.ID() {
				theirs[id] = link
			}
		}
		for _, id := range beginning { // an original may be lost
			before[id] = true
		}
	}
	for _, id := range ours {
		if link := theirs[id]; link != "" {
			return link, nil
		}
	}
	return "", nil
}

// ownIDs returns the ids of the entries of a session, those that it begins with as a continuation
// apart. If its marker is lost, these are what the sessions before it have, too: see
// docs/format.md, 8.2.
func ownIDs(s *session.Session, before map[string]bool) (beginning, own []string, err error) {
	shape, err := s.Shape()
	if err != nil {
		return nil, nil, err
	}
	ids := shape.IDs()
	if s.Header().Relation != session.RelationContinuation {
		return nil, ids, nil
	}
	types := make([]session.EntryType, len(ids))
	for i := range ids {
		types[i] = shape.Type(int32(i))
	}
	first := slices.Index(types, session.TypeContinues)
	for i := 0; i < len(ids) && first < 0; i++ {
		if !before[ids[i]] && types[i] != session.TypeLeaf && types[i] != session.TypeGap {
			first = i
		}
	}
	for i, id := range ids {
		isCopy := i < first || first < 0
		if isCopy || types[i] == session.TypeGap && before[id] { // missing entries come last
			beginning = append(beginning, id)
		} else {
			own = append(own, id)
		}
	}
	return beginning, own, nil
}

// digests returns the sums of the entries of a session by their ids, wherever their content
// is. Entries that only move the leaf are not in it.
func digests(ctx context.Context, s *session.Session) (map[string][sha256.Size]byte, error) {
	sums := make(map[string][sha256.Size]byte)
	for e, err := range eachPeeked(ctx, s) {
		if err != nil {
			return nil, err
		}
		if e.Type == session.TypeLeaf || e.Type == session.TypeGap {
			continue
		}
		e = e.Unsigned()
		s.Fill(&e) // if something is missing, it is not the same
		line, err := e.MarshalJSON()
		if err != nil {
			return nil, err
		}
		sums[e.ID] = sha256.Sum256(line)
	}
	return sums, nil
}

// publishOwn writes a session into the store, all of it or nothing. If the session exists, it
// adds what is new.
func (h *Home) publishOwn(ctx context.Context, st store.Store, s *session.Session, there bool) error {
	if !there {
		header := s.Header()
		copied, err := s.Fork(ctx, st, &session.ForkOptions{Header: &header})
		if err != nil {
			return err
		}
		return copied.Close()
	}
	older, err := session.Open(ctx, st, s.ID(), &session.Options{BlobThreshold: h.settings.blobThreshold()})
	if err != nil {
		return err
	}
	known := make(map[string]bool)
	shape, err := older.Shape()
	if err == nil {
		for _, id := range shape.IDs() {
			known[id] = true
		}
		err = graftAll(older.WithContext(ctx), s, func(yield func(session.Entry, error) bool) {
			for e, err := range eachPeeked(ctx, s) {
				if known[e.ID] {
					continue
				}
				s.Fill(&e) // nothing is missing: it was filled when it was read
				if !yield(e, err) {
					return
				}
			}
		})
	}
	if err == nil {
		err = moveLeaf(older, s)
	}
	return errors.Join(err, older.Close())
}

// readBack reads a file that an export has just written: it must have the bytes that were
// written, and an import must be able to read it, with the expected number of entries and all
// their content.
func readBack(ctx context.Context, path string, written hash.Hash, entries int) error {
	in, err := vfs.Open(path)
	if err != nil {
		return err
	}
	defer in.Close()
	read := sha256.New()
	if _, err := io.Copy(read, in); err != nil {
		return err
	}
	if !bytes.Equal(read.Sum(nil), written.Sum(nil)) {
		return errReadBack
	}
	f, err := transcript.OpenFile(path)
	if err != nil {
		return err
	}
	info, err := in.Stat()
	if err != nil {
		return err
	}
	own, err := readOwn(ctx, f, info.Size())
	if err != nil {
		return errors.Join(errReadBack, err)
	}
	defer own.close()
	for e, err := range eachPeeked(ctx, own.Session) {
		if err != nil {
			return err
		}
		if missing := own.Fill(&e); len(missing) > 0 {
			return errors.Join(errReadBack, missing[0])
		}
	}
	if n := own.entries + len(own.problems); n != entries {
		return fmt.Errorf("%w: it has %d entries and should have %d", errReadBack, n, entries)
	}
	return nil
}

// errReadBack means that a file is not what was written.
var errReadBack = errors.New("the file does not read back as it was written, so it was not kept")
