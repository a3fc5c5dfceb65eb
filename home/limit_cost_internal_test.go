package home

import (
	"context"
	"fmt"
	"testing"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
)

// statedStore counts how often a session is looked at.
type statedStore struct {
	store.Store
	stats int
}

func (c *statedStore) Unwrap() store.Store { return c.Store }

func (c *statedStore) Stat(ctx context.Context, name string) (store.Stat, error) {
	c.stats++
	return c.Store.Stat(ctx, name)
}

// A list of a limited home looks at its sessions only if something has changed, and then it shows
// that.
func TestAPartLooksAtItsSessionsOnceForAChange(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	h, err := Open(ctx, "mem:", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	looked := &statedStore{Store: h.store}
	h.store = looked
	const sessions = 1100 // of fewer, an index always looks at each
	for n := range sessions {
		s, err := session.Create(ctx, h.store, session.Header{ID: fmt.Sprintf("s%04d", n), CWD: "/otters"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	part, err := h.Limited(Limit{Project: "otters"})
	if err != nil {
		t.Fatal(err)
	}
	list := func() *ListResult {
		t.Helper()
		found, err := part.Sessions.List(ctx, ListRequest{Limit: 1})
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	list()
	looked.stats = 0
	if list(); looked.stats > 10 {
		t.Errorf("a list of what has not changed looked %d times", looked.stats)
	}
	if _, err := h.Sessions.Rename(ctx, RenameRequest{Session: "s0500", Name: "Rivers"}); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Entries.Append(ctx, AppendRequest{Session: "s0500", Message: &session.MessageEntry{Role: session.RoleUser, Content: []session.Content{session.Text("hello")}}}); err != nil {
		t.Fatal(err)
	}
	if found := list(); len(found.Sessions) != 1 || found.Sessions[0].Title != "Rivers" {
		t.Errorf("the list does not begin with the session that has changed: %+v", found.Sessions)
	}
}
