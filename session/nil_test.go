package session_test

import (
	"errors"
	"testing"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/memory"
)

// What is missing from a call is an error that says so, and not a panic.
func TestNothingGiven(t *testing.T) {
	t.Parallel()
	s, err := session.Create(t.Context(), memory.New(nil), session.Header{ID: "s"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for what, call := range map[string]func() error{
		"update with nothing": func() error { return s.Update(t.Context(), nil) },
		"create in nothing":   func() error { _, err := session.Create(t.Context(), nil, session.Header{}, nil); return err },
		"open in nothing":     func() error { _, err := session.Open(t.Context(), nil, "s", nil); return err },
		"fork to nothing":     func() error { _, err := s.Fork(t.Context(), nil, nil); return err },
		"a chain in nothing": func() error {
			_, err := session.OpenChain(t.Context(), nil, session.Linked{ID: "s", Links: []string{"s", "t"}}, nil)
			return err
		},
	} {
		if err := call(); !errors.Is(err, session.ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
