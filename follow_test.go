package coppice_test

import (
	"context"
	"testing"
	"time"

	"github.com/coppice-dev/coppice"
	"github.com/coppice-dev/coppice/session"
)

// One session that cannot be read is no reason to stop following the others, when
// following begins or later.
func TestFollowAllPassesOverWhatCannotBeRead(t *testing.T) {
	h := newHouse(t)
	h.say(session.Header{ID: "good"}, "hello")
	h.damage("bad")
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	time.AfterFunc(10*time.Millisecond, func() { h.damage("worse") })
	time.AfterFunc(500*time.Millisecond, func() { h.say(session.Header{ID: "new"}, "there") })
	for arrival, err := range h.Entries.Follow(ctx, coppice.FollowRequest{}) {
		if err != nil {
			t.Fatal(err)
		}
		if arrival.Session == "new" {
			return
		}
	}
	t.Error("nothing came")
}
