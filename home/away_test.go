package home_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/session"
)

// overThere performs operations in another directory, as a server on another machine does.
type overThere struct {
	*home.Home
	dir string
}

func (o overThere) Do(ctx context.Context, op *home.Operation, request any, send func(any) error) (any, error) {
	here, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	if err := os.Chdir(o.dir); err != nil {
		return nil, err
	}
	defer func() { _ = os.Chdir(here) }()
	return op.Call(ctx, o.Home, request, nil, send)
}

// Directories and files that a person names are those of the machine where the person is. Not
// parallel: it changes the working directory.
func TestPathsOfAHomeElsewhereAreThoseHere(t *testing.T) {
	h := newHouseInFiles(t)
	dir := t.TempDir()
	t.Chdir(dir)
	made, err := h.Sessions.Create(t.Context(), home.CreateRequest{Title: "here", CWD: dir})
	if err != nil {
		t.Fatal(err)
	}
	call := session.MessageEntry{Role: session.RoleAssistant, Content: []session.Content{
		session.Text("hello"), session.ToolUse("c", "read_file", map[string]any{"path": filepath.Join(dir, "x.go")}),
	}}
	if _, err := h.Entries.Append(t.Context(), home.AppendRequest{Session: made.Session, Message: &call}); err != nil {
		t.Fatal(err)
	}
	away, err := home.Away(t.Context(), h.Store(), overThere{h.Home, t.TempDir()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = away.Close() })
	for _, r := range []home.ListRequest{{CWD: "."}, {Filter: "cwd:."}, {Filter: `in:"../"`}, {File: "./x.go"}, {Filter: "file:./x.go"}} {
		if list, err := away.Sessions.List(t.Context(), r); err != nil || len(list.Sessions) != 1 {
			t.Errorf("list %+v: %+v, %v", r, list, err)
		}
	}
	if shelf, err := away.Sessions.Shelf(t.Context(), home.ShelfRequest{Filter: "cwd:."}); err != nil || len(shelf.Rows) != 1 {
		t.Errorf("%+v, %v", shelf, err)
	}
	for _, query := range []string{"hello cwd:.", `cwd:"." hello`, "hello file:./x.go"} {
		if r, err := away.Search.Find(t.Context(), home.FindRequest{Query: query}); err != nil || len(r.Hits) != 1 {
			t.Errorf("%s: %+v, %v", query, r, err)
		}
	}
}
