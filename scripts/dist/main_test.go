package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"slices"
	"testing"
	"time"
)

var (
	commitTime = time.Date(2026, 3, 1, 10, 30, 14, 0, time.UTC)
	papers     = []file{
		{"coppice", 0o755, []byte("program")},
		{"README.md", 0o644, []byte("read me")},
		{"man/man1/coppice.1", 0o644, []byte(".TH")},
	}
	inOrder = []string{"c-1/README.md", "c-1/coppice", "c-1/man/man1/coppice.1"}
)

// Both kinds of archives have the same members: sorted, dated by the commit,
// executable where they must be, and nobody's.
func TestArchivesAreSortedAndNobodys(t *testing.T) {
	t.Parallel()
	var packed bytes.Buffer
	if err := writeTarGz(&packed, "c-1", papers, commitTime); err != nil {
		t.Fatal(err)
	}
	unpacked, err := gzip.NewReader(&packed)
	if err != nil {
		t.Fatal(err)
	}
	if unpacked.Name != "" || !unpacked.ModTime.IsZero() {
		t.Errorf("the compression has the name %q and the time %v", unpacked.Name, unpacked.ModTime)
	}
	var names []string
	for archive := tar.NewReader(unpacked); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, h.Name)
		if h.Uid != 0 || h.Gid != 0 || h.Uname != "" || h.Gname != "" {
			t.Errorf("%s belongs to %d %q, %d %q", h.Name, h.Uid, h.Uname, h.Gid, h.Gname)
		}
		checkMember(t, h.Name, h.FileInfo().Mode(), h.ModTime)
	}
	if !slices.Equal(names, inOrder) {
		t.Errorf("the tar archive has %q", names)
	}
}

func TestZipsAreSorted(t *testing.T) {
	t.Parallel()
	var packed bytes.Buffer
	if err := writeZip(&packed, "c-1", papers, commitTime); err != nil {
		t.Fatal(err)
	}
	archive, err := zip.NewReader(bytes.NewReader(packed.Bytes()), int64(packed.Len()))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range archive.File {
		names = append(names, f.Name)
		checkMember(t, f.Name, f.Mode(), f.Modified)
	}
	if !slices.Equal(names, inOrder) {
		t.Errorf("the zip archive has %q", names)
	}
}

func checkMember(t *testing.T, name string, mode fs.FileMode, at time.Time) {
	t.Helper()
	want := fs.FileMode(0o644)
	if name == "c-1/coppice" {
		want = 0o755
	}
	if mode != want {
		t.Errorf("%s has mode %v, not %v", name, mode, want)
	}
	if !at.Equal(commitTime) {
		t.Errorf("%s is of %v, not of the commit's time", name, at)
	}
}

// The order in which files are found, and where on earth that is, change nothing.
func TestSameFilesGiveTheSameBytes(t *testing.T) {
	t.Parallel()
	turned := slices.Clone(papers)
	slices.Reverse(turned)
	elsewhere := commitTime.In(time.FixedZone("elsewhere", 5*3600))
	for name, write := range map[string]func(io.Writer, string, []file, time.Time) error{"tar.gz": writeTarGz, "zip": writeZip} {
		var a, b bytes.Buffer
		if err := errors.Join(write(&a, "c-1", papers, commitTime), write(&b, "c-1", turned, elsewhere)); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(a.Bytes(), b.Bytes()) {
			t.Errorf("two %s archives of the same files differ", name)
		}
	}
}

// A version is part of file names, and must not lead elsewhere.
func TestVersionsThatAreNoFileNamesAreRefused(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"../v1", "-rf", "v 1"} {
		if _, err := describe(t.Context(), version); err == nil {
			t.Errorf("%q was accepted", version)
		}
	}
}
