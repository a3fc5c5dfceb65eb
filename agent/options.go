package agent

import (
	"context"
	"log/slog"
	"time"

	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/window"
)

// Options say how an agent works. Model must be set.
type Options struct {
	Model provider.Model
	// Fallback are the models that take over, one after the other, when Model does not exist
	// or does not answer after all retries. An event and the log say so. The next turn begins
	// with Model again.
	Fallback []provider.Model
	// System is the instructions. They go into the log before the first message, and
	// again when they change. Default: those of the session, if it has any.
	System string
	Tools  []Tool
	// Thinking is one of the provider's thinking levels. Default: the one in force
	// in the session.
	Thinking string
	// MaxTokens limits an answer. Default: what the provider allows.
	MaxTokens   int
	Temperature *float64
	// Fields are further members of every request: see provider.Request.
	Fields session.Fields

	// MaxSteps is how often a model may be asked in one turn, in its tasks too. Default: 200.
	MaxSteps int
	// Budget limits what a turn may use otherwise. Default: no limits.
	Budget Budget
	// Draft is how often a partial answer is saved, so that a program that dies loses
	// little of what people have read: the text of that time, and a last word that may be
	// the beginning of a secret. Default: 500 ms. Negative: never.
	Draft time.Duration
	// RetryWait is how long to wait before a request that failed is sent again; each further
	// time it is twice that. The model decides how often, and how long a provider may ask to
	// wait: see provider.Info. Default: the model's.
	RetryWait time.Duration
	// Parallel is how many calls may run at once. Default: 8.
	Parallel int
	// ToolTimeout is how long a call may take. Default: 10 minutes.
	ToolTimeout time.Duration
	// MaxOutput is how many bytes of text a result may have. The middle of a longer
	// one is left out, and the result says so. Default: 48 KiB, or what fills about an
	// eighth of the model's window if that is less.
	MaxOutput int

	// Approve decides about a call of a tool that asks. It may take its time, and is
	// asked about one call at a time, while other calls run. It must return soon after ctx
	// ends: the agent no longer waits for it then, because the turn was cancelled, or
	// because Agent.Decide has decided. An error or a panic ends the turn, and the call
	// keeps waiting for approval. Default: such calls wait: see Later.
	Approve func(ctx context.Context, call Call) (Decision, error)

	// Hooks are called before and after requests and calls. Default: none.
	Hooks Hooks

	// Wait makes a turn wait while another agent works on the session, until its context
	// ends. Default: the turn fails with a *lease.HeldError. The caller can then watch the
	// session, or fork it.
	Wait bool

	// Boundary is how many messages a session may have. Then the conversation continues in
	// another session, between two turns or two steps, and what is sent does not change: see
	// Agent.Session. Default: it stays in its session.
	Boundary int

	Compaction Compaction
	// Counter counts tokens where the provider has not. Default: an estimate. A model that is a
	// provider.TokenCounter is asked where it matters.
	Counter window.Counter

	// Tracer gets a span for every turn, request and call. Default: none.
	Tracer Tracer
	// Logger gets the decisions that the agent makes by itself. Default: none.
	Logger *slog.Logger

	parent *turn // that the agent is a task of, or nil
}

// Compaction says when and how the beginning of a conversation is replaced by a
// summary. The zero value compacts when the model's window is nearly full, if its
// size is known, and when a provider says that the conversation is too long.
type Compaction struct {
	// Off leaves the conversation as it is. If it gets too long, the turn fails.
	Off bool
	// Window is the size of the window in tokens. Default: the model's.
	Window int
	// Reserve is how much of the window stays free for the answer and its thinking. It
	// is at least Options.MaxTokens, and at most half of the window. Default: 16,384, or
	// a quarter of the window if that is less.
	Reserve int
	// Keep is how many tokens of the end stay as they are: at most half of what the
	// reserve leaves. Default: 20,000, or a quarter of the window if that is less.
	Keep int
	// MaxSummary is how many tokens a summary may have: at most a quarter of the window.
	// Default: see summary.Options.
	MaxSummary int
	// Model writes the summary. Default: the agent's.
	Model provider.Model
	// Instructions say what a summary should pay attention to, in addition to the
	// usual. Default: none.
	Instructions string
}

// keeper returns the options of an agent's keeper.
func (o *Options) keeper() KeeperOptions {
	k := KeeperOptions{
		Model: o.Model.Info(), System: o.System, Tools: definitions(o.Tools), Thinking: o.Thinking, MaxTokens: o.MaxTokens,
		Draft: o.Draft, Boundary: o.Boundary, Wait: o.Wait, Compaction: o.Compaction, Counter: o.Counter,
	}
	if k.Compaction.Model == nil {
		k.Compaction.Model = o.Model
	}
	return k
}
