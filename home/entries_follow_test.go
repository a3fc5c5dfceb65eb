package home_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/session"
)

// One session that cannot be read is no reason to stop following the others, when
// following begins or later.
func TestFollowAllPassesOverWhatCannotBeRead(t *testing.T) {
	t.Parallel()
	h := newHouseInFiles(t)
	h.say(session.Header{ID: "good"}, "hello")
	h.damage("bad")
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute) // or it hangs
	defer cancel()
	var added *session.Session
	looks := 0
	enough := errors.New("enough")
	_, err := h.Entries.Follow(ctx, home.FollowRequest{Last: 1}, func(arrival home.Arrival) error {
		switch {
		case arrival.Session == "good":
			h.damage("worse")
			added = h.say(session.Header{ID: "new"}, "there")
		case looks < 2: // the second look comes after one at all sessions, "worse" included
			looks++
			_, err := added.AppendMessage(session.RoleUser, []session.Content{session.Text("more")})
			return err
		default:
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) {
		t.Errorf("nothing came: %v", err)
	}
}

// Following ends with its context, whether that ended before it began or later, without an error.
func TestFollowEndsWithItsContext(t *testing.T) {
	t.Parallel()
	h := newHouseInFiles(t)
	h.say(session.Header{ID: "s0"}, "hello")
	for _, name := range []string{"s0", ""} {
		before, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := h.Entries.Follow(before, home.FollowRequest{Session: name}, nil); err != nil {
			t.Errorf("following %q, ended before: %v", name, err)
		}
		later, cancel := context.WithCancel(t.Context())
		if _, err := h.Entries.Follow(later, home.FollowRequest{Session: name, Last: 1}, func(home.Arrival) error {
			cancel()
			return nil
		}); err != nil {
			t.Errorf("following %q, ended later: %v", name, err)
		}
		cancel()
	}
}
