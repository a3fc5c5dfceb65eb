package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/coppice-dev/coppice/internal/boundary"
	"github.com/coppice-dev/coppice/session"
)

// This file handles conversations that have several sessions.

// conversationOf returns the conversation that a session is part of. It is the session itself
// if that is the only one and will not be continued.
func conversationOf(s *session.Session, limit int) (_ *session.Session, isChain bool, err error) {
	if s == nil {
		return nil, false, invalid("an agent needs a session")
	}
	next, err := s.Continuation()
	if err != nil {
		return nil, false, err
	}
	if next == "" && limit == 0 && s.SessionOf("") == s.ID() && s.Header().Relation != session.RelationContinuation {
		return s, false, nil
	}
	s, err = s.Whole(context.Background())
	return s, true, err
}

// followContinuation continues where others have continued the conversation. fresh says that they
// have written.
func (k *Keeper) followContinuation(fresh bool) error {
	if fresh {
		k.inLast = unknownSize
	}
	if !fresh && !k.isChain {
		return nil
	}
	next, err := k.s.Continuation()
	switch {
	case err != nil:
		return err
	case next != "" && !k.isChain:
		return &session.Error{
			Op: "continue", Name: k.s.ID(), Kind: session.ErrConflict, Err: fmt.Errorf("the conversation continues in session %q", next),
			Hint: "open it again",
		}
	case next != "": // it was named and never created, or it is lost
		part, err := k.lastPart()
		if err != nil {
			return err
		}
		return k.continueWith(part, nil)
	}
	return nil
}

// crossBoundary continues the conversation in another session if the last one has reached its
// boundary. next is the message that comes next. What is sent does not change.
func (k *Keeper) crossBoundary(next session.Entry) error {
	limit := k.opts.Boundary
	if limit == 0 || k.inLast >= 0 && k.inLast < limit {
		return nil
	}
	part, err := k.lastPart()
	if err != nil {
		return err
	}
	if k.inLast = len(part.Entries); !part.Due(&next, limit) {
		return nil
	}
	return k.continueWith(part, &next)
}

// unknownSize means that the size of the last session is not known.
const unknownSize = -1

// lastPart reads the last session of the conversation.
func (k *Keeper) lastPart() (*boundary.Part, error) {
	link, err := session.Open(k.ctx, k.s.Store(), k.s.SessionOf(""), nil)
	if err != nil {
		return nil, err
	}
	part, err := boundary.Read(k.ctx, link)
	return part, errors.Join(err, link.Close())
}

// continueWith continues the conversation, whose last session is part, in another one: for a
// message or, if next is nil, because the log says so.
func (k *Keeper) continueWith(part *boundary.Part, next *session.Entry) error {
	carry := part.Carry(cmp.Or(k.opts.Boundary, len(part.Entries)), next)
	err := k.write(func() error {
		_, err := k.s.Continue(carry...)
		return err
	})
	if err != nil && !errors.Is(err, session.ErrExist) { // another agent has created it: continue there
		return err
	}
	k.inLast = unknownSize
	return nil
}
