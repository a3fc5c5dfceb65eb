package storetest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/store"
)

var collectChecks = []check{
	{"Unreferenced", checkCollectUnreferenced},
	{"Everywhere", checkCollectEverywhere},
	{"WaitsForHolds", checkCollectWaits},
	{"HoldWithinHold", checkCollectNested},
	{"Cancelled", checkCollectCancelled},
	{"BesideWriters", checkCollectBesideWriters},
}

func mustHold(t testing.TB, blobs store.Blobs) (release func()) {
	t.Helper()
	release, err := blobs.Hold(t.Context())
	if err != nil {
		t.Fatalf("hold: %v", err)
	}
	t.Cleanup(release)
	return release
}

func mustCollectBlobs(t testing.TB, s store.Store, refs ...store.Ref) []store.Ref {
	t.Helper()
	done, err := s.Blobs().Collect(t.Context(), refs...)
	if err != nil {
		t.Fatalf("collect: %v", err)
	}
	return done.Deleted
}

func naming(refs ...store.Ref) string { return fmt.Sprintf(`{"blobs":%q}`, refs) }

func wantMissing(t testing.TB, blobs store.Blobs, ref store.Ref) {
	t.Helper()
	_, err := blobs.Get(t.Context(), ref)
	wantErr(t, err, "", store.ErrNotExist)
}

func checkBlobHold(t *testing.T, s store.Store) {
	outer := mustHold(t, s.Blobs())
	within(t, "a hold within a hold", func() error {
		inner, err := s.Blobs().Hold(t.Context())
		if err == nil {
			inner()
			inner()
		}
		return err
	})
	ref := MustPut(t, s.Blobs(), []byte("held"))
	MustCreate(t, s, "a", naming(ref))
	outer()
	mustGet(t, s.Blobs(), ref)
	if _, err := s.Blobs().Hold(cancelled(t)); !errors.Is(err, cancelled(t).Err()) {
		t.Fatalf("hold with a cancelled context: %v", err)
	}
}

// Only blobs that were asked for and that no line names are deleted.
func checkCollectUnreferenced(t *testing.T, s store.Store) {
	var refs []store.Ref
	for n := range 6 {
		refs = append(refs, MustPut(t, s.Blobs(), []byte(num(n))))
	}
	log := MustCreate(t, s, "a", naming(refs[0]), `{"text":"`+string(refs[1])+`"}`)
	MustAppend(t, log, naming(refs[2]))
	absent := store.RefOf([]byte("absent"))
	deleted := mustCollectBlobs(t, s, refs[0], refs[1], refs[2], refs[3], refs[4], refs[3], absent, "nonsense")
	slices.Sort(deleted)
	want := slices.Sorted(slices.Values(refs[3:5]))
	if !slices.Equal(deleted, want) {
		t.Fatalf("deleted %v, want %v", deleted, want)
	}
	for _, ref := range []store.Ref{refs[0], refs[1], refs[2], refs[5]} {
		mustGet(t, s.Blobs(), ref)
	}
	for _, ref := range want {
		wantMissing(t, s.Blobs(), ref)
	}
	MustPut(t, s.Blobs(), []byte(num(3)))
	if got := mustGet(t, s.Blobs(), refs[3]); string(got) != num(3) {
		t.Fatalf("put again: %q", got)
	}
}

// A blob stays if anything names it: a log, one that was removed, or a note, except for
// the note of what is to go.
func checkCollectEverywhere(t *testing.T, s store.Store) {
	ctx := t.Context()
	var refs []store.Ref
	for n := range 5 {
		refs = append(refs, MustPut(t, s.Blobs(), []byte(num(n))))
	}
	MustCreate(t, s, "a", naming(refs[0]))
	MustCreate(t, s, "removed", naming(refs[1])).Close()
	mustRemove(t, s, "removed")
	mustWrite(t, s.Notes("room"), "note", naming(refs[2]))
	mustWrite(t, s.Notes(""), store.PendingNote, naming(refs[3]))
	free := slices.Sorted(slices.Values(refs[3:]))
	unreferenced, err := s.Blobs().Unreferenced(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var names []store.Ref
	for _, p := range unreferenced {
		names = append(names, store.Ref(p.Name))
		if p.Kind != store.PartBlob || p.Place != s.Parts().Where(store.PartBlob, p.Name) || p.Size == 0 {
			t.Errorf("an unreferenced blob is %+v", p)
		}
	}
	if !slices.Equal(names, free) {
		t.Fatalf("unreferenced are %v, want %v", names, free)
	}
	done, err := s.Blobs().Collect(ctx, refs...)
	if err != nil || !slices.Equal(slices.Sorted(slices.Values(done.Deleted)), free) {
		t.Fatalf("collected %+v, %v; want %v", done, err, free)
	}
	for i, want := range []store.Part{
		{Kind: store.PartLog, Name: "a"}, {Kind: store.PartCopy, Name: "removed"}, {Kind: store.PartNote, Name: "room/note"},
	} {
		named := done.Named[refs[i]]
		if len(named) != 1 || named[0].Kind != want.Kind || named[0].Name != want.Name || named[0].Place == "" {
			t.Errorf("%s is named by %+v, want %+v", refs[i], named, want)
		}
	}
}

// collecting starts a Collect, and gives it time to get as far as it can.
func collecting(t *testing.T, s store.Store, refs ...store.Ref) (wait func() []store.Ref) {
	type outcome struct {
		deleted []store.Ref
		err     error
	}
	done := make(chan outcome, 1)
	go func() {
		collected, err := s.Blobs().Collect(t.Context(), refs...)
		done <- outcome{collected.Deleted, err}
	}()
	time.Sleep(50 * time.Millisecond)
	return func() []store.Ref {
		t.Helper()
		select {
		case o := <-done:
			if o.err != nil {
				t.Fatalf("collect: %v", o.err)
			}
			return o.deleted
		case <-time.After(patience):
			t.Fatalf("collect: still not done after %v", patience)
			return nil
		}
	}
}

// What was there when it was put must be there when it is named.
func checkCollectWaits(t *testing.T, s store.Store) {
	log := MustCreate(t, s, "a", num(0))
	ref := MustPut(t, s.Blobs(), []byte("old"))
	other := MustPut(t, s.Blobs(), []byte("other"))
	release := mustHold(t, s.Blobs())
	wait := collecting(t, s, ref, other)
	MustPut(t, s.Blobs(), []byte("old"))
	mustGet(t, s.Blobs(), ref)
	mustGet(t, s.Blobs(), other)
	MustAppend(t, log, naming(ref))
	release()
	if deleted := wait(); !slices.Equal(deleted, []store.Ref{other}) {
		t.Fatalf("deleted %v, want %v", deleted, other)
	}
	mustGet(t, s.Blobs(), ref)
	wantMissing(t, s.Blobs(), other)
}

// A holder must get another hold even while a Collect waits to delete.
func checkCollectNested(t *testing.T, s store.Store) {
	ref := MustPut(t, s.Blobs(), []byte("content"))
	outer := mustHold(t, s.Blobs())
	wait := collecting(t, s, ref)
	within(t, "a hold within a hold", func() error {
		inner, err := s.Blobs().Hold(t.Context())
		if err == nil {
			inner()
		}
		return err
	})
	mustGet(t, s.Blobs(), ref)
	outer()
	wait()
	wantMissing(t, s.Blobs(), ref)
}

func checkCollectCancelled(t *testing.T, s store.Store) {
	ref := MustPut(t, s.Blobs(), []byte("content"))
	done, err := s.Blobs().Collect(cancelled(t), ref)
	if !errors.Is(err, cancelled(t).Err()) || done == nil || len(done.Deleted) > 0 {
		t.Fatalf("did %+v, error %v", done, err)
	}
	mustGet(t, s.Blobs(), ref)
}

// Writers find content that is there and not named, and name it, while all that is
// not named is deleted.
func checkCollectBesideWriters(t *testing.T, s store.Store) {
	const writers, rounds = 3, 12
	var refs []store.Ref
	for i := range writers {
		for n := range rounds {
			refs = append(refs, store.RefOf(ofWriter(i, n)))
		}
	}
	errs := make([]error, writers)
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			for n := 0; n < rounds && errs[i] == nil; n++ {
				errs[i] = putAndName(t, s, fmt.Sprintf("w%d-%d", i, n), ofWriter(i, n))
			}
		})
	}
	written := make(chan struct{})
	go func() { wg.Wait(); close(written) }()
	deleted := 0
	for done := false; !done; {
		select {
		case <-written:
			done = true
		default:
		}
		deleted += len(mustCollectBlobs(t, s, refs...))
	}
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	for _, ref := range refs {
		mustGet(t, s.Blobs(), ref)
	}
	t.Logf("%d were deleted before they were named", deleted)
}

func ofWriter(i, n int) []byte { return fmt.Appendf(nil, "writer %d, content %d", i, n) }

// putAndName leaves a blob unnamed for a while, which may then be deleted, and
// names it afterwards.
func putAndName(t *testing.T, s store.Store, name string, data []byte) error {
	if _, err := s.Blobs().Put(t.Context(), data); err != nil {
		return err
	}
	time.Sleep(time.Millisecond)
	release, err := s.Blobs().Hold(t.Context())
	if err != nil {
		return err
	}
	defer release()
	ref, err := s.Blobs().Put(t.Context(), data)
	if err != nil {
		return err
	}
	time.Sleep(2 * time.Millisecond)
	log, err := s.Create(t.Context(), name, store.Lines([]byte(naming(ref))))
	if err != nil {
		return err
	}
	return log.Close()
}
