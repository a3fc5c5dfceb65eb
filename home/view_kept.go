package home

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/coppice-dev/coppice/internal/budget"
	"github.com/coppice-dev/coppice/internal/gate"
	"github.com/coppice-dev/coppice/internal/pool"
	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/session"
)

// Conversations that a person looks at stay open for some minutes, with the shape of their trees:
// a face asks for another part with each key that is pressed, and must not wait. Before each
// answer, what others wrote since is read.
const (
	maxViewed      = 8
	maxViewedBytes = 256 << 20
	viewedFor      = 3 * time.Minute
	// subagentsFor is how long what is known about subagents counts. Only the index knows them.
	subagentsFor = 10 * time.Second
)

// viewed is a conversation that stays open to be looked at.
type viewed struct {
	*Conversation
	key  string
	link bool
	size atomic.Int64

	mu          gate.Mutex // guards what follows
	sketch      *render.Sketch
	trails      []*leafTrail // the most recently used first
	chart       *render.Chart
	subagents   map[string]string
	subagentsAt time.Time
}

// leafTrail is the path to an entry. The path to the leaf goes on when the leaf moves.
type leafTrail struct {
	render.Trail
	leaf int32 // the entry, or -1 for the leaf
}

// maxTrails is how many paths of a conversation are remembered: that to the leaf, and that of the
// branch which a person looks at.
const maxTrails = 2

func newViews() *pool.Pool[*viewed] {
	return pool.New(pool.Limits{Count: maxViewed, Bytes: maxViewedBytes}, pool.Options[*viewed]{
		Close: func(v *viewed) bool {
			_ = v.Session.Close() // we only read
			return true
		},
		// However large it is, one and another must have room.
		Size: func(v *viewed) int64 { return min(v.size.Load(), maxViewedBytes/2) },
	})
}

// look calls do with a conversation that is up to date and locked.
func (h *Home) look(ctx context.Context, r OpenRequest, do func(v *viewed, drawn render.Conversation) error) error {
	return h.view(ctx, r, func(v *viewed) error {
		return v.look(ctx, func(drawn render.Conversation) error { return do(v, drawn) })
	})
}

// read calls do with a conversation that is up to date. It is for operations that need entries
// and not the shape of the tree.
func (h *Home) read(ctx context.Context, r OpenRequest, do func(c *Conversation) error) error {
	return h.view(ctx, r, func(v *viewed) error {
		c := *v.Conversation
		c.unreadable = &losses{}
		c.Session = v.WithContext(ctx)
		if err := v.catchUp(ctx, c.Session); err != nil {
			return err
		}
		return do(&c)
	})
}

// view calls use with a conversation that stays open. If it was replaced, it is opened again.
func (h *Home) view(ctx context.Context, r OpenRequest, use func(v *viewed) error) error {
	ctx = budget.Without(ctx)
	// What is open is looked up, too: it may have been removed.
	resolve := h.resolveConversation
	if r.Link {
		resolve = h.resolve
	}
	name, err := resolve(ctx, r.Session)
	if err != nil {
		return err
	}
	r.Session = name
	for tries := 3; ; tries-- {
		v, err := h.keeper.views.Get(ctx, h.viewKey(r), func() (*viewed, error) { return h.newViewed(ctx, r) })
		if err != nil {
			return err
		}
		err = use(v)
		replaced := session.MustReopen(err) || errors.Is(err, errReopen)
		if replaced || len(v.Chain.Missing) > 0 { // what is missing may be back the next time
			h.keeper.views.Drop(v.key) // others who use it must open it again, too
		} else {
			v.release()
		}
		if !replaced || tries == 0 {
			return err
		}
	}
}

func (h *Home) viewKey(r OpenRequest) string {
	key := r.Session
	if r.Link {
		key += "\nlink"
	}
	return key
}

func (h *Home) newViewed(ctx context.Context, r OpenRequest) (*viewed, error) {
	c, err := h.Conversation(ctx, r)
	if err != nil {
		return nil, err
	}
	return &viewed{Conversation: c, key: h.viewKey(r), link: r.Link}, nil
}

// errReopen means that a conversation is not the one that was opened: it was rewritten, removed, or
// continued in another session.
var errReopen = errors.New("the conversation must be opened again")

// look calls do with the conversation up to date, while no other may change what is known of it.
func (v *viewed) look(ctx context.Context, do func(drawn render.Conversation) error) error {
	if err := v.mu.LockContext(ctx); err != nil {
		return err
	}
	defer v.mu.Unlock()
	drawn := v.drawn()
	drawn.Session = v.WithContext(ctx)
	if err := v.catchUp(ctx, drawn.Session); err != nil {
		return err
	}
	if err := v.refresh(ctx, drawn); err != nil {
		return reopenIfStale(err)
	}
	drawn.Subagents = v.subagents
	return do(drawn)
}

// catchUp reads the entries written since the last look.
func (v *viewed) catchUp(ctx context.Context, s *session.Session) error {
	if _, err := s.Refresh(); err != nil {
		return reopenIfStale(err)
	}
	if v.link || !v.isAlone() {
		return nil
	}
	chain, err := s.FindChain(ctx, v.home.namingOf(v.Handle))
	if err == nil && !isAlone(chain) {
		err = errReopen
	}
	return reopenIfStale(err)
}

func reopenIfStale(err error) error {
	if isStale(err) {
		return errors.Join(errReopen, err)
	}
	return err
}

// refresh brings the sketch of the tree up to date.
func (v *viewed) refresh(ctx context.Context, drawn render.Conversation) error {
	if v.sketch == nil {
		v.sketch = &render.Sketch{}
	}
	if err := v.sketch.Update(drawn); err != nil {
		return err
	}
	if time.Since(v.subagentsAt) < subagentsFor {
		return nil
	}
	subagents, err := v.Conversation.subagents(ctx)
	if err == nil {
		v.subagents, v.subagentsAt = subagents, time.Now()
	}
	return err
}

// release ends a use of the conversation.
func (v *viewed) release() {
	v.size.Store(v.Footprint())
	v.home.keeper.views.Release(v.key, v)
	v.home.keeper.closeViewsLater()
}

// leafNamed returns the entry that ends a path: the one that was asked for, or the leaf.
func (v *viewed) leafNamed(given string) (leaf int32, err error) {
	if given == "" {
		return v.sketch.At(v.sketch.Shape().Leaf()), nil
	}
	id, err := v.entryNamed(given)
	return v.sketch.At(id), err
}

// atNamed returns the entry from which to count, or -1.
func (v *viewed) atNamed(given string) (int32, error) {
	if given == "" {
		return -1, nil
	}
	at, err := v.entryNamed(given)
	return v.sketch.At(at), err
}

// entryNamed returns the entry that a person named.
func (v *viewed) entryNamed(given string) (int32, error) {
	shape := v.sketch.Shape()
	if at := shape.Index(given); at >= 0 {
		return at, nil
	}
	id, err := v.Resolve(given)
	if err != nil || id == "" {
		return -1, err
	}
	return shape.Index(id), nil
}

// trailTo returns the path to an entry. If at is not on it, the path goes through at to where its
// branch was last worked on.
func (v *viewed) trailTo(given string, leaf, at int32) *leafTrail {
	key := leaf
	if given == "" {
		key = -1
	}
	t := v.follow(key, leaf)
	if at < 0 || slices.Contains(t.Entries, at) {
		return t
	}
	tip, _ := v.sketch.Tip(at)
	return v.follow(tip, tip)
}

func (v *viewed) follow(key, leaf int32) *leafTrail {
	i := slices.IndexFunc(v.trails, func(t *leafTrail) bool { return t.leaf == key })
	if i < 0 {
		v.trails = slices.Insert(v.trails, 0, &leafTrail{leaf: key})
		v.trails = v.trails[:min(len(v.trails), maxTrails)]
	} else {
		t := v.trails[i]
		v.trails = slices.Insert(slices.Delete(v.trails, i, i+1), 0, t)
	}
	v.sketch.Follow(&v.trails[0].Trail, leaf)
	return v.trails[0]
}
