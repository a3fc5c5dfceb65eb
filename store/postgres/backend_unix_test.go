//go:build unix

package postgres_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/internal/postgrestest"
	"github.com/coppice-dev/coppice/internal/s3test"
	"github.com/coppice-dev/coppice/internal/soak"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/postgres"
	"github.com/coppice-dev/coppice/store/storetest"
)

// elsewhere are the places outside of the database that blobs can be in. files is a pattern for
// the directories with their files, which for a bucket are on its server.
var elsewhere = map[string]func(t *testing.T) (place, files string){
	"directory": func(t *testing.T) (string, string) {
		dir := t.TempDir()
		return dir, filepath.Join(dir, "*", "*", ".coppice", "blobs", "*")
	},
	"bucket": func(t *testing.T) (string, string) {
		b := s3test.New(t)
		return b.URL(b.Endpoint), filepath.Join(b.Dir, "some", "prefix", "*", "*")
	},
}

// eachPlace runs a test with blobs in a place, and gives it the URL of the store.
func eachPlace(t *testing.T, test func(t *testing.T, where, files string)) {
	t.Parallel()
	for name, make := range elsewhere {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			place, files := make(t)
			test(t, mustMakeWith(t, place), files)
		})
	}
}

// mustMakeWith returns the URL of a new store with blobs in a place.
func mustMakeWith(t *testing.T, place string) string {
	t.Helper()
	where := postgrestest.Empty(t)
	if _, err := postgres.Migrate(t.Context(), where); err != nil {
		t.Fatal(err)
	}
	mustKeep(t, where, place)
	return where
}

func mustKeep(t *testing.T, where, place string) {
	t.Helper()
	if _, err := postgres.KeepBlobs(t.Context(), where, place); err != nil {
		t.Fatal(err)
	}
}

// filesOf returns the files of a blob.
func filesOf(t *testing.T, files string, ref store.Ref) []string {
	t.Helper()
	digits, _ := ref.Hex()
	paths, err := filepath.Glob(filepath.Join(files, digits))
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

func wantBlob(t *testing.T, s store.Store, ref store.Ref, want error) {
	t.Helper()
	data, err := s.Blobs().Get(t.Context(), ref)
	if !errors.Is(err, want) || err == nil && store.RefOf(data) != ref {
		t.Errorf("get %s: %q, %v; want %v", ref, data, err, want)
	}
}

func mustCollect(t *testing.T, s store.Store, refs ...store.Ref) []store.Ref {
	t.Helper()
	done, err := s.Blobs().Collect(t.Context(), refs...)
	if err != nil {
		t.Fatal(err)
	}
	return done.Deleted
}

func TestStoreWithBlobsElsewhere(t *testing.T) {
	if testing.Short() {
		t.Skip("the suite is long")
	}
	eachPlace(t, func(t *testing.T, where, _ string) {
		var tenants atomic.Int64
		storetest.Run(t, func(t *testing.T) store.Store {
			return mustOpen(t, postgrestest.With(t, where, "tenant", fmt.Sprint(tenants.Add(1))), &postgres.Options{MaxLine: 6 << 20})
		})
	})
}

// A blob is one file with its content. When nothing names it any more it is deleted there, and
// nothing else is.
func TestBlobsElsewhere(t *testing.T) {
	eachPlace(t, func(t *testing.T, where, files string) {
		s := mustOpen(t, where, nil)
		ref, kept := storetest.MustPut(t, s.Blobs(), []byte("content")), storetest.MustPut(t, s.Blobs(), []byte("kept"))
		storetest.MustCreate(t, s, "a", fmt.Sprintf(`{"blob":%q}`, kept))
		storetest.MustPut(t, mustOpen(t, where, nil).Blobs(), []byte("content"))
		paths := filesOf(t, files, ref)
		if len(paths) != 1 {
			t.Fatalf("the files of a blob are %v", paths)
		}
		if data, err := os.ReadFile(paths[0]); err != nil || string(data) != "content" {
			t.Errorf("the file has %q, %v", data, err)
		}
		unreferenced, err := s.Blobs().Unreferenced(t.Context())
		if err != nil || len(unreferenced) != 1 || unreferenced[0].Name != string(ref) || unreferenced[0].Size != 7 {
			t.Errorf("unreferenced are %+v, %v", unreferenced, err)
		}
		if deleted := mustCollect(t, s, ref, kept); !slices.Equal(deleted, []store.Ref{ref}) {
			t.Errorf("deleted %v", deleted)
		}
		if paths := filesOf(t, files, ref); len(paths) > 0 {
			t.Errorf("still there: %v", paths)
		}
		wantBlob(t, s, ref, store.ErrNotExist)
		wantBlob(t, s, kept, nil)
	})
}

// Tenants and databases that share a place do not share blobs, whatever their names are.
func TestBlobsElsewhereAreApart(t *testing.T) {
	eachPlace(t, func(t *testing.T, where, files string) {
		one := mustOpen(t, where, nil)
		others := []*postgres.Store{one}
		for _, tenant := range []string{"a", "A", "_", "a b", "A b", "ä", "_a"} {
			others = append(others, mustOpen(t, postgrestest.With(t, where, "tenant", tenant), nil))
		}
		for _, s := range others {
			storetest.MustPut(t, s.Blobs(), []byte("same"))
		}
		ref := store.RefOf([]byte("same"))
		if paths := filesOf(t, files, ref); len(paths) != len(others) {
			t.Errorf("%d files for %d tenants: %v", len(paths), len(others), paths)
		}
		mustCollect(t, one, ref)
		wantBlob(t, one, ref, store.ErrNotExist)
		for _, s := range others[1:] {
			wantBlob(t, s, ref, nil)
			if n := len(mustAll(t, s)); n != 1 {
				t.Errorf("%s lists %d blobs", s.Where(), n)
			}
		}
	})
}

func mustAll(t *testing.T, s store.Store) (refs []store.Ref) {
	t.Helper()
	for ref, err := range s.Blobs().All(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		refs = append(refs, ref)
	}
	return refs
}

func TestDatabasesShareADirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	one, two := mustOpen(t, mustMakeWith(t, dir), nil), mustOpen(t, mustMakeWith(t, dir), nil)
	ref := storetest.MustPut(t, one.Blobs(), []byte("same"))
	storetest.MustPut(t, two.Blobs(), []byte("same"))
	mustCollect(t, one, ref)
	wantBlob(t, two, ref, nil)
}

// Blobs stay where they are when others go elsewhere. All programs find them, those too that
// were running before.
func TestBlobsMoveOn(t *testing.T) {
	t.Parallel()
	where := mustMakeWith(t, postgres.InDatabase)
	early, deleter := mustOpen(t, where, nil), mustOpen(t, where, nil)
	refs := []store.Ref{storetest.MustPut(t, early.Blobs(), []byte("0"))}
	wantBlob(t, deleter, refs[0], nil) // and never looks again
	dir, dirFiles := elsewhere["directory"](t)
	bucket, bucketFiles := elsewhere["bucket"](t)
	for i, place := range []string{dir, bucket, dir + "/", postgres.InDatabase} {
		mustKeep(t, where, place)
		late := mustOpen(t, where, nil)
		refs = append(refs, storetest.MustPut(t, late.Blobs(), fmt.Append(nil, i+1)))
		for _, ref := range refs {
			wantBlob(t, early, ref, nil)
			wantBlob(t, late, ref, nil)
		}
	}
	for i, want := range []int{0, 1, 0, 1, 0} {
		if n := len(filesOf(t, dirFiles, refs[i])); n != want {
			t.Errorf("blob %d has %d files in the directory, want %d", i, n, want)
		}
		if n := len(filesOf(t, bucketFiles, refs[i])); n != 0 != (i == 2) {
			t.Errorf("blob %d has %d files in the bucket", i, n)
		}
	}
	mustKeep(t, where, bucket)
	again := mustOpen(t, where, nil)
	for _, data := range []string{"0", "1"} { // these are in two places now
		storetest.MustPut(t, again.Blobs(), []byte(data))
	}
	for _, s := range []store.Store{early, again} {
		all := mustAll(t, s)
		slices.Sort(all)
		if want := slices.Sorted(slices.Values(refs)); !slices.Equal(all, want) {
			t.Errorf("the blobs are %v, want %v", all, want)
		}
	}
	if deleted := mustCollect(t, deleter, refs...); len(deleted) != len(refs) {
		t.Errorf("deleted %v", deleted)
	}
	for _, ref := range refs {
		wantBlob(t, again, ref, store.ErrNotExist)
		if left := append(filesOf(t, dirFiles, ref), filesOf(t, bucketFiles, ref)...); len(left) > 0 {
			t.Errorf("still there: %v", left)
		}
	}
}

// What is damaged or missing outside of the database is reported, never handed out, and mended
// by who has the content.
func TestDamageElsewhere(t *testing.T) {
	eachPlace(t, func(t *testing.T, where, files string) {
		s := mustOpen(t, where, nil)
		content := bytes.Repeat([]byte("content "), 100_000)
		ref, other := store.RefOf(content), storetest.MustPut(t, s.Blobs(), []byte("other"))
		for _, c := range []struct {
			name   string
			damage func(path string) error
			want   error
			heals  bool
		}{
			{"gone", os.Remove, store.ErrNotExist, true},
			{"half", func(path string) error { return os.Truncate(path, int64(len(content)/2)) }, store.ErrCorrupt, true},
			{"empty", func(path string) error { return os.Truncate(path, 0) }, store.ErrCorrupt, true},
			{"zeros", func(path string) error { return os.WriteFile(path, make([]byte, len(content)), 0o600) }, store.ErrCorrupt, false},
		} {
			storetest.MustPut(t, s.Blobs(), content)
			wantBlob(t, s, ref, nil)
			paths := filesOf(t, files, ref)
			if len(paths) != 1 {
				t.Fatalf("%s: the files of a blob are %v", c.name, paths)
			}
			if err := c.damage(paths[0]); err != nil {
				t.Fatal(err)
			}
			_, err := s.Blobs().Get(t.Context(), ref)
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), string(ref)) {
				t.Errorf("%s: %v", c.name, err)
			}
			wantBlob(t, s, other, nil)
			if c.heals {
				storetest.MustPut(t, s.Blobs(), content)
				wantBlob(t, s, ref, nil)
			}
		}
	})
}

// Without the mount, nothing is written to the disk under it, and nothing is taken for missing.
func TestUnmountedDirectory(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "mount")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	s := mustOpen(t, mustMakeWith(t, dir), nil)
	ref := storetest.MustPut(t, s.Blobs(), []byte("content"))
	if err := errors.Join(os.Rename(dir, dir+" away"), os.Mkdir(dir, 0o700)); err != nil {
		t.Fatal(err)
	}
	_, putErr := s.Blobs().Put(t.Context(), []byte("more"))
	_, getErr := s.Blobs().Get(t.Context(), ref)
	_, listErr := s.Blobs().Unreferenced(t.Context())
	_, collectErr := s.Blobs().Collect(t.Context(), ref)
	for _, err := range []error{putErr, getErr, listErr, collectErr} {
		if !errors.Is(err, store.ErrUnavailable) || !strings.Contains(fmt.Sprint(err), "is mounted") {
			t.Errorf("without the mount: %v", err)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("under the mount are %v, %v", entries, err)
	}
	if err := errors.Join(os.Remove(dir), os.Rename(dir+" away", dir)); err != nil {
		t.Fatal(err)
	}
	wantBlob(t, s, ref, nil)
}

// A place that cannot be used is refused when it is chosen, and nothing changes. No error has a
// key in it.
func TestRefusedPlaces(t *testing.T) {
	b := s3test.New(t)
	where := mustMakeWith(t, b.URL(b.Endpoint))
	s := mustOpen(t, where, nil)
	ref := storetest.MustPut(t, s.Blobs(), []byte("before"))
	readOnly, err := s3test.Start(t.TempDir(), "--readonly")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(readOnly.Dir, b.Name), 0o700); err != nil {
		t.Fatal(err)
	}
	const secret = "hunter2"
	for _, c := range []struct {
		name, place string
		keyID, key  string
		want        error
		says        string
	}{
		{"wrong secret", b.URL(b.Endpoint), s3test.KeyID, secret, fs.ErrPermission, "AWS_SECRET_ACCESS_KEY"},
		{"wrong key", b.URL(b.Endpoint), "nobody", secret, fs.ErrPermission, "AWS_ACCESS_KEY_ID"},
		{"read only", b.URL(readOnly.Endpoint), s3test.KeyID, s3test.Secret, fs.ErrPermission, "may list"},
		{"no bucket", strings.Replace(b.URL(b.Endpoint), b.Name, "no-such-bucket", 1), s3test.KeyID, s3test.Secret, store.ErrUnavailable, "make the bucket"},
		{"key in URL", "s3://AKIA:" + secret + "@bucket", "", "", store.ErrInvalid, "AWS_ACCESS_KEY_ID"},
		{"parameter", "s3://bucket?secret=" + secret, "", "", store.ErrInvalid, `"secret"`},
		{"endpoint", "s3://bucket?endpoint=host", "", "", store.ErrInvalid, "https://host:port"},
		{"nonsense", "ftp://" + secret, "", "", store.ErrInvalid, "s3://bucket/prefix"},
		{"relative", "blobs", "", "", store.ErrInvalid, "whole path"},
		{"no directory", filepath.Join(t.TempDir(), "none"), "", "", fs.ErrNotExist, "mount it"},
	} {
		t.Setenv("AWS_ACCESS_KEY_ID", c.keyID)
		t.Setenv("AWS_SECRET_ACCESS_KEY", c.key)
		_, err := postgres.KeepBlobs(t.Context(), where, c.place)
		if !errors.Is(err, c.want) || !strings.Contains(full(err), c.says) || strings.Contains(full(err), secret) || strings.Contains(full(err), s3test.Secret) {
			t.Errorf("%s: %v", c.name, full(err))
		}
	}
	storetest.MustPut(t, s.Blobs(), []byte("after"))
	if n := len(filesOf(t, filepath.Join(b.Dir, "some", "prefix", "*", "*"), ref)); n != 1 {
		t.Errorf("the blob has %d files", n)
	}
	if n := len(mustAll(t, s)); n != 2 {
		t.Errorf("%d blobs", n)
	}
	// A program without a key can do all else, and loses nothing.
	t.Setenv("AWS_ACCESS_KEY_ID", "nobody")
	keyless := mustOpen(t, where, nil)
	_, putErr := keyless.Blobs().Put(t.Context(), []byte("more"))
	_, getErr := keyless.Blobs().Get(t.Context(), ref)
	_, collectErr := keyless.Blobs().Collect(t.Context(), ref)
	for _, err := range []error{putErr, getErr, collectErr} {
		if !errors.Is(err, fs.ErrPermission) {
			t.Errorf("without a key: %v", err)
		}
	}
	storetest.MustCreate(t, keyless, "a", `{"n":1}`)
	wantBlob(t, s, ref, nil)
}

// full returns an error with its hint.
func full(err error) string {
	if e, ok := errors.AsType[*store.Error](err); ok {
		return e.Error() + " (" + e.Hint + ")"
	}
	return fmt.Sprint(err)
}

// Whatever becomes of the connections to the bucket, nobody reads half a blob, and what was put
// is there.
func TestLostConnectionsToBucket(t *testing.T) {
	t.Parallel()
	b := s3test.New(t)
	var wild atomic.Bool
	rng := soak.Rand(t)
	c := &cutter{"tcp", strings.TrimPrefix(b.Endpoint, "http://"), rng, func(net.Conn, []byte) bool { return wild.Load() && rng.IntN(25) == 0 }}
	where := mustMakeWith(t, b.URL("http://"+c.listen(t, "127.0.0.1:0")))
	s := mustOpen(t, where, nil)
	wild.Store(true)
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for n := range 4 {
				data := bytes.Repeat(fmt.Appendf(nil, "writer %d, content %d ", w, n), 20_000)
				ref, err := s.Blobs().Put(t.Context(), data)
				if err != nil {
					t.Errorf("put: %v", err)
					return
				}
				wantBlob(t, s, ref, nil)
			}
		})
	}
	wg.Wait()
	refs := mustAll(t, s)
	if len(refs) != 16 {
		t.Errorf("%d blobs", len(refs))
	}
	if deleted := mustCollect(t, s, refs...); len(deleted) != len(refs) {
		t.Errorf("deleted %d of %d", len(deleted), len(refs))
	}
}

// When the bucket goes away, the error says so, and all is as before when it is back.
func TestBucketAway(t *testing.T) {
	t.Parallel()
	b := s3test.New(t)
	var away atomic.Bool
	c := &cutter{"tcp", strings.TrimPrefix(b.Endpoint, "http://"), soak.Rand(t), func(net.Conn, []byte) bool { return away.Load() }}
	where := mustMakeWith(t, b.URL("http://"+c.listen(t, "127.0.0.1:0")))
	s := mustOpen(t, where, nil)
	s.SetPatience(100 * time.Millisecond)
	ref := storetest.MustPut(t, s.Blobs(), []byte("content"))
	if _, err := postgres.KeepBlobs(t.Context(), where, b.URL("http://127.0.0.1:1")); !errors.Is(err, store.ErrUnavailable) || !strings.Contains(full(err), "can be reached") {
		t.Errorf("keep blobs where no server is: %s", full(err))
	}
	away.Store(true)
	_, putErr := s.Blobs().Put(t.Context(), []byte("more"))
	_, getErr := s.Blobs().Get(t.Context(), ref)
	_, collectErr := s.Blobs().Collect(t.Context(), ref)
	for _, err := range []error{putErr, getErr, collectErr} {
		if !errors.Is(err, store.ErrUnavailable) || !strings.Contains(full(err), "can be reached") {
			t.Errorf("without a bucket: %s", full(err))
		}
	}
	away.Store(false)
	wantBlob(t, s, ref, nil)
	if all := mustAll(t, s); !slices.Contains(all, ref) {
		t.Errorf("the blobs are %v", all)
	}
}
