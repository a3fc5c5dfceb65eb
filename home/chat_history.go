package home

import (
	"context"
	"os"
	"slices"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/agent/tools"
	"github.com/coppice-dev/coppice/session"
)

// The most that Earlier looks at and returns: it must be quick in any home.
const (
	earlierSessions = 30
	earlierBytes    = 16 << 20 // of a session
	earlierPrompts  = 300
	earlierLength   = 4000 // of a prompt, in bytes
)

// Said returns what the person said in this conversation and the model is still sent, the
// latest last.
func (c *Chat) Said() ([]string, error) {
	if c.c == nil {
		return nil, nil
	}
	return promptsIn(c.c)
}

// Earlier returns what the person said in the latest of the other conversations, the latest
// last. It reads the logs, so text that was redacted there does not appear.
func (c *Chat) Earlier(ctx context.Context) ([]string, error) {
	list, err := c.home.Sessions.List(ctx, ListRequest{Limit: earlierSessions})
	if err != nil {
		return nil, err
	}
	var all []string // the latest first
	for i := range list.Sessions {
		one := &list.Sessions[i]
		if one.Size > earlierBytes || len(all) >= earlierPrompts || c.c != nil && one.ID == c.c.ID() {
			continue
		}
		said, err := c.home.promptsOf(ctx, one.ID)
		if ctx.Err() != nil {
			return nil, err
		}
		for _, text := range slices.Backward(said) { // none, if it cannot be read
			if len(text) <= earlierLength && !slices.Contains(all, text) {
				all = append(all, text)
			}
		}
	}
	all = all[:min(len(all), earlierPrompts)]
	slices.Reverse(all)
	return all, nil
}

func (h *Home) promptsOf(ctx context.Context, name string) ([]string, error) {
	c, err := h.openEnd(ctx, name)
	if err != nil {
		return nil, err
	}
	defer c.Close() // it was only read
	return promptsIn(c)
}

func promptsIn(c *Conversation) (said []string, err error) {
	now, err := c.Context(session.ContextOptions{Shared: true})
	if err != nil {
		return nil, err
	}
	for i := range now.Entries {
		if e := &now.Entries[i]; e.BeginsTurn() && !e.IsInjected() {
			said = append(said, session.TextOf(e.Message.Content))
		}
	}
	return said, nil
}

// maxLookBack is how many entries hadTools looks at.
const maxLookBack = 64

// hadTools returns the built-in tools that the model had when it was last asked; none if that
// is far back, if another program held the conversation, or if its directory is not here.
func (c *Chat) hadTools() (names []string) {
	if info, err := os.Stat(c.dir); c.c == nil || err != nil || !info.IsDir() || slices.ContainsFunc(c.c.Header().Extra, func(f session.Field) bool { return f.Name == session.OriginField }) {
		return nil
	}
	id := c.c.LeafID()
	for n := 0; n < maxLookBack && id != ""; n++ {
		found, err := c.c.Peek(id)
		if err != nil {
			return nil
		}
		if r, ok := agent.ReadRecord(&found[0]); ok && r.For == "" {
			return c.builtinTools(r.Tools)
		}
		id = ""
		if found[0].ParentID != nil {
			id = *found[0].ParentID
		}
	}
	return nil
}

// builtinTools returns the built-in tools among those that an entry of session.CustomTools lists.
func (c *Chat) builtinTools(id string) (names []string) {
	if id == "" {
		return nil
	}
	e, err := c.c.Entry(id)
	if err != nil || !agent.OfferedHere(c.c.Session, &e) {
		return nil
	}
	list, _ := e.Custom.Data["tools"].([]any)
	for _, one := range list {
		tool, _ := one.(map[string]any)
		if name, _ := tool["name"].(string); slices.Contains(tools.Names(), name) {
			names = append(names, name)
		}
	}
	return names
}
