package session_test

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/memory"
)

func TestContinue(t *testing.T) {
	t.Parallel()
	s := newScribe(t, func(c *session.Config) { c.CWD = "/src" })
	if next := mustGet(s.Continuation())(t); next != "" {
		t.Errorf("continued by %q", next)
	}
	system := s.message(session.RoleSystem, session.Text("be brief"))
	s.user("one")
	carry := mustGet(s.Entry(system))(t)
	second := scribe{closeWith(t, mustGet(s.Continue(carry))(t)), t}
	second.sees("system: be brief")
	if h := second.Header(); h.ParentSession != s.ID() || h.Relation != session.RelationContinuation || h.Continuation != 1 || h.CWD != "/src" {
		t.Errorf("header %+v", h)
	}
	path := mustGet(second.Forward(""))(t)
	if len(path) != 2 || path[0].ID != system || path[0].ParentID != nil || !path[0].Timestamp.Equal(carry.Timestamp) {
		t.Errorf("it begins with %+v, want the copy", path)
	}
	if c := path[1].Continues; c == nil || c.Session != s.ID() || c.Original != s.ID() {
		t.Errorf("its marker is %+v", path[1])
	}
	if got := mustGet(s.again().Continuation())(t); got != second.ID() {
		t.Errorf("continued by %q, want %q", got, second.ID())
	}
	s.sees("system: be brief", "user: one") // the record gives the model nothing
	if _, err := s.Continue(); !errors.Is(err, session.ErrExist) {
		t.Errorf("a second continuation: %v, want ErrExist", err)
	}
	second.user("two")
	third := scribe{closeWith(t, mustGet(second.Continue())(t)), t}
	if third.Header().Continuation != 2 {
		t.Errorf("index %d", third.Header().Continuation)
	}
	third.user("three")
	if path := mustGet(third.Forward(""))(t); path[0].Continues == nil || path[0].Continues.Original != s.ID() {
		t.Errorf("the marker of the third is %+v", path[0])
	}

	st := mustGet(file.Open(filepath.Dir(s.File()), nil))(t)
	defer st.Close()
	want := []string{s.ID(), second.ID(), third.ID()}
	for _, id := range want {
		if diff := cmp.Diff(want, mustGet(session.Chain(t.Context(), st, id))(t)); diff != "" {
			t.Errorf("chain of %s:\n%s", id, diff)
		}
	}
	// A link that was removed costs itself and nothing else, and its id still means
	// the conversation.
	mustDo(t, st.Remove(t.Context(), second.ID()))
	left := session.Linked{ID: s.ID(), Links: []string{s.ID(), third.ID()}, Missing: []string{second.ID()}}
	for _, id := range want {
		if diff := cmp.Diff(left, mustGet(session.FindChain(t.Context(), st, id, nil))(t)); diff != "" {
			t.Errorf("chain of %s:\n%s", id, diff)
		}
	}
	if _, err := session.Chain(t.Context(), st, "nobody"); !errors.Is(err, session.ErrNotExist) {
		t.Errorf("chain of what is not there: %v", err)
	}
}

// Closing the session that was continued is what a program does next.
func TestContinuationOutlivesItsParent(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	s.user("one")
	next := scribe{closeWith(t, mustGet(s.Continue())(t)), t}
	mustDo(t, s.Close())
	next.user("two")
	next.sees("user: two")
	mustDo(t, next.Close())
	next.again().sees("user: two")
}

// A fork of a session that was continued can be continued itself.
func TestForkOfAContinuedSession(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	s.user("one")
	next := closeWith(t, mustGet(s.Continue())(t))
	dir := filepath.Dir(s.File())
	fork := scribe{closeWith(t, mustGet(session.ForkFrom(s.File(), dir))(t)), t}
	branched := loadScribe(t, mustGet(s.CreateBranchedSession(s.LeafID()))(t))
	st := mustGet(file.Open(dir, nil))(t)
	defer st.Close()
	for name, f := range map[string]scribe{"fork": fork, "branched": branched} {
		if got := mustGet(f.Continuation())(t); got != "" {
			t.Errorf("%s: continued by %q, which continues the original", name, got)
		}
		if got := mustGet(session.Chain(t.Context(), st, f.ID()))(t); !slices.Equal(got, []string{f.ID()}) {
			t.Errorf("%s: chain %v", name, got)
		}
		own := closeWith(t, mustGet(f.Continue())(t))
		if got := mustGet(session.Chain(t.Context(), st, f.ID()))(t); !slices.Equal(got, []string{f.ID(), own.ID()}) {
			t.Errorf("%s: chain %v", name, got)
		}
	}
	if got := mustGet(s.Continuation())(t); got != next.ID() {
		t.Errorf("the original is continued by %q", got)
	}
}

// However many ask at once, there is one continuation.
func TestContinueConcurrently(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	s.user("one")
	var mu sync.Mutex
	var made []string
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			next, err := s.Continue()
			if err != nil {
				if !errors.Is(err, session.ErrExist) {
					t.Errorf("%v, want ErrExist", err)
				}
				return
			}
			defer next.Close()
			mu.Lock()
			made = append(made, next.ID())
			mu.Unlock()
		})
	}
	wg.Wait()
	if len(made) != 1 || mustGet(s.Continuation())(t) != made[0] {
		t.Errorf("continuations %v, recorded %q", made, mustGet(s.Continuation())(t))
	}
	if infos := mustGet(session.List(filepath.Dir(s.File())))(t); len(infos) != 2 {
		t.Errorf("%d sessions, want 2", len(infos))
	}
}

func TestContinueWithSomethingInvalid(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	s.user("one")
	one := mustGet(s.Entry(s.LeafID()))(t)
	marker := session.Entry{Type: session.TypeContinues, Continues: &session.ContinuesEntry{}}
	for name, c := range map[string]struct {
		carry []session.Entry
		want  error
	}{
		"an empty entry":          {[]session.Entry{{}}, session.ErrInvalid},
		"a copy of nothing":       {[]session.Entry{{ID: "nobody"}}, session.ErrNotExist},
		"a copy twice":            {[]session.Entry{one, one}, session.ErrExist},
		"two markers":             {[]session.Entry{marker, marker}, session.ErrInvalid},
		"a copy after the marker": {[]session.Entry{marker, one}, session.ErrInvalid},
	} {
		if _, err := s.Continue(c.carry...); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	if _, err := s.AppendEntry(marker); !errors.Is(err, session.ErrInvalid) {
		t.Errorf("a marker is appended: %v", err)
	}
	if next := mustGet(s.Continuation())(t); next != "" {
		t.Errorf("continued by %q although it failed", next)
	}
}

// Headers that name each other must not make Chain go round for ever, nor lead
// it out of the store.
func TestChainOfStrangeHeaders(t *testing.T) {
	t.Parallel()
	st := memory.New(nil)
	for _, h := range []session.Header{
		{ID: "a", ParentSession: "b", Relation: session.RelationContinuation},
		{ID: "b", ParentSession: "a", Relation: session.RelationContinuation},
		{ID: "c", ParentSession: "../../etc", Relation: session.RelationContinuation},
		{ID: "d", ParentSession: "d", Relation: session.RelationContinuation},
		{ID: "f", ParentSession: "a", Relation: session.RelationFork},
	} {
		closeWith(t, mustGet(session.Create(t.Context(), st, h, nil))(t))
	}
	for id, want := range map[string][]string{"a": {"a"}, "b": {"b"}, "c": {"c"}, "d": {"d"}, "f": {"f"}} {
		if got := mustGet(session.Chain(t.Context(), st, id))(t); !slices.Equal(got, want) {
			t.Errorf("chain of %s: %v, want %v", id, got, want)
		}
	}
}

// Writers that have the session open each for himself agree on one continuation,
// and it is whole when it is first seen.
func TestContinueByTwoWriters(t *testing.T) {
	t.Parallel()
	for range 50 {
		st := memory.New(nil)
		first := mustGet(session.Create(t.Context(), st, session.Header{ID: "first"}, nil))(t)
		mustGet(first.AppendMessage(session.RoleUser, []session.Content{session.Text("one")}))(t)
		carry := mustGet(first.Forward(""))(t)
		var made, lost atomic.Int32
		var wg sync.WaitGroup
		for range 4 {
			s := mustGet(session.Open(t.Context(), st, "first", nil))(t)
			wg.Go(func() {
				next, err := s.Continue(carry...)
				switch {
				case err == nil:
					made.Add(1)
					if n, err := next.MessageCount(); n != 1 {
						t.Errorf("%d messages, %v", n, err)
					}
				case errors.Is(err, session.ErrExist):
					lost.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if made.Load() != 1 || lost.Load() != 3 {
			t.Fatalf("%d made a continuation, %d found one", made.Load(), lost.Load())
		}
		chain := mustGet(session.Chain(t.Context(), st, "first"))(t)
		if stats := slices.Collect(maps.Keys(maps.Collect(st.List(t.Context())))); len(chain) != 2 || len(stats) != 2 {
			t.Fatalf("chain %v, logs %v", chain, stats)
		}
	}
}

// A crash between the record and the session that it names is made good by
// whoever continues next.
func TestContinueWhatWasCutShort(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	s.user("one")
	mustGet(s.AppendCustomEntry(session.CustomContinuedTo, map[string]any{"session": "lost", "of": s.ID()}))(t)
	next := scribe{closeWith(t, mustGet(s.Continue(mustGet(s.Forward(""))(t)...))(t)), t}
	if next.ID() != "lost" {
		t.Errorf("continued by %q", next.ID())
	}
	next.sees("user: one")
	if _, err := s.Continue(); !errors.Is(err, session.ErrExist) {
		t.Errorf("%v, want ErrExist", err)
	}
}

// Who insists on having seen everything does not fill a continuation that was
// decided on after what it has seen.
func TestContinueUnseen(t *testing.T) {
	t.Parallel()
	a := newScribe(t, func(c *session.Config) { c.Options.OnConflict = session.ReportAll })
	a.user("one")
	b := a.again()
	b.user("two")
	mustGet(b.AppendCustomEntry(session.CustomContinuedTo, map[string]any{"session": "next", "of": a.ID()}))(t)
	if _, err := a.Continue(); !errors.Is(err, session.ErrConflict) {
		t.Fatalf("%v, want ErrConflict", err)
	}
	mustGet(a.Refresh())(t)
	a.sees("user: one", "user: two")
	next := scribe{closeWith(t, mustGet(a.Continue(mustGet(a.Forward(""))(t)...))(t)), t}
	next.sees("user: one", "user: two")
}

// The continuation that was removed can be restored: another takes its place
// under an id of its own, and only one writer makes it.
func TestContinueInstead(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	st := memory.New(nil)
	s, err := session.Create(ctx, st, session.Header{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	first, err := s.Continue()
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Remove(ctx, first.ID()); err != nil {
		t.Fatal(err)
	}
	second, err := s.Continue()
	if err != nil {
		t.Fatal(err)
	}
	if second.ID() == first.ID() {
		t.Error("the removed session was made again")
	}
	if next, err := s.Continuation(); err != nil || next != second.ID() {
		t.Errorf("it continues in %q, %v; want %q", next, err, second.ID())
	}
	if h := second.Header(); h.ParentSession != s.ID() || h.Continuation != 2 { // 1 is the removed one's
		t.Errorf("%+v", h)
	}
	if _, err := s.Continue(); !errors.Is(err, session.ErrExist) {
		t.Errorf("once more: %v", err)
	}
}

// What continued a session may be lost, or not yet made. Only what is lost is
// replaced, and if it comes back nothing that was said is lost.
func TestLostContinuation(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	dir := t.TempDir()
	st := mustGet(file.Open(dir, nil))(t)
	defer st.Close()
	at := time.Now()
	options := &session.Options{Now: func() time.Time { return at }}
	s := closeWith(t, mustGet(session.Create(ctx, st, session.Header{ID: "first"}, options))(t))
	say := func(s *session.Session, text string) {
		t.Helper()
		mustGet(s.AppendMessage(session.RoleUser, []session.Content{session.Text(text)}))(t)
	}
	isThere := func() {
		t.Helper()
		if _, err := s.Continue(); !errors.Is(err, session.ErrExist) {
			t.Errorf("continued although its continuation is there: %v", err)
		}
	}
	say(s, "one")
	second := mustGet(s.Continue())(t)
	say(second, "two")
	mustDo(t, second.Close())
	isThere()
	// Removed: it is in the trash.
	mustDo(t, st.Remove(ctx, second.ID()))
	third := mustGet(s.Continue())(t)
	if third.ID() == second.ID() {
		t.Error("the removed session was made again")
	}
	say(third, "three")
	mustDo(t, third.Close())
	isThere()
	// Moved away by hand: it may be on its way, but not for long.
	kept := filepath.Join(t.TempDir(), "kept")
	mustDo(t, os.Rename(st.Path(third.ID()), kept))
	again := mustGet(s.Continue())(t)
	if again.ID() != third.ID() {
		t.Errorf("a continuation that may still be on its way was replaced by %s", again.ID())
	}
	mustDo(t, again.Close())
	mustDo(t, os.Remove(st.Path(third.ID())))
	at = at.Add(time.Hour)
	fourth := mustGet(s.Continue())(t)
	if fourth.ID() == third.ID() {
		t.Error("a continuation that was lost long ago was made again")
	}
	say(fourth, "four")
	mustDo(t, fourth.Close())

	says := func(want string) {
		t.Helper()
		c := mustGet(session.FindChain(ctx, st, "first", nil))(t)
		whole := closeWith(t, mustGet(session.OpenChain(ctx, st, c, nil))(t))
		if got := pathTexts(t, whole); got != want {
			t.Errorf("the conversation says %q, want %q", got, want)
		}
		for _, id := range c.Links {
			if got := mustGet(session.FindChain(ctx, st, id, nil))(t); !slices.Equal(got.Links, c.Links) {
				t.Errorf("by %s it is %v, want %v", id, got.Links, c.Links)
			}
		}
		if len(c.Missing) > 0 {
			t.Errorf("missing %v", c.Missing)
		}
	}
	says("one four")
	mustDo(t, os.Rename(kept, st.Path(third.ID())))
	says("one three four")
	trash := mustGet(st.Trash().List(ctx))(t)
	mustDo(t, st.Trash().Restore(ctx, trash[0].ID))
	says("one two three four")
}

// far is a store on another machine: its trash is not accessible from here.
type far struct{ store.Store }

func (f far) Trash() store.Trash { return unseen{} }

type unseen struct{ store.Trash }

func (unseen) List(context.Context) ([]store.Trashed, error) { return nil, errors.ErrUnsupported }

// If the trash is not accessible, a missing continuation could be one that is about to be created.
// Nobody waits long for it.
func TestContinuationThatIsRemovedElsewhere(t *testing.T) {
	t.Parallel()
	at := time.Now()
	st := memory.New(nil)
	s := closeWith(t, mustGet(session.Create(t.Context(), far{st}, session.Header{ID: "first"}, &session.Options{Now: func() time.Time { return at }}))(t))
	scribe{s, t}.user("one")
	second := mustGet(s.Continue())(t)
	mustDo(t, second.Close())
	mustDo(t, st.Remove(t.Context(), second.ID()))
	again := mustGet(s.Continue())(t)
	if again.ID() != second.ID() {
		t.Errorf("a continuation that may still be on its way was replaced by %s", again.ID())
	}
	mustDo(t, again.Close())
	mustDo(t, st.Remove(t.Context(), second.ID()))
	at = at.Add(time.Hour)
	third := closeWith(t, mustGet(s.Continue())(t))
	if third.ID() == second.ID() {
		t.Error("a continuation that was lost long ago was made again")
	}
}

// The record of a continuation is found wherever it stands, also by a session whose
// tree is in memory and that looks only at the lines which can be one.
func TestContinuationBesideATreeInMemory(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]func(s scribe){
		"by another handle, later": func(s scribe) {},
		"among other custom entries": func(s scribe) {
			for range 3 {
				mustGet(s.AppendCustomEntry("mine", map[string]any{"n": 1}))(s.t)
			}
		},
		"among very many": func(s scribe) {
			for range 100 {
				mustGet(s.AppendCustomEntry("mine", map[string]any{"n": 1}))(s.t)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScribe(t)
			s.user("one")
			before(scribe{s.Session, t})
			mustGet(s.MessageCount())(t) // which reads the whole tree
			if next := mustGet(s.Continuation())(t); next != "" {
				t.Fatalf("continued by %q", next)
			}
			next := closeWith(t, mustGet(s.again().Continue())(t))
			for range 2 {
				if got := mustGet(s.Continuation())(t); got != next.ID() {
					t.Errorf("continued by %q, want %q", got, next.ID())
				}
				mustGet(s.Refresh())(t) // now the tree has the record
			}
		})
	}
}

// The line that names the continuation lost its rest and was written again.
func TestContinuationWrittenAgain(t *testing.T) {
	t.Parallel()
	record := `{"type":"custom","id":"r","parent_id":"a","timestamp":"2024-01-01T10:00:02.000Z","custom":{"custom_type":"coppice.continued_to","data":{"session":"next","of":"s"}}}`
	lost := record[:90] + "##" + record[92:]
	s := mustGet(session.Load(writeLog(t, headerLine, messageLine("a", "", "user", "one"), lost, record)))(t)
	defer s.Close()
	if next := mustGet(s.Continuation())(t); next != "next" {
		t.Errorf("it continues in %q", next)
	}
}
