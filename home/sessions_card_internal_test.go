package home

import (
	"context"
	"iter"
	"testing"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
)

// readStore is a store that counts the lines and the blobs that are read.
type readStore struct {
	store.Store
	lines, blobs int
}

func (r *readStore) Blobs() store.Blobs { return readBlobs{r.Store.Blobs(), r} }

type readBlobs struct {
	store.Blobs
	r *readStore
}

func (b readBlobs) Get(ctx context.Context, ref store.Ref) ([]byte, error) {
	b.r.blobs++
	return b.Blobs.Get(ctx, ref)
}

func (r *readStore) Unwrap() store.Store { return r.Store }

func (r *readStore) Open(ctx context.Context, name string) (store.Log, error) {
	log, err := r.Store.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	return &readLog{log, r}, nil
}

type readLog struct {
	store.Log
	r *readStore
}

func (l *readLog) count(lines iter.Seq2[store.Line, error]) iter.Seq2[store.Line, error] {
	return func(yield func(store.Line, error) bool) {
		for line, err := range lines {
			l.r.lines++
			if !yield(line, err) {
				return
			}
		}
	}
}

func (l *readLog) Forward(ctx context.Context, from store.Pos) iter.Seq2[store.Line, error] {
	return l.count(l.Log.Forward(ctx, from))
}

func (l *readLog) Backward(ctx context.Context, from store.Pos) iter.Seq2[store.Line, error] {
	return l.count(l.Log.Backward(ctx, from))
}

// The card of a long conversation reads its end and a little of its beginning.
func TestCardOfALongConversationReadsLittle(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	h, err := Open(ctx, t.TempDir(), &Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	s, err := session.Create(ctx, h.store, session.Header{ID: "s"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	entries := make([]session.Entry, 5000)
	for i := range entries {
		entries[i] = session.Message(session.RoleUser, session.Text("a message"))
	}
	if _, err := s.AppendAll(entries...); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Sessions.Card(ctx, SessionRequest{Session: "s"}); err != nil { // the index is up to date now
		t.Fatal(err)
	}
	counted := &readStore{Store: h.store}
	h.store = counted
	card, err := h.Sessions.Card(ctx, SessionRequest{Session: "s"})
	if err != nil || card.Whole || card.First != "a message" {
		t.Fatalf("%+v, %v", card, err)
	}
	if counted.lines == 0 || counted.lines > 3*cardEntries {
		t.Errorf("it read %d lines", counted.lines)
	}
}
