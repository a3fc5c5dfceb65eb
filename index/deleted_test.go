package index_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/internal/soak"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/vfs"
)

const (
	// readerDir tells a process of this test binary that it is a reader, and of
	// which store.
	readerDir = "COPPICE_TEST_INDEX_READER"
	// deletingFor says how long TestDeletedInUse goes on.
	deletingFor = "COPPICE_TEST_INDEX_DELETING"
	deletable   = 24 // sessions
)

// tally is what a reader saw.
type tally struct {
	Right, Errors int
	Wrong         []string // answers that were neither right nor an error
	Error         string   // the last
}

// readDeleted catches up and asks, again and again, half of the time with an index
// that it has just opened, and prints its tally.
func readDeleted(dir string) {
	if os.Getenv(deletingFor) == "dies" {
		die(dir)
	}
	var t tally
	length, _ := time.ParseDuration(os.Getenv(deletingFor))
	end := time.Now().Add(length)
	ctx := context.Background()
	st, err := file.Open(dir, nil)
	patience := end.Add(2 * time.Minute) // on a slow machine, for one right answer
	for i := 0; err == nil && (time.Now().Before(end) || t.Right == 0 && time.Now().Before(patience)); i++ {
		t.round(ctx, st, filepath.Join(dir, ".coppice", "index.db"), 1+9*(i%2))
	}
	if err != nil {
		t.Wrong = append(t.Wrong, err.Error())
	}
	json.NewEncoder(os.Stdout).Encode(t)
}

// round opens the index and asks so many times.
func (t *tally) round(ctx context.Context, st *file.Store, path string, questions int) {
	ix, err := index.Open(ctx, st, path, nil)
	if err != nil {
		t.failed(err)
		return
	}
	defer ix.Close()
	for range questions {
		if _, err := ix.CatchUp(ctx, nil); err != nil {
			t.failed(err)
			continue
		}
		all, _, err := ix.List(ctx, index.ListOptions{Limit: -1})
		if err != nil {
			t.failed(err)
			continue
		}
		res, err := ix.Search(ctx, index.SearchOptions{Query: "needle", Limit: 1000, SnippetLen: -1})
		if err != nil {
			t.failed(err)
			continue
		}
		if len(all) != deletable || len(res.Hits) != 2*deletable {
			t.Wrong = append(t.Wrong, fmt.Sprintf("%d sessions, %d hits", len(all), len(res.Hits)))
			continue
		}
		t.Right++
	}
}

func (t *tally) failed(err error) {
	t.Errors++
	t.Error = err.Error()
}

// Several processes read and fill an index while somebody deletes its files, one
// of them, some or all. Each answer is right, or an error.
func TestDeletedInUse(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("files that are open cannot be removed")
	}
	length := 1500 * time.Millisecond
	if more, err := time.ParseDuration(os.Getenv(deletingFor)); err == nil {
		length = more
	}
	dir := t.TempDir()
	st := must[*file.Store](t)(file.Open(dir, &file.Options{Sync: file.Never}))
	for i := range deletable {
		s := must[*session.Session](t)(session.Create(t.Context(), st, session.Header{ID: fmt.Sprint("s", i)}, nil))
		for range 2 {
			must[string](t)(s.AppendMessage(session.RoleUser, []session.Content{session.Text("needle " + fmt.Sprint(i))}))
		}
		s.Close()
	}
	var readers []*exec.Cmd
	outs := make([]bytes.Buffer, 3)
	for i := range outs {
		cmd := exec.Command(must[string](t)(os.Executable()), "-test.run=^$")
		cmd.Env = append(os.Environ(), readerDir+"="+dir, deletingFor+"="+length.String())
		cmd.Stdout, cmd.Stderr = &outs[i], &outs[i]
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		readers = append(readers, cmd)
	}
	deletions, rng := make(map[string]int), soak.Rand(t)
	for end := time.Now().Add(length); time.Now().Before(end); {
		time.Sleep(time.Duration(rng.IntN(300)) * time.Millisecond)
		some := [][]string{{""}, {"-wal"}, {"-shm"}, {"", "-wal"}, {"-wal", "-shm"}, {"", "-shm"}, {"", "-wal", "-shm"}, {"", "-wal", "-shm", ".lock"}}[rng.IntN(8)]
		for _, suffix := range some {
			os.Remove(filepath.Join(dir, ".coppice", "index.db"+suffix))
		}
		deletions[strings.Join(some, " ")]++
	}
	var sum tally
	for i, cmd := range readers {
		if err := cmd.Wait(); err != nil {
			t.Fatalf("%v\n%s", err, outs[i].String())
		}
		var one tally
		if err := json.Unmarshal(outs[i].Bytes(), &one); err != nil {
			t.Fatalf("%v\n%s", err, outs[i].String())
		}
		sum.Right += one.Right
		sum.Errors += one.Errors
		sum.Wrong = append(sum.Wrong, one.Wrong...)
		sum.Error = max(sum.Error, one.Error)
	}
	t.Logf("deleted %v; %d right answers, %d errors (%s), %d wrong", deletions, sum.Right, sum.Errors, sum.Error, len(sum.Wrong))
	if len(sum.Wrong) > 0 {
		t.Errorf("wrong answers: %q", sum.Wrong[:min(10, len(sum.Wrong))])
	}
	if sum.Right == 0 {
		t.Error("no answer was right")
	}
	// Afterwards all is well.
	var last tally
	last.round(t.Context(), st, filepath.Join(dir, ".coppice", "index.db"), 1)
	if last.Right != 1 {
		t.Errorf("afterwards: %+v", last)
	}
}

// An index that is open loses some of its files, and another opens it: both answer
// rightly, and go on doing so.
func TestDeletedFilesOfAnOpenIndex(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("files that are open cannot be removed")
	}
	for _, lost := range []string{"db", "-wal", "-shm", "db -wal", "-wal -shm", "db -shm", "db -wal -shm"} {
		t.Run(lost, func(t *testing.T) {
			f := newFileFixture(t)
			f.say("needle")
			first := f.open(t)
			for _, suffix := range strings.Fields(lost) {
				if err := os.Remove(f.path() + strings.TrimPrefix(suffix, "db")); err != nil {
					t.Fatal(err)
				}
			}
			second := f.open(t)
			for n := 1; n < 4; n++ {
				for which, ix := range []*index.Index{first, second, first} {
					mustCatchUp(t, ix)
					if hits := search(t, ix, index.SearchOptions{Query: "needle"}); len(hits) != n {
						t.Errorf("index %d has %d hits, want %d", which+1, len(hits), n)
					}
				}
				f.say("needle")
			}
		})
	}
}

// A process that dies leaves its log beside the database. Without it the database
// is worth nothing, and is made anew; with it, it is kept.
func TestLogOfADeadProcess(t *testing.T) {
	t.Parallel()
	for _, lost := range []bool{false, true} {
		f := newFileFixture(t)
		f.say("needle")
		cmd := exec.Command(must[string](t)(os.Executable()), "-test.run=^$")
		cmd.Env = append(os.Environ(), readerDir+"="+f.dir, deletingFor+"=dies")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if lost {
			if err := os.Remove(f.path() + "-wal"); err != nil {
				t.Fatal(err)
			}
		}
		ix := must[*index.Index](t)(index.Open(t.Context(), f.st, f.path(), nil))
		if report := mustCatchUp(t, ix); report.Rebuilt != lost || report.Changed != btoi(lost) {
			t.Errorf("lost=%v: %+v", lost, report)
		}
		if hits := search(t, ix, index.SearchOptions{Query: "needle"}); len(hits) != 1 {
			t.Errorf("lost=%v: %d hits", lost, len(hits))
		}
		if err := ix.Close(); err != nil {
			t.Error(err)
		}
		// Once all was written, the log may go.
		os.Remove(f.path() + "-wal")
		ix = must[*index.Index](t)(index.Open(t.Context(), f.st, f.path(), nil))
		if report := mustCatchUp(t, ix); report.Rebuilt || report.Changed != 0 {
			t.Errorf("lost=%v: after closing: %+v", lost, report)
		}
		ix.Close()
	}
}

// die catches up and ends without closing.
func die(dir string) {
	st, err := file.Open(dir, nil)
	if err == nil {
		var ix *index.Index
		if ix, err = index.Open(context.Background(), st, filepath.Join(dir, ".coppice", "index.db"), nil); err == nil {
			_, err = ix.CatchUp(context.Background(), nil)
		}
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(0)
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// A database with our version number that is not ours could make a query do
// anything: it is made anew.
func TestForeignSchema(t *testing.T) {
	t.Parallel()
	for _, change := range []string{
		`CREATE TRIGGER t AFTER INSERT ON sessions BEGIN DELETE FROM docs; END`,
		`CREATE VIEW v AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n`,
		`ALTER TABLE sessions ADD COLUMN bomb TEXT GENERATED ALWAYS AS (hex(zeroblob(4000))) VIRTUAL`,
		`DROP TABLE tags; CREATE VIEW tags AS SELECT hex(zeroblob(4000)) AS tag, 1 AS session`,
		`CREATE TABLE fts_more (a, b TEXT AS (hex(zeroblob(4000))))`,
		`CREATE INDEX more ON sessions (hex(zeroblob(1000)))`,
	} {
		f := newFileFixture(t)
		f.say("needle")
		f.open(t).Close()
		db := must[*sql.DB](t)(sql.Open("sqlite", f.path()))
		if _, err := db.Exec(change); err != nil {
			t.Fatal(err)
		}
		db.Close()
		ix := must[*index.Index](t)(index.Open(t.Context(), f.st, f.path(), nil))
		if report := mustCatchUp(t, ix); !report.Rebuilt || report.Changed != 1 {
			t.Errorf("%s: %+v", change, report)
		}
		if tags, err := ix.Tags(t.Context()); err != nil || len(tags) != 0 {
			t.Errorf("%s: %v, %v", change, tags, err)
		}
		ix.Close()
	}
}

// What is no file in the place of one of the index's is an error, at once. A link
// is replaced, and what it leads to stays as it is.
func TestSpecialFilesInPlaceOfTheIndex(t *testing.T) {
	t.Parallel()
	for _, suffix := range []string{"", "-wal", "-shm", "-journal", ".lock"} {
		f := newFileFixture(t)
		f.say("needle")
		if suffix != "" {
			f.open(t).Close()
		}
		os.Remove(f.path() + suffix)
		if err := os.MkdirAll(f.path()+suffix, 0o700); err != nil {
			t.Fatal(err)
		}
		if _, err := index.Open(t.Context(), f.st, f.path(), nil); !errors.Is(err, vfs.ErrNotRegular) {
			t.Errorf("a directory at %q: %v", suffix, err)
		}
		if suffix == ".lock" {
			continue
		}
		if err := index.Verify(t.Context(), f.path()); !errors.Is(err, vfs.ErrNotRegular) {
			t.Errorf("a directory at %q is verified: %v", suffix, err)
		}
		os.Remove(f.path() + suffix)
		precious := filepath.Join(f.dir, "precious")
		if err := errors.Join(os.WriteFile(precious, nil, 0o600), os.Symlink(precious, f.path()+suffix)); err != nil {
			t.Skip(err)
		}
		if hits := search(t, f.open(t), index.SearchOptions{Query: "needle"}); len(hits) != 1 {
			t.Errorf("a link at %q: %d hits", suffix, len(hits))
		}
		if info, err := os.Stat(precious); err != nil || info.Size() > 0 {
			t.Errorf("a link at %q: what it leads to was written to: %v", suffix, err)
		}
	}
}

// A full-text table whose list of segments is damaged is made again, as any damaged
// index is.
func TestDamagedStructureIsMadeAgain(t *testing.T) {
	t.Parallel()
	for name, block := range map[string]string{"empty": "", "short": "00000000ff000001", "more than there is": "00000000ff0000010105000005"} {
		t.Run(name, func(t *testing.T) {
			f := newFileFixture(t)
			f.say("an early word")
			f.open(t).Close()
			db := must[*sql.DB](t)(sql.Open("sqlite", f.path()))
			must[sql.Result](t)(db.Exec(`UPDATE fts_data SET block = unhex(?) WHERE id = 10`, block))
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			f.say("a later word")
			if hits := search(t, f.open(t), index.SearchOptions{Query: "word"}); len(hits) != 2 {
				t.Errorf("found %d of 2", len(hits))
			}
		})
	}
}
