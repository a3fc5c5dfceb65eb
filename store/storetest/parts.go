package storetest

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/coppice-dev/coppice/store"
)

var partChecks = []check{
	{"All", checkPartsAll},
	{"Copies", checkPartsCopies},
	{"Edit", checkPartsEdit},
	{"EditFails", checkPartsEditFails},
	{"EditNothing", checkPartsEditNothing},
	{"EditMeanwhile", checkPartsEditMeanwhile},
	{"Missing", checkPartsMissing},
	{"Refused", checkPartsRefused},
}

// world fills a store with one part of each kind that every store has.
func world(t *testing.T, s store.Store) (want map[store.PartKind]string) {
	ref := MustPut(t, s.Blobs(), []byte("the content of a blob"))
	MustCreate(t, s, "a", nums(0, 3)...)
	MustCreate(t, s, "b", num(7)).Close()
	mustRemove(t, s, "b")
	mustWrite(t, s.Notes("room"), "note", "one\ntwo")
	return map[store.PartKind]string{
		store.PartLog: "a", store.PartCopy: "b", store.PartBlob: string(ref), store.PartNote: "room/note",
	}
}

func partsOf(t *testing.T, s store.Store) map[store.PartKind]store.Part {
	t.Helper()
	found, places := make(map[store.PartKind]store.Part), make(map[string]bool)
	for p, err := range s.Parts().All(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if p.Place == "" || places[p.Place] {
			t.Errorf("part %+v has no place of its own", p)
		}
		places[p.Place] = true
		found[p.Kind] = p
	}
	return found
}

func mustReadPart(t *testing.T, s store.Store, p store.Part) string {
	t.Helper()
	r, err := s.Parts().Open(t.Context(), p)
	if err != nil {
		t.Fatalf("open %+v: %v", p, err)
	}
	data, err := io.ReadAll(r)
	if err := errors.Join(err, r.Close()); err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func partLines(t *testing.T, s store.Store, p store.Part) []string {
	t.Helper()
	return texts(mustCollect(t, s.Parts().Lines(t.Context(), p)))
}

func checkPartsAll(t *testing.T, s store.Store) {
	want := world(t, s)
	found := partsOf(t, s)
	for kind, name := range want {
		p, ok := found[kind]
		if !ok || p.Name != name || p.Size <= 0 {
			t.Errorf("of the kind %q there is %+v, want one with the name %q", kind, p, name)
		}
		if where := s.Parts().Where(kind, name); kind != store.PartCopy && where != p.Place {
			t.Errorf("%q %q is at %q, said to be at %q", kind, name, p.Place, where)
		}
	}
	for kind, text := range map[store.PartKind]string{
		store.PartLog: num(2), store.PartCopy: num(7), store.PartBlob: "the content of a blob", store.PartNote: "one\ntwo",
	} {
		if data := mustReadPart(t, s, found[kind]); !bytes.Contains([]byte(data), []byte(text)) {
			t.Errorf("the part of the kind %q has %q", kind, data)
		}
	}
	wantTexts(t, "lines of the log", partLines(t, s, found[store.PartLog]), nums(0, 3))
	wantTexts(t, "lines of the copy", partLines(t, s, found[store.PartCopy]), []string{num(7)})
}

func checkPartsCopies(t *testing.T, s store.Store) {
	world(t, s)
	MustCreate(t, s, "b", num(8)).Close()
	mustRemove(t, s, "b")
	MustCreate(t, s, "c", num(9)).Close()
	mustRemove(t, s, "c")
	for name, want := range map[string][]string{
		"a": nil, "b": {num(7), num(8)}, "c": {num(9)}, "": {num(7), num(8), num(9)},
	} {
		copies, err := s.Parts().Copies(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		var lines []string
		for _, p := range copies {
			if p.Kind != store.PartCopy || name != "" && p.Name != name {
				t.Errorf("a copy of %q is %+v", name, p)
			}
			lines = append(lines, partLines(t, s, p)...)
		}
		slices.Sort(lines)
		wantTexts(t, "copies of "+name, lines, want)
	}
}

func checkPartsEdit(t *testing.T, s store.Store) {
	world(t, s)
	handle := MustOpen(t, s, "a")
	found := partsOf(t, s)
	for _, kind := range []store.PartKind{store.PartLog, store.PartCopy, store.PartNote} {
		mustEdit(t, s, found[kind])
	}
	wantLines(t, MustOpen(t, s, "a"), `{"edited":{"n":0}}`, `{"edited":{"n":1}}`, `{"edited":{"n":2}}`)
	wantNote(t, s.Notes("room"), "note", "{\"edited\":one}\n{\"edited\":two}")
	if lines, err := collect(handle.Forward(t.Context(), 0)); err == nil {
		t.Errorf("an old handle reads %q", texts(lines))
	} else {
		wantErr(t, err, "a", store.ErrReplaced)
	}
	for p, err := range s.Parts().All(t.Context()) { // nothing of the old content is anywhere
		if err != nil {
			t.Fatal(err)
		}
		if data := mustReadPart(t, s, p); p.Kind != store.PartBlob && (bytes.Contains([]byte(data), []byte("\n"+num(1))) || data == num(7)+"\n") {
			t.Errorf("%+v has %q", p, data)
		}
	}
	MustAppend(t, MustOpen(t, s, "a"), num(3))
	if err := s.Trash().Restore(t.Context(), mustTrash(t, s, "b")[0].ID); err != nil {
		t.Fatal(err)
	}
	wantLines(t, MustOpen(t, s, "b"), `{"edited":{"n":7}}`)
}

func checkPartsEditFails(t *testing.T, s store.Store) {
	world(t, s)
	no := errors.New("no")
	for kind, p := range partsOf(t, s) {
		if kind != store.PartLog && kind != store.PartCopy && kind != store.PartNote {
			continue
		}
		before := mustReadPart(t, s, p)
		if err := s.Parts().Edit(t.Context(), p, func(line []byte) ([]byte, error) { return line, no }); !errors.Is(err, no) {
			t.Fatalf("edit %+v: %v", p, err)
		}
		if after := mustReadPart(t, s, p); after != before {
			t.Errorf("%+v has %q, had %q", p, after, before)
		}
	}
}

// Handles on a log that is as it was go on.
func checkPartsEditNothing(t *testing.T, s store.Store) {
	log := MustCreate(t, s, "a", nums(0, 3)...)
	if err := s.Parts().Edit(t.Context(), logPart(s, "a"), func(line []byte) ([]byte, error) { return line, nil }); err != nil {
		t.Fatal(err)
	}
	wantLines(t, log, nums(0, 3)...)
	MustAppend(t, log, num(3))
	wantLines(t, log, nums(0, 4)...)
}

// A line that another writer appends meanwhile is not lost.
func checkPartsEditMeanwhile(t *testing.T, s store.Store) {
	log := MustCreate(t, s, "a", nums(0, 3)...)
	end := MustEnd(t, log)
	started, appended := make(chan struct{}), make(chan error, 1)
	go func() {
		<-started
		_, err := log.Append(t.Context(), end, []byte(num(3)))
		appended <- err
	}()
	n := 0
	edit := func(line []byte) ([]byte, error) {
		if n++; n == 1 {
			close(started)
		}
		return upper(line)
	}
	editErr := s.Parts().Edit(t.Context(), logPart(s, "a"), edit)
	var appendErr error
	within(t, "append", func() error { appendErr = <-appended; return nil })
	got := texts(MustRead(t, MustOpen(t, s, "a"), 0))
	if editErr != nil {
		wantErr(t, editErr, "a", store.ErrConflict)
	}
	if appendErr != nil {
		wantOneOf(t, appendErr, store.ErrReplaced)
	}
	want := 3
	if appendErr == nil {
		want = 4
	}
	if len(got) != want || (got[0] == num(0)) != (editErr != nil) {
		t.Fatalf("edit: %v; append: %v; the log has %q", editErr, appendErr, got)
	}
}

func checkPartsMissing(t *testing.T, s store.Store) {
	world(t, s)
	found := partsOf(t, s)
	mustRemove(t, s, "a")
	p := found[store.PartLog]
	_, err := s.Parts().Open(t.Context(), p)
	wantErr(t, err, "", store.ErrNotExist)
	_, err = collect(s.Parts().Lines(t.Context(), p))
	wantErr(t, err, "", store.ErrNotExist)
	wantErr(t, s.Parts().Edit(t.Context(), p, upper), "", store.ErrNotExist)
}

func checkPartsRefused(t *testing.T, s store.Store) {
	world(t, s)
	found := partsOf(t, s)
	wantErr(t, s.Parts().Edit(t.Context(), found[store.PartBlob], upper), "", store.ErrInvalid)
	for _, kind := range []store.PartKind{store.PartLog, store.PartCopy, store.PartBlob, store.PartNote} {
		wantErr(t, s.Parts().Remove(t.Context(), found[kind]), "", store.ErrInvalid)
	}
	wantLines(t, MustOpen(t, s, "a"), nums(0, 3)...)
}
