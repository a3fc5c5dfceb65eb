package file_test

import (
	"os"
	"testing"

	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/storetest"
)

// What a repair put aside comes back under its name once that is free; a piece is
// no log.
func TestReadmit(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	st := open(t, &file.Options{Sync: file.Never})
	storetest.MustCreate(t, st, "a.b", "0", "1").Close()
	raw, err := st.OpenRaw(ctx, "a.b")
	must(t, err)
	_, err = raw.Rewrite(ctx, func(yield func(store.Piece, error) bool) { yield(store.Piece{Line: []byte("new")}, nil) })
	must(t, err)
	must(t, raw.Close())
	writeRaw(t, st.Path("a.b"), "torn")
	log := storetest.MustOpen(t, st, "a.b")
	storetest.MustAppend(t, log, "2")
	must(t, log.Close())

	all, err := st.Quarantined(ctx)
	must(t, err)
	if len(all) != 2 || !all[0].Torn || all[0].Offset != 4 || all[1].Torn || all[1].Name != "a.b" || all[1].Size != 4 {
		t.Fatalf("in quarantine is %+v", all)
	}
	_, err = st.Readmit(ctx, all[0].ID)
	wantKind(t, err, store.ErrInvalid)
	_, err = st.Readmit(ctx, all[1].ID)
	wantKind(t, err, store.ErrExist)
	must(t, st.Remove(ctx, "a.b"))
	if name, err := st.Readmit(ctx, all[1].ID); name != "a.b" || err != nil {
		t.Fatal(name, err)
	}
	wantLines(t, storetest.MustOpen(t, st, "a.b"), "0", "1")
	for _, id := range []string{"../" + all[1].ID, "a.b.0.1.replaced", "x"} {
		must(t, st.Remove(ctx, "a.b"))
		_, err := st.Readmit(ctx, id)
		wantKind(t, err, store.ErrNotExist)
		storetest.MustCreate(t, st, "a.b").Close()
	}
}

// An archive that was put aside comes back as one.
func TestReadmitArchive(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	st := open(t, &file.Options{Sync: file.Never})
	storetest.MustCreate(t, st, "a", "0").Close()
	must(t, st.Archive(ctx, "a"))
	must(t, os.WriteFile(st.Path("a"), []byte("0\n1\n"), 0o600))
	must(t, st.Unarchive(ctx, "a")) // the plain file counts
	all, err := st.Quarantined(ctx)
	must(t, err)
	if len(all) != 1 {
		t.Fatalf("in quarantine is %+v", all)
	}
	must(t, st.Remove(ctx, "a"))
	_, err = st.Readmit(ctx, all[0].ID)
	must(t, err)
	wantLines(t, storetest.MustOpen(t, st, "a"), "0")
}
