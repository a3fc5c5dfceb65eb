package cli

import (
	"context"
	"errors"
	"slices"

	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/file"
)

// Sessions that continue each other are one conversation: a chain. Commands that
// read show it as one, whichever of its sessions is named; --link asks for that
// session alone. Commands that write go to the last session of the chain. Labels,
// reverts and compactions count for all of it wherever they are, and go to the session
// that has the entry which they are about: the first kept one of a compaction.

// linkFlag gives a command the flag --link.
func linkFlag(cmd *cobra.Command, link *bool) {
	cmd.Flags().BoolVar(link, "link", false, "only this session, not the whole conversation")
}

// chainFlag keeps the flag --chain, which asked for what is now the default.
func chainFlag(cmd *cobra.Command) {
	cmd.Flags().Bool("chain", true, "with the sessions that it continues and is continued by")
	_ = cmd.Flags().MarkHidden("chain")
	cmd.MarkFlagsMutuallyExclusive("chain", "link")
}

// withConversation calls f with the conversation that the user means: all of its
// sessions as one, or with link the one that is named.
func (a *app) withConversation(ctx context.Context, id string, link bool, f func(o opened) error) error {
	if link {
		return a.withOpened(ctx, id, f)
	}
	return a.withChain(ctx, id, func(st *file.Store, name string, c session.Linked) error {
		if isAlone(c) {
			return a.open(ctx, st, name, c, f)
		}
		a.sayMissing(c)
		s, err := session.OpenChain(ctx, st, c, a.options())
		if err != nil {
			return err
		}
		return errors.Join(f(opened{s, st, c.ID, c}), s.Close())
	})
}

// withLink calls f with a session of the conversation that the user means: with
// the one that has an entry, or else with the last.
func (a *app) withLink(ctx context.Context, id, entry string, f func(o opened) error) error {
	return a.withChain(ctx, id, func(st *file.Store, name string, c session.Linked) error {
		if isAlone(c) {
			return a.open(ctx, st, name, c, f)
		}
		last := c.Links[len(c.Links)-1]
		if entry == "" || entry == "leaf" {
			return a.open(ctx, st, last, c, f)
		}
		for _, link := range slices.Backward(c.Links) {
			found := false
			err := a.open(ctx, st, link, c, func(o opened) error {
				if _, err := resolveEntry(o.Session, entry); errors.Is(err, session.ErrNotExist) {
					return nil
				}
				found = true
				return f(o)
			})
			if found || err != nil {
				return err
			}
		}
		return a.open(ctx, st, last, c, f)
	})
}

func isAlone(c session.Linked) bool { return len(c.Links) == 1 && len(c.Missing) == 0 }

// open calls f with a session of a conversation.
func (a *app) open(ctx context.Context, st *file.Store, name string, c session.Linked, f func(o opened) error) error {
	s, err := session.Open(ctx, st, name, a.options())
	if err != nil {
		return err
	}
	return errors.Join(f(opened{s, st, name, c}), s.Close())
}

// withChain finds the conversation that the user means: by any of its sessions,
// also by one that is missing.
func (a *app) withChain(ctx context.Context, id string, f func(st *file.Store, name string, c session.Linked) error) error {
	return a.withStore(func(st *file.Store) error {
		name, err := resolveSession(ctx, st, id)
		if errors.Is(err, session.ErrNotExist) {
			if lost, lostErr := a.resolveLost(ctx, st, id); lostErr == nil {
				name, err = lost, nil
			}
		}
		if err != nil {
			return err
		}
		c, err := a.chainOf(ctx, st, name)
		if err != nil {
			return err
		}
		if isAlone(c) {
			return f(st, name, c)
		}
		return f(st, c.ID, c)
	})
}

// chainOf returns the conversation that a session is part of.
func (a *app) chainOf(ctx context.Context, st *file.Store, name string) (session.Linked, error) {
	return session.FindChain(ctx, st, name, func(ctx context.Context, missing string) ([]string, error) {
		return a.naming(ctx, st, missing)
	})
}

// naming returns the sessions that name a missing one. Only the index knows. What
// it says only adds to what is shown, so that a store without one can be read.
func (a *app) naming(ctx context.Context, st *file.Store, missing string) ([]string, error) {
	ix, err := a.home.Index(ctx)
	if err != nil {
		return nil, ctx.Err()
	}
	return ix.Naming(ctx, missing)
}

// resolveLost returns the id of a missing session that the user means and whose
// conversation is still there.
func (a *app) resolveLost(ctx context.Context, st *file.Store, given string) (string, error) {
	ix, err := a.home.Index(ctx)
	if err != nil {
		return "", err
	}
	found, err := ix.Lost(ctx, given)
	if err != nil {
		return "", err
	}
	if slices.Contains(found, given) {
		return given, nil
	}
	return theOne("session", given, found)
}

// sayMissing says which sessions of a conversation are not there.
func (a *app) sayMissing(c session.Linked) {
	for _, id := range c.Missing {
		a.say("%s session %s of this conversation is missing, and what was said in it", a.paint(yellow, "warning:"), render.OneLine(id, 0))
	}
}
