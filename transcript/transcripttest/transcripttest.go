package transcripttest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/transcript"
)

// Open opens a file.
func Open(t testing.TB, path string) *transcript.File {
	t.Helper()
	f, err := transcript.OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// Collect reads a file, which the format must recognise.
func Collect(t testing.TB, format *transcript.Format, f *transcript.File) *transcript.Collected {
	t.Helper()
	if !format.Detect(f) {
		t.Fatalf("%s is not recognised as %s", f.Path, format.Title)
	}
	got, err := transcript.Collect(t.Context(), format, f)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// Samples returns the files below a directory of COPPICE_SAMPLES that match a
// pattern, for tests that also read real files where there are any.
func Samples(t testing.TB, pattern string) []string {
	t.Helper()
	dir := os.Getenv("COPPICE_SAMPLES")
	if dir == "" {
		return nil
	}
	paths, err := filepath.Glob(filepath.Join(dir, filepath.FromSlash(pattern)))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no samples %s in %s: %v", pattern, dir, err)
	}
	return paths
}

// Golden compares a text with that of a file. With COPPICE_UPDATE set, the file
// is written instead.
func Golden(t testing.TB, path, text string) {
	t.Helper()
	if os.Getenv("COPPICE_UPDATE") != "" {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(text, "\n")); diff != "" {
		t.Errorf("%s differs (-want +got):\n%s", path, diff)
	}
}
