package session_test

import (
	"errors"
	"testing"

	"github.com/coppice-dev/coppice/session"
)

func TestResultsAreCheckedAgainstThePath(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	u := s.user("one")
	s.call("a", "b")
	s.result("a")
	for _, c := range []struct {
		calls []string
		ok    bool
	}{
		{[]string{"b"}, true},
		{[]string{"a"}, false},      // it has its result
		{[]string{"b", "b"}, false}, // one of them is too many
		{[]string{"c"}, false},
	} {
		e := session.Message(session.RoleTool, results(c.calls...)...)
		if err := session.CheckResults(mustGet(s.Forward(""))(t), &e); c.ok != (err == nil) || err != nil && !errors.Is(err, session.ErrInvalid) {
			t.Errorf("results of %v: %v", c.calls, err)
		}
	}
	s.branch(u) // where nobody called anything
	e := session.Message(session.RoleTool, results("b")...)
	if err := session.CheckResults(mustGet(s.Forward(""))(t), &e); !errors.Is(err, session.ErrInvalid) {
		t.Errorf("the result of a call on another branch: %v", err)
	}
}
