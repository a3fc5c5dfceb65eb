package mcp

import (
	"context"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/session"
)

const (
	// maxSubscriptions is how many sessions a client may subscribe to. Each is a file that is
	// watched.
	maxSubscriptions = 50
	// updateEvery is the least time between two notifications about one session.
	updateEvery = time.Second
)

// subscriptions are the sessions whose changes the clients of a server follow.
type subscriptions struct {
	mu  sync.Mutex // guards all
	all map[*sdk.ServerSession]map[string]context.CancelFunc
}

// subscribe tells a client from now on when something is appended to a session.
func (f *face) subscribe(ctx context.Context, r *sdk.SubscribeRequest) error {
	uri := r.Params.URI
	if !strings.HasPrefix(uri, sessionURI) && f.setup {
		return nil // those who added the resource tell when it changes
	}
	if f.alone && isOlder(r.Session) {
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "there is no session to send changes to; initialize again"}
	}
	follow, err := f.followed(ctx, uri)
	if err != nil {
		return err
	}
	watch, cancel := context.WithCancel(context.WithoutCancel(ctx))
	if !f.subscribed.add(r.Session, uri, cancel) {
		cancel()
		return f.worded(session.Invalidf("this is subscribed to %d sessions already, which is the limit; unsubscribe from one first", maxSubscriptions))
	}
	changed, begun := make(chan struct{}, 1), make(chan struct{})
	go func() {
		for range changed {
			_ = f.server.ResourceUpdated(watch, &sdk.ResourceUpdatedNotificationParams{URI: uri}) // always nil
			select {
			case <-time.After(updateEvery):
			case <-watch.Done():
			}
		}
	}()
	go func() {
		first := follow.Last > 0
		_, err := f.home.Entries.Follow(watch, follow, func(home.Arrival) error {
			if first { // it was there before
				first = false
				close(begun)
				return nil
			}
			notice(changed)
			return nil
		})
		if first {
			close(begun)
		}
		if err != nil && watch.Err() == nil {
			notice(changed) // it is gone, or can no longer be read
		}
		close(changed)
	}()
	if follow.Last > 0 {
		<-begun
	}
	return nil
}

// listening is the first version of the protocol in which a request listens to changes, and
// needs no session for that.
const listening = "2026-07-28"

// isOlder reports whether a client speaks a version of the protocol before that one.
func isOlder(c *sdk.ServerSession) bool {
	p := c.InitializeParams()
	return p == nil || p.ProtocolVersion < listening
}

// followed returns how to follow the session of an address. The last entry that is there comes
// first, so that one knows when the watch has begun.
func (f *face) followed(ctx context.Context, uri string) (r home.FollowRequest, err error) {
	u, err := url.Parse(uri)
	if err != nil || !strings.HasPrefix(uri, sessionURI) || u.RawQuery != "" {
		return r, sdk.ResourceNotFoundError(uri)
	}
	v, err := f.open(ctx, strings.TrimPrefix(u.Path, "/"))
	switch {
	case home.KindOf(err) == home.KindNotFound:
		return r, sdk.ResourceNotFoundError(uri)
	case err != nil:
		return r, f.worded(err)
	}
	defer v.c.Close() // we only read
	r.Session = v.drawn.Links[len(v.drawn.Links)-1]
	if v.c.LeafID() != "" {
		r.Last = 1
	}
	return r, nil
}

func notice(changed chan<- struct{}) {
	select {
	case changed <- struct{}{}:
	default: // it will be told anyway
	}
}

func (f *face) unsubscribe(_ context.Context, r *sdk.UnsubscribeRequest) error {
	f.subscribed.drop(r.Session, r.Params.URI)
	return nil
}

// add notes what ends a subscription. It reports false if there are too many.
func (s *subscriptions) add(c *sdk.ServerSession, uri string, cancel context.CancelFunc) bool {
	s.drop(c, uri)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = make(map[*sdk.ServerSession]map[string]context.CancelFunc)
	}
	if s.all[c] == nil {
		s.all[c] = make(map[string]context.CancelFunc)
		go func() {
			_ = c.Wait() // however it ended
			s.dropAll(c)
		}()
	}
	if len(s.all[c]) == maxSubscriptions {
		return false
	}
	s.all[c][uri] = cancel
	return true
}

func (s *subscriptions) drop(c *sdk.ServerSession, uri string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if cancel := s.all[c][uri]; cancel != nil {
		cancel()
		delete(s.all[c], uri)
	}
}

func (s *subscriptions) dropAll(c *sdk.ServerSession) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, cancel := range s.all[c] {
		cancel()
	}
	delete(s.all, c)
}
