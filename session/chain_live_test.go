package session_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/coppice-dev/coppice/internal/soak"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/memory"
)

// twins are the same conversation twice: in a chain, and in one session.
type twins struct {
	*rapid.T
	st    *memory.Store
	chain *session.Session
	one   *session.Session
	n     int
}

func (w *twins) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *twins) open() {
	c, err := session.FindChain(w.Context(), w.st, "chain", nil)
	w.must(err)
	if w.chain != nil {
		w.must(w.chain.Close())
	}
	w.chain, err = session.OpenChain(w.Context(), w.st, c, nil)
	w.must(err)
}

// both appends an entry to both. What the chain refuses, it refuses for being a chain.
func (w *twins) both(e session.Entry) bool {
	w.n++
	e.ID = session.NewID()
	_, err := w.chain.AppendEntry(e)
	if e.Type == session.TypeLeaf && errors.Is(err, session.ErrInvalid) {
		return false
	}
	_, alone := w.one.AppendEntry(e)
	if (err == nil) != (alone == nil) {
		w.Fatalf("%s: %v in the chain, %v alone", e.Type, err, alone)
	}
	return err == nil
}

func (w *twins) say(role session.MessageRole, content ...session.Content) {
	w.both(session.Entry{Type: session.TypeMessage, Message: &session.MessageEntry{Role: role, Content: content}})
}

// pick returns an entry of the tree, often one that is near.
func (w *twins) pick() (session.Entry, bool) {
	path, err := w.one.Forward("")
	w.must(err)
	if len(path) == 0 {
		return session.Entry{}, false
	}
	return path[rapid.IntRange(max(0, len(path)-rapid.SampledFrom([]int{3, 100}).Draw(w.T, "near")), len(path)-1).Draw(w.T, "entry")], true
}

// carried returns what a continuation begins with: instructions, and sometimes the last turn.
func (w *twins) carried() (carry []session.Entry) {
	path, err := w.chain.Forward("")
	w.must(err)
	turn := len(path)
	for i := range path {
		if path[i].BeginsTurn() {
			turn = i
		}
	}
	for i := range path {
		if m := path[i].Message; m != nil && m.Role == session.RoleSystem {
			carry = append(carry, path[i])
		}
	}
	if rapid.Bool().Draw(w.T, "turn") {
		for i := turn; i < len(path); i++ {
			if m := path[i].Message; m != nil && m.Role != session.RoleSystem {
				carry = append(carry, path[i])
			}
		}
	}
	if rapid.IntRange(0, 9).Draw(w.T, "nothing") == 0 {
		return nil
	}
	return carry
}

func (w *twins) step() {
	e, some := w.pick()
	switch act := rapid.SampledFrom([]string{"user", "user", "model", "model", "call", "result", "system", "edit", "revert", "label", "branch", "branch", "compact", "cross", "cross", "reopen", "refresh", "elsewhere"}).Draw(w.T, "act"); {
	case act == "user":
		w.say(session.RoleUser, session.Text(fmt.Sprint("say ", w.n)))
	case act == "model":
		w.say(session.RoleAssistant, session.Text(fmt.Sprint("answer ", w.n)))
	case act == "system":
		w.say(session.RoleSystem, session.Text(fmt.Sprint("be ", w.n)))
	case act == "call":
		w.say(session.RoleAssistant, session.ToolUse(fmt.Sprint("c", w.n+1), "t", map[string]any{}))
	case act == "result":
		if some && e.Message != nil {
			for _, c := range e.Message.Content {
				if c.ToolUse != nil {
					w.say(session.RoleTool, session.ToolResult(c.ToolUse.ID, "done", false))
				}
			}
		}
	case act == "cross":
		_, err := w.chain.Continue(w.carried()...)
		w.must(err)
	case act == "reopen":
		w.open()
	case act == "refresh":
		fresh, err := w.chain.Refresh()
		if w.must(err); fresh {
			w.Fatal("there is something new, and nobody wrote it")
		}
	case !some:
	case act == "edit" && e.Message != nil:
		w.both(session.Entry{Type: session.TypeContextEdit, ContextEdit: &session.ContextEditEntry{TargetID: e.ID, Replacement: []session.Content{session.Text("edited")}}})
	case act == "revert" && (e.ContextEdit != nil || e.Compaction != nil || e.Revert != nil):
		w.both(session.Entry{Type: session.TypeRevert, Revert: &session.RevertEntry{TargetID: e.ID}})
	case act == "label":
		w.both(session.Entry{Type: session.TypeLabel, Label: &session.LabelEntry{TargetID: e.ID, Label: fmt.Sprint("l", w.n)}})
	case act == "branch":
		w.both(session.Entry{Type: session.TypeLeaf, ParentID: &e.ID, Leaf: &session.LeafEntry{}})
	case act == "compact":
		w.both(session.Entry{Type: session.TypeCompaction, Compaction: &session.CompactionEntry{Summary: fmt.Sprint("so far ", w.n), FirstKeptEntryID: e.ID}})
	case act == "elsewhere": // another program appends to the last session, and the chain takes it in
		link, err := session.Open(w.Context(), w.st, w.chain.SessionOf(""), nil)
		w.must(err)
		w.n++
		m := session.Entry{ID: session.NewID(), Type: session.TypeMessage, Message: &session.MessageEntry{Role: session.RoleUser, Content: []session.Content{session.Text(fmt.Sprint("from elsewhere ", w.n))}}}
		_, err = link.AppendEntry(m)
		w.must(errors.Join(err, link.Close()))
		_, err = w.one.AppendEntry(m)
		w.must(err)
		_, err = w.chain.Refresh()
		w.must(err)
	}
}

// shape is what a session says, without times.
func (w *twins) shape(s *session.Session) any {
	type entry struct{ ID, Parent, Says string }
	text := func(e session.Entry) string {
		switch {
		case e.Message != nil:
			content, err := json.Marshal(e.Message.Content)
			w.must(err)
			return string(e.Message.Role) + string(content)
		case e.Compaction != nil:
			return fmt.Sprint(e.Compaction.Summary, " from ", e.Compaction.FirstKeptEntryID)
		case e.ContextEdit != nil:
			return fmt.Sprint("edit of ", e.ContextEdit.TargetID)
		case e.Revert != nil:
			return fmt.Sprint("revert of ", e.Revert.TargetID)
		}
		return string(e.Type)
	}
	var all, sent []entry
	seams := make(map[string]string) // what says that the conversation goes on elsewhere, and what it follows
	real := func(id string) string {
		for at, ok := seams[id]; ok; at, ok = seams[id] {
			id = at
		}
		return id
	}
	for e, err := range s.Entries() {
		w.must(err)
		parent := ""
		if e.ParentID != nil {
			parent = *e.ParentID
		}
		if e.Continues != nil || e.Custom != nil && e.Custom.CustomType == session.CustomContinuedTo {
			seams[e.ID] = parent
			continue
		}
		all = append(all, entry{e.ID, real(parent), text(e)})
	}
	c, err := s.Context(session.ContextOptions{})
	w.must(err)
	for _, e := range c.Entries {
		sent = append(sent, entry{ID: e.ID, Says: text(e)})
	}
	labels, err := s.Labels()
	w.must(err)
	return []any{real(s.LeafID()), all, sent, labels}
}

// sent returns the ids of what a model is sent, with their parents.
func (w *twins) sent() (ids [][2]string) {
	c, err := w.chain.Context(session.ContextOptions{})
	w.must(err)
	for _, e := range c.Entries {
		parent := ""
		if e.ParentID != nil {
			parent = *e.ParentID
		}
		ids = append(ids, [2]string{e.ID, parent})
	}
	return ids
}

// A chain is the conversation that it would be in one session, whatever is done to it and
// wherever it goes on in another session; and each session can be read by itself.
func TestAChainIsLikeOneSession(t *testing.T) {
	t.Parallel()
	soak.Check(t, func(t *rapid.T) {
		w := &twins{T: t, st: memory.New(nil)}
		var err error
		first, err := session.Create(t.Context(), w.st, session.Header{ID: "chain"}, nil)
		w.must(err)
		w.must(first.Close())
		w.one, err = session.Create(t.Context(), memory.New(nil), session.Header{ID: "one"}, nil)
		w.must(err)
		w.open()
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			w.step()
			if diff := cmp.Diff(w.shape(w.one), w.shape(w.chain)); diff != "" {
				t.Fatalf("in one session (-) and in a chain (+):\n%s", diff)
			}
		}
		live := w.shape(w.chain)
		w.open()
		if diff := cmp.Diff(live, w.shape(w.chain)); diff != "" {
			t.Fatalf("live (-) and opened again (+):\n%s", diff)
		}
		w.open()
		tail := w.sent()
		w.open()
		_, err = w.chain.Shape() // which reads all of it
		w.must(err)
		if diff := cmp.Diff(w.sent(), tail); diff != "" {
			t.Fatalf("the context by all of the log (-) and by its end (+):\n%s", diff)
		}
		links, err := session.Chain(t.Context(), w.st, "chain")
		w.must(err)
		for _, id := range links {
			link, err := session.Open(t.Context(), w.st, id, nil)
			w.must(err)
			problems, err := link.Problems()
			w.must(errors.Join(err, link.Close()))
			problems = slices.DeleteFunc(problems, func(p session.Problem) bool {
				return p.Kind == session.ProblemInterrupted || p.Kind == session.ProblemOrphan || p.Kind == session.ProblemRoots
			})
			if len(problems) > 0 {
				t.Fatalf("session %s alone: %v", id, problems)
			}
		}
		w.must(errors.Join(w.chain.Close(), w.one.Close()))
	})
}

// Readers of a chain see a whole conversation at every moment, while it grows and goes on in
// other sessions.
func TestAChainIsReadWhileItGrows(t *testing.T) {
	t.Parallel()
	st := chainOf(t, []string{"u:a/one"}, []string{"m:m/mark", "u:b/two"})
	s := openChain(t, st, "s0")
	other := openChain(t, st, "s0")
	done := make(chan struct{})
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for n := 2; ; {
				c, err := s.Context(session.ContextOptions{Shared: true})
				if err != nil || len(c.Entries) < n {
					t.Errorf("%d entries, and then %d, %v", n, len(c.Entries), err)
					return
				}
				n = len(c.Entries)
				if last := s.SessionOf(c.Entries[n-1].ID); last == "s0" {
					t.Errorf("the end is in session %s", last)
				}
				if path, err := s.Forward(c.Leaf); err != nil || len(path) < n {
					t.Errorf("a path of %d entries, of which %d are sent, %v", len(path), n, err)
				}
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	for i := range 40 {
		mustGet(s.AppendMessage(session.RoleUser, []session.Content{session.Text(fmt.Sprint(i))}))(t)
		if i%10 == 9 {
			mustGet(s.Continue())(t)
		}
	}
	close(done)
	readers.Wait()
	if fresh := mustGet(other.Refresh())(t); !fresh || other.SessionOf("") != s.SessionOf("") {
		t.Errorf("another handle is in session %s, want %s", other.SessionOf(""), s.SessionOf(""))
	}
	if got, want := contextTexts(t, other), contextTexts(t, s); got != want || strings.Count(got, " ") != 41 {
		t.Errorf("another handle has %q, want %q", got, want)
	}
	// What is added to an earlier session is part of the conversation too.
	first := closeWith(t, mustGet(session.Open(t.Context(), st, "s0", nil))(t))
	mustGet(first.AppendEntry(session.ContextEdit("a", session.Text("uno"))))(t)
	mustGet(other.Refresh())(t)
	if got := contextTexts(t, other); !strings.HasPrefix(got, "uno two 0 ") {
		t.Errorf("after an edit in the first session: %q", got)
	}
	mustGet(other.AppendMessage(session.RoleUser, []session.Content{session.Text("end")}))(t)
	if got, again := contextTexts(t, other), contextTexts(t, openChain(t, st, "s0")); got != again || !strings.HasSuffix(got, "39 end") {
		t.Errorf("it goes on with %q, and %q when it is opened again", got, again)
	}
}

// An update is written to the last session, even if another program has just begun it.
func TestAnUpdateGoesToTheLastSession(t *testing.T) {
	t.Parallel()
	st := chainOf(t, []string{"u:a/one"}, []string{"m:m/mark", "u:b/two"})
	s, other := openChain(t, st, "s0"), openChain(t, st, "s0")
	mustGet(s.Continue())(t)
	mustGet(s.AppendMessage(session.RoleUser, []session.Content{session.Text("three")}))(t)
	leaf, id := other.LeafID(), ""
	mustDo(t, other.Update(t.Context(), func(tx *session.Tx) error {
		id = tx.Append(session.Entry{Type: session.TypeCustom, Custom: &session.CustomEntry{CustomType: "note"}})
		return nil
	}))
	mustGet(s.Refresh())(t)
	if in := s.SessionOf(id); in != s.SessionOf("") || leaf == other.LeafID() {
		t.Errorf("it is in session %s, want %s", in, s.SessionOf(""))
	}
}

// A session that is alone is no chain, and Whole makes it one.
func TestWhole(t *testing.T) {
	t.Parallel()
	st := chainOf(t, []string{"u:a/one"})
	s := mustGet(session.Open(t.Context(), st, "s0", nil))(t)
	whole := mustGet(s.Whole(t.Context()))(t)
	mustGet(whole.Continue())(t)
	mustGet(whole.AppendMessage(session.RoleUser, []session.Content{session.Text("two")}))(t)
	if again := mustGet(s.Whole(t.Context()))(t); again != whole || contextTexts(t, again) != "one two" || whole.SessionOf("") == "s0" || s.SessionOf("") != "s0" {
		t.Errorf("%q goes on in %s", contextTexts(t, again), whole.SessionOf(""))
	}
	if itself := mustGet(whole.Whole(t.Context()))(t); itself != whole {
		t.Error("the whole of a chain is another one")
	}
	mustDo(t, s.Close())
	if _, err := whole.Context(session.ContextOptions{}); !errors.Is(err, session.ErrClosed) {
		t.Errorf("%v, want ErrClosed", err)
	}
}

// What an entry of a continuation is about may be in an earlier session, but must be somewhere.
func TestWhatAContinuationIsAboutIsThere(t *testing.T) {
	t.Parallel()
	st := memory.New(nil)
	defer st.Close()
	first, err := session.Create(t.Context(), st, session.Header{ID: "first"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	said, err := first.AppendMessage(session.RoleUser, []session.Content{session.Text("hello")})
	if err != nil {
		t.Fatal(err)
	}
	next, err := first.Continue()
	if err != nil {
		t.Fatal(err)
	}
	whole, err := next.Whole(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := whole.AppendEntry(session.ContextEdit(said)); err != nil {
		t.Fatal(err)
	}
	log, err := st.Open(t.Context(), next.ID())
	if err != nil {
		t.Fatal(err)
	}
	end, err := log.End(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := log.Append(t.Context(), end, []byte(`{"type":"context_edit","id":"x1","timestamp":"2026-01-01T00:00:00Z","target_id":"nowhere"}`)); err != nil {
		t.Fatal(err)
	}
	s, err := session.Open(t.Context(), st, next.ID(), nil)
	if err != nil {
		t.Fatal(err)
	}
	problems, err := s.Problems()
	if err != nil || len(problems) == 0 {
		t.Fatalf("%v, %v", problems, err)
	}
	for _, p := range problems {
		if p.Kind == session.ProblemTarget && p.EntryID != "x1" {
			t.Errorf("what is in the session before is reported: %v", p)
		}
	}
	if !slices.ContainsFunc(problems, func(p session.Problem) bool { return p.Kind == session.ProblemTarget && p.EntryID == "x1" }) {
		t.Errorf("what is nowhere is not reported: %v", problems)
	}
}

// Following a conversation also yields the entries of the sessions that continue it, each of them once.
func TestAChainIsFollowed(t *testing.T) {
	t.Parallel()
	st := chainOf(t, []string{"s:a/be_kind", "u:b/one"})
	s, watched := openChain(t, st, "s0"), openChain(t, st, "s0")
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	seen := make(chan session.Entry, 100)
	go func() {
		defer close(seen)
		for e, err := range watched.Follow(ctx) {
			if err != nil {
				t.Error(err)
				return
			}
			seen <- e
		}
	}()
	var want []string
	instructions := mustGet(s.Entry("a"))(t)
	for i := range 3 {
		want = append(want, mustGet(s.AppendMessage(session.RoleUser, []session.Content{session.Text(fmt.Sprint(i))}))(t))
		mustGet(s.Continue(instructions))(t)
	}
	want = append(want, mustGet(s.AppendMessage(session.RoleUser, []session.Content{session.Text("end")}))(t))
	var got []string
	before := "b"
	for e := range seen {
		if e.ParentID == nil || *e.ParentID != before {
			t.Errorf("entry %+v follows %v, want %q", e, e.ParentID, before)
		}
		if before = e.ID; e.Message != nil {
			got = append(got, e.ID)
		}
		if e.ID == want[len(want)-1] {
			cancel()
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("seen %v, want %v", got, want)
	}
}

// A wrong byte in the type of an entry hides nothing if a later session has a copy.
func TestACopyOfWhatHasLostItsType(t *testing.T) {
	t.Parallel()
	st := chainOf(t, []string{"s:a/be_kind", "u:b/one"}, []string{"s:a/be_kind", "m:m/mark", "u:c/two"})
	log := mustGet(st.Open(t.Context(), "s0"))(t)
	var lines [][]byte
	for line, err := range log.Forward(t.Context(), 0) {
		mustDo(t, err)
		lines = append(lines, bytes.Replace(line.Data, []byte(`{"type":"message","id":"a"`), []byte(`{"type":"massage","id":"a"`), 1))
	}
	mustDo(t, log.Close())
	mustDo(t, st.Remove(t.Context(), "s0"))
	mustDo(t, mustGet(st.Create(t.Context(), "s0", store.Lines(lines...)))(t).Close())
	if got := contextTexts(t, openChain(t, st, "s0")); got != "be_kind one two" {
		t.Errorf("the context is %q", got)
	}
}
