package file_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"pgregory.net/rapid"

	"github.com/coppice-dev/coppice/internal/soak"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/storetest"
	"github.com/coppice-dev/coppice/store/vfs"
	"github.com/coppice-dev/coppice/store/vfs/vfstest"
)

func archivePath(st *file.Store, name string) string {
	return filepath.Join(st.Where(), ".coppice", "archive", name+".jsonl.zst")
}

// noise returns lines that do not compress well.
func noise(lines, size int) []byte {
	random := rand.NewChaCha8([32]byte{})
	all := make([]byte, lines*(size+1))
	random.Read(all)
	for i := range all {
		all[i] = '0' + all[i]&63
		if (i+1)%(size+1) == 0 {
			all[i] = '\n'
		}
	}
	return all
}

// An archive has the log's bytes, for us and for every other zstd reader.
func TestArchiveKeepsTheBytes(t *testing.T) {
	t.Parallel()
	for name, content := range map[string][]byte{
		"empty":             nil,
		"small":             []byte("{}\n"),
		"torn":              []byte("{}\n{\"to"),
		"one frame":         noise(1, 1<<20-1),
		"one byte more":     noise(1, 1<<20),
		"many frames":       noise(30, 100<<10),
		"compresses a lot":  bytes.Repeat([]byte("{\"text\":\"the same\"}\n"), 60_000),
		"lines over frames": noise(2, 3<<19),
	} {
		t.Run(name, func(t *testing.T) {
			st := open(t, &file.Options{Sync: file.Never})
			putLog(t, vfs.OS{}, st.Path("a"), content)
			before := splitLines(content, file.DefaultMaxLine)
			for range 2 { // the second time does nothing
				must(t, st.Archive(t.Context(), "a"))
			}
			if _, err := os.Stat(st.Path("a")); !errors.Is(err, os.ErrNotExist) {
				t.Fatalf("the plain file: %v", err)
			}
			f, err := os.Open(archivePath(st, "a"))
			must(t, err)
			defer f.Close()
			dec, err := zstd.NewReader(f)
			must(t, err)
			defer dec.Close()
			if got, err := io.ReadAll(dec); err != nil || !bytes.Equal(got, content) {
				t.Fatalf("a plain zstd reader gets %d bytes, %v, want %d", len(got), err, len(content))
			}
			log := storetest.MustOpen(t, st, "a")
			wantRead(t, "forward", storetest.MustRead(t, log, 0), before)
			back := storetest.MustReadBack(t, log, storetest.MustEnd(t, log))
			slices.Reverse(back)
			wantRead(t, "backward", back, before)
			must(t, log.Close())
			for range 2 {
				must(t, st.Unarchive(t.Context(), "a"))
			}
			if got := mustReadFile(t, st.Path("a")); !bytes.Equal(got, content) {
				t.Fatalf("brought back, it has %d bytes, want %d", len(got), len(content))
			}
			if _, err := os.Stat(archivePath(st, "a")); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the archive: %v", err)
			}
		})
	}
}

// Reading an archive from anywhere gives what the plain file would.
func TestArchiveReadsFromAnywhere(t *testing.T) {
	t.Parallel()
	disk := vfstest.NewMemory()
	st := openAt(t, "/s", &file.Options{FS: disk, Sync: file.Never})
	content := noise(3000, 1000)
	putLog(t, disk, st.Path("a"), content)
	must(t, st.Archive(t.Context(), "a"))
	raw, err := st.OpenRaw(t.Context(), "a")
	must(t, err)
	defer raw.Close()
	soak.Check(t, func(t *rapid.T) {
		at := rapid.IntRange(0, len(content)+10).Draw(t, "at")
		p := make([]byte, rapid.IntRange(0, 3<<20).Draw(t, "n"))
		n, err := raw.ReadAt(p, int64(at))
		want := content[min(at, len(content)):min(at+len(p), len(content))]
		if !bytes.Equal(p[:n], want) {
			t.Fatalf("%d bytes at %d give %d, want %d", len(p), at, n, len(want))
		}
		if (err == nil) != (n == len(p)) || err != nil && err != io.EOF {
			t.Fatalf("%d of %d bytes with error %v", n, len(p), err)
		}
	})
}

// The end of an archive is read without unpacking what stands before.
func TestArchiveEndIsCheap(t *testing.T) {
	t.Parallel()
	var bytesRead atomic.Int64
	disk := &vfstest.Faulty{FS: vfstest.NewMemory(), Before: func(op vfstest.Op) error {
		if op.Kind == vfstest.OpRead && strings.HasSuffix(op.Name, ".zst") {
			bytesRead.Add(int64(op.Size))
		}
		return nil
	}}
	st := openAt(t, "/s", &file.Options{FS: disk, Sync: file.Never})
	content := noise(4000, 2000)
	putLog(t, disk, st.Path("a"), content)
	must(t, st.Archive(t.Context(), "a"))
	bytesRead.Store(0)
	log := storetest.MustOpen(t, st, "a")
	n := 0
	for line, err := range log.Backward(t.Context(), storetest.MustEnd(t, log)) {
		must(t, err)
		if n++; n == 20 {
			break
		}
		if len(line.Data) != 2000 {
			t.Fatalf("line of %d bytes", len(line.Data))
		}
	}
	if got := bytesRead.Load(); got > 3<<19 {
		t.Errorf("20 lines of the end took %d bytes of an archive of about %d", got, len(content)*3/4)
	}
}

// Archiving is no append: the log does not become the latest by it.
func TestArchiveKeepsTheTime(t *testing.T) {
	t.Parallel()
	for name, disk := range map[string]vfs.FS{"OS": vfs.OS{}, "memory": vfstest.NewMemory()} {
		t.Run(name, func(t *testing.T) {
			st := open(t, &file.Options{FS: disk})
			storetest.MustCreate(t, st, "a", "{}").Close()
			long := time.Date(2020, 2, 3, 4, 5, 6, 0, time.UTC)
			must(t, disk.Chtimes(st.Path("a"), long))
			for _, change := range []func(context.Context, string) error{st.Archive, st.Unarchive} {
				must(t, change(t.Context(), "a"))
				for stat, err := range st.List(t.Context()) {
					must(t, err)
					if !stat.Modified.Equal(long) {
						t.Errorf("modified %v, want %v: %+v", stat.Modified, long, stat)
					}
				}
			}
		})
	}
}

// An append to an archived log brings the plain file back, for every handle.
func TestAppendToArchive(t *testing.T) {
	t.Parallel()
	skipWindows(t)
	st := open(t, nil)
	plain := storetest.MustCreate(t, st, "a", "0")
	must(t, st.Archive(t.Context(), "a"))
	archived := storetest.MustOpen(t, st, "a")
	wantLines(t, plain, "0")
	wantLines(t, archived, "0")
	end := storetest.MustAppend(t, archived, "1")
	if got := string(mustReadFile(t, st.Path("a"))); got != "0\n1\n" {
		t.Fatalf("the plain file has %q", got)
	}
	if _, err := os.Stat(archivePath(st, "a")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the archive: %v", err)
	}
	_, err := plain.Append(t.Context(), 2, []byte("2"))
	wantKind(t, err, store.ErrConflict)
	_, err = plain.Append(t.Context(), end, []byte("2"))
	must(t, err)
	wantLines(t, archived, "0", "1", "2")
	wantLines(t, plain, "0", "1", "2")
}

// A crash while archiving, or while bringing back, leaves both files: then the
// plain one counts.
func TestArchiveLeftOver(t *testing.T) {
	t.Parallel()
	skipWindows(t)
	setup := func(t *testing.T) *file.Store {
		st := open(t, nil)
		storetest.MustCreate(t, st, "a", "archived").Close()
		must(t, st.Archive(t.Context(), "a"))
		putLog(t, vfs.OS{}, st.Path("a"), []byte("plain\n"))
		return st
	}
	t.Run("read and append", func(t *testing.T) {
		st := setup(t)
		log := storetest.MustOpen(t, st, "a")
		wantLines(t, log, "plain")
		storetest.MustAppend(t, log, "more")
		wantLines(t, log, "plain", "more")
		count := 0
		for stat, err := range st.List(t.Context()) {
			must(t, err)
			if count++; stat.Name != "a" || stat.Archived || stat.Size != 11 {
				t.Errorf("listed as %+v", stat)
			}
		}
		if count != 1 {
			t.Errorf("listed %d times", count)
		}
	})
	t.Run("archive again", func(t *testing.T) {
		st := setup(t)
		must(t, st.Archive(t.Context(), "a"))
		wantLines(t, storetest.MustOpen(t, st, "a"), "plain")
		must(t, st.Unarchive(t.Context(), "a"))
		wantLines(t, storetest.MustOpen(t, st, "a"), "plain")
	})
	t.Run("unarchive", func(t *testing.T) {
		st := setup(t)
		must(t, st.Unarchive(t.Context(), "a"))
		wantLines(t, storetest.MustOpen(t, st, "a"), "plain")
	})
	t.Run("remove", func(t *testing.T) {
		st := setup(t)
		must(t, st.Remove(t.Context(), "a"))
		_, err := st.Open(t.Context(), "a")
		wantKind(t, err, store.ErrNotExist)
	})
}

func TestArchiveRefuses(t *testing.T) {
	t.Parallel()
	st := open(t, nil)
	for _, change := range []func(context.Context, string) error{st.Archive, st.Unarchive} {
		wantKind(t, change(t.Context(), "nowhere"), store.ErrNotExist, "archive", st.Path("nowhere"))
		wantKind(t, change(t.Context(), "../a"), store.ErrInvalid)
	}
	must(t, st.Close())
	wantKind(t, st.Archive(t.Context(), "a"), store.ErrClosed)
}

// seekTable makes the end of an archive.
func seekTable(frames ...[2]uint32) []byte {
	out := binary.LittleEndian.AppendUint32(nil, 0x184D2A5E)
	out = binary.LittleEndian.AppendUint32(out, uint32(8*len(frames)+9))
	for _, f := range frames {
		out = binary.LittleEndian.AppendUint32(out, f[0])
		out = binary.LittleEndian.AppendUint32(out, f[1])
	}
	out = binary.LittleEndian.AppendUint32(out, uint32(len(frames)))
	return binary.LittleEndian.AppendUint32(append(out, 0), 0x8F92EAB1)
}

func compress(t testing.TB, plain []byte) []byte {
	t.Helper()
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		t.Fatal(err)
	}
	defer enc.Close()
	return enc.EncodeAll(plain, nil)
}

// readAll reads an archive through the store, in both directions, and returns
// the first error.
func readAll(ctx context.Context, st *file.Store, name string) error {
	log, err := st.Open(ctx, name)
	if err != nil {
		return err
	}
	defer log.Close()
	for _, err := range log.Forward(ctx, 0) {
		if err != nil {
			return err
		}
	}
	end, err := log.End(ctx)
	if err != nil {
		return err
	}
	for _, err := range log.Backward(ctx, end) {
		if err != nil {
			return err
		}
	}
	return nil
}

// A table that is damaged or gone is made again from the frames. The archive is kept
// when the log is brought back: something in it is not as it was.
func TestArchiveWithoutItsTable(t *testing.T) {
	t.Parallel()
	first, second := compress(t, []byte("{}\n{")), compress(t, []byte("}\n"))
	good := slices.Concat(first, second)
	one, two := [2]uint32{uint32(len(first)), 4}, [2]uint32{uint32(len(second)), 2}
	whole := append(slices.Clone(good), seekTable(one, two)...)
	off := func(by int) [2]uint32 { return [2]uint32{uint32(len(first) + by), 4} }
	for name, content := range map[string][]byte{
		"no table":        good,
		"truncated":       whole[:len(whole)-1],
		"bad magic":       append(slices.Clone(whole[:len(whole)-1]), 0),
		"unknown flags":   slices.Concat(whole[:len(whole)-5], []byte{0x80}, whole[len(whole)-4:]),
		"many frames":     append(slices.Clone(good), 0xff, 0xff, 0xff, 0xff, 0, 0xb1, 0xea, 0x92, 0x8f),
		"frame too long":  append(slices.Clone(good), seekTable(off(40), two)...),
		"frame in table":  append(slices.Clone(good), seekTable(off(4), two)...),
		"frame too short": append(slices.Clone(good), seekTable(off(-1), two)...),
		"empty frame":     append(slices.Clone(good), seekTable(one, two, [2]uint32{0, 0})...),
		"plain too short": append(slices.Clone(good), seekTable([2]uint32{one[0], 3}, two)...),
		"plain too long":  append(slices.Clone(good), seekTable(one, [2]uint32{two[0], 3})...),
		"plain too large": append(slices.Clone(good), seekTable([2]uint32{one[0], 4 | 1<<31}, two)...),
		"no plain":        append(slices.Clone(good), seekTable(one, [2]uint32{two[0], 0})...),
	} {
		t.Run(name, func(t *testing.T) {
			disk := vfstest.NewMemory()
			st := openAt(t, "/s", &file.Options{FS: disk, Sync: file.Never})
			putLog(t, disk, archivePath(st, "a"), content)
			log := storetest.MustOpen(t, st, "a")
			wantLines(t, log, "{}", "{}")
			parts := st.Parts()
			for _, err := range parts.Lines(t.Context(), store.Part{Kind: store.PartLog, Name: "a", Place: parts.Where(store.PartLog, "a")}) {
				if err != nil {
					t.Errorf("whoever looks for something in it gets %v", err)
				}
			}
			if _, err := st.Blobs().Collect(t.Context()); err != nil {
				t.Errorf("which blobs are needed is not known: %v", err)
			}
			storetest.MustAppend(t, log, "1")
			wantLines(t, log, "{}", "{}", "1")
			if kept, err := st.Quarantined(t.Context()); len(kept) != 1 || kept[0].Size != int64(len(content)) || err != nil {
				t.Errorf("in quarantine is %v, %v", kept, err)
			}
		})
	}
}

// An archive that was cut off, wherever that is, does not read as a shorter log, nor does the
// plain file that an append makes of it.
func TestShortenedArchive(t *testing.T) {
	t.Parallel()
	disk := vfstest.NewMemory()
	st := openAt(t, "/s", &file.Options{FS: disk, Sync: file.Never})
	putLog(t, disk, st.Path("a"), noise(3000, 1000))
	whole := linesOf(t, storetest.MustOpen(t, st, "a"))
	must(t, st.Archive(t.Context(), "a"))
	content := readDisk(t, disk, archivePath(st, "a"))
	table := content[len(content)-9-3*8:] // of three frames
	first := int(binary.LittleEndian.Uint32(table))
	second := first + int(binary.LittleEndian.Uint32(table[8:]))
	third := second + int(binary.LittleEndian.Uint32(table[16:]))
	for _, test := range []struct {
		cut  int
		lost bool
	}{{first, true}, {first + 1000, true}, {second, true}, {second + 3, true}, {third - 1, true}, {third, false}, {third + 3, false}, {len(content) - 1, false}} {
		disk := vfstest.NewMemory()
		st := openAt(t, "/s", &file.Options{FS: disk, Sync: file.Never})
		putLog(t, disk, archivePath(st, "a"), content[:test.cut])
		check := func(how string, want int) {
			lines := linesOf(t, storetest.MustOpen(t, st, "a"))
			if damaged := slices.ContainsFunc(lines, func(line string) bool { return strings.Contains(line, "\x00") }); damaged != test.lost || !test.lost && len(lines) != want {
				t.Errorf("cut at %d, %s: %d lines, damaged %v, want %d, %v", test.cut, how, len(lines), damaged, want, test.lost)
			}
		}
		check("archived", len(whole))
		storetest.MustAppend(t, storetest.MustOpen(t, st, "a"), "{}")
		check("after an append", len(whole)+1)
	}
}

// One damaged frame costs what is in it: the lines before and after it are read, the
// log can be brought back, appended to, repaired and removed, and the damaged archive is
// kept.
func TestDamagedFrame(t *testing.T) {
	t.Parallel()
	frames := [][]byte{compress(t, []byte("{\"n\":0}\n{\"n")), compress(t, []byte("\":1}\n{\"n\":2}\n{\"n\"")), compress(t, []byte(":3}\n{\"n\":4}\n"))}
	plain := []uint32{11, 17, 12}
	for damaged := range frames {
		var content []byte
		var table [][2]uint32
		for i, f := range frames {
			table = append(table, [2]uint32{uint32(len(f)), plain[i]})
			if f = slices.Clone(f); i == damaged {
				f[len(f)-1] ^= 1 // in its checksum
			}
			content = append(content, f...)
		}
		content = append(content, seekTable(table...)...)
		for name, work := range map[string]func(t *testing.T, st *file.Store){
			"unarchive": func(t *testing.T, st *file.Store) { must(t, st.Unarchive(t.Context(), "a")) },
			"append": func(t *testing.T, st *file.Store) {
				log := storetest.MustOpen(t, st, "a")
				storetest.MustAppend(t, log, "{}")
			},
			"rewrite": func(t *testing.T, st *file.Store) {
				raw, err := st.OpenRaw(t.Context(), "a")
				must(t, err)
				defer raw.Close()
				_, err = raw.Rewrite(t.Context(), func(yield func(store.Piece, error) bool) {
					for line, err := range raw.Lines(t.Context()) {
						if !yield(store.Piece{From: line.Pos, To: line.Next}, err) {
							return
						}
					}
				})
				must(t, err)
			},
			"remove": func(t *testing.T, st *file.Store) { must(t, st.Remove(t.Context(), "a")) },
		} {
			t.Run(fmt.Sprint(name, damaged), func(t *testing.T) {
				t.Parallel()
				disk := vfstest.NewMemory()
				st := openAt(t, "/s", &file.Options{FS: disk, Sync: file.Never})
				putLog(t, disk, archivePath(st, "a"), content)
				log := storetest.MustOpen(t, st, "a")
				want := wholeLines(linesOf(t, log))
				if len(want) < 2 {
					t.Fatalf("of a damaged archive there are the lines %q", want)
				}
				if _, err := st.Blobs().Unreferenced(t.Context()); !errors.Is(err, store.ErrCorrupt) {
					t.Errorf("what the archive refers to is taken as known: %v", err)
				}
				work(t, st)
				if name == "remove" {
					return
				}
				got := wholeLines(linesOf(t, storetest.MustOpen(t, st, "a")))
				if name == "append" {
					want = append(want, "{}")
				}
				if !slices.Equal(got, want) {
					t.Errorf("afterwards there is %q, want %q", got, want)
				}
				kept, err := st.Quarantined(t.Context())
				must(t, err)
				if !slices.ContainsFunc(kept, func(q store.Quarantined) bool { return q.Size == int64(len(content)) }) {
					t.Errorf("the archive is not in quarantine: %+v", kept)
				}
			})
		}
	}
}

// wholeLines returns those of a log's lines that are not damaged.
func wholeLines(lines []string) []string {
	return slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return !store.Whole([]byte(line)) })
}

// Whatever an archive holds, reading it gives an error at worst. The file stays,
// and so do the others.
func TestCorruptArchive(t *testing.T) {
	good := compress(t, []byte("{}\n{}\n"))
	size := uint32(len(good))
	whole := append(slices.Clone(good), seekTable([2]uint32{size, 6})...)
	bomb := compress(t, make([]byte, 64<<20))
	flipped := slices.Clone(whole)
	flipped[6] ^= 0xff
	for name, content := range map[string][]byte{
		"empty":         nil,
		"short":         []byte("abc"),
		"only a footer": whole[len(whole)-9:],
		"bytes flipped": flipped,
		"bomb":          append(slices.Clone(bomb), seekTable([2]uint32{uint32(len(bomb)), 6})...),
	} {
		t.Run(name, func(t *testing.T) {
			disk := vfstest.NewMemory()
			st := openAt(t, "/s", &file.Options{FS: disk, Sync: file.Never})
			storetest.MustCreate(t, st, "other", "{}")
			putLog(t, disk, archivePath(st, "a"), content)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := readAll(t.Context(), st, "a")
			runtime.ReadMemStats(&after)
			wantKind(t, err, store.ErrCorrupt, "a.jsonl")
			if used := after.TotalAlloc - before.TotalAlloc; used > 16<<20 {
				t.Errorf("reading it allocated %d bytes", used)
			}
			wantKind(t, st.Unarchive(t.Context(), "a"), store.ErrCorrupt, "unarchive", "a.jsonl.zst")
			if log, err := st.Open(t.Context(), "a"); err == nil {
				_, err = log.Append(t.Context(), 6, []byte("{}"))
				wantKind(t, err, store.ErrCorrupt, "append")
			}
			if _, err := disk.Lstat(st.Path("a")); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("a plain file was made of it: %v", err)
			}
			left, err := disk.OpenFile(archivePath(st, "a"), os.O_RDONLY, 0)
			must(t, err)
			got := make([]byte, len(content)+1)
			if n, _ := left.ReadAt(got, 0); !bytes.Equal(got[:n], content) {
				t.Error("the archive has changed")
			}
			wantLines(t, storetest.MustOpen(t, st, "other"), "{}")
			must(t, st.Remove(t.Context(), "a")) // it can at least be put away
		})
	}
}

// An archive that claims to unpack to what it cannot be worth is refused before
// anything is unpacked, and stays as it is.
func TestArchiveThatClaimsTheImpossible(t *testing.T) {
	frame := compress(t, make([]byte, 1<<20))
	// claim is a frame that claims to unpack to as many bytes as the table says it does.
	claim := func(plain uint32) []byte {
		fr := binary.LittleEndian.AppendUint32([]byte{0x28, 0xb5, 0x2f, 0xfd, 0xa0}, plain)
		fr = append(fr, 1, 0, 0) // no content
		return append(fr, seekTable([2]uint32{uint32(len(fr)), plain})...)
	}
	claims := func(n int, plain uint32) []byte {
		return append(bytes.Repeat(frame, n), seekTable(slices.Repeat([][2]uint32{{uint32(len(frame)), plain}}, n)...)...)
	}
	for name, test := range map[string]struct {
		archive []byte
		limit   int64
	}{
		"a frame":     {claim(17 << 20), 0},
		"a wild one":  {claim(1<<32 - 1), 0},
		"the ratio":   {claims(1100, 1<<20), 0},
		"the limit":   {claims(3, 1<<20), 2 << 20},
		"many frames": {append(make([]byte, 9*(1<<20+1)), seekTable(slices.Repeat([][2]uint32{{9, 0}}, 1<<20+1)...)...), 0},
	} {
		t.Run(name, func(t *testing.T) {
			disk := vfstest.NewMemory()
			st := openAt(t, "/s", &file.Options{FS: disk, Sync: file.Never, MaxUnpacked: test.limit})
			putLog(t, disk, archivePath(st, "a"), test.archive)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			wantKind(t, readAll(t.Context(), st, "a"), store.ErrTooLarge, "a.jsonl.zst")
			wantKind(t, st.Unarchive(t.Context(), "a"), store.ErrTooLarge, "a.jsonl.zst")
			runtime.ReadMemStats(&after)
			if used := after.TotalAlloc - before.TotalAlloc; used > 1<<20 {
				t.Errorf("refusing it allocated %d bytes", used)
			}
			if info, err := disk.Lstat(archivePath(st, "a")); err != nil || info.Size() != int64(len(test.archive)) {
				t.Errorf("the archive is gone or changed: %v", err)
			}
		})
	}
}

// A log of more than an archive may hold is not archived, and stays.
func TestArchiveKeepsToTheLimit(t *testing.T) {
	t.Parallel()
	st := open(t, &file.Options{Sync: file.Never, MaxUnpacked: 10})
	storetest.MustCreate(t, st, "a", "{}", "{\"text\":\"too long\"}")
	wantKind(t, st.Archive(t.Context(), "a"), store.ErrTooLarge)
	wantLines(t, storetest.MustOpen(t, st, "a"), "{}", "{\"text\":\"too long\"}")
}

// Archiving, bringing back and looking for the end stop when they are told to,
// in the middle of a log, and leave it as it was.
func TestArchivingEndsWithItsContext(t *testing.T) {
	t.Parallel()
	disk := vfstest.NewMemory()
	ctx, cancel := context.WithCancel(t.Context())
	faulty := &vfstest.Faulty{FS: disk}
	st := openAt(t, "/s", &file.Options{FS: faulty, Sync: file.Never})
	content := bytes.ReplaceAll(noise(8, 1<<20), []byte("\n"), []byte("n"))
	putLog(t, disk, st.Path("a"), content)
	reads := 0
	stopAfter := func(n int) {
		ctx, cancel = context.WithCancel(t.Context())
		reads = 0
		faulty.Before = func(op vfstest.Op) error {
			if op.Kind == vfstest.OpRead {
				if reads++; reads == n {
					cancel()
				}
			}
			return nil
		}
	}
	want := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: error %v", what, err)
		}
		if reads > 6 {
			t.Errorf("%s: went on for %d reads", what, reads)
		}
	}
	log := storetest.MustOpen(t, st, "a")
	stopAfter(3)
	_, err := log.End(ctx)
	want("the end", err)
	stopAfter(3)
	want("archiving", st.Archive(ctx, "a"))
	faulty.Before = nil
	must(t, st.Archive(t.Context(), "a"))
	stopAfter(5)
	want("bringing back", st.Unarchive(ctx, "a"))
	faulty.Before = nil
	must(t, st.Unarchive(t.Context(), "a"))
	if got := readDisk(t, disk, st.Path("a")); !bytes.Equal(got, content) {
		t.Errorf("the log has changed: %d bytes", len(got))
	}
}

func readDisk(t *testing.T, disk vfs.FS, path string) []byte {
	t.Helper()
	f, err := disk.OpenFile(path, os.O_RDONLY, 0)
	must(t, err)
	defer f.Close()
	stat, err := f.Stat()
	must(t, err)
	data := make([]byte, stat.Size)
	_, err = io.ReadFull(io.NewSectionReader(f, 0, stat.Size), data)
	must(t, err)
	return data
}

// An archive of another program, with frames of other sizes, is read too.
func TestForeignArchive(t *testing.T) {
	t.Parallel()
	st := open(t, nil)
	var packed []byte
	var frames [][2]uint32
	for i := range 50 {
		plain := fmt.Appendf(nil, "{\"n\":%d}\n", i)
		if i%7 == 0 {
			plain = nil
		}
		frame := compress(t, plain)
		packed = append(packed, frame...)
		frames = append(frames, [2]uint32{uint32(len(frame)), uint32(len(plain))})
	}
	putLog(t, vfs.OS{}, archivePath(st, "a"), append(packed, seekTable(frames...)...))
	log := storetest.MustOpen(t, st, "a")
	if got := linesOf(t, log); len(got) != 42 || got[0] != `{"n":1}` || got[41] != `{"n":48}` {
		t.Errorf("%d lines: %.60q", len(got), got)
	}
	storetest.MustAppend(t, log, "{}")
}

func FuzzSeekTable(f *testing.F) {
	good := compress(f, []byte("{}\n{}\n"))
	f.Add(append(slices.Clone(good), seekTable([2]uint32{uint32(len(good)), 6})...))
	f.Add(append(slices.Concat(good, good), seekTable([2]uint32{uint32(len(good)), 6}, [2]uint32{uint32(len(good)), 6})...))
	f.Add(append(slices.Clone(good), seekTable([2]uint32{uint32(len(good)), 1 << 28})...))
	f.Add(seekTable())
	f.Add(seekTable([2]uint32{0, 0}))
	f.Add(good)
	f.Fuzz(func(t *testing.T, archive []byte) {
		disk := vfstest.NewMemory()
		st := openAt(t, "/s", &file.Options{FS: disk, Sync: file.Never, MaxLine: 1 << 20})
		putLog(t, disk, archivePath(st, "a"), archive)
		err := readAll(t.Context(), st, "a")
		if errors.Is(err, store.ErrTooLarge) {
			return
		}
		if err != nil {
			wantKind(t, err, store.ErrCorrupt)
			return
		}
		// What can be read can be brought back, and is the same then.
		log := storetest.MustOpen(t, st, "a")
		before := storetest.MustRead(t, log, 0)
		must(t, st.Unarchive(t.Context(), "a"))
		wantRead(t, "brought back", storetest.MustRead(t, storetest.MustOpen(t, st, "a"), 0), before)
	})
}

// TestLeftoverArchiveStaysAside: an archive that an interrupted archiving left
// beside the plain file must not come back when that is moved.
func TestLeftoverArchiveStaysAside(t *testing.T) {
	t.Parallel()
	skipWindows(t)
	st, err := file.Open(t.TempDir(), nil)
	must(t, err)
	defer st.Close()
	log, err := st.Create(t.Context(), "a", store.Lines([]byte("{}")))
	must(t, err)
	must(t, st.Archive(t.Context(), "a"))
	archive := filepath.Join(st.Where(), ".coppice", "archive", "a.jsonl.zst")
	packed, err := os.ReadFile(archive)
	must(t, err)
	end, err := log.End(t.Context())
	must(t, err)
	end, err = log.Append(t.Context(), end, []byte(`{"n":1}`))
	must(t, err)
	must(t, log.Close())
	must(t, os.WriteFile(archive, packed, 0o600))

	log, err = st.Open(t.Context(), "a")
	must(t, err)
	_, err = log.Append(t.Context(), end, []byte(`{"n":2}`))
	must(t, err)
	must(t, os.Rename(st.Path("a"), st.Path("a")+"~"))
	if _, err := st.Open(t.Context(), "a"); !errors.Is(err, store.ErrNotExist) {
		t.Errorf("the plain file is away, and the log as it once was is back: %v", err)
	}
	if aside, _ := filepath.Glob(filepath.Join(st.Where(), ".coppice", "quarantine", "a.*")); len(aside) != 1 {
		t.Errorf("the archive is not in quarantine, which has %q", aside)
	}
}

// TestUnarchiveReplacesNothing: a plain file that appears while the log is being
// unpacked counts.
func TestUnarchiveReplacesNothing(t *testing.T) {
	t.Parallel()
	fsys := &vfstest.Faulty{FS: vfs.OS{}}
	st, err := file.Open(t.TempDir(), &file.Options{FS: fsys})
	must(t, err)
	defer st.Close()
	_, err = st.Create(t.Context(), "a", store.Lines([]byte("{}")))
	must(t, err)
	must(t, st.Archive(t.Context(), "a"))
	fsys.Before = func(op vfstest.Op) error {
		if op.Kind == vfstest.OpSync { // the unpacked file is complete
			return os.WriteFile(st.Path("a"), []byte("{}\n{\"n\":1}\n"), 0o600)
		}
		return nil
	}
	must(t, st.Unarchive(t.Context(), "a"))
	if data, err := os.ReadFile(st.Path("a")); err != nil || string(data) != "{}\n{\"n\":1}\n" {
		t.Errorf("the plain file holds %q, %v", data, err)
	}
}

// TestArchiveKeepsWhatChangedMeanwhile: the plain file is deleted only if it is
// still what was packed.
func TestArchiveKeepsWhatChangedMeanwhile(t *testing.T) {
	t.Parallel()
	fsys := &vfstest.Faulty{FS: vfs.OS{}}
	st, err := file.Open(t.TempDir(), &file.Options{FS: fsys})
	must(t, err)
	defer st.Close()
	log, err := st.Create(t.Context(), "a", store.Lines([]byte("{}")))
	must(t, err)
	must(t, log.Close())
	fsys.Before = func(op vfstest.Op) error {
		if op.Kind == vfstest.OpRename { // the archive is complete
			return os.WriteFile(st.Path("a"), []byte("{}\n{\"n\":1}\n"), 0o600)
		}
		return nil
	}
	if err := st.Archive(t.Context(), "a"); !errors.Is(err, store.ErrConflict) {
		t.Errorf("archiving a file that changed meanwhile: %v", err)
	}
	fsys.Before = nil
	if data, err := os.ReadFile(st.Path("a")); err != nil || string(data) != "{}\n{\"n\":1}\n" {
		t.Errorf("the plain file holds %q, %v", data, err)
	}
	must(t, st.Archive(t.Context(), "a"))
}

// TestUnarchiveDeletesWhatItUnpacked, and no other archive that has the name.
func TestUnarchiveDeletesWhatItUnpacked(t *testing.T) {
	t.Parallel()
	skipWindows(t)
	fsys := &vfstest.Faulty{FS: vfs.OS{}}
	st, err := file.Open(t.TempDir(), &file.Options{FS: fsys})
	must(t, err)
	defer st.Close()
	log, err := st.Create(t.Context(), "a", store.Lines([]byte("{}")))
	must(t, err)
	must(t, log.Close())
	must(t, st.Archive(t.Context(), "a"))
	archive := filepath.Join(st.Where(), ".coppice", "archive", "a.jsonl.zst")
	fsys.Before = func(op vfstest.Op) error {
		if op.Kind != vfstest.OpSyncDir || op.Name != st.Where() { // the plain file has its name
			return nil
		}
		return errors.Join(os.Remove(archive), os.WriteFile(archive+"~", []byte("another"), 0o600), os.Rename(archive+"~", archive))
	}
	must(t, st.Unarchive(t.Context(), "a"))
	if data, err := os.ReadFile(archive); err != nil || string(data) != "another" {
		t.Errorf("the other archive holds %q, %v", data, err)
	}
}
