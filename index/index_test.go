package index_test

import (
	"bytes"
	"context"
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
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
)

func TestFileIsPrivate(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("no permissions")
	}
	f := newFileFixture(t)
	f.say("secret")
	f.open(t)
	for _, suffix := range []string{"", "-wal", "-shm"} {
		info, err := os.Stat(f.path() + suffix)
		if err != nil {
			t.Fatal(err)
		}
		if perm := info.Mode().Perm(); perm != 0o600 {
			t.Errorf("index.db%s has mode %o", suffix, perm)
		}
	}
}

func TestClosed(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ix := f.open(t)
	if err := ix.Close(); err != nil {
		t.Fatal(err)
	}
	if err := ix.Close(); err != nil {
		t.Errorf("closing again: %v", err)
	}
	_, err := ix.CatchUp(context.Background(), nil)
	if !errors.Is(err, store.ErrClosed) {
		t.Errorf("CatchUp gives %v", err)
	}
	if _, _, err := ix.List(context.Background(), index.ListOptions{}); !errors.Is(err, store.ErrClosed) {
		t.Errorf("List gives %v", err)
	}
}

// A server goes on after a fault. The index must, too.
func TestPanicUnlocks(t *testing.T) {
	t.Parallel()
	ix := openDir(t, t.TempDir())
	func() {
		defer func() { _ = recover() }()
		ix.Panic()
	}()
	if ix.IsLocked() {
		t.Error("the index is locked for good")
	}
}

// TestDamagedFile shows that an index that cannot be used is made anew.
func TestDamagedFile(t *testing.T) {
	t.Parallel()
	overwrite := func(from int64, data []byte) func(t *testing.T, path string) {
		return func(t *testing.T, path string) {
			file, err := os.OpenFile(path, os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			if _, err := file.WriteAt(data, from); err != nil {
				t.Fatal(err)
			}
		}
	}
	tests := []struct {
		name   string
		damage func(t *testing.T, path string)
	}{
		{"not a database", overwrite(0, bytes.Repeat([]byte("x"), 5000))},
		{"all but the first page", overwrite(4096, bytes.Repeat([]byte("x"), 60_000))},
		{"another version", overwrite(60, []byte{0, 0, 0, 99})},
		{"cut short", func(t *testing.T, path string) {
			if err := os.Truncate(path, 4096); err != nil {
				t.Fatal(err)
			}
		}},
		{"missing", func(t *testing.T, path string) {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFileFixture(t)
			for i := range 20 {
				f.say(fmt.Sprintf("needle %d", i))
			}
			if err := f.open(t).Close(); err != nil {
				t.Fatal(err)
			}
			tt.damage(t, f.path())
			ix := f.open(t)
			res, err := ix.Search(context.Background(), index.SearchOptions{Query: "needle"})
			if err != nil || res.Matches != 20 {
				t.Errorf("found %+v, %v", res, err)
			}
			if page, _, err := ix.List(context.Background(), index.ListOptions{}); err != nil || len(page) != 20 {
				t.Errorf("listed %d, %v", len(page), err)
			}
		})
	}
}

// TestReplacedFile shows that an index notices when its file was deleted.
func TestReplacedFile(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("files that are open cannot be removed")
	}
	f := newFileFixture(t)
	f.say("needle")
	ix := f.open(t)
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(f.path() + suffix); err != nil {
			t.Fatal(err)
		}
	}
	if report := mustCatchUp(t, ix); !report.Rebuilt || report.Changed != 1 {
		t.Errorf("report %+v", report)
	}
	if hits := search(t, ix, index.SearchOptions{Query: "needle"}); len(hits) != 1 {
		t.Errorf("hits %+v", hits)
	}
}

func TestCatchUpReadsOnlyWhatIsNew(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	s := f.say("one", "two")
	f.say("three")
	ix := f.open(t)
	if report := mustCatchUp(t, ix); report.Changed != 0 || report.Bytes != 0 || report.Sessions != 2 {
		t.Errorf("nothing has changed, but %+v", report)
	}
	before := size(t, f.st.Path(s.ID()))
	f.append(s, session.RoleUser, session.Text("four"))
	grown := size(t, f.st.Path(s.ID())) - before
	var last [2]int64
	report, err := ix.CatchUp(context.Background(), func(done, total int64) { last = [2]int64{done, total} })
	if err != nil || report.Changed != 1 || report.Entries != 1 || report.Bytes != grown {
		t.Errorf("%d bytes were appended, but %+v, %v", grown, report, err)
	}
	if last != [2]int64{grown, grown} {
		t.Errorf("progress ends with %v", last)
	}
}

// TestInterrupted shows that a CatchUp that was ended goes on where it stopped.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	writeCorpus(t, f.dir, 2, 100)
	tagEarly(t, filepath.Join(f.dir, sessionName(0)+".jsonl"), "early")
	ix, err := index.Open(context.Background(), f.st, f.path(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer ix.Close()
	ix.SetBatch(30)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	_, err = ix.CatchUp(ctx, func(done, _ int64) {
		if done > 0 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("CatchUp gives %v", err)
	}
	before := must[index.Status](t)(ix.Status(context.Background()))
	if before.Entries == 0 || before.Entries == 201 {
		t.Fatalf("it was ended after %d entries", before.Entries)
	}
	report := mustCatchUp(t, ix)
	if report.Entries != 201-before.Entries {
		t.Errorf("%d entries were read before, and then %d", before.Entries, report.Entries)
	}
	fresh, err := index.Open(context.Background(), f.st, filepath.Join(t.TempDir(), "fresh.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer fresh.Close()
	mustCatchUp(t, fresh)
	if must[string](t)(fresh.Dump()) != must[string](t)(ix.Dump()) {
		t.Error("it differs from one that was made at once")
	}
	tagged, _, err := ix.List(context.Background(), index.ListOptions{Tags: []string{"early"}})
	if err != nil || len(tagged) != 1 {
		t.Errorf("%d sessions have a tag that was read before the interruption (%v)", len(tagged), err)
	}
}

// tagEarly tags a session right after its first message, so that the tag is in the
// first part of the log that is read.
func tagEarly(t *testing.T, path, tag string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfterN(string(text), "\n", 3)
	var first struct{ ID, Timestamp string }
	if err := json.Unmarshal([]byte(lines[1]), &first); err != nil {
		t.Fatal(err)
	}
	line := fmt.Sprintf(`{"type":"custom","id":"tag","parent_id":%q,"timestamp":%q,"custom":{"custom_type":"coppice.tags","data":{"add":[%q]}}}`+"\n",
		first.ID, first.Timestamp, tag)
	if err := os.WriteFile(path, []byte(lines[0]+lines[1]+line+lines[2]), 0o600); err != nil {
		t.Fatal(err)
	}
}

func size(tb testing.TB, path string) int64 {
	tb.Helper()
	info, err := os.Stat(path)
	if err != nil {
		tb.Fatal(err)
	}
	return info.Size()
}

// TestReplacedLog shows that a log that is another one, or was cut back, is read
// anew.
func TestReplacedLog(t *testing.T) {
	t.Parallel()
	line := func(id, text string) string {
		return fmt.Sprintf(`{"type":"message","id":%q,"parent_id":null,"timestamp":"2026-01-01T00:00:00Z","message":{"role":"user","content":%q}}`+"\n", id, text)
	}
	header := func(time string) string {
		return fmt.Sprintf(`{"type":"session","id":"x","version":1,"timestamp":%q}`+"\n", time)
	}
	original := header("2026-01-01T00:00:00Z") + line("a", "apple") + line("b", "banana")
	tests := map[string]struct {
		log  string
		want string
	}{
		"grown":                    {original + line("c", "cherry"), "apple banana cherry"},
		"cut back":                 {header("2026-01-01T00:00:00Z") + line("a", "apple"), "apple"},
		"another header":           {header("2026-01-02T00:00:00Z") + line("a", "apricot") + line("b", "blueberry") + line("c", "cherry"), "apricot blueberry cherry"},
		"another end":              {header("2026-01-01T00:00:00Z") + line("a", "apple") + line("d", "date") + line("e", "elderberry"), "apple date elderberry"},
		"the same, but later":      {original, "apple banana"},
		"nothing":                  {"", ""},
		"a line still being added": {original + `{"type":"mess`, "apple banana"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			path := f.st.Path("x")
			write := func(log string, at time.Time) {
				if err := os.WriteFile(path, []byte(log), 0o600); err != nil {
					t.Fatal(err)
				}
				if err := os.Chtimes(path, at, at); err != nil {
					t.Fatal(err)
				}
			}
			write(original, f.now)
			ix := f.open(t)
			write(tt.log, f.now.Add(time.Minute))
			if report := mustCatchUp(t, ix); report.Changed != 1 {
				t.Errorf("report %+v", report)
			}
			var got []string
			for _, hit := range search(t, ix, index.SearchOptions{Query: "kind:text", Order: index.ByTime}) {
				got = append([]string{hit.Snippet}, got...)
			}
			if strings.Join(got, " ") != tt.want {
				t.Errorf("found %q, want %q", got, tt.want)
			}
		})
	}
}

func TestUnreadableLogs(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.say("fine")
	if err := os.WriteFile(f.st.Path("newer"), []byte(`{"type":"session","id":"newer","version":99,"timestamp":"2026-01-01T00:00:00Z"}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(f.dir, ".coppice", "archive"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(f.dir, ".coppice", "archive", "bad.jsonl.zst"), []byte("not zstd"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(f.st.Path("nonsense"), []byte("hello\nworld\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ix, err := index.Open(context.Background(), f.st, f.path(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer ix.Close()
	for range 2 { // they are tried again each time
		report, err := ix.CatchUp(context.Background(), nil)
		if err != nil || len(report.Unread) != 2 {
			t.Fatalf("report %+v, %v", report, err)
		}
	}
	page, _, err := ix.List(context.Background(), index.ListOptions{Sort: index.ByTitle})
	if err != nil || len(page) != 4 {
		t.Errorf("listed %+v, %v", page, err)
	}
	for _, s := range page {
		if (s.Problems > 0) != (s.Title == "") {
			t.Errorf("%+v has %d problems", s, s.Problems)
		}
	}
}

// TestDamagedLines shows that the index follows a conversation across damage as a
// session does: the latest line that cannot be read is taken for the parent that
// is missing.
func TestDamagedLines(t *testing.T) {
	t.Parallel()
	f := newFileFixture(t)
	line := func(id, parent string) string {
		return fmt.Sprintf(`{"type":"message","id":%q,"parent_id":%s,"timestamp":"2026-01-01T00:00:00Z","message":{"role":"user","content":"say %s"}}`+"\n", id, parent, id)
	}
	log := `{"type":"session","id":"x","version":1,"timestamp":"2026-01-01T00:00:00Z"}` + "\n" +
		line("a", "null") + "damage\n" + line("b", `"a"`) + "more damage\n" + line("c", `"lost"`) + line("d", `"c"`) + line("b", "null")
	for _, cut := range []int{len(log), strings.Index(log, "more")} { // at once, and in two steps
		if err := os.WriteFile(f.st.Path("x"), []byte(log[:cut]), 0o600); err != nil {
			t.Fatal(err)
		}
		ix := f.open(t)
		if err := os.WriteFile(f.st.Path("x"), []byte(log), 0o600); err != nil {
			t.Fatal(err)
		}
		mustCatchUp(t, ix)
		var live []string
		for _, hit := range search(t, ix, index.SearchOptions{Query: "say branch:live", Order: index.ByTime}) {
			live = append(live, hit.Entry)
		}
		info := must[index.Session](t)(ix.Get(context.Background(), "x"))
		if got := strings.Join(live, " "); got != "d c b a" || info.Leaf != "d" || info.Problems != 4 || info.Entries != 4 {
			t.Errorf("the live path is %s; session %+v", got, info)
		}
		if err := errors.Join(ix.Close(), os.Remove(f.path())); err != nil {
			t.Fatal(err)
		}
	}
}

// TestManyProcesses lets two processes catch up one index while a third appends.
func TestManyProcesses(t *testing.T) {
	if dir := os.Getenv("INDEX_TEST_DIR"); dir != "" {
		catchUpForAWhile(t, dir)
		return
	}
	f := newFileFixture(t)
	sessions := []*session.Session{f.say("start 0"), f.say("start 1"), f.say("start 2")}
	var procs []*exec.Cmd
	var output [2]bytes.Buffer
	for i := range output {
		cmd := exec.Command(os.Args[0], "-test.run=^TestManyProcesses$")
		cmd.Env = append(os.Environ(), "INDEX_TEST_DIR="+f.dir)
		cmd.Stdout, cmd.Stderr = &output[i], &output[i]
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		procs = append(procs, cmd)
	}
	for i := range 200 {
		f.append(sessions[i%len(sessions)], session.RoleUser, session.Text(fmt.Sprintf("message %d", i)))
		if i%50 == 20 {
			if err := sessions[1].Branch(""); err == nil {
				t.Fatal("branched to nowhere")
			}
			f.say(fmt.Sprintf("another %d", i))
		}
		time.Sleep(2 * time.Millisecond)
	}
	if err := os.WriteFile(filepath.Join(f.dir, "stop"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for i, cmd := range procs {
		if err := cmd.Wait(); err != nil {
			t.Errorf("process %d: %v\n%s", i, err, &output[i])
		}
	}
	ix := f.open(t)
	fresh, err := index.Open(context.Background(), f.st, filepath.Join(t.TempDir(), "fresh.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer fresh.Close()
	mustCatchUp(t, fresh)
	if want, got := must[string](t)(fresh.Dump()), must[string](t)(ix.Dump()); want != got {
		t.Errorf("rebuilt:\n%s\nshared:\n%s", want, got)
	}
	if ok := must[string](t)(ix.Integrity()); ok != "ok" {
		t.Error(ok)
	}
}

func catchUpForAWhile(t *testing.T, dir string) {
	st, err := file.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	ix, err := index.Open(context.Background(), st, filepath.Join(dir, ".coppice", "index.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer ix.Close()
	for stop := false; !stop; {
		_, err := os.Stat(filepath.Join(dir, "stop"))
		stop = err == nil
		mustCatchUp(t, ix)
	}
}
