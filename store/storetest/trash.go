package storetest

import (
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
