package home

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/coppice-dev/coppice/internal/boundary"
	"github.com/coppice-dev/coppice/session"
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

	unreadable *losses // the content that could not be shown

	home *Home
	kept *keptOpen // which it is, if it stays open after Close: see openKept
	done func()    // ends its use: see inUse
}

// Close releases the conversation.
func (c *Conversation) Close() error {
	c.done()
	if c.kept != nil {
		c.kept.release(c.home.keeper)
		return nil
	}
	return c.Session.Close()
}

// OpenRequest says which conversation to open.
type OpenRequest struct {
	Session string `json:"session"`        // as a person names it: see Resolve
	Link    bool   `json:"link,omitempty"` // only the session that is named
}

// Conversation opens the conversation that a person named by any of its sessions, even by one
// that is missing.
func (h *Home) Conversation(ctx context.Context, r OpenRequest) (*Conversation, error) {
	if r.Link {
		name, err := h.resolveLink(ctx, r.Session)
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
	return &Conversation{Session: whole, Handle: chain.ID, Chain: chain, home: h, unreadable: &losses{}, done: h.uses.begin(chain.Links...)}, nil
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
	return &Conversation{
		Session: s, Handle: name, Chain: chain, home: h, unreadable: &losses{}, done: h.uses.begin(append(slices.Clone(chain.Links), name)...),
	}, nil
}

// isAlone reports whether the conversation is a single session.
func (c *Conversation) isAlone() bool { return isAlone(c.Chain) }

func isAlone(c session.Linked) bool { return len(c.Links) <= 1 && len(c.Missing) == 0 }

// last returns the name of the last session of the conversation.
func last(c session.Linked) string { return c.Links[len(c.Links)-1] }

// Intact returns an error, which matches ErrIncomplete, if something cannot be read of what was
// shown of the conversation or, with all, of the whole log. Reading it shows the rest.
func (c *Conversation) Intact(all bool) error {
	missing, err := c.missing(all)
	if err != nil || len(missing) == 0 {
		return err
	}
	return &session.Error{
		Op: "read", Name: c.Handle, Err: fmt.Errorf("%w: %s", ErrIncomplete, listProblems(missing)),
		Hint: "check the session, and repair it",
	}
}

// Resolve returns the id of the entry that a person named: see ResolveEntry.
func (c *Conversation) Resolve(given string) (string, error) { return ResolveEntry(c.Session, given) }

// find finds the conversation that a person named. Nearly always that is a single session:
// then it is alone, open already, so that an operation on it opens its log once.
func (h *Home) find(ctx context.Context, given string) (alone *Conversation, chain session.Linked, err error) {
	return h.findBy(ctx, given, func(name string) (*Conversation, error) { return h.openSession(ctx, name, session.Linked{}) })
}

// findBy is find with a choice of how to open a session.
func (h *Home) findBy(ctx context.Context, given string, open func(name string) (*Conversation, error)) (alone *Conversation, chain session.Linked, err error) {
	name, err := h.resolveConversation(ctx, given)
	if err != nil {
		return nil, chain, err
	}
	return h.chainBy(ctx, name, open)
}

// chainBy is findBy for a session whose full name is known.
func (h *Home) chainBy(ctx context.Context, name string, open func(name string) (*Conversation, error)) (alone *Conversation, chain session.Linked, err error) {
	c, unread := open(name)
	if unread != nil { // the others of its conversation may be readable
		if chain, err = h.chainOf(ctx, name); err == nil && isAlone(chain) {
			err = unread
		}
		return nil, chain, err
	}
	chain, err = c.FindChain(ctx, h.namingOf(name))
	if c.Chain = chain; err == nil && isAlone(chain) {
		return c, chain, nil
	}
	return nil, chain, errors.Join(err, c.Close())
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

// resolveLink is resolve for an operation on one session of a conversation. The id of one that is
// missing means no other.
func (h *Home) resolveLink(ctx context.Context, given string) (string, error) {
	name, err := h.resolveConversation(ctx, given)
	if err != nil {
		return "", err
	}
	there, err := h.exactID(ctx, name)
	if there != "" || err != nil {
		return name, err
	}
	if err := h.inTrash(ctx, name); err != nil {
		return "", err
	}
	return "", &session.Error{
		Op: "find session", Name: name, Kind: session.ErrNotExist, Err: errors.New("the others of its conversation are there, and this one is missing"),
		Hint: "bring it back from a backup, or name the conversation",
	}
}

// linksOf returns the names of the sessions that a person means: those of a conversation that
// exist or, with link, only the one that is named.
func (h *Home) linksOf(ctx context.Context, given string, link bool) ([]string, error) {
	if link {
		name, err := h.resolveLink(ctx, given)
		return []string{name}, err
	}
	name, err := h.resolveConversation(ctx, given)
	if err != nil {
		return nil, err
	}
	if there, err := h.exactID(ctx, name); err != nil || there == "" { // it is missing
		c, chainErr := h.chainOf(ctx, name)
		return c.Links, errors.Join(err, chainErr)
	}
	// A session that cannot be read is not part of a chain, but the person means it all the
	// same.
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
	return h.openEndOf(ctx, chain)
}

// openEndOf is openEnd for a conversation of several sessions.
func (h *Home) openEndOf(ctx context.Context, chain session.Linked) (*Conversation, error) {
	link, err := session.ReadLink(ctx, h.store, last(chain))
	if err != nil {
		return nil, err
	}
	if link.ContinuedTo == "" {
		return h.openSession(ctx, last(chain), chain)
	}
	end, err := h.continueAgain(ctx, last(chain))
	if err != nil {
		return nil, err
	}
	h.notify(ctx, Notice{Kind: ContinuedElsewhere, Missing: link.ContinuedTo, Session: end})
	return h.openSession(ctx, end, chain)
}

// continueAgain continues a session whose continuation is missing, and returns the id of the
// new one. Another writer may do so first.
func (h *Home) continueAgain(ctx context.Context, id string) (next string, err error) {
	s, err := session.Open(ctx, h.store, id, h.sessionOptions(ctx))
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	part, err := boundary.Read(ctx, s)
	if err != nil {
		return "", err
	}
	created, err := s.Continue(part.Carry(len(part.Entries), nil)...)
	if errors.Is(err, session.ErrExist) {
		return s.Continuation()
	}
	if err != nil {
		return "", err
	}
	return created.ID(), created.Close()
}

// openWhole opens a conversation to continue it: new entries go to the session that openEnd
// opens.
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
// how it continues, so an entry that only such a session has is refused with an
// *EarlierError.
func (h *Home) openLast(ctx context.Context, op, given string, entries ...string) (*Conversation, error) {
	alone, chain, err := h.find(ctx, given)
	if err != nil || alone != nil {
		return alone, err
	}
	return h.openLastOf(ctx, op, chain, entries...)
}

// openLastOf is openLast for a conversation of several sessions.
func (h *Home) openLastOf(ctx context.Context, op string, chain session.Linked, entries ...string) (*Conversation, error) {
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

// EarlierError means that an entry is in an earlier session of a conversation that was
// continued since. It matches session.ErrInvalid.
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

// openEach opens all sessions of a conversation one by one, for changes that concern the
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
