package provider

import (
	"context"
	"errors"
	"maps"
	"strings"

	"github.com/coppice-dev/coppice/session"
)

// MetaIncomplete is set in the metadata of an answer that broke off, to what ended it.
const MetaIncomplete = "incomplete"

// Kept returns the message to keep of an answer that broke off, marked by its stop reason
// and MetaIncomplete, or nil if nothing of it can be kept. Only text is kept: a call may
// lack half of its input, and thinking its signature, and either would make every later
// request fail. cancelled says that the caller no longer wanted the answer.
func (r *Response) Kept(cause error, cancelled bool) *session.MessageEntry {
	if r == nil || r.Message == nil {
		return nil
	}
	m := *r.Message
	m.Content = nil
	for _, block := range r.Message.Content {
		if block.Text != nil && strings.TrimSpace(block.Text.Content) != "" {
			m.Content = append(m.Content, block)
		}
	}
	if len(m.Content) == 0 {
		return nil
	}
	m.StopReason = StopFailed
	if cancelled || errors.Is(cause, context.Canceled) || errors.Is(cause, context.DeadlineExceeded) {
		m.StopReason = StopCancelled
	}
	m.Metadata = maps.Clone(m.Metadata)
	if m.Metadata == nil {
		m.Metadata = make(map[string]any)
	}
	m.Metadata[MetaIncomplete] = cause.Error()
	return &m
}
