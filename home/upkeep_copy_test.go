package home_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/session"
)

// TestCopyHomes: a copy has what was named, or everything; making it again adds nothing; and a copy
// that makes no sense is refused with what to do instead.
func TestCopyHomes(t *testing.T) {
	t.Parallel()
	_, dir := keptHome(t)
	keep(t, dir, "a", 3, "plant trees")
	keep(t, dir, "b", 2, "water them")
	to := filepath.Join(t.TempDir(), "copy")
	o := &home.Options{Settings: settings(t, env{"HOME": t.TempDir(), "COPPICE_SYNC": "never"})}
	listed := func() string {
		t.Helper()
		h, err := home.Open(t.Context(), to, o)
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		list, err := h.Sessions.List(t.Context(), home.ListRequest{})
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, s := range list.Sessions {
			names = append(names, s.ID)
		}
		return strings.Join(names, " ")
	}
	if _, err := home.Copy(t.Context(), home.CopyRequest{From: dir, To: to, Sessions: []string{"a"}}, o); err != nil || listed() != "a" {
		t.Fatalf("%v, and the copy has %q, want a", err, listed())
	}
	for range 2 {
		if _, err := home.Copy(t.Context(), home.CopyRequest{From: dir, To: to}, o); err != nil || listed() != "b a" {
			t.Fatalf("%v, and the copy has %q, want b a", err, listed())
		}
	}
	// Both have continued on their own: neither may take the place of the other.
	keepOn := func(dir, text string) {
		t.Helper()
		h, err := home.Open(t.Context(), dir, o)
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		if _, err := h.Entries.Append(t.Context(), home.AppendRequest{Session: "a", Message: &session.MessageEntry{Role: session.RoleUser, Content: []session.Content{session.Text(text)}}}); err != nil {
			t.Fatal(err)
		}
	}
	keepOn(dir, "here")
	keepOn(to, "there")
	result, err := home.Copy(t.Context(), home.CopyRequest{From: dir, To: to}, o)
	if !errors.Is(err, home.ErrPartial) || result == nil || len(result.Conflicts) != 1 {
		t.Errorf("two that differ: %+v, %v", result, err)
	}
	for name, c := range map[string]struct {
		r    home.CopyRequest
		kind error
		says string
	}{
		"onto itself":       {home.CopyRequest{From: dir, To: filepath.Join(dir, "..", filepath.Base(dir))}, session.ErrInvalid, "both homes are the same"},
		"from nothing":      {home.CopyRequest{From: filepath.Join(t.TempDir(), "gone"), To: to}, session.ErrNotExist, "there must be a home to copy from"},
		"no such session":   {home.CopyRequest{From: dir, To: to, Sessions: []string{"nope"}}, session.ErrNotExist, "nope"},
		"behind a server":   {home.CopyRequest{From: "https://example.org", To: to}, session.ErrInvalid, "run this where the server runs"},
		"into a server":     {home.CopyRequest{From: dir, To: "https://example.org"}, session.ErrInvalid, "run this where the server runs"},
		"to no home at all": {home.CopyRequest{From: dir, To: filepath.Join(dir, "a.jsonl")}, nil, "a.jsonl"},
	} {
		_, err := home.Copy(t.Context(), c.r, o)
		said := ""
		if wrong, ok := errors.AsType[*session.Error](err); ok {
			said = wrong.Error() + " " + wrong.Hint
		}
		if err == nil || c.kind != nil && !errors.Is(err, c.kind) || !strings.Contains(said, c.says) {
			t.Errorf("%s: %v (%s)", name, err, said)
		}
	}
}
