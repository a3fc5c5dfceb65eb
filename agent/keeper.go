package agent

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/lease"
	"github.com/coppice-dev/coppice/window"
)

// Keeper keeps what a loop does in a session.
type Keeper struct {
	log   *session.Session
	s     *session.Session // the log, with a context that does not end: what has happened is written down
	place *lease.Place
	count *counting
	opts  KeeperOptions

	news    func(Event)          // gets what happens; may be nil
	isHeard func() bool          // whether there is anyone to tell
	onUsage func(*session.Usage) // gets what each response cost; may be nil

	mu         sync.Mutex                  // guards what follows
	calls      map[callKey]json.RawMessage // the arguments of calls that wait
	signingKey []byte                      // of the store, if it is known

	// What follows belongs to the work that is under way, if there is any.

	ctx   context.Context
	stop  context.CancelCauseFunc // ends ctx
	lease *lease.Lease

	recorded   recorded
	backoff    backoff
	offer      map[string]any // the tools, as recordTools records them
	offerSum   string
	disturbed  bool   // another writer has added to the session
	unanswered int    // calls that wait for their results
	asked      string // the entry that says that the model is asked next, until a record names it
	arriving   *draft
}

// KeeperOptions say how a Keeper works.
type KeeperOptions struct {
	// Model is who answers.
	Model provider.Info
	// System, Tools, Thinking and MaxTokens are those of the requests: see Options.
	System    string
	Tools     []provider.Tool
	Thinking  string
	MaxTokens int
	// Draft is how often a partial answer is saved: see Options.
	Draft time.Duration
	// Wait waits while another works on the session: see Options.
	Wait bool
	// Compaction says when the beginning of the conversation is replaced by a summary. Its
	// Model writes the summary; without one, that does not happen.
	Compaction Compaction
	// Counter counts tokens where the provider has not. Default: an estimate.
	Counter window.Counter
	// Files returns the files that a call reads and changes: see Tool.
	Files func(*session.ToolUseContent) (read, changed []string)
	// Events gets what happens: messages that were written, compactions, errors that did
	// not end the work. Default: nobody is told.
	Events func(Event)
}

// keeper returns the options of an agent's keeper.
func (o *Options) keeper() KeeperOptions {
	k := KeeperOptions{
		Model: o.Model.Info(), System: o.System, Tools: offered(o.Tools), Thinking: o.Thinking, MaxTokens: o.MaxTokens,
		Draft: o.Draft, Wait: o.Wait, Compaction: o.Compaction, Counter: o.Counter,
	}
	if k.Compaction.Model == nil {
		k.Compaction.Model = o.Model
	}
	return k
}

func newKeeper(s *session.Session, o KeeperOptions) *Keeper {
	return &Keeper{
		log: s, s: s.WithContext(context.Background()), place: lease.At(s.Store(), s.ID()), count: newCounting(o.Counter), opts: o,
		news: o.Events, isHeard: func() bool { return o.Events != nil },
	}
}

// take takes the lease for some work, which ctx ends. The caller calls release.
func (k *Keeper) take(ctx context.Context, stop context.CancelCauseFunc) (release func(), err error) {
	k.ctx, k.stop = ctx, stop
	take := k.place.Take
	if k.opts.Wait {
		take = k.place.Wait
	}
	if k.lease, err = take(ctx, stop); err != nil {
		return nil, err
	}
	k.offer, k.offerSum, k.disturbed, k.unanswered, k.asked = nil, "", false, 0, ""
	return func() {
		// If it fails, others have to wait for a while. The work is over all the same.
		_ = k.lease.Release(context.WithoutCancel(ctx))
	}, nil
}

// publish tells what happens.
func (k *Keeper) publish(e Event) {
	e.Session = k.s.ID()
	if k.news != nil {
		k.news(e)
	}
}

// paying takes note of what a response cost.
func (k *Keeper) paying(u *session.Usage) {
	if k.onUsage != nil {
		k.onUsage(u)
	}
}
