package conversation_test

import (
	"context"
	"iter"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/memory"
)

// unsettled is a store whose appends land but claim not to know.
type unsettled struct {
	store.Store
	lie  *int   // how often; negative: always, and nothing lands
	then func() // called after a lie; may be nil
}

func (u unsettled) Create(ctx context.Context, name string, lines iter.Seq2[[]byte, error]) (store.Log, error) {
	log, err := u.Store.Create(ctx, name, lines)
	return unsettledLog{log, u}, err
}

func (u unsettled) Open(ctx context.Context, name string) (store.Log, error) {
	log, err := u.Store.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	return unsettledLog{log, u}, nil
}

type unsettledLog struct {
	store.Log
	u unsettled
}

func (l unsettledLog) Start(ctx context.Context, at store.Pos, lines ...[]byte) (store.Pos, func() error, error) {
	switch {
	case *l.u.lie == 0:
		return l.Log.Start(ctx, at, lines...)
	case *l.u.lie < 0:
		return 0, nil, store.ErrUnknown
	}
	*l.u.lie--
	if *l.u.lie%2 == 0 { // every other time it lands
		if _, err := l.Log.Append(ctx, at, lines...); err != nil {
			return 0, nil, err
		}
	}
	if l.u.then != nil {
		l.u.then()
	}
	return 0, nil, store.ErrUnknown
}

// After an append of which nobody knows whether it landed, somebody looks.
func TestUnknownOutcome(t *testing.T) {
	t.Parallel()
	for lies := range 4 {
		lie := 0
		m := newManagerOn(t, unsettled{memory.New(nil), &lie, nil}, 100)
		id := say(t, m, "", user("1"))
		lie = lies
		say(t, m, id, user("2"))
		if diff := cmp.Diff([]string{"user: 1", "user: 2"}, texts(must(m.Conversation(id))(t).Messages)); diff != "" {
			t.Errorf("after %d unknown outcomes:\n%s", lies, diff)
		}
	}
	lie := 0
	m := newManagerOn(t, unsettled{memory.New(nil), &lie, nil}, 100)
	id := say(t, m, "", user("1"))
	lie = -1
	_, err := m.AddMessage(id, user("2"))
	wantError(t, err, session.ErrUnknown)
	lie = 0
}

// Also if the conversation has gone on in another session meanwhile.
func TestUnknownOutcomeAtABoundary(t *testing.T) {
	t.Parallel()
	st := memory.New(nil)
	other := newManagerOn(t, st, 100)
	lie, id := 0, ""
	m := newManagerOn(t, unsettled{st, &lie, func() {
		must(other.CreateContinuationSession(must(other.LoadSession(id))(t)))(t)
	}}, 100)
	id = say(t, m, "", user("1"))
	lie = 1
	say(t, m, id, user("2"))
	c := must(m.Conversation(id))(t)
	if diff := cmp.Diff([]string{"user: 1", "user: 2"}, texts(c.Messages)); diff != "" || len(c.Links) != 2 {
		t.Errorf("%d links\n%s", len(c.Links), diff)
	}
}
