package home

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/memory"
)

// A program with home/local alone can write and read sessions. An operation that needs another part
// says which one is missing and how to get it. Not parallel: it changes what the whole program has
// registered.
func TestWithoutParts(t *testing.T) {
	had := parts
	parts = Parts{}
	t.Cleanup(func() { parts = had })
	ctx := t.Context()
	_, directoryErr := Open(ctx, t.TempDir(), nil)
	_, memoryErr := Open(ctx, "mem:", nil)
	parts.Stores = slices.DeleteFunc(slices.Clone(had.Stores), func(k StoreKind) bool { return isOther(k.Schemes[0]) })
	h, err := Open(ctx, filepath.Join(t.TempDir(), "sessions"), &Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	made, err := h.Sessions.Create(ctx, CreateRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Entries.Append(ctx, AppendRequest{
		Session: made.Session, Message: &session.MessageEntry{Role: session.RoleUser, Content: []session.Content{session.Text("Hello!")}},
	}); err != nil {
		t.Fatal(err)
	}
	export := func(format string) error {
		_, err := h.Transfer.Export(ctx, ExportRequest{OpenRequest: OpenRequest{Session: made.Session}, Format: format}, func(ExportPiece) error { return nil })
		return err
	}
	_, listErr := h.Sessions.List(ctx, ListRequest{})
	_, countErr := counterNamed("o200k", "", "")
	_, connectErr := new(server).connect(ctx, "", func() {})
	_, openErr := Open(ctx, "postgres://localhost/sessions", nil)
	for what, err := range map[string]error{
		"an index": listErr, "pages in HTML": export(ExportHTML), "pages in Markdown": export(ExportMarkdown),
		"exact counters": countErr, "MCP": connectErr, "databases": openErr,
		"homes in directories": directoryErr, "homes in memory": memoryErr,
	} {
		var e *session.Error
		if !errors.As(err, &e) || !strings.Contains(e.Err.Error(), "built without "+what) || !strings.Contains(e.Hint, "home/all") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// A program may register a kind of store of its own, and replace one that is registered. Not
// parallel: it changes what the whole program has registered.
func TestOwnKindOfStore(t *testing.T) {
	had := parts
	t.Cleanup(func() { parts = had })
	var opened []string
	open := func(_ context.Context, where string, o StoreOptions) (store.Store, error) {
		opened = append(opened, where)
		return memory.New(&memory.Options{MaxLogs: o.Limits.Logs}), nil
	}
	Register(Parts{Stores: []StoreKind{{Schemes: []string{"shelf", "mem"}, Open: open}}})
	for _, where := range []string{"shelf://attic/left", "mem:"} {
		h, err := Open(t.Context(), where, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.Sessions.Create(t.Context(), CreateRequest{}); err != nil {
			t.Error(err)
		}
		if list, err := h.Sessions.List(t.Context(), ListRequest{}); err != nil || len(list.Sessions) != 1 {
			t.Errorf("%s: the list is %+v, %v", where, list, err)
		}
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}
	if want := []string{"shelf://attic/left", "mem:"}; !slices.Equal(opened, want) {
		t.Errorf("opened %q, want %q", opened, want)
	}
}
