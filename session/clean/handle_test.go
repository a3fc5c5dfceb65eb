package clean_test

import (
	"errors"
	"io"
	"iter"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/session/clean"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/memory"
	"github.com/coppice-dev/coppice/store/vfs"
	"github.com/coppice-dev/coppice/store/vfs/vfstest"
)

// Whoever had a session open when it was redacted, or removed and redacted in the
// trash, cannot copy it any more: not into the same store, nor into another.
func TestOldHandlesBringNothingBack(t *testing.T) {
	t.Parallel()
	for _, removed := range []bool{false, true} {
		f := newFixture(t)
		secret := token(1)
		f.session("one", message("first"), message("key "+secret))
		s, err := session.Open(t.Context(), f.st, "one", nil)
		f.must(err)
		defer s.Close()
		entries, err := s.GetContext() // all of it is in the handle's memory
		f.must(err)
		shape, err := s.Shape()
		f.must(err)
		if removed {
			f.must(f.st.Remove(t.Context(), "one"))
		}
		f.apply(f.look())
		other := memory.New(nil)
		for name, do := range map[string]func() error{
			"fork":              func() error { _, err := s.Fork(t.Context(), f.st, nil); return err },
			"fork elsewhere":    func() error { _, err := s.Fork(t.Context(), other, nil); return err },
			"branch":            func() error { _, err := s.CreateBranchedSession(s.LeafID()); return err },
			"continue":          func() error { _, err := s.Continue(entries...); return err },
			"continue nothing":  func() error { _, err := s.Continue(); return err },
			"append":            func() error { _, err := s.AppendAll(message("more")); return err },
			"graft":             func() error { e := entries[1]; e.ID = "new"; return s.Graft(e) },
			"refresh":           func() error { _, err := s.Refresh(); return ignoreIf(removed, err, session.ErrNotExist) },
			"read all of it":    func() error { return ignoreIf(removed, readAll(s), session.ErrNotExist) },
			"open and fork it":  func() error { return forkAgain(t, f.st, removed, secret) },
			"read an entry":     func() error { _, err := s.Entry(entries[1].ID); return ignoreIf(removed, err, session.ErrNotExist) },
			"look at an entry":  func() error { _, err := s.Peek(entries[1].ID); return ignoreIf(removed, err, session.ErrNotExist) },
			"read the path":     func() error { _, err := s.Forward(""); return ignoreIf(removed, err, session.ErrNotExist) },
			"read by numbers":   func() error { return ignoreIf(removed, firstError(shape.Entries([]int32{1})), session.ErrNotExist) },
			"ask for a context": func() error { _, err := s.GetContext(); return ignoreIf(removed, err, session.ErrNotExist) },
			"describe the path": func() error { _, err := s.GetTree(); return ignoreIf(removed, err, session.ErrNotExist) },
		} {
			err := do()
			want := session.ErrReplaced
			if removed {
				want = session.ErrNotExist
			}
			if !errors.Is(err, want) {
				t.Errorf("removed %v: %s gets %v, want %v", removed, name, err, want)
			}
		}
		if where := grep(t, f.st.Where(), secret); len(where) > 0 {
			t.Errorf("removed %v: it is back in %v", removed, where)
		}
		for stat, err := range other.List(t.Context()) {
			t.Errorf("removed %v: the other store has %q, %v", removed, stat.Name, err)
		}
	}
}

// ignoreIf replaces an outcome by another where any is right: what was removed may
// still be read by who has it open.
func ignoreIf(any bool, err, by error) error {
	if any {
		return by
	}
	return err
}

func readAll(s *session.Session) error { return firstError(s.Entries()) }

func firstError(entries iter.Seq2[session.Entry, error]) error {
	for _, err := range entries {
		if err != nil {
			return err
		}
	}
	return nil
}

// forkAgain forks a session as it is now, which is right.
func forkAgain(t *testing.T, st *file.Store, removed bool, secret string) error {
	if removed {
		return session.ErrNotExist
	}
	s, err := session.Open(t.Context(), st, "one", nil)
	if err != nil {
		return err
	}
	defer s.Close()
	forked, err := s.Fork(t.Context(), st, nil)
	if err != nil {
		return err
	}
	defer forked.Close()
	for e, err := range forked.Entries() {
		if err != nil {
			return err
		}
		if strings.Contains(e.Message.Content[0].Text.Content, secret) {
			t.Error("the fork has the secret")
		}
	}
	return session.ErrReplaced // what the others get
}

// A session is redacted at any moment while it is being copied: the copy does not
// appear, or the redaction finds it.
func TestRedactedWhileItIsCopied(t *testing.T) {
	t.Parallel()
	secret := token(2)
	moments := 0
	for at := 1; ; at++ {
		disk := vfstest.NewMemory()
		st := openAt(t, disk)
		f := &fixture{t, st, session.Options{}}
		f.session("one", message("first"), message("key "+secret))
		var receipt *clean.Receipt
		n, began := 0, false
		faulty := &vfstest.Faulty{FS: disk, Before: func(op vfstest.Op) error {
			if !began || receipt != nil || op.Kind&(vfstest.OpMutating|vfstest.OpLock|vfstest.OpUnlock) == 0 {
				return nil
			}
			if n++; n == at {
				receipt = &clean.Receipt{} // do not come here again
				sweeper := openAt(t, disk)
				defer sweeper.Close()
				sweep, err := clean.Look(t.Context(), sweeper, "one")
				if err == nil {
					receipt, err = sweep.Apply(t.Context())
				}
				if errors.Is(err, store.ErrLocked) {
					receipt = nil // the copy holds it: try a moment later
					n--
					at++
					return nil
				}
				f.must(err)
			}
			return nil
		}}
		copier := openAt(t, faulty)
		s, err := session.Open(t.Context(), copier, "one", nil)
		f.must(err)
		began = true
		forked, err := s.Fork(t.Context(), copier, nil)
		began = false
		if err == nil {
			f.must(forked.Close())
		} else if !errors.Is(err, session.ErrReplaced) {
			t.Fatalf("at operation %d the copy gets %v", at, err)
		}
		_ = s.Close()
		if receipt == nil {
			break // the copy was made before its time came
		}
		moments++
		has := hasText(t, disk, secret)
		for _, path := range has {
			if !slices.ContainsFunc(receipt.Left, func(l clean.Left) bool { return l.Path == path }) {
				t.Errorf("at operation %d: %s has the secret, and the receipt does not say so", at, path)
			}
		}
	}
	if moments < 5 {
		t.Errorf("only %d moments were tried", moments)
	}
}

func openAt(t *testing.T, disk vfs.FS) *file.Store {
	t.Helper()
	st, err := file.Open("/store", &file.Options{FS: disk, LockWait: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	return st
}

// hasText returns the files of a store in memory that have one of some texts.
func hasText(t *testing.T, disk vfs.FS, texts ...string) []string {
	t.Helper()
	st := openAt(t, disk)
	var found []string
	for f, err := range st.Parts().All(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		content := readFound(t, st, f)
		if slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(content, text) }) {
			found = append(found, filepath.Clean(f.Place))
		}
	}
	return found
}

func readFound(t *testing.T, st *file.Store, f store.Part) string {
	t.Helper()
	from, err := st.Parts().Open(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	data, err := io.ReadAll(from)
	if err != nil {
		t.Fatal(err)
	}
	if len(data) > 4 && data[0] == 0x28 && data[1] == 0xb5 {
		return unpack(t, data)
	}
	return string(data)
}
