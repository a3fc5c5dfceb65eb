package cli

import (
	"context"
	"errors"

	"github.com/coppice-dev/coppice/conversation"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/memory"
)

// withConversation is withOpened for commands that can read a whole chain of
// sessions as one.
func (a *app) withConversation(ctx context.Context, id string, chain bool, f func(o opened) error) error {
	return a.withOpened(ctx, id, func(o opened) error {
		if !chain {
			return f(o)
		}
		whole, err := a.chained(ctx, o)
		if err != nil {
			return err
		}
		o.Session = whole
		return errors.Join(f(o), whole.Close())
	})
}

// chained returns, in memory, all the sessions that a session continues and is
// continued by as the one conversation that they are: the paths to their leaves,
// without what each only carries over from the one before it.
func (a *app) chained(ctx context.Context, o opened) (*session.Session, error) {
	ids, err := session.Chain(ctx, o.store, o.name)
	if err != nil {
		return nil, err
	}
	var whole *session.Session
	for _, id := range ids {
		link, err := session.Open(ctx, o.store, id, a.options())
		if err != nil {
			return nil, errors.Join(err, closed(whole))
		}
		if whole == nil {
			whole, err = session.Create(ctx, memory.New(nil), link.Header(), &session.Options{BlobThreshold: -1})
		}
		if err == nil {
			err = joinLink(whole, link)
		}
		if err := errors.Join(err, link.Close()); err != nil {
			return nil, errors.Join(err, closed(whole))
		}
	}
	return whole, nil
}

func closed(s *session.Session) error {
	if s == nil {
		return nil
	}
	return s.Close()
}

// joinLink adds the path of a link after what is there.
func joinLink(whole, link *session.Session) error {
	path, err := link.PathTo("")
	if err != nil {
		return err
	}
	for _, e := range path {
		continues := e.Custom != nil && e.Custom.CustomType == session.CustomContinuedTo
		if continues || e.Message != nil && conversation.IsCarried(&e) {
			continue
		}
		e.ParentID = nil
		if last := whole.LeafID(); last != "" {
			e.ParentID = &last
		}
		if err := whole.Graft(e); err != nil {
			return err
		}
	}
	return nil
}
