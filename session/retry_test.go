package session_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/coppice-dev/coppice/session"
)

func TestRetry(t *testing.T) {
	errOther := errors.New("another error")
	conflict := fmt.Errorf("wrapped: %w", session.ErrConflict)
	tests := []struct {
		name              string
		outcomes          []error // the last one again and again
		catchUp           error
		want              error
		tries, catchUpped int
	}{
		{"done at once", []error{nil}, nil, nil, 1, 0},
		{"done after conflicts", []error{conflict, conflict, nil}, nil, nil, 3, 2},
		{"another error", []error{errOther}, nil, errOther, 1, 0},
		{"another error after a conflict", []error{conflict, errOther}, nil, errOther, 2, 1},
		{"cannot catch up", []error{conflict}, errOther, errOther, 1, 1},
		{"it never ends", []error{conflict}, nil, session.ErrConflict, 1000, 999},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			tries, catchUpped := 0, 0
			err := session.Retry(func() error {
				tries++
				return test.outcomes[min(tries, len(test.outcomes))-1]
			}, func() error { catchUpped++; return test.catchUp })
			if !errors.Is(err, test.want) || tries != test.tries || catchUpped != test.catchUpped {
				t.Errorf("%v after %d tries and %d times of catching up, want %v after %d and %d",
					err, tries, catchUpped, test.want, test.tries, test.catchUpped)
			}
		})
	}
	tries := 0
	err := session.Retry(func() error {
		if tries++; tries < 3 {
			return conflict
		}
		return nil
	}, nil)
	if err != nil || tries != 3 {
		t.Errorf("without catching up: %v after %d tries", err, tries)
	}
}

// TestRetryTakesInWhatOthersWrote: an append goes on after the entries of a
// faster writer.
func TestRetryTakesInWhatOthersWrote(t *testing.T) {
	dir := t.TempDir()
	a, err := session.New(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if _, err := a.AppendMessage(session.RoleUser, []session.Content{session.Text("one")}); err != nil {
		t.Fatal(err)
	}
	b, err := session.Load(a.File())
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	theirs, err := b.AppendMessage(session.RoleUser, []session.Content{session.Text("two")})
	if err != nil {
		t.Fatal(err)
	}
	var ours string
	err = session.Retry(func() (err error) {
		ours, err = a.AppendMessage(session.RoleUser, []session.Content{session.Text("three")})
		return err
	}, func() error {
		_, err := a.Refresh()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if e, err := a.Entry(ours); err != nil || e.ParentID == nil || *e.ParentID != theirs {
		t.Errorf("the entry is %+v, %v, want a child of %s", e, err, theirs)
	}
}
