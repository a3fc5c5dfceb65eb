package render_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/memory"
)

// failing are blobs that cannot be read.
type failing struct {
	store.Blobs
	err error
}

func (f failing) Get(context.Context, store.Ref) ([]byte, error) { return nil, f.err }

// Output that is only out of reach is not shown as missing.
func TestOutputOutOfReach(t *testing.T) {
	t.Parallel()
	st := memory.New(nil)
	s, err := session.Create(t.Context(), st, session.Header{ID: "s"}, &session.Options{BlobThreshold: 10})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, c := range []session.Content{session.ToolUse("c", "sh", nil), session.ToolResult("c", strings.Repeat("output ", 100), false)} {
		role := session.RoleAssistant
		if c.ToolResult != nil {
			role = session.RoleTool
		}
		if _, err := s.AppendMessage(role, []session.Content{c}); err != nil {
			t.Fatal(err)
		}
	}
	entries, err := s.Peek(s.LeafID())
	if err != nil {
		t.Fatal(err)
	}
	fetch := func(err error) (string, error) {
		c := render.Conversation{Session: s, Blobs: failing{st.Blobs(), err}}
		err = c.FetchOutput(t.Context(), &entries[0], render.MaxOutput)
		return entries[0].Message.Content[0].ToolResult.Content, err
	}
	unmounted := errors.New("not mounted")
	if text, err := fetch(unmounted); !errors.Is(err, unmounted) || text != "" {
		t.Errorf("out of reach: %q, %v", text, err)
	}
	if text, err := fetch(store.ErrNotExist); err != nil || !strings.Contains(text, "content is missing") {
		t.Errorf("gone: %q, %v", text, err)
	}
}
