package home_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/session"
)

// A home in memory is a home for one process.
func TestHomeInMemory(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	h, err := home.Open(ctx, "mem:", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if h.Dir() != "mem:" {
		t.Errorf("it is at %q", h.Dir())
	}
	made, err := session.Create(ctx, h.Store(), session.Header{ID: "a"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := made.AppendMessage(session.RoleUser, []session.Content{session.Text("where is the lighthouse")}); err != nil {
		t.Fatal(err)
	}
	if found, err := h.Search.Find(ctx, home.FindRequest{Query: "lighthouse"}); err != nil || len(found.Hits) != 1 {
		t.Errorf("found %+v, %v", found, err)
	}
	if _, err := h.Sessions.Archive(ctx, home.ArchiveRequest{Session: "a"}); !errors.Is(err, session.ErrInvalid) {
		t.Errorf("archive: %v", err)
	}
	if err := made.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Upkeep.Redact(ctx, home.RedactRequest{Value: "lighthouse", Apply: true}); err != nil {
		t.Errorf("redact: %v", err)
	}
	if found, err := h.Search.Find(ctx, home.FindRequest{Query: "lighthouse"}); err != nil || len(found.Hits) != 0 {
		t.Errorf("after the redaction: %+v, %v", found, err)
	}
}

// A URL that cannot be read is no directory, and a password in it is not shown.
func TestWrongURL(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, where := range []string{
		"postgres://me:hush%zz@localhost/agents", "postgresql://me:hush@localhost:port/agents",
		"postgres://me:hush#@[::1/agents", "postgre://me:hush@localhost/agents",
	} {
		h, err := home.Open(t.Context(), where, &home.Options{Create: true})
		if err == nil {
			h.Close()
		}
		var e *session.Error
		if !errors.Is(err, session.ErrInvalid) || !errors.As(err, &e) || e.Hint == "" || strings.Contains(err.Error()+e.Hint, "hush") {
			t.Errorf("%s: %v", where, err)
		}
	}
	if made, err := os.ReadDir("."); err != nil || len(made) > 0 {
		t.Errorf("made %v, %v", made, err)
	}
}
