package file_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/vfs"
	"github.com/coppice-dev/coppice/store/vfs/vfstest"
)

func TestIsKept(t *testing.T) {
	t.Parallel()
	for below, want := range map[string]file.Area{
		"a.jsonl":                              file.AreaLog,
		"a.jsonl.bak":                          file.AreaLog,
		".coppice/archive/a.jsonl.zst":         file.AreaArchive,
		".coppice/trash/a.1.jsonl":             file.AreaTrash,
		".coppice/quarantine/a.0.1.torn":       file.AreaQuarantine,
		".coppice/blobs/ab/abcd":               file.AreaBlob,
		".coppice/redacted.json":               file.AreaNote,
		".coppice/imports/list-1.jsonl":        file.AreaNote,
		".coppice/what/a/later/version/writes": file.AreaNote,
	} {
		if room, ok := file.IsKept(below); room != want || !ok {
			t.Errorf("%s: %s, %v", below, room, ok)
		}
	}
	for _, below := range []string{
		"", ".", "..", "../a.jsonl", "/a.jsonl", "a/../b.jsonl", "./a.jsonl", "sub/a.jsonl", "notes.txt", `..\a.jsonl`, "c:a.jsonl",
		".coppice", ".coppice/../../a.jsonl", ".coppice//x", ".coppice/index.db", ".coppice/index.db-wal",
		".coppice/locks/a.lock", ".coppice/tmp/x", ".coppice/changed/a", ".coppice/blobs.lock", ".coppice/notes.lock", "a.jsonl\x00",
	} {
		if room, ok := file.IsKept(below); ok {
			t.Errorf("%q is kept as %s", below, room)
		}
	}
}

func TestKeep(t *testing.T) {
	t.Parallel()
	disk := vfstest.NewMemory()
	st, err := file.Open("/s", &file.Options{FS: disk})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	write := func(path string) {
		if err := errors.Join(disk.MkdirAll(path[:strings.LastIndex(path, "/")], 0o700), vfs.Replace(disk, path, vfs.Replacement{}, vfs.Data([]byte("{}\n")))); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{
		"/s/a.jsonl", "/s/b.jsonl", "/s/notes.txt", "/s/sub/c.jsonl", "/s/.coppice/archive/a.jsonl.zst", "/s/.coppice/archive/d.jsonl.zst",
		"/s/.coppice/blobs/ab/abcd", "/s/.coppice/imports/x.json", "/s/.coppice/locks/a.lock", "/s/.coppice/index.db", "/s/.coppice/trash/e.jsonl",
	} {
		write(path)
	}
	for _, name := range []string{"f", "g"} { // a touch
		if err := vfs.Replace(disk, "/s/"+name+".jsonl", vfs.Replacement{}, vfs.Data(nil)); err != nil {
			t.Fatal(err)
		}
	}
	write("/s/.coppice/archive/f.jsonl.zst")
	var got []string
	for k, err := range st.Keep(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		f, err := st.OpenKept(k)
		if err != nil {
			t.Fatal(err)
		}
		open, _ := f.Stat()
		if now, err := st.StatKept(k); err != nil || now != open || now.Size != k.Size {
			t.Errorf("%s: %+v, %+v, %v", k.Below, now, open, err)
		}
		f.Close()
		got = append(got, k.Below)
	}
	// The archive of a log that has a plain file does not count, but an empty plain file does not
	// count beside an archive; the blobs come last.
	want := []string{"a.jsonl", "b.jsonl", "g.jsonl", ".coppice/archive/d.jsonl.zst", ".coppice/archive/f.jsonl.zst", ".coppice/imports/x.json", ".coppice/trash/e.jsonl", ".coppice/blobs/ab/abcd"}
	if !slices.Equal(got, want) {
		t.Errorf("kept are %q, want %q", got, want)
	}
	gone := file.Kept{Part: store.Part{Place: "/s/gone.jsonl"}}
	if _, err := st.OpenKept(gone); !errors.Is(err, store.ErrNotExist) {
		t.Error(err)
	}
	if _, err := st.StatKept(gone); !errors.Is(err, store.ErrNotExist) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err := range st.Keep(ctx) {
		if err == nil {
			t.Error("it goes on for somebody who is gone")
		}
	}
}

func TestKeptLog(t *testing.T) {
	t.Parallel()
	for below, want := range map[string]string{
		"a.jsonl":                      "a",
		".coppice/archive/a.jsonl.zst": "a",
		"a.jsonl.bak":                  "",
		"notes.txt":                    "",
		".coppice/imports/a.jsonl":     "",
		".coppice/trash/a.jsonl":       "",
		"../a.jsonl":                   "",
	} {
		if got := file.KeptLog(below); got != want {
			t.Errorf("%s is the log %q", below, got)
		}
	}
}

func TestKeptLines(t *testing.T) {
	t.Parallel()
	text := "one\n" + strings.Repeat("x", 300<<10) + "\n\nlast"
	want := []string{"one true", strings.Repeat("x", 300<<10) + " true", " true", "last false"}
	z, _ := zstd.NewWriter(nil)
	packed := z.EncodeAll([]byte(text), nil)
	table := binary.LittleEndian.AppendUint32([]byte("\x5e\x2a\x4d\x18\x11\x00\x00\x00"), uint32(len(packed)))
	table = binary.LittleEndian.AppendUint32(table, uint32(len(text)))
	whole := slices.Concat(packed, table, []byte("\x01\x00\x00\x00\x00\xb1\xea\x92\x8f"))
	for below, data := range map[string]string{"a.jsonl": text, ".coppice/archive/a.jsonl.zst": string(whole), ".coppice/trash/a.jsonl": text} {
		var got []string
		err := file.KeptLines(below, strings.NewReader(data), func(line []byte, whole bool) error {
			got = append(got, string(line)+map[bool]string{true: " true", false: " false"}[whole])
			return nil
		})
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %d lines, %v", below, len(got), err)
		}
	}
	stop := errors.New("stop")
	err := file.KeptLines("a.jsonl", strings.NewReader(text), func([]byte, bool) error { return stop })
	if !errors.Is(err, stop) {
		t.Error(err)
	}
	if err := file.KeptLines(".coppice/blobs/ab/abcd", strings.NewReader(text), func([]byte, bool) error { return stop }); err != nil {
		t.Errorf("a blob has lines: %v", err)
	}
	for what, archive := range map[string][]byte{"not zstd": []byte("not zstd"), "without its table": packed, "cut": whole[:len(whole)-1], "nothing": nil} {
		err = file.KeptLines(".coppice/archive/a.jsonl.zst", bytes.NewReader(archive), func([]byte, bool) error { return nil })
		if err == nil {
			t.Errorf("an archive that is %s is whole", what)
		}
	}
}
