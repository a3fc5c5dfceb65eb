package conversation

import (
	"errors"

	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/window"
)

// Counting is a model that counts tokens itself. The context window uses its counter.
type Counting interface {
	Counter() window.Counter
}

// Capabilities are what the context window needs to know about a model.
type Capabilities struct {
	Provider, Model string
	// ContextWindow is the size of the window in tokens. Default: DefaultWindow.
	ContextWindow int
	// MaxReply is how much of the window is kept free for the reply.
	MaxReply int
	// MaxRequestBytes is the largest request that the provider accepts. Default:
	// no limit.
	MaxRequestBytes int
	// Counter counts tokens as the model does. Default: the best one for the provider and
	// the model.
	Counter window.Counter
}

// capabilitiesOf returns what a model says about itself; ok is false if that is nothing.
func capabilitiesOf(model provider.Model) (c Capabilities, ok bool) {
	if model == nil {
		return c, false
	}
	info := model.Info()
	c = Capabilities{
		Provider: info.Provider, Model: info.Model, ContextWindow: info.Window, MaxRequestBytes: info.MaxBytes,
		MaxReply: min(info.MaxOutput, window.DefaultReserve),
	}
	if info.Window > 0 {
		c.MaxReply = min(c.MaxReply, info.Window/4)
	}
	if counting, can := model.(Counting); can {
		c.Counter = counting.Counter()
	}
	return c, info != provider.Info{}
}

// Request is what a model is sent.
type Request struct {
	Conversation string // the id of the original session
	Session      string // the id of the session that the reply will be in
	// Entries are what fits the window of the conversation, in order. They are shared with
	// the conversation: do not change what they point to.
	Entries []session.Entry
	// Report says what was left out and why.
	Report window.Report
}

// Messages returns the entries that are messages, as copies.
func (r Request) Messages() []Message {
	var messages []Message
	for _, e := range r.Entries {
		if e.Message != nil {
			messages = append(messages, fromEntry(e.Clone()))
		}
	}
	return messages
}

// Reply is what a model answered.
type Reply struct {
	Content []session.Content // text, thinking, calls of tools

	Provider, Model, StopReason, ResponseID string
	Usage                                   *session.Usage
}

// ErrEmptyReply means that a model answered nothing at all. Nothing was stored.
var ErrEmptyReply = errors.New("the model's reply is empty")

// The stop reasons of incomplete replies.
const (
	StopCancelled = provider.StopCancelled // the caller no longer wanted it
	StopFailed    = provider.StopFailed    // the model or the way to it failed
)

// MetaIncomplete is set in the metadata of an incomplete reply, to what ended it.
const MetaIncomplete = provider.MetaIncomplete
