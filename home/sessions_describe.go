package home

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/lease"
	"github.com/coppice-dev/coppice/window"
)

// This file describes an open conversation: its title, its names, who works on it, its
// subagents, and what it cost.

// Rendered returns the conversation with its title, in the form that the packages below
// render draw. It leaves out the cost: adding that up means reading every entry again, and
// few faces show it.
func (c *Conversation) Rendered(ctx context.Context) (drawn render.Conversation, err error) {
	drawn = c.drawn()
	if drawn.Title, err = titleOf(ctx, c.Session, c.home.store, drawn.Links...); err != nil {
		return drawn, err
	}
	if drawn.Name, err = c.shortName(ctx); err != nil {
		return drawn, err
	}
	if drawn.Subagents, err = c.subagents(ctx); err != nil {
		return drawn, err
	}
	if working, err := c.working(ctx); err != nil {
		return drawn, err
	} else if working != nil {
		drawn.Working = working.String()
	}
	return drawn, nil
}

// working returns which program works on the conversation now, or nil.
func (c *Conversation) working(ctx context.Context) (*lease.Holder, error) {
	return lease.At(c.home.store, cmp.Or(c.Chain.ID, c.Session.ID())).Holder(ctx)
}

// drawn is Rendered without anything that needs other sessions.
func (c *Conversation) drawn() render.Conversation {
	links := c.Chain.Links
	if len(links) == 0 {
		links = []string{c.Handle}
	}
	return render.Conversation{
		Session: c.Session, Blobs: c.home.store.Blobs(), Name: c.Handle, Links: links, Missing: c.Chain.Missing, Lost: c.unreadable.note,
	}
}

// shortName returns the short name of the conversation's id.
func (c *Conversation) shortName(ctx context.Context) (string, error) {
	short, err := c.home.short(ctx, c.Handle)
	return short.Name(c.Handle), err
}

// subagents returns the sessions that tool calls of the conversation started: by the ids of
// the calls, or else by the prompts in the calls.
func (c *Conversation) subagents(ctx context.Context) (map[string]string, error) {
	names, err := c.home.site.subagents(ctx, c.ID(), false)
	if err != nil || len(names) == 0 {
		return nil, err
	}
	short, err := c.home.short(ctx, names...)
	started := make(map[string]string)
	for _, name := range names {
		if by := startedBy(ctx, c.home.store, name); by != "" {
			started[by] = short.Name(name)
		}
	}
	return started, err
}

func (h local) subagents(ctx context.Context, id string, build bool) ([]string, error) {
	ix := h.builtIndex(ctx)
	if ix == nil && build {
		ix, _ = h.index(ctx)
	}
	if ix == nil {
		return nil, ctx.Err() // without an index the conversation can still be read and written
	}
	return startedIn(ctx, ix, id)
}

func startedIn(ctx context.Context, ix *index.Index, id string) ([]string, error) {
	children, _, err := ix.List(ctx, index.ListOptions{Parent: id, Relation: session.RelationSubagent, Limit: -1})
	names := make([]string, len(children))
	for i := range children {
		names[i] = children[i].Name
	}
	return names, err
}

// subagentsOf opens those sessions, to be read. They are written with the conversation, so
// none may be missing: it builds the index if there is none.
func (h *Home) subagentsOf(ctx context.Context, id string) ([]*session.Session, error) {
	names, err := h.site.subagents(ctx, id, true)
	var sessions []*session.Session
	for i := 0; i < len(names) && err == nil; i++ {
		var s *session.Session
		if s, err = session.Open(ctx, h.store, names[i], nil); err == nil {
			sessions = append(sessions, s)
		}
	}
	return sessions, err
}

// startedBy returns the call that started a subagent or, if its program does not record that,
// what its user said first. It returns "" if neither is near the beginning.
func startedBy(ctx context.Context, st store.Store, name string) string {
	s, err := session.Open(ctx, st, name, nil)
	if err != nil {
		return ""
	}
	defer s.Close() // we only read
	h := s.Header()
	if call := session.ParentCall(&h); call != "" {
		return call
	}
	shape, err := s.Shape()
	if err != nil {
		return ""
	}
	entries, err := shape.Peek([]int32{0, 1, 2, 3, 4, 5, 6, 7}[:min(shape.Len(), 8)], nil)
	if err != nil {
		return ""
	}
	for i := range entries {
		if m := entries[i].Message; m != nil && m.Role == session.RoleUser {
			return session.TextOf(m.Content)
		}
	}
	return ""
}

// updated returns when something was last said in the conversation or, if nothing was, when
// it was created, as a list does.
func (c *Conversation) updated(ctx context.Context) (last time.Time, _ error) {
	for e, err := range eachPeeked(ctx, c.Session) {
		if err != nil {
			return last, err
		}
		if e.Type.IsSaid() && e.Timestamp.After(last) {
			last = e.Timestamp
		}
	}
	if last.IsZero() {
		last = c.Header().CreatedAt
	}
	return last, nil
}

// tokensSpent returns how many tokens the conversation has cost, as a list does: 0 if they were not
// counted. Sessions that continue each other are added up.
func (c *Conversation) tokensSpent(ctx context.Context) (tokens int, err error) {
	add := func(s *session.Session) error {
		spent, err := session.SpentIn(s)
		tokens += spent.Tokens()
		return err
	}
	if len(c.Chain.Links) <= 1 {
		err = add(c.Session)
	} else {
		for _, name := range c.Chain.Links {
			s, openErr := session.Open(ctx, c.home.store, name, nil)
			if openErr != nil {
				return 0, openErr
			}
			if err = errors.Join(add(s), s.Close()); err != nil {
				break
			}
		}
	}
	return tokens, err
}

// tokensFrom says who counted tokens: providers, or the programs that recorded them with the
// messages.
func tokensFrom(tokens int64, reported bool) string {
	switch {
	case tokens == 0:
		return ""
	case reported:
		return window.Reported.String()
	}
	return window.Recorded.String()
}

// titleIn returns the title of a session of a store, or "" if it cannot be read.
func titleIn(ctx context.Context, st store.Store, name string) string {
	s, err := session.Open(ctx, st, name, nil)
	if err != nil {
		return ""
	}
	defer s.Close()
	title, _ := titleOf(ctx, s, st, name)
	return title
}

// titleOf returns the name of a session, or else the title that the index gives it. The logs
// are those of its sessions.
func titleOf(ctx context.Context, s *session.Session, st store.Store, logs ...string) (string, error) {
	name, err := s.Name()
	if title := index.NameTitle(name); title != "" || err != nil {
		return title, err
	}
	var best index.Title
	for _, name := range logs {
		log, err := st.Open(ctx, name)
		if err != nil {
			return "", err
		}
		title, err := index.FirstTitle(ctx, log)
		if err = errors.Join(err, log.Close()); err != nil {
			return "", err
		}
		if best = index.BetterTitle(best, title); best.IsSettled() {
			break
		}
	}
	return best.Text, nil
}
