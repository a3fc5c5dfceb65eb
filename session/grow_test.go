package session_test

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/internal/soak"
	"github.com/coppice-dev/coppice/session"
)

// plan tells where a context would be cut, which depends on what it was made of.
func plan(c *session.Context) string {
	p, err := c.PlanCompaction(3, func(session.Entry) int { return 1 })
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(p.FirstKept, entryIDs(p.Summarise), entryIDs(p.Kept))
}

// A context that was made of the one before is the context of a session that was
// just loaded, whatever was appended in between; and the one before stays what it
// was.
func TestGrownContextIsTheSame(t *testing.T) {
	t.Parallel()
	for n := range 6 {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			w := wanderer{scribe: newScribe(t, func(c *session.Config) { c.Options.BlobThreshold = 1000 }), rng: soak.Rand(t)}
			var before *session.Context
			told := ""
			for range 60 {
				for range 1 + w.rng.IntN(3) {
					w.step()
				}
				c, loaded := shared(t, w.scribe, ""), w.again().at("")
				if diff := cmp.Diff(tell(t, loaded), tell(t, c)); diff != "" {
					t.Fatalf("the context (-loaded +grown):\n%s", diff)
				}
				if diff := cmp.Diff(plan(loaded), plan(c)); diff != "" {
					t.Fatalf("its cut (-loaded +grown):\n%s", diff)
				}
				if before != nil {
					if diff := cmp.Diff(told, tell(t, before)); diff != "" {
						t.Fatalf("the context before (-before +after):\n%s", diff)
					}
				}
				before, told = c, tell(t, c)
			}
		})
	}
}

// The turns of an agent cost what they append: the next context shares the memory
// of the one before.
func TestContextGrowsInPlace(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	for i := range 100 {
		s.user(fmt.Sprint("text ", i))
	}
	first := shared(t, s, "")
	s.call("c")
	s.result("c")
	second := shared(t, s, "")
	if len(second.Entries) != 102 || &first.Entries[0] != &second.Entries[0] {
		t.Errorf("%d entries; all of them were copied", len(second.Entries))
	}
}

// Many may ask while others append: nobody sees an entry of another context.
func TestContextsGrowConcurrently(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	for i := range 64 {
		s.user(fmt.Sprint("text ", i))
	}
	shared(t, s, "")
	var done sync.WaitGroup
	for range 3 {
		done.Go(func() {
			for range 20 {
				c, err := s.Context(session.ContextOptions{Shared: true})
				if err != nil {
					t.Error(err)
					return
				}
				for i := 1; i < len(c.Entries); i++ {
					if *c.Entries[i].ParentID != c.Entries[i-1].ID {
						t.Errorf("entry %d does not follow the one before it", i)
					}
				}
				if last := len(c.Entries) - 1; c.Entries[last].ID != c.Leaf || len(c.Fingerprints) != last+1 {
					t.Errorf("the context ends with %s, and its leaf is %s", c.Entries[last].ID, c.Leaf)
				}
			}
		})
	}
	for i := range 40 {
		s.user(strings.Repeat("more ", i))
	}
	done.Wait()
}

// What comes after a compaction that keeps no message decides whether the cut
// splits a turn, and so what the context begins with.
func TestFirstMessageAfterACompactionIsLookedAt(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	s.user("please")
	s.say("step one")
	s.compact("summary", mustGet(s.AppendModelChange("p", "m"))(t))
	shared(t, s, "")
	s.say("step two")
	want := tell(t, s.again().at(""))
	if !strings.Contains(want, "please") {
		t.Fatalf("the cut does not split the turn:\n%s", want)
	}
	if diff := cmp.Diff(want, tell(t, shared(t, s, ""))); diff != "" {
		t.Errorf("the context (-loaded +grown):\n%s", diff)
	}
}

// An edit may name an entry whose line comes later: other programs write such logs.
func TestEditOfALaterEntryIsSeen(t *testing.T) {
	t.Parallel()
	path := writeLog(
		t, headerLine, messageLine("a", "", "user", "one"),
		`{"type":"context_edit","id":"b","parent_id":"a","timestamp":"2024-01-01T10:00:01.000Z","context_edit":{"target_id":"c","replacement":[{"type":"text","text":"instead"}]}}`)
	s := loadScribe(t, path)
	shared(t, s, "")
	f := mustGet(os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0))(t)
	mustGet(f.WriteString(messageLine("c", "b", "user", "two") + "\n"))(t)
	mustDo(t, f.Close())
	mustGet(s.Refresh())(t)
	want := tell(t, s.again().at(""))
	if diff := cmp.Diff(want, tell(t, shared(t, s, ""))); diff != "" || !strings.Contains(want, "instead") {
		t.Errorf("the context (-loaded +grown):\n%s\n%s", diff, want)
	}
}
