package home_test

import (
	"context"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/session"
)

// One session that cannot be read is no reason to stop following the others, when
// following begins or later.
func TestFollowAllPassesOverWhatCannotBeRead(t *testing.T) {
	h := newHouse(t)
	h.say(session.Header{ID: "good"}, "hello")
	h.damage("bad")
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute) // or it hangs
	defer cancel()
	var added *session.Session
	looks := 0
	for arrival, err := range h.Entries.Follow(ctx, home.FollowRequest{Last: 1}) {
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case arrival.Session == "good":
			h.damage("worse")
			added = h.say(session.Header{ID: "new"}, "there")
		case looks < 2: // the second look comes after one at all sessions, "worse" included
			looks++
			if _, err := added.AppendMessage(session.RoleUser, []session.Content{session.Text("more")}); err != nil {
				t.Fatal(err)
			}
		default:
			return
		}
	}
	t.Error("nothing came")
}
