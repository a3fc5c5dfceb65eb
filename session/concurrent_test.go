package session_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/internal/soak"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/memory"
)

func growing(c *session.Config) { c.Options.OnConflict = session.GrowBranch }

func TestConflict(t *testing.T) {
	t.Parallel()
	a := newScribe(t)
	start := a.user("start")
	b := a.again()
	theirs := b.user("b's")
	_, err := a.AppendMessage(session.RoleUser, []session.Content{session.Text("a's")})
	var conflict *session.ConflictError
	if !errors.As(err, &conflict) || !errors.Is(err, session.ErrConflict) || conflict.Leaf != start || conflict.Theirs != theirs {
		t.Fatalf("%v, want a ConflictError at %s and %s", err, start, theirs)
	}
	if a.LeafID() != start {
		t.Errorf("the conflict moved our leaf to %s", a.LeafID())
	}
	a.sees("user: start")
	// We have seen what they wrote.
	if e := mustGet(a.Entry(theirs))(t); viewMessage(e.Message) != "user: b's" {
		t.Errorf("%s", encode(t, e))
	}
	// Appending again grows a branch, and nothing of theirs is lost.
	ours := a.user("a's")
	a.sees("user: start", "user: a's")
	a.again().sees("user: start", "user: a's")
	if leaves := mustGet(a.Leaves())(t); !slices.Equal(leaves, []string{theirs, ours}) {
		t.Errorf("leaves %v", leaves)
	}
	// The other side gets its conflict too, and chooses to go on from there.
	if _, err := b.AppendMessage(session.RoleUser, []session.Content{session.Text("b's next")}); !errors.Is(err, session.ErrConflict) {
		t.Fatalf("%v, want ErrConflict", err)
	}
	if fresh := mustGet(b.Refresh())(t); fresh {
		t.Error("Refresh says that something was new, but the conflict had read it")
	}
	if b.LeafID() != ours {
		t.Errorf("after Refresh the leaf is %s, want %s", b.LeafID(), ours)
	}
	b.user("b's next")
	b.again().sees("user: start", "user: a's", "user: b's next")
	if fresh := mustGet(a.Refresh())(t); !fresh {
		t.Error("Refresh saw nothing new")
	}
	a.sees("user: start", "user: a's", "user: b's next")
}

// Every way to append reports the conflict and writes nothing.
func TestConflictInEveryMethod(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]func(s scribe, id string) error{
		"Branch":            func(s scribe, id string) error { return s.Branch(id) },
		"BranchWithSummary": func(s scribe, id string) error { _, err := s.BranchWithSummary(id, "s"); return err },
		"SetLabel":          func(s scribe, id string) error { _, err := s.SetLabel(id, "s"); return err },
		"AppendCompaction":  func(s scribe, id string) error { _, err := s.AppendCompaction("s", id, 1); return err },
		"EditContext":       func(s scribe, id string) error { _, err := s.AppendEntry(session.ContextEdit(id)); return err },
		"ResetLeaf":         func(s scribe, _ string) error { return s.ResetLeaf() },
		"AppendModelChange": func(s scribe, _ string) error { _, err := s.AppendModelChange("p", "m"); return err },
		"AppendAll": func(s scribe, _ string) error {
			_, err := s.AppendAll(session.Entry{Type: "x"}, session.Entry{Type: "y"})
			return err
		},
	} {
		a := newScribe(t)
		id := a.user("one")
		leaf := a.user("two")
		b := a.again()
		b.user("theirs")
		if err := write(a, id); !errors.Is(err, session.ErrConflict) {
			t.Errorf("%s: %v, want ErrConflict", name, err)
		}
		if a.LeafID() != leaf || len(a.again().ids()) != 3 {
			t.Errorf("%s: something was written", name)
		}
		if err := write(a, id); err != nil {
			t.Errorf("%s, again: %v", name, err)
		}
	}
}

func TestGrowBranch(t *testing.T) {
	t.Parallel()
	a := newScribe(t, growing)
	start := a.user("start")
	b := a.again(growing)
	for i := range 5 {
		a.user(fmt.Sprint("a", i))
		b.user(fmt.Sprint("b", i))
	}
	a.sees("user: start", "user: a0", "user: a1", "user: a2", "user: a3", "user: a4")
	b.sees("user: start", "user: b0", "user: b1", "user: b2", "user: b3", "user: b4")
	again := a.again()
	again.sees("user: start", "user: b0", "user: b1", "user: b2", "user: b3", "user: b4")
	if c := again.compare(a.LeafID(), b.LeafID()); c.Ancestor != start || len(c.OnlyA) != 5 || len(c.OnlyB) != 5 {
		t.Errorf("%+v", c)
	}
	if kinds := again.problemKinds(); kinds != nil {
		t.Errorf("problems %q", kinds)
	}
	// An id of the caller's own is not written twice, however the race goes.
	mustDo(t, a.Append(session.Entry{Type: session.TypeMessage, ID: "own", Message: &session.MessageEntry{Role: "user"}}))
	if err := b.Append(session.Entry{Type: session.TypeMessage, ID: "own", Message: &session.MessageEntry{Role: "user"}}); !errors.Is(err, session.ErrExist) {
		t.Errorf("the same id from two writers: %v, want ErrExist", err)
	}
	if kinds := a.again().problemKinds(); slices.Contains(kinds, session.ProblemDuplicate) {
		t.Errorf("problems %q", kinds)
	}
}

// The agent waits for a tool while somebody else says something: its result
// belongs to its call.
func TestResultAfterAnothersMessage(t *testing.T) {
	t.Parallel()
	for _, option := range []func(*session.Config){nil, growing} {
		var agent scribe
		if option == nil {
			agent = newScribe(t)
		} else {
			agent = newScribe(t, option)
		}
		agent.user("one")
		agent.call("c")
		person := agent.again()
		person.user("hurry up")
		_, err := agent.AppendMessage(session.RoleTool, results("c"))
		if option == nil {
			if !errors.Is(err, session.ErrConflict) {
				t.Fatalf("%v, want ErrConflict", err)
			}
			mustGet(agent.Refresh())(t)
			agent.result("c")
			agent.sees("user: one", "assistant: call c", "tool: c = out of c", "user: hurry up")
		} else {
			mustDo(t, err)
			agent.sees("user: one", "assistant: call c", "tool: c = out of c")
		}
		checkPairs(t, mustGet(agent.GetContext())(t))
		checkPairs(t, mustGet(agent.again().GetContext())(t))
	}
}

func TestFollow(t *testing.T) {
	t.Parallel()
	a := newScribe(t)
	a.user("before")
	b := a.again()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	entries := b.Follow(ctx)
	leaf := b.LeafID()
	want := []string{"user: one", "assistant: two"}
	a.user("one")
	var got []session.Entry
	for e, err := range entries {
		mustDo(t, err)
		got = append(got, e)
		if len(got) == 1 {
			a.say("two")
		}
		if len(got) == len(want) {
			break
		}
	}
	if diff := cmp.Diff(want, view(got)); diff != "" {
		t.Error(diff)
	}
	if b.LeafID() != leaf {
		t.Error("following changed the session")
	}
	// It ends with the context, without an error.
	cancel()
	for e, err := range b.Follow(ctx) {
		t.Errorf("after the end: %v, %v", e, err)
	}
	// What cannot be read is said, and following goes on.
	st := memory.New(nil)
	s := scribe{closeWith(t, mustGet(session.Create(t.Context(), st, session.Header{ID: "m"}, nil))(t)), t}
	log := mustGet(st.Open(t.Context(), "m"))(t)
	end := mustGet(log.End(t.Context()))(t)
	mustGet(log.Append(t.Context(), end, []byte("garbage"), []byte(messageLine("x", "", "user", "after")), []byte("garbage")))(t)
	var texts []string
	for e, err := range s.Follow(t.Context()) {
		if err != nil {
			texts = append(texts, fmt.Sprint(errors.Is(err, session.ErrCorrupt)))
		} else {
			texts = append(texts, viewMessage(e.Message))
		}
		if len(texts) == 3 {
			break
		}
	}
	if diff := cmp.Diff([]string{"true", "user: after", "true"}, texts); diff != "" {
		t.Error(diff)
	}
}

// Refresh takes in what is damaged, repeated or strange, as a load does.
func TestRefreshOfStrangeLines(t *testing.T) {
	t.Parallel()
	st := memory.New(nil)
	s := scribe{closeWith(t, mustGet(session.Create(t.Context(), st, session.Header{ID: "m"}, nil))(t)), t}
	first := s.user("one")
	mustGet(s.GetTree())(t) // the whole tree is in memory
	log := mustGet(st.Open(t.Context(), "m"))(t)
	for _, line := range []string{
		messageLine("late", "gone", "user", "child of what comes later"),
		"garbage",
		messageLine("gone", first, "user", "the parent"),
		messageLine("gone", first, "user", "the parent, repeated"),
		`{"type":"message","id":"torn","parent_id":"gone","time`,
		messageLine("torn", "gone", "assistant", "written again"),
	} {
		end := mustGet(log.End(t.Context()))(t)
		mustGet(log.Append(t.Context(), end, []byte(line)))(t)
		mustGet(s.Refresh())(t)
	}
	fresh := scribe{closeWith(t, mustGet(session.Open(t.Context(), st, "m", nil))(t)), t}
	if diff := cmp.Diff(tell(t, fresh.at("")), tell(t, s.at(""))); diff != "" {
		t.Errorf("(-loaded +refreshed):\n%s", diff)
	}
	s.sees("user: one", "user: the parent", "assistant: written again")
	if got := view(s.at("late").Entries); !slices.Equal(got, []string{"user: one", "user: the parent", "user: child of what comes later"}) {
		t.Errorf("%q", got)
	}
	if tree := mustGet(s.GetTree())(t); len(tree) != 1 {
		t.Errorf("%d roots", len(tree))
	}
}

// Everything at once on one Session; at the end the log tells the same as the
// memory.
func TestManyGoroutines(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	first := s.user("first")
	const workers, steps = 8, 60
	var mu sync.Mutex
	acknowledged := map[string]bool{first: true}
	note := func(id string, err error) {
		if err == nil && id != "" {
			mu.Lock()
			acknowledged[id] = true
			mu.Unlock()
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	var followers, wg sync.WaitGroup
	followers.Go(func() {
		for _, err := range s.Follow(ctx) {
			if err != nil {
				t.Errorf("follow: %v", err)
				return
			}
		}
	})
	all := soak.Rand(t)
	for worker := range workers {
		rng := rand.New(rand.NewPCG(all.Uint64(), 0))
		wg.Go(func() {
			known := []string{first}
			for step := range steps {
				target := known[rng.IntN(len(known))]
				text := fmt.Sprintf("%d.%d", worker, step)
				var id string
				var err error
				switch rng.IntN(20) {
				case 0, 1, 2:
					id, err = s.AppendMessage(session.RoleUser, []session.Content{session.Text(text)})
				case 3:
					id, err = s.AppendMessage(session.RoleAssistant, calls(text))
				case 4:
					var ids []string
					ids, err = s.AppendAll(session.Entry{Type: "x"}, session.Entry{Type: "y"}, session.Entry{Type: "z"})
					for _, each := range ids {
						note(each, err)
					}
				case 5:
					err = s.Branch(target)
				case 6:
					id, err = s.BranchWithSummary(target, text)
				case 7:
					id, err = s.SetLabel(target, text)
				case 8:
					if id, err = s.AppendCompaction(text, "", 1); errors.Is(err, session.ErrInvalid) {
						err = nil // a call waits
					}
				case 9:
					if id, err = s.AppendEntry(session.ContextEdit(target)); errors.Is(err, session.ErrInvalid) {
						err = nil // on another branch
					}
				case 10:
					if id, err = s.Undo(); errors.Is(err, session.ErrNotExist) || errors.Is(err, session.ErrInvalid) {
						err = nil // none in force, or the leaf moved away
					}
				case 11:
					id, err = s.AppendEntry(session.Merge(target, text))
				case 12:
					_, err = s.GetContext()
				case 13:
					_, err = s.GetTree()
				case 14:
					_, err = s.Entry(target)
				case 15:
					_, err = s.Context(session.ContextOptions{Leaf: target})
				case 16:
					_, err = s.Problems()
				case 17:
					_, err = s.Forward("")
				case 18:
					_, err = s.Refresh()
				case 19:
					for _, err = range s.Entries() {
						if err != nil {
							break
						}
					}
				}
				if err != nil {
					t.Errorf("worker %d, step %d: %v", worker, step, err)
				}
				if id != "" && err == nil {
					note(id, nil)
					known = append(known, id)
				}
			}
		})
	}
	wg.Wait()
	cancel()
	followers.Wait()

	again := s.again()
	if again.LeafID() != s.LeafID() {
		t.Errorf("leaf %s in memory, %s in the log", s.LeafID(), again.LeafID())
	}
	if diff := cmp.Diff(s.ids(), again.ids()); diff != "" {
		t.Errorf("entries (-memory +log):\n%s", diff)
	}
	if diff := cmp.Diff(tell(t, s.at("")), tell(t, again.at(""))); diff != "" {
		t.Errorf("context (-memory +log):\n%s", diff)
	}
	seen := make(map[string]bool)
	for e, err := range again.Entries() {
		mustDo(t, err)
		if seen[e.ID] {
			t.Errorf("entry %s twice", e.ID)
		}
		if e.ParentID != nil && !seen[*e.ParentID] {
			t.Errorf("entry %s stands before its parent %s", e.ID, *e.ParentID)
		}
		seen[e.ID] = true
	}
	for id := range acknowledged {
		if !seen[id] {
			t.Errorf("entry %s was acknowledged and is not there", id)
		}
	}
	for _, p := range again.problems() {
		switch p.Kind {
		case session.ProblemInterrupted, session.ProblemOrphan:
		default:
			t.Errorf("problem: %v", p)
		}
	}
}

// Appends of many goroutines to a session that was resumed from its end, while
// others move the leaf about: every context is that of some path.
func TestContextWhileTheLeafMoves(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	old := s.user("old root")
	for i := range 30 {
		s.user(fmt.Sprint("old ", i))
	}
	kept := s.user("kept")
	s.compact("sum", kept)
	near := s.user("near")
	for i := range 5 {
		s.user(fmt.Sprint("new ", i))
	}
	for range 20 {
		tail := s.again()
		mustGet(tail.GetContext())(t)
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				for range 5 {
					entries := mustGet(tail.GetContext())(t)
					if got := view(entries); got[0] != "summary: sum" && got[0] != "user: old root" {
						t.Errorf("a context that begins in the middle: %q", got)
					}
				}
			})
		}
		wg.Go(func() {
			tail.branch(kept)
			tail.branch(near)
			tail.branch(old)
		})
		wg.Wait()
		mustDo(t, tail.Close())
		mustGet(s.Refresh())(t)
	}
}

// Whoever wants to have seen everything is told of remarks too.
func TestReportAll(t *testing.T) {
	t.Parallel()
	a := newScribe(t, func(c *session.Config) { c.Options.OnConflict = session.ReportAll })
	start := a.user("start")
	b := a.again()
	remark := mustGet(b.SetLabel(start, "here"))(t)
	_, err := a.AppendMessage(session.RoleUser, []session.Content{session.Text("a's")})
	var conflict *session.ConflictError
	if !errors.As(err, &conflict) || conflict.Theirs != remark {
		t.Fatalf("%v, want a ConflictError at %s", err, remark)
	}
	mustGet(a.Refresh())(t)
	a.user("a's")
	b.again().sees("user: start", "user: a's")
}

func TestEntryClone(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	e := mustGet(s.Entry(s.user("as it was")))(t)
	e.Clone().Message.Content[0].Text.Content = "changed"
	if got := viewMessage(e.Message); got != "user: as it was" {
		t.Errorf("the copy changed the entry: %s", got)
	}
}
