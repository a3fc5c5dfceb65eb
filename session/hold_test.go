package session_test

import (
	"bytes"
	"context"
	"iter"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/memory"
)

// holdWatch is a store that notes when a blob is put, or a line that names one is
// written, without a hold that began before.
type holdWatch struct {
	store.Store
	t     testing.TB
	holds atomic.Int64 // now
	taken atomic.Int64 // in all
	named atomic.Int64
}

func newHoldWatch(t testing.TB) *holdWatch { return &holdWatch{Store: memory.New(nil), t: t} }

func (w *holdWatch) check(what string) {
	if w.holds.Load() == 0 {
		w.t.Errorf("%s without a hold", what)
	}
}

func (w *holdWatch) checkLines(what string, lines ...[]byte) {
	for _, line := range lines {
		if bytes.Contains(line, []byte(`"sha256:`)) {
			w.named.Add(1)
			w.check(what)
		}
	}
}

func (w *holdWatch) Blobs() store.Blobs { return watchedBlobs{w.Store.Blobs(), w} }

func (w *holdWatch) Create(ctx context.Context, name string, lines iter.Seq2[[]byte, error]) (store.Log, error) {
	return w.created(ctx, w.Store.Create, name, lines)
}

func (w *holdWatch) CreateCopy(ctx context.Context, name string, lines iter.Seq2[[]byte, error], of store.Log) (store.Log, error) {
	return w.created(ctx, func(ctx context.Context, name string, lines iter.Seq2[[]byte, error]) (store.Log, error) {
		return w.Store.CreateCopy(ctx, name, lines, of)
	}, name, lines)
}

type creation = func(ctx context.Context, name string, lines iter.Seq2[[]byte, error]) (store.Log, error)

func (w *holdWatch) created(ctx context.Context, create creation, name string, lines iter.Seq2[[]byte, error]) (store.Log, error) {
	log, err := create(ctx, name, func(yield func([]byte, error) bool) {
		for line, err := range lines {
			w.checkLines("a log is created", line)
			if !yield(line, err) {
				return
			}
		}
	})
	if log != nil {
		for line := range log.Forward(ctx, 0) {
			w.checkLines("a log is published", line.Data)
		}
		log = watchedLog{log, w}
	}
	return log, err
}

func (w *holdWatch) Open(ctx context.Context, name string) (store.Log, error) {
	log, err := w.Store.Open(ctx, name)
	return watchedLog{log, w}, err
}

type watchedBlobs struct {
	store.Blobs
	w *holdWatch
}

func (b watchedBlobs) Hold(ctx context.Context) (func(), error) {
	release, err := b.Blobs.Hold(ctx)
	b.w.holds.Add(1)
	b.w.taken.Add(1)
	var once atomic.Bool
	return func() {
		if !once.Swap(true) {
			b.w.holds.Add(-1)
		}
		release()
	}, err
}

func (b watchedBlobs) Put(ctx context.Context, data []byte) (store.Ref, error) {
	b.w.check("a blob is put")
	return b.Blobs.Put(ctx, data)
}

type watchedLog struct {
	store.Log
	w *holdWatch
}

func (l watchedLog) Start(ctx context.Context, at store.Pos, lines ...[]byte) (store.Pos, func() error, error) {
	end, commit, err := l.Log.Start(ctx, at, lines...)
	l.w.checkLines("a line is appended", lines...)
	return end, commit, err
}

// Whoever writes a line that names a blob has a hold from before the blob is put
// until the line is written, and gives it back. Without blobs nobody needs one.
func TestWhatNamesABlobIsHeld(t *testing.T) {
	output := strings.Repeat("output ", 10_000)
	result := func(id string) []session.Content { return []session.Content{session.ToolResult(id, output, false)} }
	entry := func(id string) session.Entry {
		return session.Message("tool", result(id)...)
	}
	ways := map[string]func(t *testing.T, s *session.Session, w *holdWatch) error{
		"append": func(_ *testing.T, s *session.Session, _ *holdWatch) error { return s.Append(entry("c")) },
		"append message": func(_ *testing.T, s *session.Session, _ *holdWatch) error {
			_, err := s.AppendMessage(session.RoleTool, result("c"))
			return err
		},
		"append all": func(_ *testing.T, s *session.Session, _ *holdWatch) error {
			_, err := s.AppendAll(entry("c"), entry("d"))
			return err
		},
		"graft": func(t *testing.T, s *session.Session, _ *holdWatch) error {
			e := entry("c")
			e.ID, e.Timestamp = "grafted", s.Header().CreatedAt
			return s.Graft(e)
		},
		"edit": func(_ *testing.T, s *session.Session, _ *holdWatch) error {
			_, err := s.AppendEntry(session.ContextEdit(s.LeafID(), result("c")...))
			return err
		},
		"continue": func(_ *testing.T, s *session.Session, _ *holdWatch) error {
			_, err := s.Continue(entry("c"))
			return err
		},
		"fork": func(t *testing.T, s *session.Session, w *holdWatch) error {
			_, err := s.Fork(t.Context(), w, nil)
			return err
		},
		"fork into another store": func(t *testing.T, s *session.Session, w *holdWatch) error {
			other := newHoldWatch(t)
			_, err := s.Fork(t.Context(), other, nil)
			w.named.Add(other.named.Load())
			if other.holds.Load() != 0 {
				t.Error("the other store's blobs are still held")
			}
			return err
		},
		"branch": func(_ *testing.T, s *session.Session, _ *holdWatch) error {
			_, err := s.CreateBranchedSession(s.LeafID())
			return err
		},
	}
	for name, do := range ways {
		t.Run(name, func(t *testing.T) {
			w := newHoldWatch(t)
			s, err := session.Create(t.Context(), w, session.Header{}, nil)
			noError(t, err)
			say(t, s, session.RoleUser, "a small one")
			if w.taken.Load() > 0 {
				t.Error("an append without blobs took a hold")
			}
			_, err = s.AppendMessage(session.RoleTool, result("a"))
			noError(t, err)
			before := w.named.Load()
			noError(t, do(t, s, w))
			if w.named.Load() == before {
				t.Error("nothing that names a blob was written")
			}
			if w.holds.Load() != 0 {
				t.Error("the blobs are still held")
			}
		})
	}
}

// A hold that cannot be had refuses the append, and nothing is written.
func TestAppendWithoutAHold(t *testing.T) {
	w := newHoldWatch(t)
	s, err := session.Create(t.Context(), w, session.Header{}, nil)
	noError(t, err)
	leaf := say(t, s, session.RoleUser, "before")
	noError(t, w.Store.Close())
	if _, err := s.AppendMessage(session.RoleTool, []session.Content{session.ToolResult("c", strings.Repeat("x", 1<<20), false)}); err == nil {
		t.Error("appended")
	}
	if s.LeafID() != leaf {
		t.Error("the leaf moved")
	}
}
