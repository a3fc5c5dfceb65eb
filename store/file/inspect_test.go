package file_test

import (
	"context"
	"errors"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
)

// kinds returns the kinds of faults and the names of the files that have them.
func kinds(t *testing.T, faults iter.Seq2[store.Fault, error]) string {
	t.Helper()
	var all []string
	for f, err := range faults {
		must(t, err)
		all = append(all, string(f.Kind)+": "+filepath.Base(f.Path))
	}
	return strings.Join(all, ", ")
}

func TestInspectFindsWhatIsWrongWithFiles(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "s")
	st, err := file.Open(dir, &file.Options{Sync: file.Never})
	must(t, err)
	defer st.Close()
	log, err := st.Create(t.Context(), "a", store.Lines([]byte(`{"type":"session","id":"a"}`)))
	must(t, err)
	must(t, log.Close())
	if got := kinds(t, st.InspectLog(t.Context(), "a")) + kinds(t, st.InspectRest(t.Context())); got != "" {
		t.Fatalf("a store in good health: %s", got)
	}
	must(t, os.WriteFile(lockOf(st, "a"), []byte("unsynced\n"), 0o600))
	tmp := filepath.Join(houseOf(st), "tmp")
	must(t, errors.Join(os.MkdirAll(tmp, 0o700), os.WriteFile(filepath.Join(tmp, "OLD"), nil, 0o600), os.WriteFile(filepath.Join(tmp, "NEW"), nil, 0o600)))
	long := time.Now().Add(-2 * store.StaleAfter)
	must(t, os.Chtimes(filepath.Join(tmp, "OLD"), long, long))
	must(t, os.WriteFile(lockOf(st, "gone"), nil, 0o600))
	must(t, os.Mkdir(filepath.Join(dir, "dir.jsonl"), 0o700))
	if got, want := kinds(t, st.InspectLog(t.Context(), "a")), "failed sync: a.lock"; got != want {
		t.Errorf("of the log: %s, want %s", got, want)
	}
	if got, want := kinds(t, st.InspectRest(t.Context())), "ignored file: dir.jsonl, stale temporary file: OLD, stale lock: gone.lock"; got != want {
		t.Errorf("of the rest: %s, want %s", got, want)
	}
	for f, err := range st.InspectRest(t.Context()) {
		must(t, err)
		if err := st.Mend(t.Context(), f); f.Kind == store.FaultIgnored && !errors.Is(err, errors.ErrUnsupported) || f.Kind != store.FaultIgnored && err != nil {
			t.Errorf("mending %s: %v", f.Path, err)
		}
	}
	if got, want := kinds(t, st.InspectRest(t.Context())), "ignored file: dir.jsonl"; got != want {
		t.Errorf("after mending: %s, want %s", got, want)
	}
}

func TestMendNarrowsPermissions(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("permissions of another kind")
	}
	dir := filepath.Join(t.TempDir(), "s")
	st, err := file.Open(dir, &file.Options{Sync: file.Never})
	must(t, err)
	defer st.Close()
	log, err := st.Create(t.Context(), "a", store.Lines([]byte(`{"type":"session","id":"a"}`)))
	must(t, err)
	must(t, log.Close())
	must(t, errors.Join(os.Chmod(dir, 0o755), os.Chmod(houseOf(st), 0o750), os.Chmod(st.Path("a"), 0o644)))
	if got, want := kinds(t, st.InspectLog(t.Context(), "a")), "permissions: a.jsonl"; got != want {
		t.Errorf("of the log: %s, want %s", got, want)
	}
	if got, want := kinds(t, st.InspectRest(t.Context())), "permissions: s, permissions: .coppice"; got != want {
		t.Errorf("of the rest: %s, want %s", got, want)
	}
	for _, look := range []iter.Seq2[store.Fault, error]{st.InspectLog(t.Context(), "a"), st.InspectRest(t.Context())} {
		for f, err := range look {
			must(t, errors.Join(err, st.Mend(t.Context(), f)))
		}
	}
	if got := kinds(t, st.InspectLog(t.Context(), "a")) + kinds(t, st.InspectRest(t.Context())); got != "" {
		t.Errorf("after mending: %s", got)
	}
	outside := store.Fault{Kind: store.FaultPermissions, Path: filepath.Dir(dir), Mode: 0o755, Fit: 0o700}
	if err := st.Mend(t.Context(), outside); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("a file outside of the store: %v", err)
	}
	info, err := os.Stat(st.Path("a"))
	must(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the log's mode is %v", info.Mode())
	}
}

func TestInspectEndsWithItsContext(t *testing.T) {
	t.Parallel()
	st, err := file.Open(t.TempDir(), nil)
	must(t, err)
	defer st.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err := range st.InspectRest(ctx) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%v, want Canceled", err)
		}
	}
}
