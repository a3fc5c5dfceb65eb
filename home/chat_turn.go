package home

import (
	"context"
	"errors"
	"slices"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/session/files"
)

// Say adds what a person says, after the files that it mentions, and lets the model answer. The
// session is created if there is none yet, and context files are loaded that are new or have
// changed. An error means that no message was written. The caller has to listen to the turn:
// with AskListeners, a question waits for ever if no one does.
func (c *Chat) Say(ctx context.Context, content []session.Content, mentioned ...string) (*Turn, error) {
	return c.begin(ctx, "prompt", mentioned, func(ctx context.Context, a *agent.Agent) (*agent.Outcome, error) {
		return a.Send(ctx, content...)
	})
}

// Resume continues an unfinished turn or, with again, lets the model answer the last one again on
// a new branch.
func (c *Chat) Resume(ctx context.Context, again bool) (*Turn, error) {
	if c.c == nil {
		return nil, errNothingSaid
	}
	return c.begin(ctx, "resume", nil, resuming(again))
}

// Compact replaces the beginning of the conversation by a summary. Instructions say what the
// summary should pay attention to; "" is the usual.
func (c *Chat) Compact(ctx context.Context, instructions string) (*Turn, error) {
	if c.c == nil {
		return nil, errNothingSaid
	}
	return c.begin(ctx, "compact", nil, func(ctx context.Context, a *agent.Agent) (*agent.Outcome, error) {
		_, err := a.Compact(ctx, instructions)
		return nil, err
	})
}

// begin begins a turn, which ends with ctx.
func (c *Chat) begin(ctx context.Context, op string, mentioned []string, do turnFunc) (*Turn, error) {
	if err := c.start(ctx, mentioned...); err != nil {
		return nil, err
	}
	turn := c.home.newTurn(&TurnOptions{Questions: c.asks}, c)
	if err := turn.begin(ctx, op, do); err != nil {
		return nil, err
	}
	return turn, nil
}

// start makes the agent ready for the next turn: it creates the session if there is none yet,
// takes the tools of MCP servers as they are by now, and loads context files that are new or have
// changed, and the files that the next message mentions.
func (c *Chat) start(ctx context.Context, mentioned ...string) error {
	c.home.beforeWriting(ctx)
	read, err := c.readFiles(ctx, mentioned)
	if err != nil {
		return err
	}
	if c.c == nil {
		if err := c.create(ctx); err != nil {
			return err
		}
	}
	if c.agent == nil {
		if err := c.newAgent(); err != nil {
			return err
		}
	}
	if err := c.adoptChangedTools(); err != nil {
		return err
	}
	for _, file := range read {
		err := retry(c.c.Session, func() error {
			_, err := files.Add(c.c.Session, file)
			return err
		})
		if err != nil {
			return err
		}
	}
	return c.reportMissing(ctx)
}

// reportMissing lists, once each, the content that the model will not be sent because it cannot
// be read.
func (c *Chat) reportMissing(ctx context.Context) error {
	now, err := c.c.Context(session.ContextOptions{Shared: true})
	if err != nil {
		return err
	}
	var lost []MissingContent
	for _, m := range missingIn(now.Problems) {
		if !slices.Contains(c.reportedMissing, m) {
			lost = append(lost, m)
		}
	}
	if len(lost) > 0 {
		c.reportedMissing = append(c.reportedMissing, lost...)
		c.home.notify(ctx, Notice{Kind: ContentMissing, Session: c.c.ID(), Lost: lost})
	}
	return nil
}

func (c *Chat) create(ctx context.Context) error {
	made, err := c.home.Sessions.Create(ctx, CreateRequest{Title: c.r.Title, CWD: c.dir})
	if err != nil {
		return err
	}
	c.c, err = c.home.openSession(ctx, made.Session, session.Linked{})
	return err
}

// Branch goes back to an entry, as a person names it, so that the conversation continues from
// there. With summarise, the model writes a summary of the branch that is left.
func (c *Chat) Branch(ctx context.Context, entry string, summarise bool) (*BranchResult, error) {
	if c.c == nil {
		return nil, errNothingSaid
	}
	c.home.beforeWriting(ctx)
	result := &BranchResult{Session: c.c.Handle}
	err := c.home.read(ctx, OpenRequest{Session: c.c.Handle}, func(now *Conversation) (err error) { // with what others added
		if result.Leaf, err = now.Resolve(entry); err == nil {
			result.Left, err = conversationEnd(now.Session, now.LeafID())
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	here, err := conversationEnd(c.c.Session, c.c.LeafID())
	if err != nil {
		return nil, err
	}
	if result.Moved = result.Leaf != here || result.Leaf != result.Left; !result.Moved {
		return result, nil
	}
	if err := c.agent.Branch(ctx, result.Leaf, summarise); err != nil {
		return nil, forCaller("branch", c.c.Handle, err)
	}
	result.Leaf, err = conversationEnd(c.c.Session, c.c.LeafID())
	return result, err
}

// Undo takes back the compaction in force.
func (c *Chat) Undo() error {
	if c.agent == nil {
		return errNothingSaid
	}
	err := c.Explain(c.agent.Undo())
	if errors.Is(err, session.ErrNotExist) {
		return session.Invalidf("no compaction is in force, so there is nothing to undo")
	}
	return err
}
