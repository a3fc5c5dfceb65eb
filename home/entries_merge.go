package home

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
)

// MergeRequest brings the outcome of another branch onto the live one.
type MergeRequest struct {
	Session string `json:"session"`           // as a person names it: see Resolve
	From    string `json:"from"`              // the end of the other branch
	Summary string `json:"summary,omitempty"` // its outcome
	// Picks are messages of it that the model should see here.
	Picks []string `json:"picks,omitempty"`
	// Other is the session that has the other branch, From and Picks. Default: the
	// same session.
	Other string `json:"other,omitempty"`
}

// MergeResult says what was merged.
type MergeResult struct {
	Session string   `json:"session"` // the one that was written to
	Entry   string   `json:"entry"`   // the entry that brings it
	From    string   `json:"from"`    // the id in this session
	Picks   []string `json:"picks"`
	// Other is the session that the branch came from, and Copied how many of its messages
	// this one did not have yet.
	Other  string `json:"other,omitempty"`
	Copied int    `json:"copied,omitempty"`
}

// Merge brings the outcome of another branch onto the live one: a summary of it, chosen
// messages, or both. The messages stay where they are. If the branch is in another
// session, its messages are first copied into this one, as a branch that begins where
// the two sessions part. An entry that only an earlier session of the conversation has
// is refused with an *EarlierError.
func (e *Entries) Merge(ctx context.Context, r MergeRequest) (*MergeResult, error) {
	return call(ctx, e.home, "entries.merge", r, e.merge)
}

func (e *Entries) merge(ctx context.Context, r MergeRequest) (*MergeResult, error) {
	e.home.beforeWriting(ctx)
	r.Summary = orNone(r.Summary)
	if r.Summary == "" && len(r.Picks) == 0 {
		return nil, wrong("summary", "nothing to merge: give {summary}, {picks} or both")
	}
	if r.From == "" && r.Other == "" {
		return nil, wrong("from", "which branch? Give {from}, the entry it ends at, or {other} for another session's")
	}
	if err := checkUTF8("summary", r.Summary); err != nil {
		return nil, err
	}
	if r.Other != "" {
		result, err := e.home.mergeOther(ctx, r)
		if result != nil || err != nil {
			return result, err
		}
	}
	c, err := e.home.openLast(ctx, "merge", r.Session, append([]string{r.From}, r.Picks...)...)
	if err != nil {
		return nil, err
	}
	result, err := merge(c, c.WithContext(ctx), r)
	return result, errors.Join(forCaller("merge", c.Handle, err), c.Close())
}

func merge(c *Conversation, s *session.Session, r MergeRequest) (*MergeResult, error) {
	from, picks, err := resolveBranch(c, r)
	if err != nil {
		return nil, err
	}
	if err := checkMerge(c, c.LeafID(), from); err != nil {
		return nil, err
	}
	result := &MergeResult{Session: c.Handle, From: from, Picks: picks}
	result.Entry, err = s.AppendEntry(session.Merge(from, r.Summary, picks...))
	return result, err
}

// resolveBranch finds the entries that a request names, in the session that has them.
func resolveBranch(c *Conversation, r MergeRequest) (from string, picks []string, err error) {
	if from, err = c.Resolve(r.From); err != nil {
		return "", nil, err
	}
	picks = make([]string, len(r.Picks))
	for i := range r.Picks {
		if picks[i], err = c.Resolve(r.Picks[i]); err != nil {
			return "", nil, err
		}
	}
	return from, picks, nil
}

// checkMerge refuses to merge a branch into itself, because the model is sent all of it
// already. An entry that does not exist is left to the session.
func checkMerge(c *Conversation, leaf, from string) error {
	path, err := pathIDs(c.Session, leaf)
	if err != nil || !slices.Contains(path, from) {
		return err
	}
	return &session.Error{
		Op: "merge", Name: c.Handle, Err: wrong("from", "entry %q is already on the path to the leaf, so there is nothing to merge", from),
		Hint: "name an entry of another branch",
	}
}

// mergeOther merges a branch of another session. The result is nil if that session is
// part of the same conversation.
func (h *Home) mergeOther(ctx context.Context, r MergeRequest) (*MergeResult, error) {
	name, _, err := h.chain(ctx, r.Other)
	if err != nil {
		return nil, err
	}
	if here, _, err := h.chain(ctx, r.Session); err != nil || here == name {
		return nil, err
	}
	other, err := h.Conversation(ctx, OpenRequest{Session: r.Other})
	if err != nil {
		return nil, err
	}
	whole, err := h.Conversation(ctx, OpenRequest{Session: r.Session})
	if err != nil {
		return nil, errors.Join(err, other.Close())
	}
	c, err := h.openLast(ctx, "merge", r.Session)
	if err != nil {
		return nil, errors.Join(err, other.Close(), whole.Close())
	}
	b := &mergedBranch{s: c.WithContext(ctx), whole: whole.WithContext(ctx), from: name}
	result, err := b.merge(ctx, c, other, r)
	return result, errors.Join(forCaller("merge", c.Handle, err), c.Close(), whole.Close(), other.Close())
}

// mergedBranch is a branch of another session that is being merged into this one. Only
// messages are copied: compactions and labels describe how the other session sees them,
// which does not hold here.
type mergedBranch struct {
	s     *session.Session // the session to copy to
	whole *session.Session // the conversation whose last session is s
	from  string           // the other session

	ids     map[string]string // of the messages, there and here
	last    string            // the id of the last of them here
	missing []session.Entry   // which are not here yet
}

func (b *mergedBranch) merge(ctx context.Context, c, other *Conversation, r MergeRequest) (result *MergeResult, err error) {
	from, picks, err := resolveBranch(other, r)
	if err != nil {
		return nil, err
	}
	path, err := other.Forward(from)
	if err != nil {
		return nil, err
	}
	err = b.s.Update(ctx, func(tx *session.Tx) error { // another writer may copy the same messages at the same time
		if err := b.follow(path); err != nil {
			return err
		}
		result, err = b.write(tx, c, picks, r)
		return err
	})
	return result, err
}

// follow walks along the other session's path and finds the messages that are already here. The
// branch begins at the last message that both have. If only an earlier session of the
// conversation has that message, it begins at a root.
func (b *mergedBranch) follow(path []session.Entry) error {
	b.ids, b.last, b.missing = make(map[string]string), "", nil
	for i := range path {
		e := path[i]
		if e.Message == nil {
			continue
		}
		id, state, err := b.find(&e)
		if err != nil {
			return err
		}
		b.ids[e.ID] = id
		switch {
		case len(b.missing) > 0 || state == nowhere:
			message := *e.Message
			message.Usage = nil // it was paid for in the other session
			e.ID, e.Message, e.ParentID = id, &message, nil
			if parent := b.last; parent != "" {
				e.ParentID = &parent
			}
			b.missing = append(b.missing, e)
			b.last = id
		case state == earlier:
			b.last = ""
		default:
			b.last = id
		}
	}
	return nil
}

// Where a message of the other session is.
type foundIn int

const (
	nowhere foundIn = iota
	earlier         // only in an earlier session of the conversation
	here
)

// find returns the id under which this session has a message, or would have it. A
// message with the same id and the same content is the same message: a fork has those
// of its original, and an earlier merge copied them. If another message has the id by
// chance, the copy gets an id derived from both names, so that the next merge finds it.
func (b *mergedBranch) find(e *session.Entry) (id string, at foundIn, err error) {
	for _, id := range []string{e.ID, transcript.HashID("merge", b.from, e.ID)} {
		for _, in := range []struct {
			s  *session.Session
			at foundIn
		}{{b.s, here}, {b.whole, earlier}} {
			found, err := in.s.Entry(id)
			switch {
			case errors.Is(err, session.ErrNotExist):
				continue
			case err != nil:
				return "", nowhere, err
			case sameMessage(found.Message, e.Message):
				return id, in.at, nil
			}
			at = in.at // taken by another message
		}
		if at == nowhere {
			return id, nowhere, nil
		}
		at = nowhere
	}
	return session.NewID(), nowhere, nil
}

func sameMessage(a, b *session.MessageEntry) bool {
	if a == nil || b == nil || a.Role != b.Role {
		return false
	}
	x, errX := json.Marshal(a.Content)
	y, errY := json.Marshal(b.Content)
	return errX == nil && errY == nil && slices.Equal(x, y)
}

// write appends the missing messages and the merge in one write: a reader, and a crash, see
// all of it or nothing.
func (b *mergedBranch) write(tx *session.Tx, c *Conversation, picks []string, r MergeRequest) (*MergeResult, error) {
	leaf := tx.Leaf()
	switch {
	case leaf == "":
		return nil, &session.Error{
			Op: "merge", Name: c.Handle, Err: session.Invalidf("the session has no messages yet"),
			Hint: "fork the other one instead",
		}
	case b.last == "":
		return nil, &session.Error{Op: "merge", Name: b.from, Err: wrong("from", "the branch has no message that is not here already")}
	}
	m := session.MergeEntry{FromID: b.last, Summary: r.Summary, FromSession: b.from}
	for i, id := range picks {
		picked, ok := b.ids[id]
		if !ok {
			return nil, &session.Error{Op: "merge", Name: b.from, Err: wrong("picks", "%q is not a message of the branch", r.Picks[i])}
		}
		m.EntryIDs = append(m.EntryIDs, picked)
	}
	if err := checkMerge(c, leaf, m.FromID); err != nil {
		return nil, err
	}
	tx.Graft(b.missing...)
	tx.Branch(leaf)
	id := tx.Append(session.Entry{Type: session.TypeMerge, Merge: &m})
	return &MergeResult{Session: c.Handle, Entry: id, From: m.FromID, Picks: orEmpty(m.EntryIDs), Other: b.from, Copied: len(b.missing)}, nil
}
