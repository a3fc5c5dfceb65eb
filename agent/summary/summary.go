package summary

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/digest"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/window"
)

var (
	// ErrUnusable means that the model's answer is not a summary or title: it is empty,
	// incomplete, too long, a tool call, or something else altogether.
	ErrUnusable = errors.New("the model's answer cannot be used")
	// ErrNoGain means that the summary is no smaller than what it would replace.
	ErrNoGain = errors.New("the summary is no smaller than what it replaces")
	// ErrNothing means that there is nothing to write about.
	ErrNothing = errors.New("there is nothing to summarise")
)

// Options say how a summary is written. The zero value is fine.
type Options struct {
	// MaxTokens is how many tokens a summary may have, files included. Default: 4,096, or
	// an eighth of the model's window if that is less.
	MaxTokens int
	// Instructions say what to pay attention to, in addition to the usual.
	Instructions string
	// Files returns the files that a call reads and changes. Default: KnownFiles.
	Files func(call *session.ToolUseContent) (read, changed []string)
	// Counter counts tokens. Default: an estimate for the model.
	Counter window.Counter
	// Announce is called with an entry for the log before the model is asked, so that the log
	// shows the request even if the program is killed: Summary.Log names it. An error ends
	// the work.
	Announce func(session.Entry) error
	// Emit gets the model's events on the way. It is not called after the function that
	// it was given to has returned.
	Emit func(provider.Event)
}

const defaultMaxTokens = 4096

// Summary is what a model has written.
type Summary struct {
	// Text is the summary with the files at its end, or a title.
	Text string
	// Tokens is how many tokens Text has, counted by Options.Counter.
	Tokens int
	// Files are those of this summary and of the summaries before it.
	Files Files
	// Log has a record of each request, retries included, and what it cost if the provider
	// reported that, as custom entries for the log. It is there after an error too.
	Log []session.Entry
	// Requests is how often the model was asked.
	Requests int
}

// Compaction writes the summary that a plan needs. After an error, the summary has no text
// but may have a Log.
func Compaction(ctx context.Context, model provider.Model, plan *session.CompactionPlan, o Options) (*Summary, error) {
	w := newWriter(ctx, model, digest.Summary, o)
	if plan.Kind == session.CutStep {
		w.task.Current = currentRequest(plan.Kept)
	}
	text, err := w.write(plan.Summarise)
	if err != nil {
		return w.failed(err)
	}
	replaced := 0
	for i := range plan.Summarise {
		replaced += window.CountEntry(w.counter, w.info.Provider, &plan.Summarise[i]).Tokens
	}
	if w.sum.Text, w.sum.Tokens = text, w.counter.CountText(text); w.sum.Tokens >= replaced {
		return w.failed(fmt.Errorf("%w: it has %d tokens, and they have %d", ErrNoGain, w.sum.Tokens, replaced))
	}
	return &w.sum, nil
}

// currentRequest returns the message that began the turn that a plan splits.
func currentRequest(kept []session.Entry) string {
	for i := range kept {
		if kept[i].BeginsTurn() {
			return textOf(kept[i].Message.Content)
		}
	}
	return ""
}

// Branch writes a summary of the entries of a branch that is left: see Abandoned. After an
// error, the summary has no text but may have a Log.
func Branch(ctx context.Context, model provider.Model, abandoned []session.Entry, o Options) (*Summary, error) {
	w := newWriter(ctx, model, digest.Branch, o)
	text, err := w.write(abandoned)
	if err != nil {
		return w.failed(err)
	}
	w.sum.Text, w.sum.Tokens = text, w.counter.CountText(text)
	return &w.sum, nil
}

// Abandoned returns what a model no longer sees when the conversation leaves an entry for
// another one: the context at from, without what is on the path to the other. An empty from
// is the leaf; an empty to is the place before the first entry.
func Abandoned(s *session.Session, from, to string) ([]session.Entry, error) {
	shape, err := s.Shape()
	if err != nil {
		return nil, err
	}
	end := shape.Index(to)
	if end < 0 && to != "" {
		return nil, &session.Error{Op: "branch", Name: s.ID(), Kind: session.ErrNotExist, Err: fmt.Errorf("entry %q", to)}
	}
	shared := make(map[string]bool)
	for _, n := range shape.Path(end) {
		shared[shape.ID(n)] = true
	}
	c, err := s.Context(session.ContextOptions{Leaf: from})
	if err != nil {
		return nil, err
	}
	var left []session.Entry
	for _, e := range c.Entries {
		stub := e.ParentID != nil && shared[*e.ParentID] && isStub(&e)
		if !shared[e.ID] && !stub && !isSystem(&e) {
			left = append(left, e)
		}
	}
	return left, nil
}

// Append writes a compaction with the summary, the files and the costs. It returns the id
// of the compaction: see session.Compaction.
func (s *Summary) Append(to *session.Session, plan *session.CompactionPlan) (string, error) {
	return s.write(to, session.Entry{Type: session.TypeCompaction, Compaction: &session.CompactionEntry{
		Summary: s.Text, FirstKeptEntryID: plan.FirstKept, TokensBefore: plan.TokensBefore, Extra: s.Files.extra(),
	}})
}

// Bill records the cost of a summary that is not used, so that the log has everything that
// was paid. A nil summary cost nothing.
func (s *Summary) Bill(to *session.Session) error {
	if s == nil || len(s.Log) == 0 {
		return nil
	}
	_, err := to.AppendAll(s.Log...)
	return err
}

// AppendBranch moves the leaf to an entry and writes the summary of the abandoned branch
// there, with the files and the costs. It returns the id of the summary.
func (s *Summary) AppendBranch(to *session.Session, entryID string) (string, error) {
	left := to.LeafID()
	move := session.Entry{Type: session.TypeLeaf, ParentID: &entryID, Leaf: &session.LeafEntry{FromID: left}}
	return s.write(to, session.Entry{Type: session.TypeBranchSummary, BranchSummary: &session.BranchSummaryEntry{
		Summary: s.Text, FromID: left, Extra: s.Files.extra(),
	}}, move)
}

// write writes the costs and then an entry, all together, after the given ones. It returns
// the id of the entry.
func (s *Summary) write(to *session.Session, e session.Entry, first ...session.Entry) (string, error) {
	ids, err := to.AppendAll(slices.Concat(first, s.Log, []session.Entry{e})...)
	if err != nil {
		return "", err
	}
	return ids[len(ids)-1], nil
}
