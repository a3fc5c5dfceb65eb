package file_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/storetest"
	"github.com/coppice-dev/coppice/store/vfs"
	"github.com/coppice-dev/coppice/store/vfs/vfstest"
)

// listener is a logger that remembers its last message.
type listener struct {
	bytes.Buffer
}

func (l *listener) logger() *slog.Logger { return slog.New(slog.NewJSONHandler(l, nil)) }

// heard returns the messages since the last call.
func (l *listener) heard(t *testing.T) []map[string]any {
	t.Helper()
	var all []map[string]any
	for line := range strings.Lines(l.String()) {
		var one map[string]any
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			t.Fatal(err)
		}
		all = append(all, one)
	}
	l.Reset()
	return all
}

// quarantined returns the content of all files in quarantine.
func quarantined(t *testing.T, st *file.Store) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(st.Where(), ".coppice", "quarantine", "*"))
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, path := range paths {
		all = append(all, string(mustReadFile(t, path)))
	}
	return all
}

// tornCase is a log's end as a crash may leave it, and what becomes of it.
type tornCase struct {
	name, tail string
	isLine     bool // only the line end is missing, or it is named as damage
}

func tornCases() []tornCase {
	const entry = `{"id":"e2","text":"käse \"\\ {}"}`
	cases := []tornCase{
		{"whole", entry, true},
		{"whole with spaces", "  " + entry + " \r", true},
		{"NULs", strings.Repeat("\x00", 700), true},
		{"whole then NULs", entry + "\x00\x00", true},
		{"cut, then NULs", entry[:10] + "\x00\x00", true},
		{"NULs, then a rest", "\x00\x00" + entry[10:20], true},
		{"NUL inside", `{"id":"` + "\x00" + `"}`, true},
		{"two values", `{}{}`, false},
		{"not an object", `"text"`, false},
		{"space", " ", false},
		{"longer than a line may be", `{"id":"` + strings.Repeat("x", 2000) + `"}`, false},
		{"much longer", strings.Repeat("x", 300<<10), false},
	}
	for n := 1; n < len(entry); n++ {
		cases = append(cases, tornCase{fmt.Sprintf("cut after %d bytes", n), entry[:n], false})
	}
	return cases
}

// Whatever stands after the last line end, the next append neither loses it nor
// joins on to it.
func TestTornTail(t *testing.T) {
	t.Parallel()
	for _, test := range tornCases() {
		t.Run(test.name, func(t *testing.T) {
			var said listener
			st := open(t, &file.Options{MaxLine: 1000, Logger: said.logger(), Sync: file.Never})
			storetest.MustCreate(t, st, "a", `{"id":"e1"}`).Close()
			writeRaw(t, st.Path("a"), test.tail)

			log := storetest.MustOpen(t, st, "a")
			want := []string{`{"id":"e1"}`}
			if test.isLine {
				want = append(want, test.tail)
			}
			wantLines(t, log, want...)
			if heard := said.heard(t); heard != nil || quarantined(t, st) != nil {
				t.Fatalf("reading said %v and left %d files in quarantine", heard, len(quarantined(t, st)))
			}

			storetest.MustAppend(t, log, `{"id":"e3"}`)
			wantLines(t, log, append(want, `{"id":"e3"}`)...)
			heard := said.heard(t)
			if len(heard) != 1 || heard[0]["level"] != "WARN" || heard[0]["log"] != "a" ||
				heard[0]["offset"] != float64(len(`{"id":"e1"}`)+1) || heard[0]["bytes"] != float64(len(test.tail)) {
				t.Errorf("the repair said %v", heard)
			}
			if test.isLine {
				if got := quarantined(t, st); got != nil {
					t.Errorf("a line was moved to quarantine: %q", got)
				}
				return
			}
			if got := quarantined(t, st); len(got) != 1 || got[0] != test.tail {
				t.Errorf("in quarantine is %.80q, want %.80q", got, test.tail)
			}
			if path, _ := heard[0]["quarantine"].(string); string(mustReadFile(t, path)) != test.tail {
				t.Errorf("the message names %q", path)
			}
		})
	}
}

// Lost blocks at the end of a log are a line for every reader, however many they are, and
// still are when the log has grown.
func TestLostEnd(t *testing.T) {
	t.Parallel()
	const readChunk = 256 << 10 // what is read at a time
	for _, size := range []int{1, 999, 1000, 1001, readChunk - 40, readChunk, 3*readChunk + 5} {
		for name, tail := range map[string]string{
			"NULs":               strings.Repeat("\x00", size),
			"a line, then NULs":  strings.Repeat("x", size) + "\x00",
			"NULs, then a line":  "\x00" + strings.Repeat("x", size),
			"NULs within a line": strings.Repeat("x", size) + "\x00" + strings.Repeat("x", size),
		} {
			t.Run(fmt.Sprint(name, size), func(t *testing.T) {
				st := open(t, &file.Options{MaxLine: 1000, Sync: file.Never})
				storetest.MustCreate(t, st, "a", "0").Close()
				writeRaw(t, st.Path("a"), tail)
				log := storetest.MustOpen(t, st, "a")
				if len(tail) > 1000 {
					tail = tail[:1000] // what is read of a line over the limit
				}
				wantLines(t, log, "0", tail)
				back := storetest.MustReadBack(t, log, storetest.MustEnd(t, log))
				slices.Reverse(back)
				wantRead(t, "backwards", back, storetest.MustRead(t, log, 0))
				storetest.MustAppend(t, log, "1")
				wantLines(t, log, "0", tail, "1")
				wantLines(t, storetest.MustOpen(t, st, "a"), "0", tail, "1")
			})
		}
	}
}

// A log that has no whole line at all can be repaired too.
func TestTornFromTheStart(t *testing.T) {
	t.Parallel()
	for _, torn := range []string{"", `{"id":`, strings.Repeat("x", 10_000)} {
		st := open(t, nil)
		putLog(t, vfs.OS{}, st.Path("a"), []byte(torn))
		log := storetest.MustOpen(t, st, "a")
		if end := storetest.MustEnd(t, log); end != 0 {
			t.Errorf("the log ends at %d", end)
		}
		storetest.MustAppend(t, log, "{}")
		wantLines(t, log, "{}")
	}
}

// Damage that is followed by a line end is not a torn tail, and stays.
func TestDamageInTheMiddleStays(t *testing.T) {
	t.Parallel()
	st := open(t, nil)
	damaged := "{}\n\x00\x00\x00\n{\"half\n{}\n"
	putLog(t, vfs.OS{}, st.Path("a"), []byte(damaged))
	log := storetest.MustOpen(t, st, "a")
	storetest.MustAppend(t, log, "{}")
	if got := string(mustReadFile(t, st.Path("a"))); got != damaged+"{}\n" {
		t.Errorf("the log has %q", got)
	}
	if got := quarantined(t, st); got != nil {
		t.Errorf("in quarantine is %q", got)
	}
}

// A repair is synced before anything is appended after it.
func TestRepairIsSynced(t *testing.T) {
	t.Parallel()
	for tail, want := range map[string][]string{
		`{"torn":`: {
			"syncdir .coppice", // for the name of quarantine/, which is new
			"create tmp", "write tmp", "sync tmp", "rename tmp to torn", "syncdir quarantine",
			"truncate a.jsonl", "sync a.jsonl", "write a.jsonl", "sync a.jsonl",
		},
		`{"id":"e"}`: {"write a.jsonl", "sync a.jsonl"}, // its line end; the append meets a conflict
	} {
		disk := newRecorder()
		st := openAt(t, "/s", &file.Options{FS: disk})
		log := storetest.MustCreate(t, st, "a", "{}")
		storetest.MustAppend(t, log, "{}")
		end := storetest.MustEnd(t, log)
		f, err := disk.FS.OpenFile(st.Path("a"), os.O_RDWR|os.O_APPEND, 0)
		must(t, err)
		_, err = f.Write([]byte(tail))
		must(t, err)
		must(t, f.Close())
		got := disk.during(vfstest.OpMutating&^vfstest.OpMkdir, func() { log.Append(t.Context(), end, []byte("{}")) })
		for i, op := range got {
			if strings.HasSuffix(op, ".torn") {
				got[i] = "rename tmp to torn"
			}
		}
		if strings.Join(got, ", ") != strings.Join(want, ", ") {
			t.Errorf("after %q the append did %q, want %q", tail, got, want)
		}
	}
}

// TestGrowingEndIsNotTorn: what looks torn may be half of what somebody writes who
// takes no lock.
func TestGrowingEndIsNotTorn(t *testing.T) {
	t.Parallel()
	fsys := &vfstest.Faulty{FS: vfs.OS{}}
	st, err := file.Open(t.TempDir(), &file.Options{FS: fsys})
	must(t, err)
	defer st.Close()
	log, err := st.Create(t.Context(), "a", store.Lines([]byte("{}")))
	must(t, err)
	end, err := log.End(t.Context())
	must(t, err)
	write := func(text string) error {
		f, err := os.OpenFile(st.Path("a"), os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			return err
		}
		_, err = f.WriteString(text)
		return errors.Join(err, f.Close())
	}
	must(t, write(`{"n":`))
	fsys.Before = func(op vfstest.Op) error {
		if op.Kind == vfstest.OpRename { // the copy for quarantine/ is complete
			return write("1}\n")
		}
		return nil
	}
	if _, err := log.Append(t.Context(), end, []byte(`{"n":2}`)); !errors.Is(err, store.ErrConflict) {
		t.Errorf("appending while another program writes: %v", err)
	}
	if data, err := os.ReadFile(st.Path("a")); err != nil || string(data) != "{}\n{\"n\":1}\n" {
		t.Errorf("the file holds %q, %v", data, err)
	}
}
