package home_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/session"
)

// TestDraftsAreFoundAtOnce: what arrived of an answer is shown, exported and found as
// long as the answer itself is not there.
func TestDraftsAreFoundAtOnce(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	s := h.say(session.Header{ID: "talk"}, "explain it")
	if _, err := s.AppendAll(session.NewDraft("It is a zebra"), session.NewDraft("fish in a pond.")); err != nil {
		t.Fatal(err)
	}
	exported := func(format string) string {
		t.Helper()
		path := filepath.Join(t.TempDir(), "out."+format)
		r := home.ExportRequest{OpenRequest: home.OpenRequest{Session: "talk"}, Format: format, Path: path}
		if _, err := h.Transfer.Export(t.Context(), r, nil); err != nil {
			t.Fatal(err)
		}
		return readText(t, path)
	}
	hits := func() int {
		t.Helper()
		found, err := h.Search.Find(t.Context(), home.FindRequest{Query: "pond"})
		if err != nil {
			t.Fatal(err)
		}
		return len(found.Hits)
	}
	for _, format := range []string{home.ExportMarkdown, home.ExportHTML, "claude-code"} {
		if text := exported(format); strings.Count(text, "It is a zebrafish in a pond.") != 1 {
			t.Errorf("%s: %s", format, text)
		}
	}
	if n := hits(); n != 1 {
		t.Errorf("the draft is found %d times", n)
	}
	if _, err := s.AppendMessage(session.RoleAssistant, []session.Content{session.Text("It is a zebrafish in a pond, I think.")}); err != nil {
		t.Fatal(err)
	}
	for _, format := range []string{home.ExportMarkdown, home.ExportHTML, "claude-code"} {
		if text := exported(format); strings.Count(text, "zebrafish in a pond") != 1 || strings.Contains(text, "pond.") {
			t.Errorf("with the answer, %s: %s", format, text)
		}
	}
	if n := hits(); n != 1 {
		t.Errorf("the answer is found %d times", n)
	}
}
