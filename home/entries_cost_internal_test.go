package home

import (
	"context"
	"errors"
	"io/fs"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coppice-dev/coppice/internal/pool"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/vfs"
)

// countedStore is a store that counts what an operation costs.
type countedStore struct {
	store.Store
	opens, writes int
}

func (c *countedStore) Unwrap() store.Store { return c.Store }

func (c *countedStore) Open(ctx context.Context, name string) (store.Log, error) {
	c.opens++
	log, err := c.Store.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	return &countedLog{log, c}, nil
}

type countedLog struct {
	store.Log
	c *countedStore
}

func (l *countedLog) Start(ctx context.Context, at store.Pos, lines ...[]byte) (store.Pos, func() error, error) {
	l.c.writes++
	return l.Log.Start(ctx, at, lines...)
}

func (l *countedLog) Append(ctx context.Context, at store.Pos, lines ...[]byte) (store.Pos, error) {
	l.c.writes++
	return l.Log.Append(ctx, at, lines...)
}

// An operation on one session opens its log once and waits for the disk once. An append leaves it
// open for the next one.
func TestAnOperationOpensTheLogOnce(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	settings, err := LoadSettings(func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	for _, where := range []string{t.TempDir(), "mem:"} {
		h, err := Open(ctx, where, &Options{Settings: settings, Create: true})
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		s, err := session.Create(ctx, h.store, session.Header{ID: "s"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for range 50 {
			id, err := s.AppendMessage(session.RoleUser, []session.Content{session.Text("a message")})
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, id)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		counted := &countedStore{Store: h.store}
		h.store = counted
		message := &session.MessageEntry{Role: session.RoleUser, Content: []session.Content{session.Text("more")}}
		for n := range 3 {
			counted.opens, counted.writes = 0, 0
			if _, err := h.Entries.Append(ctx, AppendRequest{Session: "s", Message: message}); err != nil {
				t.Error(err)
			}
			if first := n == 0; counted.opens > 0 != first || counted.opens > 1 || counted.writes != 1 {
				t.Errorf("append %d in %s opened the log %d times and wrote %d times", n+1, where, counted.opens, counted.writes)
			}
		}
		compaction := ""
		for _, op := range []struct {
			name string
			run  func() error
		}{
			{"label", func() error {
				_, err := h.Entries.Label(ctx, LabelRequest{Session: "s", Entry: ids[3], Label: "here"})
				return err
			}},
			{"compact", func() error {
				r, err := h.Entries.Compact(ctx, CompactRequest{Session: "s", Summary: "what was said", FirstKept: ids[40]})
				if err == nil {
					compaction = r.Entry
				}
				return err
			}},
			{"revert", func() error {
				_, err := h.Entries.Revert(ctx, RevertRequest{Session: "s", Entry: compaction})
				return err
			}},
			{"branch", func() error {
				_, err := h.Entries.Branch(ctx, BranchRequest{Session: "s", Entry: ids[10]})
				return err
			}},
			{"merge", func() error {
				_, err := h.Entries.Merge(ctx, MergeRequest{Session: "s", From: ids[20], Summary: "what the other branch found"})
				return err
			}},
			{"tag", func() error {
				_, err := h.Sessions.Tag(ctx, TagRequest{Session: "s", Add: []string{"work"}})
				return err
			}},
		} {
			counted.opens, counted.writes = 0, 0
			if err := op.run(); err != nil {
				t.Errorf("%s: %v", op.name, err)
			}
			if counted.opens != 1 || counted.writes != 1 {
				t.Errorf("%s in %s opened the log %d times and wrote %d times; want once each", op.name, where, counted.opens, counted.writes)
			}
		}
	}
}

// countedFS counts how often the disk is waited for.
type countedFS struct {
	vfs.FS
	syncs, dirSyncs atomic.Int64
}

func (c *countedFS) OpenFile(name string, flag int, perm fs.FileMode) (vfs.File, error) {
	f, err := c.FS.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return &countedFile{f, c}, nil
}

func (c *countedFS) SyncDir(dir string) error {
	c.dirSyncs.Add(1)
	return c.FS.SyncDir(dir)
}

type countedFile struct {
	vfs.File
	c *countedFS
}

func (f *countedFile) Sync() error {
	f.c.syncs.Add(1)
	return f.File.Sync()
}

// brokenStore is a store whose next append is not known to have happened, or comes after the
// log was rewritten.
type brokenStore struct {
	store.Store
	broken atomic.Bool
	late   atomic.Bool
}

func (b *brokenStore) Unwrap() store.Store { return b.Store }

func (b *brokenStore) Open(ctx context.Context, name string) (store.Log, error) {
	log, err := b.Store.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	return &brokenLog{log, b}, nil
}

type brokenLog struct {
	store.Log
	b *brokenStore
}

func (l *brokenLog) Start(ctx context.Context, at store.Pos, lines ...[]byte) (store.Pos, func() error, error) {
	if l.b.late.CompareAndSwap(true, false) {
		return 0, nil, &store.Error{Op: "append", Kind: store.ErrReplaced}
	}
	end, commit, err := l.Log.Start(ctx, at, lines...)
	if err == nil && l.b.broken.CompareAndSwap(true, false) {
		_ = commit()
		commit = func() error { return &store.Error{Op: "sync", Kind: store.ErrUnknown} }
	}
	return end, commit, err
}

// An append to a session that is open waits for the disk once, and no session stays open longer
// than it may.
func TestKeptSessions(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	settings, err := LoadSettings(func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	h, err := Open(ctx, t.TempDir(), &Options{Settings: settings, Create: true})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	disk := &countedFS{FS: vfs.OS{}}
	files, err := file.Open(h.store.Where(), &file.Options{FS: disk})
	if err != nil {
		t.Fatal(err)
	}
	broken := &brokenStore{Store: files}
	h.store = broken
	create := func() string {
		made, err := h.Sessions.Create(ctx, CreateRequest{})
		if err != nil {
			t.Fatal(err)
		}
		return made.Session
	}
	say := func(id string) error {
		_, err := h.Entries.Append(ctx, AppendRequest{Session: id, Message: &session.MessageEntry{Role: session.RoleUser, Content: []session.Content{session.Text("more")}}})
		return err
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
	}
	kept := func() int { list, _ := h.keeper.pool.Contents(); return len(list) }
	id := create()
	must(say(id))
	disk.syncs.Store(0)
	disk.dirSyncs.Store(0)
	must(say(id))
	if n, dirs := disk.syncs.Load(), disk.dirSyncs.Load(); n != 1 || dirs != 0 {
		t.Errorf("an append synced %d files and %d directories", n, dirs)
	}
	broken.broken.Store(true)
	other, err := h.openKept(ctx, id)
	must(err)
	if err := say(id); !errors.Is(err, session.ErrUnknown) {
		t.Errorf("an append that may not have happened: %v", err)
	}
	must(say(id)) // though another still uses what is broken
	must(other.Close())
	must(say(id))
	h.keeper.pool.Each(func(k *keptOpen) {
		if k.broken.Load() {
			t.Error("a session that is broken stays open")
		}
	})
	broken.late.Store(true)
	must(say(id)) // though it was rewritten after it was refreshed
	if broken.late.Load() {
		t.Error("the session was not rewritten")
	}
	h.keeper.pool.Limit(pool.Limits{Count: 5, Bytes: maxKeptBytes})
	for range 5*keptBurst + 5 {
		must(say(create()))
	}
	if kept() > 5*keptBurst {
		t.Errorf("%d sessions stay open", kept())
	}
	_, err = h.Sessions.Remove(ctx, RemoveRequest{Session: id})
	must(err)
	if kept() != 0 {
		t.Errorf("%d sessions stay open while one is removed", kept())
	}
	must(say(create()))
	must(h.Close())
	if kept() != 0 {
		t.Errorf("%d sessions stay open in a home that is closed", kept())
	}
	must(files.Close())
}

// TestKeptSessionsAreClosed: a session that is not used is closed after a while, also one that was
// in use when the others were closed.
func TestKeptSessionsAreClosed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		h, err := Open(ctx, dir, &Options{Create: true})
		if err != nil {
			t.Fatal(err)
		}
		open := func() *Conversation {
			made, err := h.Sessions.Create(ctx, CreateRequest{})
			if err != nil {
				t.Fatal(err)
			}
			c, err := h.openKept(ctx, made.Session)
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
		after := func(d time.Duration, want int) {
			t.Helper()
			time.Sleep(d) // of the bubble
			synctest.Wait()
			if list, _ := h.keeper.pool.Contents(); len(list) != want {
				t.Errorf("%d sessions are open, and should be %d", len(list), want)
			}
		}
		used := open()
		for range 3 {
			if err := open().Close(); err != nil {
				t.Fatal(err)
			}
		}
		after(0, 4)
		after(keptFor, 1)
		if err := used.Close(); err != nil {
			t.Fatal(err)
		}
		after(keptFor, 0)
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
}
