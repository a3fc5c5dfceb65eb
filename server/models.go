package server

import (
	"bytes"
	"io"
	"net/http"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/server/mcp"
)

// maxCall is how large a request of an agent may be.
const maxCall = 4 << 20

// models answers /mcp, where agents search and read the sessions.
func (s *Server) models() http.Handler {
	next := s.modelsOf()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		noteOperation(r.Context(), "mcp")
		body, err := reservationOf(r.Context()).readBody(w, r, min(s.o.Limits.Body, maxCall))
		if err != nil {
			s.fail(w, r, err)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		next.ServeHTTP(w, r)
	})
}

func (s *Server) modelsOf() http.Handler {
	return mcp.Handler(s.stopping, func(r *http.Request) (*home.Home, *mcp.Options) {
		g := GrantOf(r.Context())
		return s.o.Home, &mcp.Options{
			ReadOnly: g.Access < home.Write, Caller: g.Name, Version: s.o.Version, Setup: s.o.SetupMCP,
			Describe: func(err error) home.ErrorInfo {
				p := s.problem(r, err)
				return home.ErrorInfo{Kind: p.Kind, Message: p.Detail, Field: p.Field, Hint: p.Hint}
			},
		}
	})
}
