package server

import (
	"net/http"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/server/mcp"
)

// models answers /mcp, where agents search and read the sessions.
func (s *Server) models() http.Handler {
	return mcp.Handler(func(r *http.Request) (*home.Home, *mcp.Options) {
		g := GrantOf(r.Context())
		return g.Home, &mcp.Options{
			ReadOnly: g.Access < home.Write, Version: s.o.Version, Setup: s.o.SetupMCP,
			Describe: func(err error) home.ErrorInfo {
				p := s.problem(r.Context(), err)
				return home.ErrorInfo{Kind: p.Kind, Message: p.Detail, Field: p.Field, Hint: p.Hint}
			},
		}
	})
}
