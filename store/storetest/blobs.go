package storetest

import (
	"bytes"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/coppice-dev/coppice/store"
)

var blobChecks = []check{
	{"PutGet", checkBlobPutGet},
	{"SameContent", checkBlobSameContent},
	{"NotExist", checkBlobNotExist},
	{"Malformed", checkBlobMalformed},
	{"All", checkBlobAll},
	{"AllMeanwhile", checkBlobAllMeanwhile},
	{"Concurrent", checkBlobConcurrent},
	{"OwnBytes", checkBlobOwnBytes},
	{"OutliveLogs", checkBlobOutliveLogs},
	{"Cancelled", checkBlobCancelled},
	{"Hold", checkBlobHold},
}

// contents are blobs of the sizes and bytes in which something might go wrong.
func contents() [][]byte {
	return [][]byte{
		[]byte(""), []byte("\x00"), []byte("\n"), []byte("x"), []byte("a\nb\r\n\x00\xff"), []byte(`{"n":1}`),
		bytes.Repeat([]byte{0}, 4096), bytes.Repeat([]byte("\xff\n"), 32<<10), bytes.Repeat([]byte("5 MiB"), 1<<20),
	}
}

func mustGet(t testing.TB, blobs store.Blobs, ref store.Ref) []byte {
	t.Helper()
	data, err := blobs.Get(t.Context(), ref)
	if err != nil {
		t.Fatalf("get %s: %v", ref, err)
	}
	return data
}

// mustRefs returns the names of all blobs in order, as often as they are given.
func mustRefs(t testing.TB, blobs store.Blobs) []string {
	t.Helper()
	var refs []string
	for ref, err := range blobs.All(t.Context()) {
		if err != nil {
			t.Fatalf("all: %q: %v", ref, err)
		}
		refs = append(refs, string(ref))
	}
	slices.Sort(refs)
	return refs
}

func checkBlobPutGet(t *testing.T, s store.Store) {
	for _, data := range contents() {
		ref := MustPut(t, s.Blobs(), data)
		if ref != store.RefOf(data) {
			t.Fatalf("put of %d bytes returned %s, want %s", len(data), ref, store.RefOf(data))
		}
	}
	if ref := MustPut(t, s.Blobs(), nil); ref != store.RefOf(nil) {
		t.Fatalf("put of nil returned %s", ref)
	}
	for _, data := range contents() {
		if got := mustGet(t, s.Blobs(), store.RefOf(data)); !bytes.Equal(got, data) {
			t.Fatalf("put %d bytes %.40q, got %d bytes %.40q", len(data), data, len(got), got)
		}
	}
}

func checkBlobSameContent(t *testing.T, s store.Store) {
	first := MustPut(t, s.Blobs(), []byte("same"))
	for range 3 {
		if again := MustPut(t, s.Blobs(), []byte("same")); again != first {
			t.Fatalf("the same content is %s, then %s", first, again)
		}
	}
	wantTexts(t, "all, after one was put four times", mustRefs(t, s.Blobs()), []string{string(first)})
}

func checkBlobNotExist(t *testing.T, s store.Store) {
	MustPut(t, s.Blobs(), []byte("here"))
	for _, absent := range []store.Ref{store.RefOf(nil), store.RefOf([]byte("not here"))} {
		_, err := s.Blobs().Get(t.Context(), absent)
		wantErr(t, err, "", store.ErrNotExist, fs.ErrNotExist)
	}
}

func checkBlobMalformed(t *testing.T, s store.Store) {
	ref := string(MustPut(t, s.Blobs(), []byte("here")))
	digits := strings.TrimPrefix(ref, "sha256:")
	for _, bad := range []string{
		"", "sha256:", "sha256", digits, ":" + digits, "md5:" + digits, "SHA256:" + digits, "sha256:" + strings.ToUpper(digits),
		ref[:len(ref)-1], ref + "0", ref + "/", ref + "\n", " " + ref, "sha256: " + digits[1:], "sha256:" + ref,
		"sha256:" + strings.Repeat("g", 64), "sha256:" + strings.Repeat("\x00", 64), "sha256:" + strings.Repeat("é", 32),
		"sha256:" + strings.Repeat("../", 21) + "x", "sha256:../" + digits[3:], "sha256:/" + digits[1:],
		"sha256:" + digits[:2] + "/" + digits[3:], "sha256:" + digits[:2] + "\\" + digits[3:],
		"../" + ref, "/etc/passwd", "sha256:../../../../etc/passwd", ".", "..",
	} {
		data, err := s.Blobs().Get(t.Context(), store.Ref(bad))
		if err == nil {
			t.Fatalf("get %q gave %d bytes", bad, len(data))
		}
		wantErr(t, err, "", store.ErrInvalid, fs.ErrInvalid)
	}
}

func checkBlobAll(t *testing.T, s store.Store) {
	MustCreate(t, s, "a", num(0)) // a log is not a blob
	wantTexts(t, "all of none", mustRefs(t, s.Blobs()), nil)
	var want []string
	for n := range 100 {
		want = append(want, string(MustPut(t, s.Blobs(), []byte(num(n)))))
	}
	slices.Sort(want)
	for _, err := range s.Blobs().All(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		break
	}
	wantTexts(t, "all", mustRefs(t, s.Blobs()), want)
}

func checkBlobAllMeanwhile(t *testing.T, s store.Store) {
	for n := range 20 {
		MustPut(t, s.Blobs(), []byte(num(n)))
	}
	within(t, "get and put while listing", func() error {
		n := 0
		for ref, err := range s.Blobs().All(t.Context()) {
			if err != nil {
				return err
			}
			if n++; n > 20 {
				continue // a new one: they may be listed or not
			}
			if _, err := s.Blobs().Get(t.Context(), ref); err != nil {
				return err
			}
			if _, err := s.Blobs().Put(t.Context(), []byte(num(1000+n))); err != nil {
				return err
			}
		}
		return nil
	})
	if got := mustRefs(t, s.Blobs()); len(got) != 40 {
		t.Fatalf("%d blobs, want 40", len(got))
	}
}

func checkBlobConcurrent(t *testing.T, s store.Store) {
	same := bytes.Repeat([]byte("same "), 50_000)
	errs := make([]error, 8)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() { errs[i] = putSameAndOwn(t, s.Blobs(), same, i) })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
	if got := mustRefs(t, s.Blobs()); len(got) != 1+len(errs) {
		t.Fatalf("%d blobs, want %d", len(got), 1+len(errs))
	}
}

// putSameAndOwn checks that a blob is whole from the moment its Put returns,
// while others put the same.
func putSameAndOwn(t *testing.T, blobs store.Blobs, same []byte, i int) error {
	for _, data := range [][]byte{same, fmt.Append(nil, "own ", i), same} {
		ref, err := blobs.Put(t.Context(), data)
		if err != nil {
			return err
		}
		got, err := blobs.Get(t.Context(), ref)
		if err != nil {
			return err
		}
		if !bytes.Equal(got, data) {
			return fmt.Errorf("put %d bytes, got %d other bytes", len(data), len(got))
		}
	}
	return nil
}

func checkBlobOwnBytes(t *testing.T, s store.Store) {
	data := []byte("as it was")
	ref := MustPut(t, s.Blobs(), data)
	clear(data)
	for range 3 {
		got := mustGet(t, s.Blobs(), ref)
		if string(got) != "as it was" {
			t.Fatalf("the caller's change reached the store: %q", got)
		}
		clear(got)
	}
}

func checkBlobOutliveLogs(t *testing.T, s store.Store) {
	ref := MustPut(t, s.Blobs(), []byte("shared"))
	MustCreate(t, s, "a", fmt.Sprintf(`{"blob":%q}`, ref))
	mustRemove(t, s, "a")
	if got := mustGet(t, s.Blobs(), ref); string(got) != "shared" {
		t.Fatalf("got %q", got)
	}
}

// A cancelled Put may or may not have kept the blob, but never half of it.
func checkBlobCancelled(t *testing.T, s store.Store) {
	data := bytes.Repeat([]byte("half"), 50_000)
	_, putErr := s.Blobs().Put(cancelled(t), data)
	got, err := s.Blobs().Get(t.Context(), store.RefOf(data))
	switch {
	case err == nil && !bytes.Equal(got, data):
		t.Fatalf("a cancelled put left %d of %d bytes", len(got), len(data))
	case err != nil && putErr == nil:
		t.Fatalf("put succeeded, get says %v", err)
	case err != nil:
		wantErr(t, err, "", store.ErrNotExist)
		wantOneOf(t, putErr, cancelled(t).Err())
	}
}
