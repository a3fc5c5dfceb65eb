package cli

import (
	"cmp"
	"context"
	"errors"

	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/file"
)

// opened is a session with the store it is in and its name there, or a whole
// conversation under its id.
type opened struct {
	*session.Session
	store *file.Store
	name  string
	chain session.Linked // the conversation that it is part of, if that was asked for
}

// withOpened calls f with the session that a user means by an id, a prefix of one,
// or a key, and with no other of its conversation.
func (a *app) withOpened(ctx context.Context, id string, f func(o opened) error) error {
	return a.withStore(func(st *file.Store) error {
		name, err := resolveSession(ctx, st, id)
		if err != nil {
			return err
		}
		s, err := session.Open(ctx, st, name, a.options())
		if err != nil {
			return err
		}
		return errors.Join(f(opened{Session: s, store: st, name: name}), s.Close())
	})
}

// shortName is the shortest prefix of the session's name that means it.
func (o opened) shortName(ctx context.Context) (string, error) {
	var names []string
	for stat, err := range o.store.List(ctx) {
		if err != nil && stat.Name == "" {
			return "", err
		}
		names = append(names, stat.Name)
	}
	return cmp.Or(render.ShortIDs(names)[o.name], o.name), nil // the first session of a conversation may be missing
}

// conversation is the session as a renderer draws it.
func (o opened) conversation() render.Conversation {
	return render.Conversation{Session: o.Session, Blobs: o.store.Blobs(), Name: o.name, Links: o.chain.Links, Missing: o.chain.Missing}
}

// drawn is conversation with what a person calls it.
func (a *app) drawn(ctx context.Context, o opened) (c render.Conversation, err error) {
	c = o.conversation()
	if c.Title, err = titleOf(o.Session); err != nil {
		return c, err
	}
	if c.Name, err = o.shortName(ctx); err != nil {
		return c, err
	}
	c.Tokens, c.TokensFrom, err = o.spent(ctx)
	return c, err
}

// spent returns how many tokens the conversation has cost, and who counted them:
// what ls shows. Of sessions that continue each other, each has its own.
func (o opened) spent(ctx context.Context) (tokens int, from string, err error) {
	reported := false
	add := func(s *session.Session) error {
		spent, err := s.Spent()
		tokens, reported = tokens+spent.Tokens(), reported || spent.Reported > 0
		return err
	}
	if len(o.chain.Links) <= 1 {
		err = add(o.Session)
	}
	for _, name := range o.chain.Links {
		if len(o.chain.Links) <= 1 || err != nil {
			break
		}
		s, openErr := session.Open(ctx, o.store, name, nil)
		if openErr != nil {
			return 0, "", openErr
		}
		err = errors.Join(add(s), s.Close())
	}
	return tokens, tokensFrom(index.Session{Tokens: int64(tokens), Reported: reported}), err
}
