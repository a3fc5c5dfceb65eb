package storetest

import (
	"context"
	"io/fs"
	"testing"

	"github.com/coppice-dev/coppice/store"
)

var closeChecks = []check{
	{"Log", checkCloseLog},
	{"Store", checkCloseStore},
	{"KeepsLines", checkCloseKeepsLines},
	{"EndsWatch", checkCloseEndsWatch},
	{"StoreEndsWatch", checkCloseStoreEndsWatch},
}

func checkCloseLog(t *testing.T, s store.Store) {
	log := MustCreate(t, s, "a", num(0))
	other := MustOpen(t, s, "a")
	end := MustEnd(t, log)
	for range 2 {
		if err := log.Close(); err != nil {
			t.Fatalf("close: %v", err)
		}
	}
	wantClosed(t, log, end)
	MustAppend(t, other, num(1))
	wantLines(t, other, num(0), num(1))
}

func checkCloseStore(t *testing.T, s store.Store) {
	log := MustCreate(t, s, "a", num(0))
	end := MustEnd(t, log)
	blobs := s.Blobs()
	ref := MustPut(t, blobs, []byte("blob"))
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatalf("close: %v", err)
		}
	}
	wantClosed(t, log, end)
	if err := log.Close(); err != nil {
		t.Fatalf("close a log of a closed store: %v", err)
	}
	wantStoreClosed(t, s)
	wantBlobsClosed(t, blobs, ref)
	wantBlobsClosed(t, s.Blobs(), ref)
}

func wantIsClosed(t *testing.T, err error, name string) {
	t.Helper()
	wantErr(t, err, name, store.ErrClosed, fs.ErrClosed)
}

func wantClosed(t *testing.T, log store.Log, end store.Pos) {
	t.Helper()
	_, err := log.Append(t.Context(), end, []byte(num(1)))
	wantIsClosed(t, err, "a")
	_, err = log.Append(t.Context(), end)
	wantIsClosed(t, err, "a")
	_, err = log.End(t.Context())
	wantIsClosed(t, err, "a")
	_, err = collect(log.Forward(t.Context(), 0))
	wantIsClosed(t, err, "a")
	_, err = collect(log.Backward(t.Context(), end))
	wantIsClosed(t, err, "a")
	wantIsClosed(t, log.Flush(t.Context()), "a")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err = collect(log.Watch(ctx, 0))
	wantIsClosed(t, err, "a")
	_, err = startAndCommit(t.Context(), log, end, []byte(num(1)))
	wantIsClosed(t, err, "a")
	_, err = log.Pin(t.Context())
	wantIsClosed(t, err, "a")
}

func wantStoreClosed(t *testing.T, s store.Store) {
	t.Helper()
	_, err := s.Create(t.Context(), "b", store.Lines())
	wantIsClosed(t, err, "")
	_, err = s.Open(t.Context(), "a")
	wantIsClosed(t, err, "")
	wantIsClosed(t, s.Remove(t.Context(), "a"), "")
	wantIsClosed(t, s.RemoveAt(t.Context(), "a", 0), "")
	_, err = s.Stat(t.Context(), "a")
	wantIsClosed(t, err, "")
	_, err = s.Changes(t.Context(), "a reader")
	wantIsClosed(t, err, "")
	_, err = s.Trash().List(t.Context())
	wantIsClosed(t, err, "")
	_, err = s.Notes("room").List(t.Context())
	wantIsClosed(t, err, "")
	_, err = s.Notes("room").Read(t.Context(), "note")
	wantIsClosed(t, err, "")
	wantIsClosed(t, s.Notes("room").Write(t.Context(), "note", nil), "")
	_, err = s.Parts().Copies(t.Context(), "")
	wantIsClosed(t, err, "")
	err = nil
	for _, err = range s.Parts().All(t.Context()) {
	}
	wantIsClosed(t, err, "")
	err = nil
	for _, err = range s.List(t.Context()) {
	}
	wantIsClosed(t, err, "")
}

func wantBlobsClosed(t *testing.T, blobs store.Blobs, ref store.Ref) {
	t.Helper()
	_, err := blobs.Put(t.Context(), []byte("another"))
	wantIsClosed(t, err, "")
	_, err = blobs.Get(t.Context(), ref)
	wantIsClosed(t, err, "")
	_, err = blobs.Hold(t.Context())
	wantIsClosed(t, err, "")
	_, err = blobs.Collect(t.Context(), ref)
	wantIsClosed(t, err, "")
	_, err = blobs.Unreferenced(t.Context())
	wantIsClosed(t, err, "")
	err = nil
	for _, err = range blobs.All(t.Context()) {
	}
	wantIsClosed(t, err, "")
}

func checkCloseKeepsLines(t *testing.T, s store.Store) {
	log := MustCreate(t, s, "a", num(0))
	MustAppend(t, log, num(1))
	log.Close()
	wantLines(t, MustOpen(t, s, "a"), num(0), num(1))
}

func checkCloseEndsWatch(t *testing.T, s store.Store) {
	log := MustCreate(t, s, "a", num(0))
	w := startWatch(t, log, 0)
	w.want(t, num(0))
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	wantIsClosed(t, w.end(t), "a")
}

func checkCloseStoreEndsWatch(t *testing.T, s store.Store) {
	log := MustCreate(t, s, "a", num(0))
	w := startWatch(t, log, 0)
	w.want(t, num(0))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	wantIsClosed(t, w.end(t), "a")
}
