package session_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/memory"
)

// converseAt writes messages as a user does who talks on a branch of their own, and checks
// that each of them is on that branch and follows the one before.
func converseAt(t *testing.T, s *session.Session, root, user string, messages int) {
	last := root
	for i := range messages {
		var id string
		err := s.Update(t.Context(), func(tx *session.Tx) error {
			tx.Branch(last)
			id = tx.Append(session.Message(session.RoleUser, session.Text(fmt.Sprint(user, " ", i))))
			return nil
		})
		if err != nil {
			t.Error(err)
			return
		}
		last = id
	}
	path, err := s.Forward(last)
	if err != nil {
		t.Error(err)
		return
	}
	var got []string
	for _, e := range path[1:] {
		if e.Message != nil {
			got = append(got, session.TextOf(e.Message.Content))
		}
	}
	if len(got) != messages {
		t.Errorf("%s's branch has %d messages, want %d", user, len(got), messages)
	}
	for i, text := range got {
		if want := fmt.Sprint(user, " ", i); text != want {
			t.Errorf("message %d of %s's branch is %q", i, user, text)
		}
	}
}

// writers are ways to have two writers of one session.
var writers = map[string]func(t *testing.T) (a, b *session.Session){
	"one session": func(t *testing.T) (a, b *session.Session) {
		s := newMemory(t, memory.New(nil))
		return s, s
	},
	"two sessions": func(t *testing.T) (a, b *session.Session) {
		st := memory.New(nil)
		a = newMemory(t, st)
		return a, reopened(t, st, a.ID())
	},
	"busy store": func(t *testing.T) (a, b *session.Session) {
		st := &rival{Store: memory.New(nil)}
		a = newMemory(t, st)
		b = reopened(t, st, a.ID())
		st.every = 3
		return a, b
	},
}

// Two users on two branches never get into each other's, whether they share a session, have
// one each, or have them on a store that often says that another writer was first.
func TestUpdatesOfTwoBranchesStayOnThem(t *testing.T) {
	t.Parallel()
	for name, arrange := range writers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, b := arrange(t)
			root := mustGet(a.AppendMessage(session.RoleUser, []session.Content{session.Text("hello")}))(t)
			mustGet(b.Refresh())(t)
			var group sync.WaitGroup
			for user, s := range map[string]*session.Session{"ann": a, "bob": b} {
				group.Go(func() { converseAt(t, s, root, user, 100) })
			}
			group.Wait()
			for _, p := range mustGet(a.Problems())(t) {
				if p.Kind != session.ProblemRoots { // those of the rival
					t.Error(p)
				}
			}
		})
	}
}

// extend appends after an entry if that is still the end of its branch.
func extend(t *testing.T, s *session.Session, end, text string) (id string, err error) {
	err = s.Update(t.Context(), func(tx *session.Tx) error {
		tx.Branch(end)
		if err := tx.Expect(end); err != nil {
			return err
		}
		id = tx.Append(session.Message(session.RoleUser, session.Text(text)))
		return nil
	})
	return id, err
}

// Two writers who saw the same end of a branch: one of them goes on from there, and the
// other one hears of it. On a branch of its own, neither notices the other.
func TestOnlyOneWriterExtendsTheEndOfABranch(t *testing.T) {
	t.Parallel()
	for name, arrange := range writers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, b := arrange(t)
			both := []*session.Session{a, b}
			root := mustGet(a.AppendMessage(session.RoleUser, []session.Content{session.Text("hello")}))(t)
			mustGet(b.Refresh())(t)
			own := make([]string, 2)
			for i := range own {
				own[i] = mustGet(under(t, a, root, "a branch of its own"))(t)
			}
			end := mustGet(under(t, a, root, "a branch of both"))(t)
			for round := range 20 {
				ids, errs := make([]string, 2), make([]error, 2)
				var group sync.WaitGroup
				for i, s := range both {
					group.Go(func() {
						ids[i], errs[i] = extend(t, s, end, fmt.Sprint("both ", round))
						var err error
						if own[i], err = extend(t, s, own[i], fmt.Sprint(i, " ", round)); err != nil {
							t.Errorf("on its own branch: %v", err)
						}
					})
				}
				group.Wait()
				won := slices.Index(errs, nil)
				if won < 0 || !errors.Is(errs[1-won], session.ErrConflict) || !strings.Contains(errs[1-won].Error(), ids[won]) {
					t.Fatalf("round %d: %v", round, errs)
				}
				end = ids[won]
			}
			mustGet(a.Refresh())(t)
			for _, last := range append(own, end) {
				messages := 0
				for _, e := range mustGet(a.Forward(last))(t) {
					if e.Message != nil {
						messages++
					}
				}
				if messages != 22 {
					t.Errorf("a branch has %d messages, want 22", messages)
				}
			}
		})
	}
}

// under appends after an entry whatever follows it.
func under(t *testing.T, s *session.Session, parent, text string) (id string, err error) {
	err = s.Update(t.Context(), func(tx *session.Tx) error {
		tx.Branch(parent)
		id = tx.Append(session.Message(session.RoleUser, session.Text(text)))
		return nil
	})
	return id, err
}

func TestWhatIsTheEndOfABranch(t *testing.T) {
	t.Parallel()
	s := newMemory(t, memory.New(nil))
	if _, err := extend(t, s, "", "one"); err != nil {
		t.Fatalf("an empty session: %v", err)
	}
	one := s.LeafID()
	two := mustGet(extend(t, s, one, "two"))(t)
	three := mustGet(under(t, s, one, "three"))(t)
	refused := func(end, why string) {
		t.Helper()
		if _, err := extend(t, s, end, "never"); !errors.Is(err, session.ErrConflict) {
			t.Errorf("%s: %v", why, err)
		}
	}
	refused("", "the session has begun")
	refused(one, "two entries follow it")
	mustDo(t, s.Branch(two))
	mustGet(s.SetLabel(three, "labelled"))(t)
	if _, err := extend(t, s, three, "four"); err != nil {
		t.Errorf("its label is elsewhere: %v", err)
	}
	refused(three, "it went on")
	if _, err := extend(t, s, two, "five"); err != nil {
		t.Errorf("only a label follows it: %v", err)
	}
	mustDo(t, s.Branch(one))
	if _, err := extend(t, s, one, "six"); err != nil {
		t.Errorf("the leaf was moved there: %v", err)
	}
	refused(one, "the leaf has left it again")
	if _, err := extend(t, s, "nowhere", "never"); !errors.Is(err, session.ErrNotExist) {
		t.Errorf("no such entry: %v", err)
	}
}

func newMemory(t *testing.T, st store.Store) *session.Session {
	t.Helper()
	s := mustGet(session.Create(t.Context(), st, session.Header{}, nil))(t)
	t.Cleanup(func() { s.Close() })
	return s
}

func reopened(t *testing.T, st store.Store, name string) *session.Session {
	t.Helper()
	s := mustGet(session.Open(t.Context(), st, name, nil))(t)
	t.Cleanup(func() { s.Close() })
	return s
}

// rival is a store in which another program labels or appends before some of our appends.
type rival struct {
	store.Store
	every  int // before how many appends it does; 0 means never
	unsure bool

	mu sync.Mutex
	n  int
}

func (r *rival) Open(ctx context.Context, name string) (store.Log, error) {
	log, err := r.Store.Open(ctx, name)
	return rivalLog{log, r}, err
}

func (r *rival) Create(ctx context.Context, name string, lines iter.Seq2[[]byte, error]) (store.Log, error) {
	log, err := r.Store.Create(ctx, name, lines)
	return rivalLog{log, r}, err
}

type rivalLog struct {
	store.Log
	of *rival
}

func (l rivalLog) Start(ctx context.Context, at store.Pos, lines ...[]byte) (store.Pos, func() error, error) {
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	if l.of.n++; l.of.every > 0 && l.of.n%l.of.every == 0 {
		if end, err := l.End(ctx); err == nil && end == at {
			other := fmt.Sprintf(`{"type":"custom","id":"rival-%d","parent_id":null,"timestamp":"2026-01-01T00:00:00Z","custom":{"custom_type":"x","data":{}}}`, l.of.n)
			if _, err := l.Log.Append(ctx, at, []byte(other)); err != nil {
				return at, nil, err
			}
		}
	}
	if l.of.unsure {
		if _, err := l.Log.Append(ctx, at, lines...); err != nil {
			return at, nil, err
		}
		return at, nil, &store.Error{Op: "append", Kind: store.ErrUnknown}
	}
	return l.Log.Start(ctx, at, lines...)
}

func TestUpdateWritesAllItsEntriesTogether(t *testing.T) {
	t.Parallel()
	st := &rival{Store: memory.New(nil)}
	s := newMemory(t, st)
	root := mustGet(s.AppendMessage(session.RoleUser, []session.Content{session.Text("question")}))(t)
	first := mustGet(s.AppendMessage(session.RoleAssistant, []session.Content{session.Text("first answer")}))(t)
	before := st.n
	var second, label string
	err := s.Update(t.Context(), func(tx *session.Tx) error {
		left := tx.Leaf()
		tx.Branch(root)
		tx.Append(session.Entry{Type: session.TypeBranchSummary, BranchSummary: &session.BranchSummaryEntry{Summary: "was wrong", FromID: left}})
		second = tx.Append(session.Message(session.RoleAssistant, session.Text("second answer")))
		label = tx.Append(session.Entry{Type: session.TypeLabel, Label: &session.LabelEntry{TargetID: second, Label: "better"}})
		tx.Append(session.Entry{Type: session.TypeContextEdit, ContextEdit: &session.ContextEditEntry{TargetID: second, Replacement: []session.Content{session.Text("best answer")}}})
		if tx.Leaf() == label {
			t.Error("the leaf did not go on")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if st.n != before+1 {
		t.Errorf("%d appends, want one", st.n-before)
	}
	again := reopened(t, st, s.ID())
	for name, s := range map[string]*session.Session{"writer": s, "reader": again} {
		if got := mustGet(s.Labels())(t)[second]; got != "better" {
			t.Errorf("%s: the label is %q", name, got)
		}
		context := mustGet(s.GetContext())(t)
		if got := session.TextOf(context[len(context)-1].Message.Content); got != "best answer" {
			t.Errorf("%s: the context ends with %q", name, got)
		}
		for _, e := range context {
			if e.ID == first {
				t.Errorf("%s: the branch that was left is still there", name)
			}
		}
	}
}

func TestUpdateThatIsRefusedChangesNothing(t *testing.T) {
	t.Parallel()
	s := newMemory(t, memory.New(nil))
	root := mustGet(s.AppendMessage(session.RoleUser, []session.Content{session.Text("question")}))(t)
	leaf := mustGet(s.AppendMessage(session.RoleAssistant, []session.Content{session.Text("answer")}))(t)
	changedMyMind := errors.New("changed my mind")
	for want, fn := range map[error]func(tx *session.Tx) error{
		changedMyMind: func(tx *session.Tx) error {
			tx.Branch(root)
			tx.Append(session.Message(session.RoleUser, session.Text("never")))
			return changedMyMind
		},
		session.ErrNotExist: func(tx *session.Tx) error {
			tx.Append(session.Message(session.RoleUser, session.Text("never")))
			tx.Branch("nowhere")
			return nil
		},
		session.ErrInvalid: func(tx *session.Tx) error {
			tx.Branch(root)
			tx.Append(session.Entry{Type: session.TypeMessage})
			return nil
		},
		session.ErrExist: func(tx *session.Tx) error {
			e := session.Message(session.RoleUser, session.Text("never"))
			e.ID = root
			tx.Append(e)
			return nil
		},
		session.ErrConflict: func(tx *session.Tx) error {
			tx.Append(session.Message(session.RoleUser, session.Text("never")))
			return tx.Expect(leaf) // it has just moved
		},
	} {
		if err := s.Update(t.Context(), fn); !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
		if s.LeafID() != leaf || mustGet(s.Shape())(t).Len() != 2 {
			t.Errorf("after %v the leaf is %q, and there are %d entries", want, s.LeafID(), mustGet(s.Shape())(t).Len())
		}
	}
}

// A session that has not seen what others wrote decides from it all the same.
func TestUpdateExpectsTheLeafOfTheLog(t *testing.T) {
	t.Parallel()
	st := memory.New(nil)
	s := newMemory(t, st)
	one := mustGet(s.AppendMessage(session.RoleUser, []session.Content{session.Text("one")}))(t)
	other := reopened(t, st, s.ID())
	mustGet(other.SetLabel(one, "first"))(t)
	runs := 0
	after := func(s *session.Session, leaf string) (id string, err error) {
		runs = 0
		err = s.Update(t.Context(), func(tx *session.Tx) error {
			runs++
			if err := tx.Expect(leaf); err != nil {
				return err
			}
			id = tx.Append(session.Message(session.RoleUser, session.Text("after "+leaf)))
			return nil
		})
		return id, err
	}
	two, err := after(s, one)
	if err != nil || runs != 2 {
		t.Fatalf("only a label came in between: %v, after %d runs", err, runs)
	}
	three, err := after(other, two)
	if err != nil {
		t.Fatalf("the leaf is one that the session has not read: %v", err)
	}
	_, err = after(s, two)
	if !errors.Is(err, session.ErrConflict) || !strings.Contains(err.Error(), two) || !strings.Contains(err.Error(), three) {
		t.Errorf("the leaf is %s by now: %v", three, err)
	}
	if s.LeafID() != two {
		t.Errorf("a refused update moved the leaf to %s", s.LeafID())
	}
	if _, err := after(s, three); err != nil {
		t.Error(err)
	}
	path := mustGet(s.Forward(""))(t)
	if len(path) != 5 { // four messages and a label
		t.Errorf("the path has %d entries", len(path))
	}
}

// A writer that insists on its own branch stays on it.
func TestUpdateKeepsToTheBranchThatOnConflictAsksFor(t *testing.T) {
	t.Parallel()
	st := memory.New(nil)
	s := newMemory(t, st)
	one := mustGet(s.AppendMessage(session.RoleUser, []session.Content{session.Text("one")}))(t)
	grows := mustGet(session.Open(t.Context(), st, s.ID(), &session.Options{OnConflict: session.GrowBranch}))(t)
	defer grows.Close()
	mustGet(s.AppendMessage(session.RoleUser, []session.Content{session.Text("two")}))(t)
	var id string
	err := grows.Update(t.Context(), func(tx *session.Tx) error {
		id = tx.Append(session.Message(session.RoleUser, session.Text("mine")))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if e := mustGet(grows.Entry(id))(t); e.ParentID == nil || *e.ParentID != one {
		t.Errorf("the parent is %v, want %s", e.ParentID, one)
	}
}

func TestUpdateThatMayHaveBeenWrittenIsNotRepeated(t *testing.T) {
	t.Parallel()
	st := &rival{Store: memory.New(nil)}
	s := newMemory(t, st)
	root := mustGet(s.AppendMessage(session.RoleUser, []session.Content{session.Text("one")}))(t)
	st.unsure = true
	runs := 0
	var id string
	fn := func(tx *session.Tx) error {
		runs++
		tx.Branch(root)
		id = tx.Append(session.Message(session.RoleUser, session.Text("two")))
		return nil
	}
	if err := s.Update(t.Context(), fn); !errors.Is(err, session.ErrUnknown) || runs != 1 {
		t.Errorf("%v after %d runs", err, runs)
	}
	if err := s.Update(t.Context(), fn); !session.MustReopen(err) || runs != 1 {
		t.Errorf("the next one: %v after %d runs", err, runs)
	}
	if path := mustGet(reopened(t, st, s.ID()).Forward(id))(t); len(path) != 2 {
		t.Errorf("the path has %d entries", len(path))
	}
}

// An endless stream of other writers ends in a conflict, and a context that ends in its error.
func TestUpdateGivesUp(t *testing.T) {
	t.Parallel()
	st := &rival{Store: memory.New(nil)}
	s := newMemory(t, st)
	st.every = 1
	add := func(tx *session.Tx) error {
		tx.Append(session.Message(session.RoleUser, session.Text("never")))
		return nil
	}
	var conflict *session.ConflictError
	if err := s.Update(t.Context(), add); !errors.As(err, &conflict) || !errors.Is(err, session.ErrConflict) {
		t.Errorf("others always came first: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err := s.Update(ctx, func(tx *session.Tx) error {
		cancel()
		return add(tx)
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the context ended: %v", err)
	}
	if err := s.Update(ctx, add); !errors.Is(err, context.Canceled) {
		t.Errorf("the context had ended before: %v", err)
	}
}
