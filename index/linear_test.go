package index_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/index"
)

// longChain writes a conversation of n sessions, each of which begins with a copy of what the first
// one was told and says one thing of its own.
func longChain(t *testing.T, dir string, n int) {
	t.Helper()
	const stamp = `"timestamp":"2026-01-02T03:04:05.000Z"`
	for i := range n {
		var b strings.Builder
		parent := ""
		if i > 0 {
			parent = fmt.Sprintf(`"parent_session":"s%04d","relation":"continuation","continuation_index":%d,`, i-1, i)
		}
		fmt.Fprintf(&b, `{"type":"session","id":"s%04d","version":1,%s%s}`+"\n", i, parent, stamp)
		b.WriteString(`{"type":"message","id":"told","parent_id":null,` + stamp + `,"message":{"role":"system","content":[{"type":"text","text":{"content":"be brief"}}]}}` + "\n")
		if i > 0 {
			fmt.Fprintf(&b, `{"type":"continues","id":"marker-%d","parent_id":"told",%s,"continues":{"session":"s%04d","original":"s0000"}}`+"\n", i, stamp, i-1)
		}
		fmt.Fprintf(&b, `{"type":"message","id":"said-%d",%s,"message":{"role":"user","content":[{"type":"text","text":{"content":"word%d"}}]}}`+"\n", i, stamp, i)
		if i+1 < n {
			fmt.Fprintf(&b, `{"type":"custom","id":"next-%d","parent_id":"said-%d",%s,"custom":{"custom_type":"coppice.continued_to","data":{"of":"s%04d","session":"s%04d"}}}`+"\n", i, i, stamp, i, i+1)
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("s%04d.jsonl", i)), []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// allocated is how many allocations a call makes, which is what it does to a database and
// back again. It is for tests that run alone.
func allocated(call func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	call()
	runtime.ReadMemStats(&after)
	return after.Mallocs - before.Mallocs
}

// TestALongConversationCostsNoMoreThanItsLength: four times as many sessions take about
// four times the work, whatever happens to the conversation.
func TestALongConversationCostsNoMoreThanItsLength(t *testing.T) {
	const few, many = 50, 200
	for name, change := range map[string]func(t *testing.T, dir string, n int){
		"a message is added": func(t *testing.T, dir string, n int) {
			f, err := os.OpenFile(filepath.Join(dir, "s0010.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
			if err == nil {
				_, err = f.WriteString(`{"type":"message","id":"more","parent_id":"said-10","timestamp":"2026-01-02T03:05:00.000Z","message":{"role":"user","content":[{"type":"text","text":{"content":"more"}}]}}` + "\n")
				err = errors.Join(err, f.Close())
			}
			if err != nil {
				t.Fatal(err)
			}
		},
		"half of it is removed": func(t *testing.T, dir string, n int) {
			for i := 0; i < n; i += 2 {
				if err := os.Remove(filepath.Join(dir, fmt.Sprintf("s%04d.jsonl", i))); err != nil {
					t.Fatal(err)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			work := func(n int) uint64 {
				f := newFixture(t)
				longChain(t, f.dir, n)
				ix := f.open(t)
				page, _, err := ix.List(t.Context(), index.ListOptions{})
				if err != nil || len(page) != 1 || page[0].Messages != n+1 {
					t.Fatalf("%d sessions are listed as %d: %+v, %v", n, len(page), page[0], err)
				}
				change(t, f.dir, n)
				return allocated(func() { mustCatchUp(t, ix) })
			}
			if a, b := work(few), work(many); b > 6*a {
				t.Errorf("%d allocations for %d sessions, %d for %d: %.1f times", a, few, b, many, float64(b)/float64(a))
			}
		})
	}
}
