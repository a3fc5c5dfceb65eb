package index_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/store/file"
)

// writeCrowd writes a session of so many messages, all within some seconds.
func writeCrowd(tb testing.TB, dir string, messages, seconds int, text string) {
	tb.Helper()
	f, err := os.OpenFile(filepath.Join(dir, "crowd.jsonl"), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		tb.Fatal(err)
	}
	w := bufio.NewWriterSize(f, 1<<18)
	start := time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)
	fmt.Fprintf(w, `{"type":"session","id":"crowd","version":1,"timestamp":%q}`+"\n", start.Format(time.RFC3339))
	parent := "null"
	for i := range messages {
		id := fmt.Sprintf(`"%08x-0000-7000-8000-000000000000"`, i)
		at := start.Add(time.Duration(i*seconds/messages) * time.Second)
		fmt.Fprintf(w, `{"type":"message","id":%s,"parent_id":%s,"timestamp":%q,"message":{"role":"user","content":[{"type":"text","text":{"content":"needle n%d %s"}}]}}`+"\n",
			id, parent, at.Format(time.RFC3339), i, text)
		parent = id
	}
	if err := w.Flush(); err != nil {
		tb.Fatal(err)
	}
	if err := f.Close(); err != nil {
		tb.Fatal(err)
	}
}

func openDir(tb testing.TB, dir string) *index.Index {
	tb.Helper()
	st := must[*file.Store](tb)(file.Open(dir, nil))
	ix := must[*index.Index](tb)(index.Open(context.Background(), st, filepath.Join(dir, ".coppice", "index.db"), nil))
	tb.Cleanup(func() { ix.Close(); st.Close() })
	return ix
}

// Many more texts of one second than there are numbers for: all are found, and
// the newest come first all the same.
func TestCrowdedSeconds(t *testing.T) {
	t.Parallel()
	const messages = 3_000
	for _, seconds := range []int{1, 3, 40} {
		dir := t.TempDir()
		writeCrowd(t, dir, messages, seconds, "")
		ix := openDir(t, dir)
		ix.SetBatch(700)
		mustCatchUp(t, ix)
		if status := must[index.Status](t)(ix.Status(context.Background())); status.Texts != messages {
			t.Errorf("%d seconds: %d texts", seconds, status.Texts)
		}
		for _, i := range []int{0, 1, messages / 2, messages - 1} {
			hits := search(t, ix, index.SearchOptions{Query: fmt.Sprintf("n%d", i)})
			if len(hits) != 1 || hits[0].Entry != fmt.Sprintf("%08x-0000-7000-8000-000000000000", i) {
				t.Errorf("%d seconds: n%d is found as %+v", seconds, i, hits)
			}
		}
		if result, err := ix.Integrity(); err != nil || result != "ok" {
			t.Errorf("%d seconds: %s, %v", seconds, result, err)
		}
	}
}

// BenchmarkCrowdedSeconds indexes 60,000 messages of three seconds.
func BenchmarkCrowdedSeconds(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		dir := b.TempDir()
		writeCrowd(b, dir, 60_000, 3, "and some words more")
		ix := openDir(b, dir)
		b.StartTimer()
		mustCatchUp(b, ix)
	}
}

// BenchmarkHugeSession indexes a session of 200 MB, written within a minute.
func BenchmarkHugeSession(b *testing.B) {
	z := newZipf(3)
	var text []byte
	for len(text) < 4000 {
		text = z.text(text)
	}
	for b.Loop() {
		b.StopTimer()
		dir := b.TempDir()
		writeCrowd(b, dir, 50_000, 60, string(text))
		ix := openDir(b, dir)
		b.StartTimer()
		mustCatchUp(b, ix)
	}
}
