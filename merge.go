package coppice

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/session"
)

// MergeRequest brings what another branch arrived at onto the live one.
type MergeRequest struct {
	Session string `json:"session"`           // as a person names it: see Resolve
	From    string `json:"from"`              // where the other branch ends
	Summary string `json:"summary,omitempty"` // what it arrived at
	// Picks are messages of it that the model is to see here.
	Picks []string `json:"picks,omitempty"`
	// Other is the session that has the other branch, From and Picks. Default: the
	// same session.
	Other string `json:"other,omitempty"`
}

// MergeResult says what was merged.
type MergeResult struct {
	Session string   `json:"session"` // the one that was written to
	Entry   string   `json:"entry"`   // the entry that brings it
	From    string   `json:"from"`    // as the session has it
	Picks   []string `json:"picks"`
	// Other and Copied say from which session the branch came, and how many of its
	// messages this one did not have yet.
	Other  string       `json:"other,omitempty"`
	Copied int          `json:"copied,omitempty"`
	Short  render.Names `json:"-"` // the shortest beginnings of these ids that mean them
}

// Merge brings what another branch arrived at onto the live one: a summary of it,
// chosen messages of it, or both. The messages stay where they are. The messages of
// another session's branch are first copied into this one, as a branch that begins
// where the two sessions part. An entry that only an earlier session of the
// conversation has is refused with an *EarlierError.
func (e *Entries) Merge(ctx context.Context, r MergeRequest) (*MergeResult, error) {
	e.home.beforeWriting(ctx)
	if r.Summary == "" && len(r.Picks) == 0 {
		return nil, invalid("nothing to merge: give a summary, messages of the branch, or both")
	}
	if err := checkUTF8("merge", r.Session, r.Summary); err != nil {
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
	return result, errors.Join(plainly("merge", c.Name, err), c.Close())
}

func merge(c *Conversation, s *session.Session, r MergeRequest) (*MergeResult, error) {
	from, picks, err := resolveBranch(c, r)
	if err != nil {
		return nil, err
	}
	return mergeBranch(c, s, &session.MergeEntry{FromID: from, Summary: r.Summary, EntryIDs: picks})
}

// resolveBranch finds the entries that a request means, in the session that has them.
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

func mergeBranch(c *Conversation, s *session.Session, m *session.MergeEntry) (*MergeResult, error) {
	if err := checkMerge(c, m.FromID); err != nil {
		return nil, err
	}
	id, err := s.AppendEntry(session.Entry{Type: session.TypeMerge, Merge: m})
	if err != nil {
		return nil, err
	}
	result := &MergeResult{Session: c.Name, Entry: id, From: m.FromID, Picks: m.EntryIDs, Other: m.FromSession}
	result.Short, err = shorten(s, append([]string{id, m.FromID}, m.EntryIDs...)...)
	return result, err
}

// checkMerge refuses to merge a branch into itself: the model is sent all of it
// already. An entry that does not exist is left to the session.
func checkMerge(c *Conversation, from string) error {
	path, err := c.OutlinePath("")
	if err != nil || !slices.ContainsFunc(path, func(e session.Entry) bool { return e.ID == from }) {
		return err
	}
	return &session.Error{
		Op: "merge", Name: c.Name, Err: invalid("entry %q is already on the path to the leaf, so there is nothing to merge", from),
		Hint: "name an entry of another branch",
	}
}

// mergeOther merges a branch of another session. The result is nil if that is part
// of the same conversation.
func (h *Home) mergeOther(ctx context.Context, r MergeRequest) (*MergeResult, error) {
	name, _, err := h.chain(ctx, r.Other)
	if err != nil {
		return nil, err
	}
	if here, _, err := h.chain(ctx, r.Session); err != nil || here == name {
		return nil, err
	}
	other, err := h.openFor(ctx, OpenRequest{Session: r.Other})
	if err != nil {
		return nil, err
	}
	c, err := h.openLast(ctx, "merge", r.Session)
	if err != nil {
		return nil, errors.Join(err, other.Close())
	}
	result, err := mergeCopy(c, c.WithContext(ctx), other, name, r)
	return result, errors.Join(plainly("merge", c.Name, err), c.Close(), other.Close())
}

func mergeCopy(c *Conversation, s *session.Session, other *Conversation, name string, r MergeRequest) (*MergeResult, error) {
	from, picks, err := resolveBranch(other, r)
	if err != nil {
		return nil, err
	}
	path, err := other.PathTo(from)
	if err != nil {
		return nil, err
	}
	b := brought{ids: make(map[string]string)}
	if err := b.follow(s, path); err != nil {
		return nil, err
	}
	if b.last == "" {
		return nil, &session.Error{Op: "merge", Name: name, Err: invalid("there is no message on the path to entry %q", from)}
	}
	m := &session.MergeEntry{FromID: b.last, Summary: r.Summary, FromSession: name}
	for i, id := range picks {
		here, ok := b.ids[id]
		if !ok {
			return nil, &session.Error{Op: "merge", Name: name, Err: invalid("%q is not a message on the path to %q", r.Picks[i], from)}
		}
		m.EntryIDs = append(m.EntryIDs, here)
	}
	if err := b.copyInto(c, s); err != nil {
		return nil, err
	}
	result, err := mergeBranch(c, s, m)
	if err == nil {
		result.Copied = len(b.missing)
	}
	return result, err
}

// brought is a branch of another session on its way into this one. Only messages
// are brought: a compaction or a label says how the other session sees them, and
// would not hold here.
type brought struct {
	ids     map[string]string // of the messages, in the other session and in this one
	last    string            // the id of the last of them here
	missing []session.Entry   // which this session does not have yet
}

// follow walks along the other session's path. A message that this session has
// under the same id is the same message, if it says the same: a fork has those of
// its original, and an earlier merge brought them. Another that happens to have the
// id gets a new one.
func (b *brought) follow(s *session.Session, path []session.Entry) error {
	for i := range path {
		e := path[i]
		if e.Message == nil {
			continue
		}
		id := e.ID
		here, err := s.Entry(id)
		switch {
		case errors.Is(err, session.ErrNotExist):
		case err != nil:
			return err
		case len(b.missing) == 0 && sameMessage(here.Message, e.Message):
			b.ids[id], b.last = id, id
			continue
		default:
			e.ID = session.NewID()
		}
		e.ParentID = nil
		if parent := b.last; parent != "" {
			e.ParentID = &parent
		}
		b.missing = append(b.missing, e)
		b.ids[id], b.last = e.ID, e.ID
	}
	return nil
}

func sameMessage(a, b *session.MessageEntry) bool {
	if a == nil || b == nil || a.Role != b.Role {
		return false
	}
	x, errX := json.Marshal(a.Content)
	y, errY := json.Marshal(b.Content)
	return errX == nil && errY == nil && slices.Equal(x, y)
}

// copyInto writes what is missing, and the leaf back to where it was, in one write:
// whoever reads in between, or after a crash, sees a branch more and nothing else.
func (b *brought) copyInto(c *Conversation, s *session.Session) error {
	leaf := s.LeafID()
	if leaf == "" {
		return &session.Error{
			Op: "merge", Name: c.Name, Err: invalid("the session has no messages yet"),
			Hint: "fork the other one instead",
		}
	}
	if len(b.missing) == 0 {
		return nil
	}
	back := session.Entry{
		Type: session.TypeLeaf, ID: session.NewID(), ParentID: &leaf, Timestamp: time.Now(),
		Leaf: &session.LeafEntry{FromID: b.last},
	}
	return s.Graft(append(slices.Clone(b.missing), back)...)
}
