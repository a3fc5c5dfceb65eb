package server

import (
	"errors"
	"net/http"
	"sync"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/store/remote"
)

// storePath is where a client finds the store of the home: see package store/remote.
const storePath = "/v1/store/"

// stores gives the store of a home to clients on other machines, to each as it may see it. Those
// who see the same home share a handler; Authorize should return the same Home each time.
type stores struct {
	mu   sync.Mutex
	of   map[*home.Home]*remote.Handler
	last []*home.Home // the latest is the last
}

// maxViews is how many views of the home are kept ready.
const maxViews = 100

func (s *stores) handler(h *home.Home) *remote.Handler {
	s.mu.Lock()
	defer s.mu.Unlock()
	if found := s.of[h]; found != nil {
		return found
	}
	if s.of == nil {
		s.of = make(map[*home.Home]*remote.Handler)
	}
	if s.last = append(s.last, h); len(s.last) > maxViews {
		_ = s.of[s.last[0]].Close() // its clients open their logs again
		delete(s.of, s.last[0])
		s.last = s.last[1:]
	}
	s.of[h] = remote.NewHandler(h.Store())
	return s.of[h]
}

// stop ends what would go on for ever.
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
	s.stores.handler(g.Home).ServeHTTP(w, r)
}
