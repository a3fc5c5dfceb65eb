package server

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/lease"
	"github.com/coppice-dev/coppice/store/remote"
)

// storePath is where a client finds the store of the home: see package store/remote.
const storePath = "/v1/store/"

// stores offers the store of a home to clients on other machines, to each as its token
// allows. Clients with the same view share a handler; Authorize should return the same Home
// each time.
type stores struct {
	mu   sync.Mutex
	of   map[view]*remote.Handler
	last []view // the latest is the last
}

// view is how a client sees a store: all of it, or what its token allows.
type view struct {
	home   *home.Home
	token  string // "" is for admin access
	access home.Access
}

// maxViews is how many views of the home are kept ready.
const maxViews = 100

func (s *stores) handler(g *Grant) *remote.Handler {
	v, st := view{home: g.Home, access: g.Access}, g.Home.Store()
	if g.Access < home.Admin {
		v.token, st = g.Name, modest{st, g.Name, g.Access}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if found := s.of[v]; found != nil {
		return found
	}
	if s.of == nil {
		s.of = make(map[view]*remote.Handler)
	}
	if s.last = append(s.last, v); len(s.last) > maxViews {
		_ = s.of[s.last[0]].Close() // its clients open their logs again
		delete(s.of, s.last[0])
		s.last = s.last[1:]
	}
	s.of[v] = remote.NewHandler(st)
	return s.of[v]
}

// stop ends requests that would never end.
func (s *stores) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.of {
		h.Stop()
	}
}

func (s *stores) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, h := range s.of {
		errs = append(errs, h.Close())
	}
	s.of, s.last = nil, nil
	return errors.Join(errs...)
}

// accessTo is what a token must allow for a request to the store.
var accessTo = map[remote.Need]home.Access{remote.ToRead: home.Read, remote.ToWrite: home.Write, remote.ToOwn: home.Admin}

func (s *Server) serveStore(w http.ResponseWriter, r *http.Request) {
	noteOperation(r.Context(), "store")
	g, needs := GrantOf(r.Context()), accessTo[remote.Needs(r)]
	if g.Access < needs {
		s.fail(w, r, forbidden(g, needs))
		return
	}
	held := holdingOf(r.Context())
	s.stores.handler(g).Serve(w, r, func(n int64) error {
		err := held.take(r.Context(), n)
		if p, ok := err.(*Problem); ok && p.Kind == home.KindTooLarge {
			err = &store.Error{Op: "read the request", Kind: store.ErrTooLarge, Err: p}
		}
		return err
	})
}

// modest is a store for clients without admin access. Notes are what programs remember about
// the home as a whole: tokens, the directories that are trusted, the key that signs
// approvals. A client that could write them could do anything. So it sees only the notes that
// it needs to write sessions, and its programs keep their notes in separate rooms.
type modest struct {
	store.Store
	token  string
	access home.Access
}

// Notes implements store.Store.
func (m modest) Notes(room string) store.Notes {
	switch room {
	case "":
		return redacted{m.Store.Notes(room), m.access}
	case lease.Room:
		return m.Store.Notes(room) // one program at a time works on a conversation
	}
	sum := sha256.Sum256([]byte(m.token)) // so that no two tokens share a room
	return m.Store.Notes(fmt.Sprintf("of-%x-%s", sum[:16], room))
}

var errNeedsAdmin = session.Invalidf("this needs a token with admin access")

// redacted is the room of the store itself, whose files include its index. Of those, a writer
// gets the digests of what was redacted, which must not be written again.
type redacted struct {
	real   store.Notes
	access home.Access
}

func (n redacted) Read(ctx context.Context, name string) ([]byte, error) {
	if name != store.RedactedNote || n.access < home.Write {
		return nil, &store.Error{Op: "read note", Name: name, Kind: store.ErrNotExist}
	}
	return n.real.Read(ctx, name)
}

func (redacted) List(context.Context) ([]store.Note, error)      { return nil, nil }
func (redacted) Write(context.Context, string, []byte) error     { return errNeedsAdmin }
func (redacted) WriteHint(context.Context, string, []byte) error { return errNeedsAdmin }
func (redacted) Remove(context.Context, string) error            { return errNeedsAdmin }

func (redacted) Change(context.Context, string, func([]byte) ([]byte, error)) error {
	return errNeedsAdmin
}
