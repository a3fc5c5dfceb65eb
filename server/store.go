package server

import (
	"net/http"

	"github.com/coppice-dev/coppice/home"
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
	held, by := reservationOf(r.Context()), GrantOf(r.Context())
	s.store.Serve(w, r, remote.Caller{
		OnlyReads: by.Access < home.Admin,
		Hold: func(n int64) error {
			err := held.reserve(r.Context(), n)
			if p, ok := err.(*Problem); ok && p.Kind == home.KindTooLarge {
				err = &store.Error{Op: "read the request", Kind: store.ErrTooLarge, Err: p}
			}
			return err
		},
		Fail: func(status int, err error) {
			switch status {
			case http.StatusForbidden:
				err = forbidden(by, home.Admin)
			case http.StatusNotFound:
				err = problemf(status, home.KindNotFound, "%v", err)
			}
			s.fail(w, r, err)
		},
	})
}
