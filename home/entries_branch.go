package home

import (
	"context"
	"errors"
	"strings"

	"github.com/coppice-dev/coppice/agent/summary"
	"github.com/coppice-dev/coppice/session"
)

// BranchRequest says where a conversation continues.
type BranchRequest struct {
	Session string `json:"session"` // as a person names it: see Resolve
	Entry   string `json:"entry"`   // the next entry will follow this one
	// Summary tells the model what happened on the branch that is abandoned. Default:
	// none.
	Summary string `json:"summary,omitempty"`
	// Auto lets a model write the summary, if there is anything on that branch.
	Auto *AutoRequest `json:"auto,omitempty"`
}

// BranchResult says where the leaf is.
type BranchResult struct {
	Session string `json:"session"` // the one that was written to
	Leaf    string `json:"leaf"`    // where it is now: the entry, or the summary that follows it
	Left    string `json:"left"`    // where it was
	Moved   bool   `json:"moved"`   // false if it was there already; then nothing was written
	// Auto is the summary, if a model wrote it.
	Auto *AutoResult `json:"auto,omitempty"`
}

// Branch moves the leaf to an entry: what is appended next follows it. The abandoned branch
// stays in the log. An entry that only an earlier session of the conversation has is refused
// with an *EarlierError. If a model should write a summary and does not, the leaf stays where
// it is.
func (e *Entries) Branch(ctx context.Context, r BranchRequest) (*BranchResult, error) {
	return call(ctx, e.home, "entries.branch", r, e.branch)
}

func (e *Entries) branch(ctx context.Context, r BranchRequest) (*BranchResult, error) {
	e.home.beforeWriting(ctx)
	r.Summary = orNone(r.Summary)
	if r.Auto != nil && r.Summary != "" {
		return nil, exclude("summary", "auto")
	}
	if err := checkUTF8("summary", r.Summary); err != nil {
		return nil, err
	}
	c, err := e.home.openLast(ctx, "branch", r.Session, r.Entry)
	if err != nil {
		return nil, err
	}
	result, err := e.home.branch(ctx, c, r)
	return result, errors.Join(forCaller("branch", c.Handle, err), c.Close())
}

func (h *Home) branch(ctx context.Context, c *Conversation, r BranchRequest) (*BranchResult, error) {
	s := c.WithContext(ctx)
	target, err := c.Resolve(r.Entry)
	if err != nil {
		return nil, err
	}
	left, err := conversationEnd(s, s.LeafID())
	if err != nil {
		return nil, err
	}
	result := &BranchResult{Session: c.Handle, Leaf: target, Left: left, Moved: true}
	switch {
	case r.Summary != "":
		result.Leaf, err = s.BranchWithSummary(target, r.Summary)
	case target == left || target == s.LeafID(): // notes that were made there since do not matter
		result.Moved = false
	case r.Auto != nil:
		err = h.autoBranch(ctx, c.Handle, s, r.Auto, result)
	default:
		err = s.Branch(target)
	}
	return result, err
}

// autoBranch lets a model summarise the branch that is left, and moves the leaf.
func (h *Home) autoBranch(ctx context.Context, name string, s *session.Session, r *AutoRequest, result *BranchResult) error {
	left, err := summary.Abandoned(s, s.LeafID(), result.Leaf)
	if err != nil {
		return err
	}
	if len(left) == 0 { // only notes
		return s.Branch(result.Leaf)
	}
	a, err := h.author(ctx, r, writesSummary)
	if err != nil {
		return err
	}
	a.announceIn(s)
	made, err := summary.Branch(ctx, a.model, left, a.opts)
	if err != nil {
		return a.failed(ctx, "branch", name, s, made, err)
	}
	h.beforeWriting(ctx)
	// If the conversation was continued there in between, the summary is no longer
	// true.
	result.Leaf, err = made.AppendBranch(s, result.Leaf)
	result.Auto = a.result(made)
	return err
}

// LabelRequest gives an entry a name.
type LabelRequest struct {
	Session string `json:"session"` // as a person names it: see Resolve
	Entry   string `json:"entry"`   // as a person names it
	Label   string `json:"label"`   // "" removes the label
}

// LabelResult says what an entry is called now.
type LabelResult struct {
	Session string `json:"session"` // the one that was written to
	Entry   string `json:"entry"`   // the entry that names the other
	Target  string `json:"target"`  // the entry that is named
	Label   string `json:"label"`   // with any secret in the request taken out
}

// Label gives an entry a name, which can be used wherever an entry is named.
func (e *Entries) Label(ctx context.Context, r LabelRequest) (*LabelResult, error) {
	return call(ctx, e.home, "entries.label", r, e.label)
}

func (e *Entries) label(ctx context.Context, r LabelRequest) (*LabelResult, error) {
	e.home.beforeWriting(ctx)
	if err := checkName("label", r.Label); err != nil {
		return nil, err
	}
	c, err := e.home.openWith(ctx, r.Session, r.Entry)
	if err != nil {
		return nil, err
	}
	result, err := label(c, c.WithContext(ctx), r)
	return result, errors.Join(forCaller("label", c.Handle, err), c.Close())
}

func label(c *Conversation, s *session.Session, r LabelRequest) (*LabelResult, error) {
	target, err := c.Resolve(r.Entry)
	if err != nil {
		return nil, err
	}
	r.Label = strings.TrimSpace(r.Label)
	if err := checkLabel(s, r.Label); err != nil {
		return nil, err
	}
	result := &LabelResult{Session: c.Handle, Target: target}
	result.Entry, err = remark(s, func() (string, error) { return s.SetLabel(target, r.Label) })
	if err != nil {
		return nil, err
	}
	labels, err := s.Labels()
	if err != nil {
		return nil, unread("label", c.Handle, err)
	}
	result.Label = labels[target]
	return result, nil
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
	Session string `json:"session"` // the one that was written to
	Entry   string `json:"entry"`   // the entry that takes the other back
	Target  string `json:"target"`  // the entry that no longer counts
}

// Revert takes back what an entry does to the context. Reverting a revert restores the
// effect. Without an entry, it returns session.ErrNotExist if no compaction is in force.
func (e *Entries) Revert(ctx context.Context, r RevertRequest) (*RevertResult, error) {
	return call(ctx, e.home, "entries.revert", r, e.revert)
}

func (e *Entries) revert(ctx context.Context, r RevertRequest) (*RevertResult, error) {
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
	return result, errors.Join(forCaller("revert", c.Handle, err), c.Close())
}

func revert(c *Conversation, s *session.Session, given string) (*RevertResult, error) {
	result := &RevertResult{Session: c.Handle}
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
		result.Entry, err = s.AppendEntry(session.Revert(result.Target))
	}
	if err != nil {
		return nil, err
	}
	reverted, err := s.Entry(result.Entry)
	if err != nil {
		return nil, unread("revert", c.Handle, err)
	}
	result.Target = reverted.Revert.TargetID
	return result, nil
}

// earlierCompaction returns the compaction in force of a conversation with several sessions,
// any of which may have it. For a single session it returns "" and leaves the search to the
// session.
func (h *Home) earlierCompaction(ctx context.Context, given string) (compaction string, err error) {
	c, err := h.openFor(ctx, OpenRequest{Session: given})
	if err != nil {
		return "", err
	}
	if !c.isAlone() {
		var now *session.Context
		if now, err = c.Context(session.ContextOptions{Shared: true}); err == nil {
			compaction = now.Compaction
		}
	}
	return compaction, errors.Join(err, c.Close())
}
