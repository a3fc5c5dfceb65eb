package home_test

import (
	"sync"
	"testing"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/session"
)

// TestAskingTwiceAppendsOnce: a caller who got no answer asks again, perhaps while the first
// request still runs, perhaps after others went on.
func TestAskingTwiceAppendsOnce(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	id, _ := begin(t, h.Home)
	ask := func(once, at string) (*home.AppendResult, error) {
		return h.Entries.Append(t.Context(), home.AppendRequest{
			Session: id, Once: once, At: at, Message: userSays("hello"),
		})
	}
	first, err := ask("first", "")
	if err != nil || first.Already {
		t.Fatalf("%+v, %v", first, err)
	}
	answered := make([]*home.AppendResult, 8)
	var asking sync.WaitGroup
	for i := range answered {
		asking.Go(func() {
			var err error
			if answered[i], err = ask("second", first.Entry); err != nil {
				t.Error(err)
			}
		})
	}
	asking.Wait()
	written := 0
	for _, a := range answered {
		if a != nil && !a.Already {
			written++
		}
		if a != nil && a.Entry != answered[0].Entry {
			t.Errorf("the answers are %+v and %+v", answered[0], a)
		}
	}
	if written != 1 {
		t.Errorf("%d of them say that they wrote it", written)
	}
	if again, err := ask("first", ""); err != nil || !again.Already || again.Entry != first.Entry {
		t.Errorf("%+v, %v", again, err)
	}
	if _, err := h.Entries.Append(t.Context(), home.AppendRequest{Session: id, Once: "first", Message: userSays("goodbye")}); home.KindOf(err) != home.KindConflict {
		t.Errorf("another message under the same name: %v", err)
	}
	n := 0
	if _, err := h.Entries.Path(t.Context(), home.PathRequest{Session: id, All: true}, func(e session.Entry) error {
		if e.Message != nil {
			n++
		}
		return nil
	}); err != nil || n != 2 {
		t.Errorf("the session has %d messages, %v", n, err)
	}
	// The same name in another conversation is another append.
	other, _ := begin(t, h.Home)
	elsewhere, err := h.Entries.Append(t.Context(), home.AppendRequest{Session: other, Once: "first", Message: userSays("hello")})
	if err != nil || elsewhere.Already || elsewhere.Entry == first.Entry {
		t.Errorf("%+v, %v", elsewhere, err)
	}
}

// TestOnlyOneBegins: of several callers that want to write the first entry, one does.
func TestOnlyOneBegins(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	made, err := h.Sessions.Create(t.Context(), home.CreateRequest{Title: "Garden", Tags: []string{"trees"}}) // which says nothing
	if err != nil {
		t.Fatal(err)
	}
	ask := func() error {
		_, err := h.Entries.Append(t.Context(), home.AppendRequest{Session: made.Session, At: home.NoEntry, Message: userSays("hello")})
		return err
	}
	failed := make([]error, 8)
	var asking sync.WaitGroup
	for i := range failed {
		asking.Go(func() { failed[i] = ask() })
	}
	asking.Wait()
	began := 0
	for _, err := range failed {
		if err == nil {
			began++
		} else if home.KindOf(err) != home.KindConflict {
			t.Error(err)
		}
	}
	if began != 1 {
		t.Errorf("%d of them began", began)
	}
	if err := ask(); home.KindOf(err) != home.KindConflict {
		t.Errorf("later: %v", err)
	}
	if _, err := h.Entries.Label(t.Context(), home.LabelRequest{Session: made.Session, Entry: home.Leaf, Label: home.NoEntry}); home.KindOf(err) != home.KindInvalid {
		t.Errorf("an entry can be called %s: %v", home.NoEntry, err)
	}
}
