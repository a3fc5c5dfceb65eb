package agent

import (
	"context"
	"fmt"

	"github.com/coppice-dev/coppice/session"
)

// This file has what an agent must know about conversations that have several sessions.

// conversationOf returns the conversation that a session is part of: the session itself if it
// is the only one.
func conversationOf(s *session.Session) (*session.Session, error) {
	next, err := s.Continuation()
	if err != nil {
		return nil, err
	}
	if next == "" && s.Header().Relation != session.RelationContinuation {
		return s, nil
	}
	return s.Whole(context.Background())
}

// goOn makes sure that the lease is on the last session of the conversation, after others
// have written to it. last is the session that had the lease.
func (k *Keeper) goOn(last string) error {
	next, err := k.s.Continuation()
	switch {
	case err != nil:
		return err
	case next != "" && k.s.Last() == k.s.ID():
		return &session.Error{
			Op: "continue", Name: last, Kind: session.ErrConflict, Err: fmt.Errorf("the conversation goes on in session %q", next),
			Hint: "open it again",
		}
	case k.s.Last() == last:
		return nil
	}
	before := k.lease
	if err := k.takeLease(); err != nil {
		return err
	}
	_ = before.Release(context.WithoutCancel(k.ctx)) // if it fails, others have to wait for a while
	return nil
}
