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
	reply, err := ask(ctx, model, request, emit)
	c = c.WithContext(context.WithoutCancel(ctx)) // the reply is paid for, so store it even if nobody waits
	if err != nil {
		return c.addIncomplete(ctx, reply, err)
	}
	if len(reply.Content) == 0 {
		return Message{}, ErrEmptyReply
	}
	return c.AddAssistantMessage(reply)
}

// ask calls the model. After an error, the reply is what has arrived.
func ask(ctx context.Context, model provider.Model, request Request, emit func(string)) (Reply, error) {
	listen := func(e provider.Event) {
		if e.Type == provider.EventText && emit != nil && ctx.Err() == nil {
			emit(e.Text)
		}
	}
	response, err := provider.Respond(ctx, model, &provider.Request{Entries: request.Entries, Session: request.Conversation}, listen)
	if response == nil {
		return Reply{}, err
	}
	m := response.Message
	return Reply{
		Content: m.Content, Provider: m.Provider, Model: m.Model, StopReason: m.StopReason, ResponseID: m.ResponseID, Usage: m.Usage,
	}, err
}

// addIncomplete stores what has arrived of a reply, and returns the cause.
func (c *Chat) addIncomplete(ctx context.Context, reply Reply, cause error) (Message, error) {
	kept := usable(reply.Content)
	if len(kept) == 0 {
		return Message{}, cause
	}
	stop := StopFailed
	if ctx.Err() != nil || errors.Is(cause, context.Canceled) || errors.Is(cause, context.DeadlineExceeded) {
		stop = StopCancelled
	}
	m, err := c.Add(Message{
		Role: session.RoleAssistant, Content: kept, Category: CategoryDialog,
		Model: reply.Model, Provider: reply.Provider, ResponseID: reply.ResponseID, Usage: reply.Usage,
		StopReason: stop, Metadata: map[string]any{MetaIncomplete: cause.Error()},
	})
	if err != nil {
		return Message{}, errors.Join(cause, fmt.Errorf("saving the partial reply: %w", err))
	}
	return m, cause
}

// usable returns the blocks of an incomplete reply that can be kept, which is its text.
// A call may lack half of its input, and thinking its signature; either would make
// every later request fail.
func usable(blocks []session.Content) []session.Content {
	var kept []session.Content
	for _, block := range blocks {
		if block.Text != nil && block.Text.Content != "" {
			kept = append(kept, block)
		}
	}
	return kept
}
