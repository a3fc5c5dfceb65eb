package session

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/coppice-dev/coppice/store/memory"
)

// TestWalkingKeepsNothing: reading through a session, a few hundred entries at a time,
// leaves nothing behind in memory, and what it returns is the caller's to change.
func TestWalkingKeepsNothing(t *testing.T) {
	t.Parallel()
	st := memory.New(nil)
	written, err := Create(context.Background(), st, Header{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer written.Close()
	for range 3 * fewNodes {
		if _, err := written.AppendMessage(RoleUser, []Content{Text("as it was")}); err != nil {
			t.Fatal(err)
		}
	}
	s, err := Open(context.Background(), st, written.ID(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	shape, err := s.Shape()
	if err != nil {
		t.Fatal(err)
	}
	ids := shape.IDs()
	kept := func() int { return len(s.cache.path) + len(s.cache.young) + len(s.cache.old) }
	change := func(e *Entry) {
		if got := TextOf(e.Message.Content); got != "as it was" {
			t.Fatalf("entry %s is %q", e.ID, got)
		}
		e.Message.Content[0].Text.Content = "changed"
	}
	walk := func() {
		entries, err := s.Peek(ids...)
		if err != nil {
			t.Fatal(err)
		}
		for i := range entries {
			change(&entries[i])
		}
		for e, err := range shape.Entries(shape.Path(shape.Leaf())) {
			if err != nil {
				t.Fatal(err)
			}
			change(&e)
		}
	}
	walk()
	if n := kept(); n > 0 {
		t.Errorf("%d entries are kept after a walk", n)
	}
	if _, err := s.Peek(ids[:fewNodes]...); err != nil || kept() != fewNodes {
		t.Errorf("%d entries are kept of the few that were asked for; %v", kept(), err)
	}
	walk() // some of them are in the cache now
	walk()
}

// A shape shows the tree at one moment. If the log was read again since and the numbers of entries
// have changed, the shape does not confuse one entry with another.
func TestShapeOfAnEarlierTree(t *testing.T) {
	t.Parallel()
	s, err := Create(t.Context(), memory.New(nil), Header{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for range 4 {
		if _, err := s.AppendMessage(RoleUser, nil); err != nil {
			t.Fatal(err)
		}
	}
	shape, err := s.Shape()
	if err != nil {
		t.Fatal(err)
	}
	ids := shape.IDs()
	shape.nodes = slices.Clone(shape.nodes)
	slices.Reverse(shape.nodes)
	for _, id := range ids {
		if n := shape.Index(id); n != none && shape.ID(n) != id {
			t.Errorf("entry %s is number %d, which is %s", id, n, shape.ID(n))
		}
	}
	for _, err := range shape.Entries(shape.Numbers(ids)) {
		if !errors.Is(err, ErrNotExist) {
			t.Errorf("entries that have no number: %v", err)
		}
	}
}
