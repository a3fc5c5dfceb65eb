//go:build unix

package server_test

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/internal/postgrestest"
	"github.com/coppice-dev/coppice/server"
)

// If the server's own database role lacks a permission, the caller gets 403 with the reason, and
// the operator finds it in the log.
func TestReaderRole(t *testing.T) {
	t.Parallel()
	where := postgrestest.URL(t)
	where = postgrestest.With(t, where, "user", postgrestest.Role(t, where, postgrestest.Param(t, where, "tenant"), false))
	var log told
	s := serveAt(t, where, func(o *server.Options) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	a := s.ask("POST", "/v1/sessions", "{}", "Content-Type: application/json")
	var p server.Problem
	if err := json.Unmarshal(a.body, &p); err != nil || a.status != http.StatusForbidden || p.Kind != home.KindForbidden || p.Detail == "" || p.Hint == "" {
		t.Errorf("the answer is %d %s", a.status, a.body)
	}
	if !strings.Contains(log.String(), "permission denied") {
		t.Errorf("the log has %q", log.String())
	}
	if a := s.ask("GET", "/v1/sessions", ""); a.status != http.StatusOK {
		t.Errorf("a list is answered with %d %s", a.status, a.body)
	}
}
