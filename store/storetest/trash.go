package storetest

import (
	"errors"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/store"
)

var trashChecks = []check{
	{"Restore", checkTrashRestore},
	{"Latest", checkTrashLatest},
	{"Taken", checkTrashTaken},
	{"Missing", checkTrashMissing},
	{"Empty", checkTrashEmpty},
	{"Read", checkTrashRead},
	{"Add", checkTrashAdd},
	{"Take", checkTrashTake},
	{"Known", checkTrashKnown},
}

func mustTrash(t *testing.T, s store.Store, want ...string) []store.Trashed {
	t.Helper()
	items, err := s.Trash().List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, item := range items {
		names = append(names, item.Name)
		if item.ID == "" || item.Size == 0 || time.Since(item.Removed) > time.Hour {
			t.Errorf("removal %+v", item)
		}
	}
	wantTexts(t, "trash", names, want)
	return items
}

func checkTrashRestore(t *testing.T, s store.Store) {
	old := MustCreate(t, s, "a", nums(0, 3)...)
	mustTrash(t, s)
	mustRemove(t, s, "a")
	items := mustTrash(t, s, "a")
	if err := s.Trash().Restore(t.Context(), items[0].ID); err != nil {
		t.Fatal(err)
	}
	mustTrash(t, s)
	log := MustOpen(t, s, "a")
	wantLines(t, log, nums(0, 3)...)
	MustAppend(t, log, num(3))
	wantLines(t, MustOpen(t, s, "a"), nums(0, 4)...)
	old.Close()
}

func checkTrashLatest(t *testing.T, s store.Store) {
	for n := range 3 {
		MustCreate(t, s, "a", num(n)).Close()
		mustRemove(t, s, "a")
	}
	items := mustTrash(t, s, "a", "a", "a")
	if err := s.Trash().Restore(t.Context(), items[0].ID); err != nil {
		t.Fatal(err)
	}
	wantLines(t, MustOpen(t, s, "a"), num(2))
}

func checkTrashTaken(t *testing.T, s store.Store) {
	MustCreate(t, s, "a", num(0)).Close()
	mustRemove(t, s, "a")
	log := MustCreate(t, s, "a", num(1))
	items := mustTrash(t, s, "a")
	wantErr(t, s.Trash().Restore(t.Context(), items[0].ID), "a", store.ErrExist)
	wantLines(t, log, num(1))
	mustTrash(t, s, "a")
}

func checkTrashMissing(t *testing.T, s store.Store) {
	MustCreate(t, s, "a", num(0)).Close()
	mustRemove(t, s, "a")
	id := mustTrash(t, s, "a")[0].ID
	if _, err := s.Trash().Empty(t.Context(), time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	wantErr(t, s.Trash().Restore(t.Context(), id), "", store.ErrNotExist)
	for _, id := range []string{"", "a", "../a"} {
		wantErr(t, s.Trash().Restore(t.Context(), id), "", store.ErrInvalid)
	}
}

func checkTrashEmpty(t *testing.T, s store.Store) {
	before := time.Now().Add(-time.Hour)
	for _, name := range []string{"a", "b"} {
		MustCreate(t, s, name, num(0)).Close()
		mustRemove(t, s, name)
	}
	if gone, err := s.Trash().Empty(t.Context(), before); err != nil || len(gone) > 0 {
		t.Fatalf("emptied %v, %v", gone, err)
	}
	mustTrash(t, s, "b", "a")
	if gone, err := s.Trash().Empty(t.Context(), time.Now().Add(time.Hour)); err != nil || len(gone) != 2 {
		t.Fatalf("emptied %v, %v", gone, err)
	}
	mustTrash(t, s)
}

func checkTrashRead(t *testing.T, s store.Store) {
	MustCreate(t, s, "a", nums(0, 3)...).Close()
	mustRemove(t, s, "a")
	removed, err := s.Trash().Read()
	if err != nil {
		t.Fatal(err)
	}
	defer removed.Close()
	id := mustTrash(t, s, "a")[0].ID
	log, err := removed.Open(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	wantTexts(t, "removed log", texts(MustRead(t, log, 0)), nums(0, 3))
	_, err = removed.Open(t.Context(), "b")
	wantErr(t, err, "b", store.ErrNotExist)
	wantAbsent(t, s, "a")
}

// A log that was removed from another store as well goes to the trash under the ID of that removal.
func checkTrashTake(t *testing.T, s store.Store) {
	const id = "a.20240102T030405.000000006Z"
	log := MustCreate(t, s, "a", num(0))
	seen := MustEnd(t, log)
	MustAppend(t, log, num(1))
	wantErr(t, s.Trash().Take(t.Context(), id, seen), "a", store.ErrConflict)
	wantLines(t, MustOpen(t, s, "a"), num(0), num(1))
	for _, id := range []string{"", "a", "a.2024"} {
		wantErr(t, s.Trash().Take(t.Context(), id, seen), "", store.ErrInvalid)
	}
	if err := s.Trash().Take(t.Context(), id, MustEnd(t, log)); err != nil {
		t.Fatal(err)
	}
	wantAbsent(t, s, "a")
	items, err := s.Trash().List(t.Context())
	if err != nil || len(items) != 1 || items[0].ID != id || items[0].Name != "a" {
		t.Fatalf("the trash has %+v, %v", items, err)
	}
	wantErr(t, s.Trash().Take(t.Context(), id, seen), "a", store.ErrNotExist)
	again := MustCreate(t, s, "a", num(2))
	wantErr(t, s.Trash().Take(t.Context(), id, MustEnd(t, again)), "a", store.ErrExist)
	wantLines(t, MustOpen(t, s, "a"), num(2))
	if err := s.Remove(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if err := s.Trash().Restore(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	wantLines(t, MustOpen(t, s, "a"), num(0), num(1))
}

// A store remembers removals after their logs were restored or deleted for good.
func checkTrashKnown(t *testing.T, s store.Store) {
	var ids []string
	for _, name := range []string{"a", "b", "c"} {
		MustCreate(t, s, name, num(0)).Close()
		mustRemove(t, s, name)
		ids = append(ids, mustTrash(t, s, name)[0].ID)
		switch name {
		case "a":
			if err := s.Trash().Restore(t.Context(), ids[0]); err != nil {
				t.Fatal(err)
			}
		case "b":
			if _, err := s.Trash().Empty(t.Context(), time.Now().Add(time.Hour)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := store.NoteRemovals(t.Context(), s, "d.20240102T030405.000000006Z", ids[0]); err != nil {
		t.Fatal(err)
	}
	r, err := store.RemovalsOf(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"a", "b", "c", "d"} {
		if known := r.Known[name]; len(known) != 1 || i < 3 && known[0] != ids[i] {
			t.Errorf("of %s, the removals %v are known", name, known)
		}
	}
	wantTexts(t, "trash", store.RemovalIDs(r.Trash), ids[2:])
}

func checkTrashAdd(t *testing.T, s store.Store) {
	const id = "a.20240102T030405.000000006Z"
	log := MustCreate(t, s, "a", num(9)) // which has nothing to do with it
	add := func(id string, texts ...string) error {
		var lines [][]byte
		for _, text := range texts {
			lines = append(lines, []byte(text))
		}
		return s.Trash().Add(t.Context(), id, store.Lines(lines...))
	}
	if err := add(id, nums(0, 3)...); err != nil {
		t.Fatal(err)
	}
	wantErr(t, add(id, num(5)), "a", store.ErrExist)
	for _, id := range []string{"", "a", "a.2024", ".20240102T030405.000000006Z"} {
		wantErr(t, add(id, num(0)), "", store.ErrInvalid)
	}
	broken := errors.New("broken")
	err := s.Trash().Add(t.Context(), "b"+id[1:], func(yield func([]byte, error) bool) {
		_ = yield([]byte(num(0)), nil) && yield(nil, broken)
	})
	if !errors.Is(err, broken) {
		t.Fatalf("error is %v, want that of the lines", err)
	}
	items, err := s.Trash().List(t.Context())
	removed := time.Date(2024, 1, 2, 3, 4, 5, 6, time.UTC)
	if err != nil || len(items) != 1 || items[0].ID != id || items[0].Name != "a" || !items[0].Removed.Equal(removed) || items[0].Size == 0 {
		t.Fatalf("trash %+v, %v", items, err)
	}
	wantLines(t, log, num(9))
	log.Close()
	mustRemove(t, s, "a")
	if err := s.Trash().Restore(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	wantLines(t, MustOpen(t, s, "a"), nums(0, 3)...)
}
