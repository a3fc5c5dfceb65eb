package home

import (
	"context"
	"testing"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
)

// countedStore is a store that counts what an operation costs.
type countedStore struct {
	store.Store
	opens, writes int
}

func (c *countedStore) Unwrap() store.Store { return c.Store }

func (c *countedStore) Open(ctx context.Context, name string) (store.Log, error) {
	c.opens++
	log, err := c.Store.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	return &countedLog{log, c}, nil
}

type countedLog struct {
	store.Log
	c *countedStore
}

func (l *countedLog) Start(ctx context.Context, at store.Pos, lines ...[]byte) (store.Pos, func() error, error) {
	l.c.writes++
	return l.Log.Start(ctx, at, lines...)
}

func (l *countedLog) Append(ctx context.Context, at store.Pos, lines ...[]byte) (store.Pos, error) {
	l.c.writes++
	return l.Log.Append(ctx, at, lines...)
}

// An operation on one session opens its log once and waits for the disk once.
func TestAnOperationOpensTheLogOnce(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	settings, err := LoadSettings(func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	for _, where := range []string{t.TempDir(), "mem:"} {
		h, err := Open(ctx, where, &Options{Settings: settings, Create: true})
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		s, err := session.Create(ctx, h.store, session.Header{ID: "s"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for range 50 {
			id, err := s.AppendMessage(session.RoleUser, []session.Content{session.Text("a message")})
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, id)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		counted := &countedStore{Store: h.store}
		h.store = counted
		message := &session.MessageEntry{Role: session.RoleUser, Content: []session.Content{session.Text("more")}}
		compaction := ""
		for _, op := range []struct {
			name string
			run  func() error
		}{
			{"append", func() error {
				_, err := h.Entries.Append(ctx, AppendRequest{Session: "s", Message: message})
				return err
			}},
			{"label", func() error {
				_, err := h.Entries.Label(ctx, LabelRequest{Session: "s", Entry: ids[3], Label: "here"})
				return err
			}},
			{"compact", func() error {
				r, err := h.Entries.Compact(ctx, CompactRequest{Session: "s", Summary: "what was said", FirstKept: ids[40]})
				if err == nil {
					compaction = r.Entry
				}
				return err
			}},
			{"revert", func() error {
				_, err := h.Entries.Revert(ctx, RevertRequest{Session: "s", Entry: compaction})
				return err
			}},
			{"branch", func() error {
				_, err := h.Entries.Branch(ctx, BranchRequest{Session: "s", Entry: ids[10]})
				return err
			}},
			{"merge", func() error {
				_, err := h.Entries.Merge(ctx, MergeRequest{Session: "s", From: ids[20], Summary: "what the other branch found"})
				return err
			}},
			{"tag", func() error {
				_, err := h.Sessions.Tag(ctx, TagRequest{Session: "s", Add: []string{"work"}})
				return err
			}},
		} {
			counted.opens, counted.writes = 0, 0
			if err := op.run(); err != nil {
				t.Errorf("%s: %v", op.name, err)
			}
			if counted.opens != 1 || counted.writes != 1 {
				t.Errorf("%s in %s opened the log %d times and wrote %d times; want once each", op.name, where, counted.opens, counted.writes)
			}
		}
	}
}
