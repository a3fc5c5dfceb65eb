//go:build unix

package server_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/internal/postgrestest"
	"github.com/coppice-dev/coppice/server"
)

// What the server's own role in the database may not do is answered as forbidden, with the
// reason.
func TestReaderRole(t *testing.T) {
	t.Parallel()
	where := postgrestest.URL(t)
	s := serveAt(t, postgrestest.With(t, where, "user", postgrestest.Role(t, where, postgrestest.Param(t, where, "tenant"), false)), nil)
	a := s.ask("POST", "/v1/sessions", "{}", "Content-Type: application/json")
	var p server.Problem
	if err := json.Unmarshal(a.body, &p); err != nil || a.status != http.StatusForbidden || p.Kind != home.KindForbidden || p.Detail == "" || p.Hint == "" {
		t.Errorf("the answer is %d %s", a.status, a.body)
	}
	if a := s.ask("GET", "/v1/sessions", ""); a.status != http.StatusOK {
		t.Errorf("a list is answered with %d %s", a.status, a.body)
	}
}
