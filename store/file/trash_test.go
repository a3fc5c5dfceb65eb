package file_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/storetest"
	"github.com/coppice-dev/coppice/store/vfs"
)

func mustTrash(t *testing.T, st *file.Store) []store.Trashed {
	t.Helper()
	all, err := st.Trash().List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestTrash(t *testing.T) {
	t.Parallel()
	for _, form := range []string{"plain", "archived"} {
		t.Run(form, func(t *testing.T) {
			st := open(t, nil)
			if got := mustTrash(t, st); got != nil {
				t.Errorf("a new store has %v in its trash", got)
			}
			for _, content := range []string{"first", "second"} {
				storetest.MustCreate(t, st, "a.b", content).Close()
				if form == "archived" {
					must(t, st.Archive(t.Context(), "a.b"))
				}
				must(t, st.Remove(t.Context(), "a.b"))
				_, err := st.Open(t.Context(), "a.b")
				wantKind(t, err, store.ErrNotExist, "open", st.Path("a.b"))
				for stat := range st.List(t.Context()) {
					t.Errorf("removed, and listed as %+v", stat)
				}
			}
			wantKind(t, st.Remove(t.Context(), "a.b"), store.ErrNotExist, "remove", st.Path("a.b"))

			trash := mustTrash(t, st)
			if len(trash) != 2 || !trash[0].Removed.After(trash[1].Removed) {
				t.Fatalf("in the trash: %+v", trash)
			}
			for _, item := range trash {
				if item.Name != "a.b" || item.Size == 0 || time.Since(item.Removed) > time.Minute {
					t.Errorf("in the trash: %+v", item)
				}
			}
			readable, err := st.Trash().Read()
			must(t, err)
			wantLines(t, storetest.MustOpen(t, readable, trash[1].ID), "first")
			listed := 0
			for _, err := range readable.List(t.Context()) {
				must(t, err)
				listed++
			}
			if listed != 2 {
				t.Errorf("the trash lists %d logs, want 2", listed)
			}
			must(t, readable.Close())
			must(t, st.Trash().Restore(t.Context(), trash[1].ID))
			wantLines(t, storetest.MustOpen(t, st, "a.b"), "first")
			err = st.Trash().Restore(t.Context(), trash[0].ID)
			wantKind(t, err, store.ErrExist, "restore", st.Path("a.b"))
			wantKind(t, st.Trash().Restore(t.Context(), trash[1].ID), store.ErrExist)
			if diff := cmp.Diff(trash[:1], mustTrash(t, st)); diff != "" {
				t.Errorf("the trash differs (-want +got):\n%s", diff)
			}
			log := storetest.MustOpen(t, st, "a.b")
			storetest.MustAppend(t, log, "more")
			wantLines(t, log, "first", "more")
		})
	}
}

func TestEmptyTrash(t *testing.T) {
	t.Parallel()
	st := open(t, nil)
	for _, name := range []string{"a", "b", "c"} {
		storetest.MustCreate(t, st, name, "{}").Close()
		if name == "b" {
			must(t, st.Archive(t.Context(), name))
		}
		must(t, st.Remove(t.Context(), name))
	}
	// What is not ours stays.
	strange := filepath.Join(st.Where(), ".coppice", "trash", "notes.txt")
	putLog(t, vfs.OS{}, strange, []byte("mine"))
	trash := mustTrash(t, st)
	if len(trash) != 3 {
		t.Fatalf("in the trash: %+v", trash)
	}
	gone, err := st.Trash().Empty(t.Context(), trash[0].Removed) // c is the latest
	must(t, err)
	if diff := cmp.Diff(trash[1:], gone); diff != "" {
		t.Errorf("deleted (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(trash[:1], mustTrash(t, st)); diff != "" {
		t.Errorf("left in the trash (-want +got):\n%s", diff)
	}
	err = st.Trash().Restore(t.Context(), trash[1].ID)
	wantKind(t, err, store.ErrNotExist, "restore", `the trash has no "b.2`)
	gone, err = st.Trash().Empty(t.Context(), time.Now().Add(time.Hour))
	if len(gone) != 1 || err != nil {
		t.Errorf("emptied of %v, %v", gone, err)
	}
	if string(mustReadFile(t, strange)) != "mine" {
		t.Error("a file that is no removed log was deleted")
	}
}

func TestTrashRefuses(t *testing.T) {
	t.Parallel()
	st := open(t, nil)
	for _, id := range []string{
		"", "a", "a.b", "../../a.20260101T000000.000000000Z", ".20260101T000000.000000000Z", "a.20261301T000000.000000000Z",
	} {
		wantKind(t, st.Trash().Restore(t.Context(), id), store.ErrInvalid, "restore")
	}
	err := st.Trash().Restore(t.Context(), "a.20260101T000000.000000000Z")
	wantKind(t, err, store.ErrNotExist, "restore")
	must(t, st.Close())
	for _, err := range []error{
		st.Remove(t.Context(), "a"), st.Trash().Restore(t.Context(), "a.20260101T000000.000000000Z"),
	} {
		wantKind(t, err, store.ErrClosed)
	}
	_, err = st.Trash().List(t.Context())
	wantKind(t, err, store.ErrClosed)
	_, err = st.Trash().Empty(t.Context(), time.Now())
	wantKind(t, err, store.ErrClosed)
}

// Who has a log open while it is removed cannot append to it, nor to another
// one that got its name, until it is restored.
func TestRemoveUnderWriters(t *testing.T) {
	t.Parallel()
	skipWindows(t)
	st := open(t, nil)
	other := openAt(t, st.Where(), nil)
	var logs []store.Log
	logs = append(logs, storetest.MustCreate(t, st, "a", `{"id":"old"}`))
	logs = append(logs, storetest.MustOpen(t, st, "a"), storetest.MustOpen(t, other, "a"))
	storetest.MustAppend(t, logs[0], "{}")
	end := storetest.MustEnd(t, logs[0])
	wantRefused := func(want error) {
		t.Helper()
		for i, log := range logs {
			if _, err := log.Append(t.Context(), end, []byte("{}")); !errors.Is(err, want) {
				t.Errorf("append through handle %d = %v, want %v", i, err, want)
			}
		}
	}
	must(t, st.Remove(t.Context(), "a"))
	wantRefused(store.ErrNotExist)
	wantLines(t, logs[1], `{"id":"old"}`, "{}") // what is open can be read
	storetest.MustCreate(t, st, "a", `{"id":"new"}`).Close()
	wantRefused(store.ErrReplaced)
	if got := string(mustReadFile(t, st.Path("a"))); got != "{\"id\":\"new\"}\n" {
		t.Errorf("the new log has %q", got)
	}
	old := mustTrash(t, st)[0].ID
	must(t, st.Remove(t.Context(), "a"))
	must(t, st.Trash().Restore(t.Context(), old))
	for _, log := range logs {
		storetest.MustAppend(t, log, "{}")
	}
	wantLines(t, logs[0], `{"id":"old"}`, "{}", "{}", "{}", "{}")
	if _, err := os.Stat(st.Path("a")); err != nil {
		t.Error(err)
	}
}
