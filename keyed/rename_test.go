package keyed_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/coppice-dev/coppice/keyed"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/memory"
)

const otherKey = "telegram:654321"

func TestDelete(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, m manager) {
		if err := m.Delete(key); !errors.Is(err, session.ErrNotExist) {
			t.Errorf("no session: %v, want ErrNotExist", err)
		}
		if err := m.Delete(""); !errors.Is(err, os.ErrInvalid) {
			t.Errorf("no key: %v, want os.ErrInvalid", err)
		}
		m.talk("u1", "a1")
		m.SetSummary(key, "sum") // which is not written yet
		if err := m.Delete(key); err != nil {
			t.Fatal(err)
		}
		m.sees()
		m.hasAll()
		m.summaryIs("")
		if keys, err := m.Keys(); err != nil || len(keys) > 0 || len(m.Active()) > 0 {
			t.Errorf("keys %q, %v, active %q", keys, err, m.Active())
		}
		m.talk("u2")
		m.sees("u2")
		m.hasAll("u2")
		m.save(key)
	})
}

// TestDeleteIsSeenByOthers: another manager does not go on in a session that is
// gone.
func TestDeleteIsSeenByOthers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m, other := inDir(t, dir), inDir(t, dir)
	m.talk("u1")
	other.sees("u1")
	if err := m.Delete(key); err != nil {
		t.Fatal(err)
	}
	other.talk("u2")
	other.sees("u2")
	m.sees("u2")
}

// TestOldFilesDoNotComeBack: once a session was made of an old file, the file no
// longer counts, however the session is removed.
func TestOldFilesDoNotComeBack(t *testing.T) {
	t.Parallel()
	id := must(session.KeyID(key))
	forms := map[string]map[string]string{
		"document": {"telegram_123456.json": oldWhole},
		"lines":    {"telegram_123456.jsonl": oldLines, "telegram_123456.meta.json": `{"key":"telegram:123456"}`},
		"alias":    {"main.jsonl": oldLines, "main.meta.json": `{"key":"main","aliases":["telegram:123456"]}`},
	}
	removals := map[string]func(t *testing.T, m manager, dir string){
		"Delete": func(t *testing.T, m manager, _ string) {
			if err := m.Delete(key); err != nil {
				t.Error(err)
			}
		},
		"Delete at once": nil,
		"Remove": func(t *testing.T, m manager, dir string) {
			m.close()
			st := must(file.Open(dir, nil))
			defer st.Close()
			if err := st.Remove(t.Context(), id); err != nil {
				t.Error(err)
			}
		},
	}
	for form, files := range forms {
		for how, remove := range removals {
			t.Run(form+" "+how, func(t *testing.T) {
				dir := put(t, files)
				m := inDir(t, dir)
				if remove == nil {
					if err := m.Delete(key); err != nil {
						t.Error(err)
					}
				} else {
					if len(m.GetHistory(key)) == 0 {
						t.Fatal("the old session is not taken over")
					}
					remove(t, m, dir)
				}
				m = inDir(t, dir)
				m.sees()
				if keys, err := m.Keys(); err != nil || strings.Contains(fmt.Sprint(keys), key) {
					t.Errorf("keys %q, %v", keys, err)
				}
				m.talk("u9")
				m.hasAll("u9")
				untouched(t, dir, files)
			})
		}
	}
}

// TestOldFilesOfAnEarlierTakeOver: a session that has no note, because of a crash
// or because an earlier version made it, gets one when it is opened.
func TestOldFilesOfAnEarlierTakeOver(t *testing.T) {
	t.Parallel()
	dir := put(t, map[string]string{"telegram_123456.json": oldWhole})
	m := inDir(t, dir)
	had := len(m.GetHistory(key))
	m.close()
	if err := os.RemoveAll(storeIn(t, dir).Parts().Where(store.PartNote, "keyed/")); err != nil {
		t.Fatal(err)
	}
	m = inDir(t, dir)
	if n := len(m.GetHistory(key)); n != had {
		t.Errorf("%d messages, want %d", n, had)
	}
	m.close()
	if err := storeIn(t, dir).Remove(t.Context(), must(session.KeyID(key))); err != nil {
		t.Fatal(err)
	}
	inDir(t, dir).sees()
}

func storeIn(t *testing.T, dir string) *file.Store {
	t.Helper()
	st := must(file.Open(dir, nil))
	t.Cleanup(func() { st.Close() })
	return st
}

// TestOldFilesBesideAnotherStore: the notes are where the files are.
func TestOldFilesBesideAnotherStore(t *testing.T) {
	t.Parallel()
	dir := put(t, map[string]string{"telegram_123456.json": oldWhole})
	st := memory.New(nil)
	m := open(t, keyed.Options{Dir: dir, Store: st})
	if len(m.GetHistory(key)) == 0 {
		t.Fatal("the old session is not taken over")
	}
	if err := m.Delete(key); err != nil {
		t.Fatal(err)
	}
	open(t, keyed.Options{Dir: dir, Store: st}).sees()
}

func TestRename(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, m manager) {
		if err := m.Rename(key, otherKey); !errors.Is(err, session.ErrNotExist) {
			t.Errorf("no session: %v, want ErrNotExist", err)
		}
		m.talk("s1", "u1", "a1", "u2", "+c", "=c", "a2")
		m.TruncateHistory(key, 2)
		m.SetSummary(key, "sum") // not written yet
		created := m.GetOrCreate(key).Created
		if err := m.Rename(key, key); err != nil {
			t.Errorf("to itself: %v", err)
		}
		for _, bad := range []string{"", "\xff"} {
			if m.Rename(key, bad) == nil || m.Rename(bad, key) == nil {
				t.Errorf("%q is taken for a key", bad)
			}
		}
		before, all := m.GetHistory(key), must(m.History(key, keyed.All))
		if err := m.Rename(key, otherKey); err != nil {
			t.Fatal(err)
		}
		same(t, "history", m.GetHistory(otherKey), before)
		same(t, "all messages", must(m.History(otherKey, keyed.All)), all)
		got := m.GetOrCreate(otherKey)
		if got.Key != otherKey || got.Summary != "sum" || !got.Created.Equal(created) {
			t.Errorf("renamed: %+v", got)
		}
		m.sees()
		same(t, "keys", must(m.Keys()), []string{otherKey})
		m.talk("u9") // the old key is free
		if err := m.Rename(key, otherKey); !errors.Is(err, session.ErrExist) {
			t.Errorf("onto another: %v, want ErrExist", err)
		}
		m.sees("u9")
		m.AddMessage(otherKey, "user", "u3")
		m.save(otherKey)
		if n := len(m.GetHistory(otherKey)); n != len(before)+1 {
			t.Errorf("%d messages, want %d", n, len(before)+1)
		}
	})
}

// TestRenameOfAnOldSession: what picoclaw left is taken over first, and does not
// come back under its old key.
func TestRenameOfAnOldSession(t *testing.T) {
	t.Parallel()
	dir := put(t, map[string]string{"telegram_123456.json": oldWhole})
	m := inDir(t, dir)
	if err := m.Rename(key, otherKey); err != nil {
		t.Fatal(err)
	}
	m.sees()
	if len(m.GetHistory(otherKey)) == 0 {
		t.Error("the old session is not there")
	}
	if err := m.Rename("chat:1", key); !errors.Is(err, session.ErrNotExist) {
		t.Errorf("%v, want ErrNotExist", err)
	}
}

// unremovable is a store that fails when something is to be removed.
type unremovable struct{ *memory.Store }

func (unremovable) RemoveAt(context.Context, string, store.Pos) error { return errors.New("no") }

// TestRenameCutShort: what was done by half is finished by the next attempt, with
// what was said meanwhile.
func TestRenameCutShort(t *testing.T) {
	t.Parallel()
	st := memory.New(nil)
	m := open(t, keyed.Options{Store: unremovable{st}})
	m.talk("u1", "a1")
	if err := m.Rename(key, otherKey); err == nil {
		t.Fatal("the session cannot be removed, and is renamed")
	}
	m.talk("u2")
	m.close()
	m = open(t, keyed.Options{Store: st})
	if err := m.Rename(key, otherKey); err != nil {
		t.Fatal(err)
	}
	sameText(t, "history", brief(m.GetHistory(otherKey)), []string{"u1", "a1", "u2"})
	m.sees()
}

// TestRenameWhileOthersTalk: of what other processes say meanwhile nothing is
// lost: it is under the one key or the other.
func TestRenameWhileOthersTalk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m, other := inDir(t, dir), inDir(t, dir)
	m.talk("u0")
	const n = 60
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range n {
			other.talk(fmt.Sprintf("u%d", i+1))
		}
	})
	for i := range 10 {
		if err := m.Rename(key, fmt.Sprintf("to:%d", i)); err != nil && !errors.Is(err, session.ErrNotExist) {
			t.Error(err)
		}
	}
	wg.Wait()
	other.save(key)
	said := make(map[string]int)
	for _, k := range must(m.Keys()) {
		for _, msg := range must(m.History(k, keyed.All)) {
			said[msg.Content]++
		}
	}
	for i := range n + 1 {
		if word := fmt.Sprintf("u%d", i); said[word] != 1 {
			t.Errorf("%s is there %d times", word, said[word])
		}
	}
}
