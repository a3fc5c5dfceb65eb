package conversation

import (
	"context"
	"errors"
	"fmt"

	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/session"
)

// Respond sends a model what fits its window and adds its reply to the conversation.
// emit, if not nil, gets the text of the reply piece by piece as it arrives. What is
// stored is the same either way.
//
// A reply is added when it is complete. If it ends early, because ctx ends or the model
// fails, what has arrived is added, marked by its stop reason and MetaIncomplete, and
// the error is returned with it.
func (c *Chat) Respond(ctx context.Context, model provider.Model, emit func(text string)) (Message, error) {
	request, err := c.WithContext(ctx).Request()
	if err != nil {
		return Message{}, err
	}
	response, err := provider.Respond(ctx, model, &provider.Request{Entries: request.Entries, Session: request.Conversation}, func(e provider.Event) {
		if e.Type == provider.EventText && emit != nil && ctx.Err() == nil {
			emit(e.Text)
		}
	})
	c = c.WithContext(context.WithoutCancel(ctx)) // the reply is paid for, so store it even if no caller waits
	switch {
	case err != nil:
		return c.addIncomplete(response.Kept(err, ctx.Err() != nil), err)
	case len(response.Message.Content) == 0:
		return Message{}, ErrEmptyReply
	}
	return c.Add(replyOf(response.Message))
}

// addIncomplete stores what is kept of a reply that broke off, and returns the cause.
func (c *Chat) addIncomplete(kept *session.MessageEntry, cause error) (Message, error) {
	if kept == nil {
		return Message{}, cause
	}
	m, err := c.Add(replyOf(kept))
	if err != nil {
		return Message{}, errors.Join(cause, fmt.Errorf("saving the partial reply: %w", err))
	}
	return m, cause
}

// replyOf returns what a model said as a message of the conversation.
func replyOf(m *session.MessageEntry) Message {
	return Message{
		Role: session.RoleAssistant, Content: m.Content, Category: CategoryDialog, Metadata: m.Metadata,
		Model: m.Model, Provider: m.Provider, StopReason: m.StopReason, ResponseID: m.ResponseID, Usage: m.Usage,
	}
}
