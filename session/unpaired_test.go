package session_test

import (
	"testing"

	"github.com/coppice-dev/coppice/session"
)

// Unpaired shows a conversation as it stands: the call that waits has no made-up
// result, the late result is where it came, and the orphan is there.
func TestUnpairedContext(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	ids := []string{s.user("one"), s.call("a"), s.user("two"), s.result("a"), s.result("orphan"), s.call("b")}
	c, err := s.Context(session.ContextOptions{Unpaired: true})
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Entries) != len(ids) {
		t.Fatalf("%d entries, want %d", len(c.Entries), len(ids))
	}
	for i, e := range c.Entries {
		if e.ID != ids[i] {
			t.Errorf("entry %d is %q, want %q", i, e.ID, ids[i])
		}
	}
	if len(c.Problems) > 0 {
		t.Errorf("problems of what was not touched: %v", c.Problems)
	}
}

// Ids that a program makes for itself sort with those that sessions make.
func TestNewIDIsInOrder(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	before := session.NewID()
	between := s.user("one")
	after := session.NewID()
	if !(before < between && between < after) {
		t.Errorf("%s, %s, %s are not in order", before, between, after)
	}
}
