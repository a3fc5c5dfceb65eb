package home

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/coppice-dev/coppice/conversation"
	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/lease"
	"github.com/coppice-dev/coppice/window"
)

// Sessions that continue each other form one conversation. Operations that read treat it as
// one, whichever of its sessions is named; Link asks for that session alone. Operations that
// write go to the last session. Labels and reverts hold for the whole conversation wherever
// they are, and go to the session that has the entry they are about.

// Conversation is an open conversation: one session, or several that continue
// each other, read as one. Close it after use.
type Conversation struct {
	*session.Session
	// Handle is the session's name in the store or, if there are several, the conversation's
	// id.
	Handle string
	// Chain lists its sessions. It is empty if Link was asked for.
	Chain session.Linked

	home *Home
}

// OpenRequest says which conversation to open.
type OpenRequest struct {
	Session string `json:"session"`        // as a person names it: see Resolve
	Link    bool   `json:"link,omitempty"` // only the session that is named
}

// Conversation opens the conversation that a person named by any of its sessions, even by one that is
// missing.
func (h *Home) Conversation(ctx context.Context, r OpenRequest) (*Conversation, error) {
	if r.Link {
		name, err := h.resolve(ctx, r.Session)
		if err != nil {
			return nil, err
		}
		return h.openSession(ctx, name, session.Linked{})
	}
	alone, chain, err := h.find(ctx, r.Session)
	if err != nil || alone != nil {
		return alone, err
	}
	for _, id := range chain.Missing {
		h.notify(ctx, Notice{Kind: SessionMissing, Session: id})
	}
	whole, err := session.OpenChain(ctx, h.store, chain, h.sessionOptions(ctx))
	if err != nil {
		return nil, err
	}
	return &Conversation{whole, chain.ID, chain, h}, nil
}

// openFor is Conversation for a single operation: everything that it reads or writes ends when ctx
// ends.
func (h *Home) openFor(ctx context.Context, r OpenRequest) (*Conversation, error) {
	c, err := h.Conversation(ctx, r)
	if err == nil {
		c.Session = c.Session.WithContext(ctx)
	}
	return c, err
}

// openSession opens one session of a conversation.
func (h *Home) openSession(ctx context.Context, name string, chain session.Linked) (*Conversation, error) {
	s, err := session.Open(ctx, h.store, name, h.sessionOptions(ctx))
	if err != nil {
		return nil, err
	}
	return &Conversation{s, name, chain, h}, nil
}

// isAlone reports whether the conversation is a single session.
func (c *Conversation) isAlone() bool { return isAlone(c.Chain) }

func isAlone(c session.Linked) bool { return len(c.Links) <= 1 && len(c.Missing) == 0 }

// last returns the name of the last session of the conversation.
func last(c session.Linked) string { return c.Links[len(c.Links)-1] }

// Intact returns an error, which matches ErrIncomplete, if entries of the conversation cannot
// be read. Reading it shows the others.
func (c *Conversation) Intact() error {
	damage, err := session.Damage(c.Session)
	if err != nil || len(damage) == 0 {
		return err
	}
	return &session.Error{
		Op: "read", Name: c.Handle, Err: fmt.Errorf("%w: %s", ErrIncomplete, listProblems(damage)),
		Hint: "check the session, and repair it",
	}
}

// Resolve returns the id of the entry that a person named: see ResolveEntry.
func (c *Conversation) Resolve(given string) (string, error) { return ResolveEntry(c.Session, given) }

// find finds the conversation that a person named. Nearly always that is a single session:
// then it is alone, open already, so that an operation on it opens its log once.
func (h *Home) find(ctx context.Context, given string) (alone *Conversation, chain session.Linked, err error) {
	name, err := h.resolve(ctx, given)
	if errors.Is(err, session.ErrNotExist) {
		if lost, lostErr := h.resolveLost(ctx, given); lostErr == nil {
			name, err = lost, nil
		}
	}
	if err != nil {
		return nil, chain, err
	}
	s, unread := session.Open(ctx, h.store, name, h.sessionOptions(ctx))
	if unread != nil { // the others of its conversation may be readable
		if chain, err = h.chainOf(ctx, name); err == nil && isAlone(chain) {
			err = unread
		}
		return nil, chain, err
	}
	chain, err = s.FindChain(ctx, h.namingOf(name))
	if err == nil && isAlone(chain) {
		return &Conversation{s, name, chain, h}, chain, nil
	}
	return nil, chain, errors.Join(err, s.Close())
}

// chain finds the conversation that a person named. name is the session's name or, if there
// are several sessions, the conversation's id.
func (h *Home) chain(ctx context.Context, given string) (name string, c session.Linked, err error) {
	alone, c, err := h.find(ctx, given)
	if alone != nil {
		return alone.Handle, c, alone.Close()
	}
	return c.ID, c, err
}

// chainOf returns the conversation that a session is part of.
func (h *Home) chainOf(ctx context.Context, name string) (session.Linked, error) {
	return session.FindChain(ctx, h.store, name, h.namingOf(name))
}

// namingOf returns what FindChain asks for the sessions that name a missing one. name is the
// session that is looked for.
func (h *Home) namingOf(name string) func(ctx context.Context, missing string) ([]string, error) {
	return func(ctx context.Context, missing string) ([]string, error) {
		if missing == name {
			// It exists but cannot be read, or it would not have been named. Opening it says
			// why; the index would give the same warning.
			if l, err := h.store.Open(ctx, name); err == nil {
				_ = l.Close()
			} else if !errors.Is(err, session.ErrNotExist) {
				return nil, nil
			}
		}
		return h.naming(ctx, missing)
	}
}

// naming returns the sessions that name a missing one, which only the index knows. They only
// add to what is shown, so a home without an index can still be read.
func (h *Home) naming(ctx context.Context, missing string) ([]string, error) {
	ix, err := h.index(ctx)
	if err != nil {
		return nil, ctx.Err()
	}
	return ix.Naming(ctx, missing)
}

// linksOf returns the names of the sessions that a person means: those of a conversation that
// exist or, with link, only the one that is named.
func (h *Home) linksOf(ctx context.Context, given string, link bool) ([]string, error) {
	name, err := h.resolve(ctx, given)
	if errors.Is(err, session.ErrNotExist) && !link {
		if lost, lostErr := h.resolveLost(ctx, given); lostErr == nil {
			c, err := h.chainOf(ctx, lost)
			return c.Links, err
		}
	}
	if err != nil || link {
		return []string{name}, err
	}
	// A session that cannot be read is none of those that exist, but it is still meant.
	if c, err := h.chainOf(ctx, name); err == nil && !isAlone(c) {
		if !slices.Contains(c.Links, name) {
			return append([]string{name}, c.Links...), nil
		}
		return c.Links, nil
	}
	return []string{name}, ctx.Err()
}

// openWith opens the session of a conversation that has an entry, or else the last one.
func (h *Home) openWith(ctx context.Context, given, entry string) (*Conversation, error) {
	alone, chain, err := h.find(ctx, given)
	if err != nil || alone != nil {
		return alone, err
	}
	if entry == "" || entry == Leaf {
		return h.openSession(ctx, last(chain), chain)
	}
	if link, err := h.linkWith(ctx, chain, entry); err != nil {
		return nil, err
	} else if link != "" {
		return h.openSession(ctx, link, chain)
	}
	for _, link := range slices.Backward(chain.Links) {
		c, err := h.openSession(ctx, link, chain)
		if err != nil {
			return nil, err
		}
		if _, err := c.Resolve(entry); !errors.Is(err, session.ErrNotExist) {
			return c, nil
		}
		if err := c.Close(); err != nil {
			return nil, err
		}
	}
	return h.openSession(ctx, last(chain), chain)
}

// linkWith returns the session of a conversation that has an entry of exactly this id, or
// "". Ids of other sessions may begin like it, and are not meant then.
func (h *Home) linkWith(ctx context.Context, chain session.Linked, id string) (string, error) {
	for _, link := range slices.Backward(chain.Links) {
		c, err := h.openSession(ctx, link, chain)
		if err != nil {
			return "", err
		}
		has, err := c.Has(id)
		if err = errors.Join(err, c.Close()); has || err != nil {
			return link, err
		}
	}
	return "", nil
}

// openEnd opens the session that takes the next message of a conversation. That is the last
// one, unless it was continued by a session that is missing. Then another continuation is
// created, under another id, so that the missing one can come back without two sessions
// claiming the same place.
func (h *Home) openEnd(ctx context.Context, given string) (*Conversation, error) {
	alone, chain, err := h.find(ctx, given)
	if err != nil || alone != nil {
		return alone, err
	}
	link, err := session.ReadLink(ctx, h.store, last(chain))
	if err != nil {
		return nil, err
	}
	if link.ContinuedTo == "" {
		return h.openSession(ctx, last(chain), chain)
	}
	m, err := conversation.NewSessions(h.store, &conversation.Options{Settings: conversation.Settings{AutoSaveInterval: -1}})
	if err != nil {
		return nil, err
	}
	end, err := m.Tail(last(chain))
	if err := errors.Join(err, m.Close()); err != nil {
		return nil, err
	}
	h.notify(ctx, Notice{Kind: ContinuedElsewhere, Missing: link.ContinuedTo, Session: end})
	return h.openSession(ctx, end, chain)
}

// openWhole opens a conversation to go on with it: what is added goes to the session that
// openEnd opens.
func (h *Home) openWhole(ctx context.Context, given string) (*Conversation, error) {
	end, err := h.openEnd(ctx, given)
	if err != nil || end.isAlone() {
		return end, err
	}
	if err := end.Close(); err != nil {
		return nil, err
	}
	return h.Conversation(ctx, OpenRequest{Session: end.Handle})
}

// openLast opens the last session of a conversation, for an operation on some entries at its
// end. In an earlier session, the operation would change the past of the conversation and not
// how it goes on, so an entry that only such a session has is refused with an *EarlierError.
func (h *Home) openLast(ctx context.Context, op, given string, entries ...string) (*Conversation, error) {
	alone, chain, err := h.find(ctx, given)
	if err != nil || alone != nil {
		return alone, err
	}
	c, err := h.openSession(ctx, last(chain), chain)
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		link, err := h.linkWith(ctx, chain, entry)
		if err != nil {
			return nil, errors.Join(err, c.Close())
		}
		if _, err := c.Resolve(entry); !errors.Is(err, session.ErrNotExist) && (link == "" || link == last(chain)) {
			continue // the operation itself reports any other error
		}
		if err := h.mustNotBeEarlier(ctx, c, op, entry); err != nil {
			return nil, errors.Join(err, c.Close())
		}
	}
	return c, nil
}

// EarlierError means that an entry is in an earlier session of a conversation that has
// gone on since. It matches session.ErrInvalid.
type EarlierError struct {
	Op           string
	Conversation string
	Entry        string
	Session      string // has the entry
	Last         string // the last session of the conversation
}

func (e *EarlierError) Error() string {
	return fmt.Sprintf("%s %q: entry %s is in session %s, and the conversation has gone on since: its last session is %s",
		e.Op, e.Conversation, e.Entry, e.Session, e.Last)
}

// Is makes an EarlierError match session.ErrInvalid.
func (e *EarlierError) Is(target error) bool { return target == session.ErrInvalid }

// mustNotBeEarlier returns an error if a session before the last has an entry.
func (h *Home) mustNotBeEarlier(ctx context.Context, end *Conversation, op, given string) error {
	before := end.Chain.Links[:len(end.Chain.Links)-1]
	for _, link := range slices.Backward(before) {
		c, err := h.openSession(ctx, link, end.Chain)
		if err != nil {
			return err
		}
		entry, err := c.Resolve(given)
		if err := errors.Join(ignore(err, session.ErrNotExist), c.Close()); err != nil {
			return err
		}
		if entry != "" {
			return &EarlierError{Op: op, Conversation: end.Chain.ID, Entry: entry, Session: link, Last: end.Handle}
		}
	}
	return nil
}

// ignore returns an error unless it is of a kind.
func ignore(err, kind error) error {
	if errors.Is(err, kind) {
		return nil
	}
	return err
}

// openEach opens all sessions of a conversation one by one, for what holds for the
// conversation as a whole. name is the session's name or the conversation's id.
func (h *Home) openEach(ctx context.Context, given string) (name string, links []*Conversation, err error) {
	alone, chain, err := h.find(ctx, given)
	if err != nil {
		return "", nil, err
	}
	if alone != nil {
		return alone.Handle, []*Conversation{alone}, nil
	}
	for _, link := range chain.Links {
		c, err := h.openSession(ctx, link, chain)
		if err != nil {
			return "", nil, errors.Join(err, closeAll(links))
		}
		links = append(links, c)
	}
	return chain.ID, links, nil
}

func closeAll(links []*Conversation) error {
	var errs []error
	for _, c := range links {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// Rendered returns the conversation as the packages below render draw it, with its title. It
// leaves out the cost: adding that up means reading every entry again, and few drawings show
// it.
func (c *Conversation) Rendered(ctx context.Context) (drawn render.Conversation, err error) {
	drawn = c.drawn()
	if drawn.Title, err = titleOf(c.Session); err != nil {
		return drawn, err
	}
	if drawn.Name, err = c.shortName(ctx); err != nil {
		return drawn, err
	}
	if drawn.Subagents, err = c.subagents(ctx); err != nil {
		return drawn, err
	}
	if working, err := c.Working(ctx); err != nil {
		return drawn, err
	} else if working != nil {
		drawn.Working = working.String()
	}
	return drawn, nil
}

// Working returns which program works on the conversation now, or nil.
func (c *Conversation) Working(ctx context.Context) (*lease.Holder, error) {
	return lease.At(c.home.store, cmp.Or(c.Chain.ID, c.Session.ID())).Holder(ctx)
}

// drawn is Rendered without anything that needs other sessions.
func (c *Conversation) drawn() render.Conversation {
	links := c.Chain.Links
	if len(links) == 0 {
		links = []string{c.Handle}
	}
	return render.Conversation{
		Session: c.Session, Blobs: c.home.store.Blobs(), Name: c.Handle, Links: links, Missing: c.Chain.Missing,
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
	names, err := c.home.subagentNames(ctx, c.ID())
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

// subagentNames lists the sessions that tool calls of a session started.
func (h *Home) subagentNames(ctx context.Context, id string) ([]string, error) {
	if h.remote != nil {
		return h.listed(ctx, subagentsIn(id))
	}
	ix := h.builtIndex(ctx)
	if ix == nil {
		return nil, ctx.Err() // without an index the conversation can still be read
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
	names, err := h.subagentsNamed(ctx, id)
	var sessions []*session.Session
	for i := 0; i < len(names) && err == nil; i++ {
		var s *session.Session
		if s, err = session.Open(ctx, h.store, names[i], nil); err == nil {
			sessions = append(sessions, s)
		}
	}
	return sessions, err
}

func (h *Home) subagentsNamed(ctx context.Context, id string) ([]string, error) {
	if h.remote != nil {
		return h.listed(ctx, subagentsIn(id))
	}
	ix, err := h.index(ctx)
	if err != nil {
		return nil, ctx.Err() // without an index the conversation can still be written
	}
	return startedIn(ctx, ix, id)
}

// subagentsIn asks for the sessions that tool calls of a session started.
func subagentsIn(id string) ListRequest {
	return ListRequest{Parent: id, Relation: session.RelationSubagent, All: true, Links: true, Limit: -1}
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
	ids, err := s.EntryIDs()
	if err != nil {
		return ""
	}
	entries, err := s.Peek(ids[:min(len(ids), 8)]...)
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
// it was created: what a list has.
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

// spent returns how many tokens the conversation has cost, as a list does: 0 if no one
// counted. Sessions that continue each other are added up.
func (c *Conversation) spent(ctx context.Context) (tokens int, err error) {
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
	title, _ := titleOf(s)
	return title
}

// titleOf returns the name of a session, or else the title that the index gives it.
func titleOf(s *session.Session) (string, error) {
	name, err := s.Name()
	if title := index.NameTitle(name); title != "" || err != nil {
		return title, err
	}
	ids, err := s.EntryIDs()
	if err != nil {
		return "", err
	}
	var best index.Title
	const few = 16 // the title is nearly always among the first
	for some := range slices.Chunk(ids, few) {
		entries, err := s.Peek(some...)
		if err != nil {
			return "", err
		}
		for i := range entries {
			best = index.BetterTitle(best, index.TitleIn(&entries[i]))
		}
		if best.IsSettled() {
			break
		}
	}
	return best.Text, nil
}
