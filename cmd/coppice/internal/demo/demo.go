// Package demo writes some made-up conversations to look at: with branches, tool
// calls, a compaction, an image, labels, a fork and a continuation.
//
// Their ids are words, and the same every time: what the documentation prints can
// be typed as it stands.
package demo

import (
	"context"
	"fmt"
	"time"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
)

// Session is a conversation that was written.
type Session struct {
	ID    string `json:"id"`
	About string `json:"about"`
}

// Write writes the conversations into a store, dated over the days before now,
// and returns them, the oldest first. Unless force is true it returns
// session.ErrExist for a store that has sessions: made-up ones must not get among
// real ones by accident.
func Write(ctx context.Context, st store.Store, now time.Time, force bool) ([]Session, error) {
	if err := refuseUsed(ctx, st, force); err != nil {
		return nil, err
	}
	t := newTeller(ctx, st, now)
	for _, tale := range tales {
		tale(t)
	}
	t.finish()
	return t.made, t.err
}

func refuseUsed(ctx context.Context, st store.Store, force bool) error {
	for stat, err := range st.List(ctx) {
		if force || err != nil {
			return err
		}
		return &session.Error{
			Op: "write the demo to", Path: st.Where(), Kind: session.ErrExist,
			Err: fmt.Errorf("there are sessions already, such as %s", stat.Name),
		}
	}
	return nil
}
