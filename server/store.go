package server

import (
	"context"
	"net/http"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/remote"
)

// storePath is where a client finds the store of the home: see package store/remote.
const storePath = "/v1/store/"

// serveStore offers the store of the home to clients on other machines. It deals in lines and
// notes, and knows no rules about entries: a client that writes there can write what an agent
// would, make tokens, or have a directory trusted. So only those who may do everything write
// there, or read notes. The others read logs and blobs, which they may read by the operations
// too: so a client shows and exports a conversation as it does one that is here.
func (s *Server) serveStore(w http.ResponseWriter, r *http.Request) {
	noteOperation(r.Context(), "store")
	handler := s.store
	if g := GrantOf(r.Context()); g.Access < home.Admin {
		if !remote.OnlyReads(r) {
			s.fail(w, r, forbidden(g, home.Admin))
			return
		}
		handler = s.readable
	}
	held := holdingOf(r.Context())
	handler.Serve(w, r, func(n int64) error {
		err := held.take(r.Context(), n)
		if p, ok := err.(*Problem); ok && p.Kind == home.KindTooLarge {
			err = &store.Error{Op: "read the request", Kind: store.ErrTooLarge, Err: p}
		}
		return err
	})
}

// withoutNotes is a store to read that shows nobody its notes. Some of them are secrets of the
// home: tokens, and the key that signs approvals.
type withoutNotes struct{ store.Store }

// Notes implements store.Store.
func (withoutNotes) Notes(string) store.Notes { return noNotes{} }

var errNeedsAdmin = session.Invalidf("this needs a token with admin access")

type noNotes struct{}

func (noNotes) Read(_ context.Context, name string) ([]byte, error) {
	return nil, &store.Error{Op: "read note", Name: name, Kind: store.ErrNotExist}
}

func (noNotes) List(context.Context) ([]store.Note, error)      { return nil, nil }
func (noNotes) Write(context.Context, string, []byte) error     { return errNeedsAdmin }
func (noNotes) WriteHint(context.Context, string, []byte) error { return errNeedsAdmin }
func (noNotes) Remove(context.Context, string) error            { return errNeedsAdmin }

func (noNotes) Change(context.Context, string, func([]byte) ([]byte, error)) error {
	return errNeedsAdmin
}
