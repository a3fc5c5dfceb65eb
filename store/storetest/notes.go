package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/coppice-dev/coppice/store"
)

var noteChecks = []check{
	{"Write", checkNotesWrite},
	{"Rooms", checkNotesRooms},
	{"RoomNames", checkNotesRoomNames},
	{"Missing", checkNotesMissing},
	{"Large", checkNotesLarge},
	{"Apart", checkNotesApart},
	{"Change", checkNotesChange},
	{"ChangeFails", checkNotesChangeFails},
	{"ChangeAtOnce", checkNotesChangeAtOnce},
	{"WholeOrNot", checkNotesWholeOrNot},
	{"Cancelled", checkNotesCancelled},
}

func mustWrite(t testing.TB, n store.Notes, name, data string) {
	t.Helper()
	if err := n.Write(t.Context(), name, []byte(data)); err != nil {
		t.Fatalf("write note %q: %v", name, err)
	}
}

func wantNote(t testing.TB, n store.Notes, name, want string) {
	t.Helper()
	if data, err := n.Read(t.Context(), name); err != nil || string(data) != want {
		t.Fatalf("note %q is %.80q, %v; want %.80q", name, data, err, want)
	}
}

func wantNotes(t testing.TB, n store.Notes, want ...string) {
	t.Helper()
	all, err := n.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, note := range all {
		names = append(names, note.Name)
		data, err := n.Read(t.Context(), note.Name)
		if err != nil || note.Size != int64(len(data)) || note.Modified.IsZero() {
			t.Errorf("note %+v, read: %d bytes, %v", note, len(data), err)
		}
	}
	wantTexts(t, "notes", names, want)
}

func checkNotesWrite(t *testing.T, s store.Store) {
	n := s.Notes("room")
	wantNotes(t, n)
	mustWrite(t, n, "b.json", "one")
	mustWrite(t, n, "b.json", "two")
	mustWrite(t, n, "a", "")
	if err := n.WriteHint(t.Context(), "c", []byte("hint")); err != nil {
		t.Fatal(err)
	}
	wantNotes(t, n, "a", "b.json", "c")
	wantNote(t, n, "a", "")
	wantNote(t, n, "b.json", "two")
	wantNote(t, s.Notes("room"), "c", "hint")
	buf := []byte("before")
	if err := n.Write(t.Context(), "d", buf); err != nil {
		t.Fatal(err)
	}
	copy(buf, "after!") // their memory is the caller's
	wantNote(t, n, "d", "before")
}

func checkNotesRooms(t *testing.T, s store.Store) {
	mustWrite(t, s.Notes(""), "a", "none")
	mustWrite(t, s.Notes("one"), "a", "one")
	mustWrite(t, s.Notes("two"), "b", "two")
	wantNotes(t, s.Notes("one"), "a")
	wantNote(t, s.Notes(""), "a", "none")
	wantNote(t, s.Notes("one"), "a", "one")
	wantTexts(t, "logs", mustNames(t, s), nil)
}

// A room is a name, and never a path to somewhere else.
func checkNotesRoomNames(t *testing.T, s store.Store) {
	mustWrite(t, s.Notes("one"), "a", "one")
	for _, room := range []string{".", "..", ".one", "/", "/one", "one/", "x/../one", "one/../..", `one\..`, "one\x00", strings.Repeat("x", store.MaxName+1)} {
		n := s.Notes(room)
		_, readErr := n.Read(t.Context(), "a")
		_, listErr := n.List(t.Context())
		changed := false
		for op, err := range map[string]error{
			"read": readErr, "list": listErr, "write": n.Write(t.Context(), "a", []byte("x")),
			"hint": n.WriteHint(t.Context(), "a", []byte("x")), "remove": n.Remove(t.Context(), "a"),
			"change": n.Change(t.Context(), "a", func([]byte) ([]byte, error) { changed = true; return []byte("x"), nil }),
		} {
			if !errors.Is(err, store.ErrInvalid) || changed {
				t.Errorf("%s in the room %.20q: %v, want %v", op, room, err, store.ErrInvalid)
			}
		}
	}
	wantNotes(t, s.Notes("one"), "a")
	wantNote(t, s.Notes("one"), "a", "one")
}

func checkNotesMissing(t *testing.T, s store.Store) {
	n := s.Notes("room")
	_, err := n.Read(t.Context(), "a")
	wantErr(t, err, "", store.ErrNotExist)
	if err := n.Remove(t.Context(), "a"); err != nil {
		t.Fatalf("remove what is not there: %v", err)
	}
	mustWrite(t, n, "a", "x")
	if err := n.Remove(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	_, err = n.Read(t.Context(), "a")
	wantErr(t, err, "", store.ErrNotExist)
	wantNotes(t, n)
}

func checkNotesLarge(t *testing.T, s store.Store) {
	large := string(bytes.Repeat([]byte("0123456789\n\x00\xff"), 1<<18))
	mustWrite(t, s.Notes(""), "large", large)
	wantNote(t, s.Notes(""), "large", large)
}

// A note is no log, and a log is no note.
func checkNotesApart(t *testing.T, s store.Store) {
	MustCreate(t, s, "a", num(0))
	_, err := s.Notes("").Read(t.Context(), "a")
	wantErr(t, err, "", store.ErrNotExist)
	mustWrite(t, s.Notes(""), "b", "x")
	wantAbsent(t, s, "b")
	mustRemove(t, s, "a")
	wantNote(t, s.Notes(""), "b", "x")
}

func checkNotesChange(t *testing.T, s store.Store) {
	n := s.Notes("room")
	for i, want := range []string{"", "0", "01"} {
		err := n.Change(t.Context(), "a", func(old []byte) ([]byte, error) {
			if string(old) != want || i == 0 && old != nil {
				t.Errorf("change %d got %q, want %q", i, old, want)
			}
			return append(old, byte('0'+i)), nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	wantNote(t, n, "a", "012")
}

func checkNotesChangeFails(t *testing.T, s store.Store) {
	n := s.Notes("room")
	no := errors.New("no")
	refuse := func([]byte) ([]byte, error) { return []byte("other"), no }
	if err := n.Change(t.Context(), "a", refuse); !errors.Is(err, no) {
		t.Fatalf("change: %v", err)
	}
	wantNotes(t, n)
	mustWrite(t, n, "a", "x")
	if err := n.Change(t.Context(), "a", refuse); !errors.Is(err, no) {
		t.Fatalf("change: %v", err)
	}
	wantNote(t, n, "a", "x")
}

// No change gets lost.
func checkNotesChangeAtOnce(t *testing.T, s store.Store) {
	const writers, rounds = 4, 10
	errs := make([]error, writers)
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			for range rounds {
				errs[i] = errors.Join(errs[i], s.Notes("room").Change(t.Context(), "count", func(old []byte) ([]byte, error) {
					n, _ := strconv.Atoi(string(old)) // none is 0
					return []byte(strconv.Itoa(n + 1)), nil
				}))
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	wantNote(t, s.Notes("room"), "count", strconv.Itoa(writers*rounds))
}

// A reader gets one note or the other, never a part.
func checkNotesWholeOrNot(t *testing.T, s store.Store) {
	n := s.Notes("room")
	versions := []string{"short", string(bytes.Repeat([]byte("long "), 20_000))}
	mustWrite(t, n, "a", versions[0])
	done := make(chan error, 1)
	go func() {
		var err error
		for i := 0; i < 20 && err == nil; i++ {
			err = n.Write(t.Context(), "a", []byte(versions[i%2]))
		}
		done <- err
	}()
	for {
		data, err := n.Read(t.Context(), "a")
		if got := string(data); err != nil || got != versions[0] && got != versions[1] {
			t.Fatal(fmt.Errorf("read %d bytes: %w", len(data), err))
		}
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
			return
		default:
		}
	}
}

func checkNotesCancelled(t *testing.T, s store.Store) {
	n := s.Notes("room")
	mustWrite(t, n, "a", "x")
	if err := n.Write(cancelled(t), "a", []byte("y")); !errors.Is(err, cancelled(t).Err()) {
		t.Fatalf("write: %v", err)
	}
	if err := n.Change(cancelled(t), "a", func([]byte) ([]byte, error) { return []byte("y"), nil }); !errors.Is(err, cancelled(t).Err()) {
		t.Fatalf("change: %v", err)
	}
	wantNote(t, n, "a", "x")
}
