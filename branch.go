package coppice

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/session"
)

// BranchRequest says from where a conversation goes on.
type BranchRequest struct {
	Session string `json:"session"` // as a person names it: see Resolve
	Entry   string `json:"entry"`   // the next entry will follow this one
	// Summary tells the model what happened on the branch that is left. Default:
	// none.
	Summary string `json:"summary,omitempty"`
}

// BranchResult says where the leaf is.
type BranchResult struct {
	Session string `json:"session"` // the one that was written to
	Leaf    string `json:"leaf"`    // where it is now: the entry, or the summary that follows it
	Left    string `json:"left"`    // where it was
	Moved   bool   `json:"moved"`   // false if it was there already; nothing was written then
	// Short has the shortest beginnings of these ids that mean them.
	Short render.Names `json:"-"`
}

// Branch moves the leaf to an entry: what is appended next follows it. The branch
// that is left stays where it is. An entry that only an earlier session of the
// conversation has is refused with an *EarlierError.
func (e *Entries) Branch(ctx context.Context, r BranchRequest) (*BranchResult, error) {
	e.home.beforeWriting(ctx)
	if err := checkUTF8("branch", r.Session, r.Summary); err != nil {
		return nil, err
	}
	c, err := e.home.openLast(ctx, "branch", r.Session, r.Entry)
	if err != nil {
		return nil, err
	}
	result, err := branch(c, c.WithContext(ctx), r)
	return result, errors.Join(plainly("branch", c.Name, err), c.Close())
}

func branch(c *Conversation, s *session.Session, r BranchRequest) (*BranchResult, error) {
	target, err := c.Resolve(r.Entry)
	if err != nil {
		return nil, err
	}
	left, err := conversationEnd(s)
	if err != nil {
		return nil, err
	}
	result := &BranchResult{Session: c.Name, Leaf: target, Left: left, Moved: true}
	switch {
	case r.Summary != "":
		result.Leaf, err = s.BranchWithSummary(target, r.Summary)
	case target == left || target == s.LeafID(): // notes that were taken there since do not matter
		result.Moved = false
	default:
		err = s.Branch(target)
	}
	if err == nil {
		result.Short, err = shorten(s, result.Leaf, result.Left)
	}
	return result, err
}

// MergeRequest brings what another branch arrived at onto the live one.
type MergeRequest struct {
	Session string `json:"session"`           // as a person names it: see Resolve
	From    string `json:"from"`              // where the other branch ends
	Summary string `json:"summary,omitempty"` // what it arrived at
	// Picks are messages of it that the model is to see here.
	Picks []string `json:"picks,omitempty"`
}

// MergeResult says what was merged.
type MergeResult struct {
	Session string       `json:"session"` // the one that was written to
	Entry   string       `json:"entry"`   // the entry that brings it
	From    string       `json:"from"`
	Picks   []string     `json:"picks"`
	Short   render.Names `json:"-"` // the shortest beginnings of these ids that mean them
}

// Merge brings what another branch arrived at onto the live one: a summary of it,
// chosen messages of it, or both. The messages stay where they are. An entry that
// only an earlier session of the conversation has is refused with an *EarlierError.
func (e *Entries) Merge(ctx context.Context, r MergeRequest) (*MergeResult, error) {
	e.home.beforeWriting(ctx)
	if r.Summary == "" && len(r.Picks) == 0 {
		return nil, invalid("nothing to merge: give a summary, messages of the branch, or both")
	}
	if err := checkUTF8("merge", r.Session, r.Summary); err != nil {
		return nil, err
	}
	c, err := e.home.openLast(ctx, "merge", r.Session, append([]string{r.From}, r.Picks...)...)
	if err != nil {
		return nil, err
	}
	result, err := merge(c, c.WithContext(ctx), r)
	return result, errors.Join(plainly("merge", c.Name, err), c.Close())
}

func merge(c *Conversation, s *session.Session, r MergeRequest) (*MergeResult, error) {
	from, err := c.Resolve(r.From)
	if err != nil {
		return nil, err
	}
	result := &MergeResult{Session: c.Name, From: from, Picks: make([]string, len(r.Picks))}
	for i := range r.Picks {
		if result.Picks[i], err = c.Resolve(r.Picks[i]); err != nil {
			return nil, err
		}
	}
	if err := checkMerge(c, from); err != nil {
		return nil, err
	}
	if result.Entry, err = s.Merge(from, r.Summary, result.Picks...); err != nil {
		return nil, err
	}
	result.Short, err = shorten(s, append([]string{result.Entry, from}, result.Picks...)...)
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
		Op: "merge", Name: c.Name, Err: invalid("entry %q is on the path to the leaf: there is nothing to bring", from),
		Hint: "name an entry of another branch",
	}
}

// LabelRequest gives an entry a name.
type LabelRequest struct {
	Session string `json:"session"` // as a person names it: see Resolve
	Entry   string `json:"entry"`   // as a person names it
	Label   string `json:"label"`   // "" takes the label away
}

// LabelResult says what an entry is called now.
type LabelResult struct {
	Session string       `json:"session"` // the one that was written to
	Entry   string       `json:"entry"`   // the entry that names the other
	Target  string       `json:"target"`  // the entry that is named
	Label   string       `json:"label"`   // without a secret that the request may have had
	Short   render.Names `json:"-"`       // the shortest beginnings of these ids that mean them
}

// Label gives an entry a name, which can be used wherever an entry is asked for.
func (e *Entries) Label(ctx context.Context, r LabelRequest) (*LabelResult, error) {
	e.home.beforeWriting(ctx)
	if err := checkUTF8("label", r.Session, r.Label); err != nil {
		return nil, err
	}
	c, err := e.home.openWith(ctx, r.Session, r.Entry)
	if err != nil {
		return nil, err
	}
	result, err := label(c, c.WithContext(ctx), r)
	return result, errors.Join(plainly("label", c.Name, err), c.Close())
}

func label(c *Conversation, s *session.Session, r LabelRequest) (*LabelResult, error) {
	target, err := c.Resolve(r.Entry)
	if err != nil {
		return nil, err
	}
	result := &LabelResult{Session: c.Name, Target: target}
	result.Entry, err = remark(s, func() (string, error) { return s.SetLabel(target, strings.TrimSpace(r.Label)) })
	if err != nil {
		return nil, err
	}
	labels, err := s.Labels()
	if err != nil {
		return nil, err
	}
	result.Label = labels[target]
	result.Short, err = shorten(s, result.Entry, target)
	return result, err
}

// RevertRequest takes back what an entry does to the context.
type RevertRequest struct {
	Session string `json:"session"` // as a person names it: see Resolve
	// Entry is a compaction, an edit of the context, a merge or an earlier revert.
	// Default: the compaction in force.
	Entry string `json:"entry,omitempty"`
}

// RevertResult says what was taken back.
type RevertResult struct {
	Session string       `json:"session"` // the one that was written to
	Entry   string       `json:"entry"`   // the entry that takes the other back
	Target  string       `json:"target"`  // the entry that no longer counts
	Short   render.Names `json:"-"`       // the shortest beginnings of these ids that mean them
}

// Revert takes back what an entry does to the context. Reverting a revert does the
// thing again. Without an entry it returns session.ErrNotExist if no compaction is
// in force.
func (e *Entries) Revert(ctx context.Context, r RevertRequest) (*RevertResult, error) {
	e.home.beforeWriting(ctx)
	if r.Entry == "" {
		var err error
		if r.Entry, err = e.home.earlierCompaction(ctx, r.Session); err != nil {
			return nil, err
		}
	}
	c, err := e.home.openWith(ctx, r.Session, r.Entry)
	if err != nil {
		return nil, err
	}
	result, err := revert(c, c.WithContext(ctx), r.Entry)
	return result, errors.Join(plainly("revert", c.Name, err), c.Close())
}

func revert(c *Conversation, s *session.Session, given string) (*RevertResult, error) {
	result := &RevertResult{Session: c.Name}
	var err error
	if given == "" {
		result.Entry, err = s.Undo()
		if none, ok := errors.AsType[*session.Error](err); ok && errors.Is(err, session.ErrNotExist) {
			none.Hint = "name the entry to take back: an edit of the context, a merge or an earlier revert"
		}
	} else {
		if result.Target, err = c.Resolve(given); err != nil {
			return nil, err
		}
		result.Entry, err = s.Revert(result.Target)
	}
	if err != nil {
		return nil, err
	}
	reverted, err := s.Entry(result.Entry)
	if err != nil {
		return nil, err
	}
	result.Target = reverted.Revert.TargetID
	result.Short, err = shorten(s, result.Entry, result.Target)
	return result, err
}

// earlierCompaction returns the compaction in force of a conversation that goes on
// in several sessions: any of them may have it. For a session that is alone it
// returns "", and leaves that to the session.
func (h *Home) earlierCompaction(ctx context.Context, given string) (compaction string, err error) {
	c, err := h.Sessions.Open(ctx, OpenRequest{Session: given})
	if err != nil {
		return "", err
	}
	if !c.IsAlone() {
		var now *session.Context
		if now, err = c.Context(session.ContextOptions{Shared: true}); err == nil {
			compaction = now.Compaction
		}
	}
	return compaction, errors.Join(err, c.Close())
}

// CompareRequest compares the paths to two entries.
type CompareRequest struct {
	Session string `json:"session"` // as a person names it: see Resolve
	A       string `json:"a"`
	B       string `json:"b"`
}

// CompareResult says where two paths part and what each has alone.
type CompareResult struct {
	Session  string          `json:"session"`
	A        string          `json:"a"` // ids
	B        string          `json:"b"`
	Ancestor string          `json:"ancestor"` // the last entry they share; "" if none
	Shared   int             `json:"shared"`   // how many entries they share
	OnlyA    []session.Entry `json:"only_a"`   // the earliest first
	OnlyB    []session.Entry `json:"only_b"`

	// AncestorEntry is the last entry they share; nil if there is none.
	AncestorEntry *session.Entry `json:"-"`
	// Short has the shortest beginnings of all ids of the conversation.
	Short render.Names `json:"-"`
}

// Compare compares the paths to two entries of a conversation.
func (e *Entries) Compare(ctx context.Context, r CompareRequest) (*CompareResult, error) {
	c, err := e.home.Sessions.Open(ctx, OpenRequest{Session: r.Session})
	if err != nil {
		return nil, err
	}
	result, err := compare(c, r)
	return result, errors.Join(err, c.Close())
}

func compare(c *Conversation, r CompareRequest) (*CompareResult, error) {
	a, err := c.Resolve(r.A)
	if err != nil {
		return nil, err
	}
	b, err := c.Resolve(r.B)
	if err != nil {
		return nil, err
	}
	found, err := c.Session.Compare(a, b)
	if err != nil {
		return nil, err
	}
	result := &CompareResult{
		Session: c.ID(), A: a, B: b, Ancestor: found.Ancestor, Shared: found.Shared,
		OnlyA: entryList(found.OnlyA), OnlyB: entryList(found.OnlyB),
	}
	if found.Ancestor != "" {
		shared, err := c.Entry(found.Ancestor)
		if err != nil { // it is known to have been there, and that is all
			shared = session.Entry{Type: session.TypeGap, ID: found.Ancestor}
		}
		result.AncestorEntry = &shared
	}
	result.Short, err = shortEntries(c.Session)
	return result, err
}

// entryList makes JSON show an empty list as a list.
func entryList(entries []session.Entry) []session.Entry {
	if entries == nil {
		return []session.Entry{}
	}
	return entries
}

// shortEntries returns what a person can type for each entry of a session.
func shortEntries(s *session.Session) (render.Names, error) {
	ids, err := s.EntryIDs()
	if err != nil {
		return nil, err
	}
	return render.ShortIDs(ids), nil
}

// shorten returns what a person can type for some entries of a session.
func shorten(s *session.Session, ids ...string) (render.Names, error) {
	all, err := shortEntries(s)
	if err != nil {
		return nil, err
	}
	short := make(render.Names, len(ids))
	for _, id := range ids {
		if all[id] != "" {
			short[id] = all[id]
		}
	}
	return short, nil
}
