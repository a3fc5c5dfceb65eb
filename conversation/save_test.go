package conversation_test

import (
	"bytes"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coppice-dev/coppice/conversation"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/memory"
	"github.com/coppice-dev/coppice/store/vfs/vfstest"
)

// Saving looks whether what was added is there.
func TestSaveIsABarrier(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m := must(conversation.OpenSessions(dir, quiet(100)))(t)
	empty := must(m.CreateSession(""))(t)
	do(t, m.Save(empty.ID))
	id := say(t, m, "", user("1"))
	do(t, m.Save(id))
	do(t, m.SaveAll())
	wantError(t, m.Save("missing"), session.ErrNotExist)

	// Another program removes what we have stored.
	path := filepath.Join(dir, id+".jsonl")
	whole := must(os.ReadFile(path))(t)
	say(t, m, id, user("2"))
	do(t, os.WriteFile(path, whole, 0o600))
	wantError(t, m.Save(id), session.ErrNotExist)
	do(t, os.Remove(path))
	wantError(t, m.SaveAll(), session.ErrNotExist)
	c := newSystem(t, m)
	do(t, c.Save()) // nothing yet
	must(c.AddUserMessage("3"))(t)
	do(t, c.Save())
	must(c.AddUserMessage("4"))(t)
	do(t, os.Remove(filepath.Join(dir, c.ID()+".jsonl")))
	wantError(t, c.Save(), session.ErrNotExist)
	wantError(t, m.Close(), session.ErrNotExist)
}

// What was saved survives the worst power cut, however lazily the store syncs:
// also in the sessions that continue the one that was named, and in those that
// were closed in the meantime.
func TestSaveSurvivesAPowerCut(t *testing.T) {
	t.Parallel()
	for name, level := range map[string]file.Sync{"every hour": file.Every(time.Hour), "never": file.Never} {
		t.Run(name, func(t *testing.T) {
			disk := vfstest.NewMemory()
			st := must(file.Open("/d", &file.Options{FS: disk, Sync: level}))(t)
			defer st.Close()
			m := must(conversation.NewSessions(st, quiet(3)))(t)
			defer m.Close()
			wantAfterCut := func(id string, want int) {
				t.Helper()
				left := must(file.Open("/d", &file.Options{FS: disk.CrashClone(nil, vfstest.LoseAll)}))(t)
				defer left.Close()
				after := must(conversation.NewSessions(left, quiet(3)))(t)
				defer after.Close()
				if got := must(after.Conversation(id))(t); len(got.Messages) != want {
					t.Errorf("after a power cut there are %d messages, want %d", len(got.Messages), want)
				}
			}
			empty := must(m.CreateSession(""))(t)
			do(t, m.SaveAll())
			wantAfterCut(empty.ID, 0)

			id := say(t, m, "", user("1"), user("2"))
			first := must(m.LoadSession(id))(t)
			if saved, err := m.SaveSession(first); !saved || err != nil {
				t.Fatal(saved, err)
			}
			wantAfterCut(id, 2)
			say(t, m, id, user("3"), user("4"), user("5"), user("6"), user("7"), user("8"))
			do(t, m.Save(id))
			wantAfterCut(id, 8)

			say(t, m, id, user("9"))
			m.ReleaseMemory(0)
			do(t, m.Save(id))
			wantAfterCut(id, 9)
		})
	}
}

func TestAutoSave(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := memory.New(nil)
		told := 0
		m := must(conversation.NewSessions(st, &conversation.Options{OnSaveError: func(error) { told++ }}))(t)
		id := say(t, m, "", user("1"))
		time.Sleep(61 * time.Second)
		synctest.Wait()
		do(t, m.SaveError())
		say(t, m, id, user("2"))
		do(t, st.Remove(t.Context(), id))
		time.Sleep(60 * time.Second)
		synctest.Wait()
		wantError(t, m.SaveError(), session.ErrNotExist)
		if told != 1 {
			t.Errorf("told %d times", told)
		}
		// It can be turned off, and on again with another interval.
		do(t, m.SetSettings(conversation.Settings{AutoSaveInterval: -1}))
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		do(t, m.SaveError())
		do(t, m.SetSettings(conversation.Settings{AutoSaveInterval: time.Second}))
		time.Sleep(20 * time.Second)
		synctest.Wait()
		wantError(t, m.SaveError(), session.ErrNotExist)
		if told != 21 {
			t.Errorf("told %d times", told)
		}
		wantError(t, m.Close(), session.ErrNotExist)
	})
}

// A manager that was closed does not begin to save again.
func TestSettingsAfterClose(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // which fails if a goroutine is left
		m := must(conversation.NewSessions(memory.New(nil), nil))(t)
		do(t, m.Close())
		do(t, m.SetSettings(conversation.Settings{AutoSaveInterval: time.Second}))
	})
}

// Save notices that the last message is gone, whatever happened to other sessions before.
func TestSaveNoticesALossAfterADeletion(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m := must(conversation.OpenSessions(dir, quiet(100)))(t)
	id := say(t, m, "", user("one"), assistant("two"))
	chat := newSystem(t, m)
	do(t, chat.Load(id))
	must(m.DeleteSession(must(m.CreateSession(""))(t).ID))(t)
	path := filepath.Join(dir, id+".jsonl")
	data := must(os.ReadFile(path))(t)
	data = data[:bytes.LastIndexByte(bytes.TrimSpace(data), '\n')+1]
	do(t, os.WriteFile(path+".new", data, 0o600))
	do(t, os.Rename(path+".new", path))
	wantError(t, chat.Save(), session.ErrNotExist)
	wantError(t, m.Save(id), session.ErrNotExist)
	wantError(t, m.Close(), session.ErrNotExist)
}

// Saving goes on while an append with an unknown outcome closes the session.
func TestSaveWhileASessionIsOpenedAgain(t *testing.T) {
	t.Parallel()
	lie := 0
	m := newManagerOn(t, unsettled{memory.New(nil), &lie, nil}, 1000)
	id := say(t, m, "", user("1"))
	done := make(chan struct{})
	var saving sync.WaitGroup
	for range 8 {
		saving.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					if err := m.Save(id); err != nil {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	for range 500 {
		lie = 1
		say(t, m, id, user("2"))
	}
	close(done)
	saving.Wait()
}
