package session_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/memory"
)

// unreadable is a store in which nothing can be read back after an append: the log is gone, say,
// or the store has gone away.
type unreadable struct {
	store.Store
	why error // nil while everything works
}

func (u *unreadable) Open(ctx context.Context, name string) (store.Log, error) {
	log, err := u.Store.Open(ctx, name)
	return &unreadableLog{Log: log, of: u}, err
}

type unreadableLog struct {
	store.Log
	of       *unreadable
	appended bool
}

func (l *unreadableLog) Start(ctx context.Context, at store.Pos, lines ...[]byte) (store.Pos, func() error, error) {
	end, commit, err := l.Log.Start(ctx, at, lines...)
	l.appended = l.of.why != nil && err == nil
	return end, commit, err
}

func (l *unreadableLog) Forward(ctx context.Context, from store.Pos) iter.Seq2[store.Line, error] {
	if l.appended {
		return func(yield func(store.Line, error) bool) { yield(store.Line{}, l.of.why) }
	}
	return l.Log.Forward(ctx, from)
}

// Whoever appends what is in the log afterwards does not hear that it was refused, whatever keeps
// the session from reading it back, alone or as the last one of a chain.
func TestWhatWasWrittenIsNotRefused(t *testing.T) {
	t.Parallel()
	late := func(id string) session.Entry {
		e := session.Message(session.RoleUser, session.Text("late"))
		e.ID, e.Timestamp = id, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		return e
	}
	doors := map[string]func(s *session.Session) error{
		"one":   func(s *session.Session) error { _, err := s.AppendEntry(late("a")); return err },
		"all":   func(s *session.Session) error { _, err := s.AppendAll(late("a"), late("b")); return err },
		"graft": func(s *session.Session) error { return s.Graft(late("a"), late("b")) },
		"update": func(s *session.Session) error {
			return s.Update(context.Background(), func(tx *session.Tx) error {
				tx.Append(late("a"))
				tx.Append(late("b"))
				return nil
			})
		},
	}
	refusals := []error{
		session.ErrNotExist, session.ErrReplaced, session.ErrConflict, session.ErrInvalid, session.ErrTooLarge,
		session.ErrLocked, store.ErrUnavailable, context.Canceled,
	}
	opens := map[string]func(st store.Store, name string) (*session.Session, error){
		"a session": func(st store.Store, name string) (*session.Session, error) {
			return session.Open(t.Context(), st, name, nil)
		},
		"a chain": func(st store.Store, name string) (*session.Session, error) {
			return session.OpenChain(t.Context(), st, session.Linked{ID: name, Links: []string{name}}, nil)
		},
	}
	for door, write := range doors {
		for of, open := range opens {
			for _, why := range refusals {
				st := &unreadable{Store: memory.New(nil)}
				name := newMemory(t, st).ID()
				s := closeWith(t, mustGet(open(st, name))(t))
				mustGet(s.AppendEntry(session.Message(session.RoleUser, session.Text("early"))))(t)
				st.why = why
				err := write(s)
				st.why = nil
				if there, _ := reopened(t, st.Store, name).Has("a"); !there {
					t.Fatalf("%s to %s: it was not written", door, of)
				}
				if err == nil {
					continue
				}
				refused := slices.ContainsFunc(refusals, func(kind error) bool { return errors.Is(err, kind) })
				if !errors.Is(err, session.ErrUnknown) || refused {
					t.Errorf("%s to %s, reading it back fails with %q: %v, want success or ErrUnknown", door, of, why, err)
				}
				if _, err := s.AppendEntry(late("c")); !session.MustReopen(err) {
					t.Errorf("%s to %s: the next append: %v, want an error that says to open it again", door, of, err)
				}
			}
		}
	}
}
