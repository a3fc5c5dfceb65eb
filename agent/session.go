package agent

import (
	"context"
	"errors"

	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/session"
)

// ErrBusy means that a turn is under way.
var ErrBusy = errors.New("a turn is under way")

// Session is an agent at work in a session. Its methods may be called concurrently;
// what changes the conversation is refused with ErrBusy while a turn is under way.
type Session struct{}

// New returns an agent that goes on with a session, which the caller closes after
// the agent.
func New(s *session.Session, o Options) (*Session, error) { return nil, errors.ErrUnsupported }

// Log returns the session that the agent writes to.
func (a *Session) Log() *session.Session { return nil }

// Send adds what the user says and lets the model answer until it is done. If ctx
// ends, what has arrived is kept, and the error is context.Cause(ctx).
func (a *Session) Send(ctx context.Context, content ...session.Content) (*Outcome, error) {
	return nil, errors.ErrUnsupported
}

// Resume goes on where the session stopped: after a crash, after an error, or after
// decisions about waiting calls. Calls that never started are run, and so are those of
// tools that may be repeated. Other calls that were running get a result that says
// that they were interrupted. If there is nothing to do, the outcome has no steps.
func (a *Session) Resume(ctx context.Context) (*Outcome, error) { return nil, errors.ErrUnsupported }

// Retry has the last turn answered again, on a new branch.
func (a *Session) Retry(ctx context.Context) (*Outcome, error) { return nil, errors.ErrUnsupported }

// Pending returns the calls that have no result, with how far each has come.
func (a *Session) Pending() ([]Pending, error) { return nil, errors.ErrUnsupported }

// Decide settles a call that waits for approval. Resume then goes on.
func (a *Session) Decide(callID string, d Decision) error { return errors.ErrUnsupported }

// Compact replaces the beginning of the conversation by a summary now.
func (a *Session) Compact(ctx context.Context, instructions string) (*Compacted, error) {
	return nil, errors.ErrUnsupported
}

// Undo takes back the last compaction.
func (a *Session) Undo() error { return errors.ErrUnsupported }

// Branch goes back to an entry, so that the conversation continues from there. With
// summarise, the model writes down what happened on the branch that is left.
func (a *Session) Branch(ctx context.Context, entryID string, summarise bool) error {
	return errors.ErrUnsupported
}

// SetModel changes the model, from the next request on.
func (a *Session) SetModel(m provider.Model) error { return errors.ErrUnsupported }

// SetThinking changes the thinking level, from the next request on.
func (a *Session) SetThinking(level string) error { return errors.ErrUnsupported }

// SetTools changes the tools, from the next request on.
func (a *Session) SetTools(tools ...Tool) error { return errors.ErrUnsupported }

// Status returns where the agent stands.
func (a *Session) Status() (Status, error) { return Status{}, errors.ErrUnsupported }

// Subscribe returns the events from now on. Up to buffer events wait for a subscriber
// that is slow (default: 1024); further ones are left out, and an event of type Missed
// says how many. Pieces of the same text that wait are joined, so that text is not lost.
func (a *Session) Subscribe(buffer int) *Subscription { return nil }

// Close ends a turn that is under way, waits for it, and ends the subscriptions. It
// does not close the session.
func (a *Session) Close() error { return nil }
