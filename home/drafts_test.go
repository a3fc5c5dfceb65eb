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
	exported := func(format string) string { return exportedTalk(t, h, format) }
	hits := func() int { return hitsFor(t, h, "pond") }
	for _, format := range []string{home.ExportMarkdown, home.ExportHTML, "claude-code"} {
		if text := exported(format); strings.Count(text, "It is a zebrafish in a pond.") != 1 {
			t.Errorf("%s: %s", format, text)
		}
	}
	if n := hits(); n != 1 {
		t.Errorf("the draft is found %d times", n)
	}
	if s := h.status("talk"); s.Draft != "It is a zebrafish in a pond." || !s.Unfinished {
		t.Errorf("the status is %+v", s)
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

// exportedTalk exports the session "talk".
func exportedTalk(t *testing.T, h *house, format string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "out."+format)
	r := home.ExportRequest{OpenRequest: home.OpenRequest{Session: "talk"}, Format: format, Path: path}
	if _, err := h.Transfer.Export(t.Context(), r, nil); err != nil {
		t.Fatal(err)
	}
	return readText(t, path)
}

// hitsFor counts what a search finds.
func hitsFor(t *testing.T, h *house, query string) int {
	t.Helper()
	found, err := h.Search.Find(t.Context(), home.FindRequest{Query: query})
	if err != nil {
		t.Fatal(err)
	}
	return len(found.Hits)
}

// TestQueuedWordsAreFoundAtOnce: what a person said during a turn is shown, exported and found
// before the model has heard it, and once after that. What was taken back is not shown.
func TestQueuedWordsAreFoundAtOnce(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	s := h.say(session.Header{ID: "talk"}, "explain it", "well")
	queue := func(text string) session.Queued {
		t.Helper()
		q := session.Queued{Content: []session.Content{session.Text(text)}, Session: "talk"}
		e, err := q.Entry()
		if err == nil {
			q.ID, err = s.AppendEntry(e)
		}
		if err != nil {
			t.Fatal(err)
		}
		return q
	}
	see := func(when, text string, want int) {
		t.Helper()
		for _, format := range []string{home.ExportMarkdown, home.ExportHTML, "claude-code"} {
			got := exportedTalk(t, h, format)
			shown := strings.Count(got, text) - strings.Count(got, text+"</a>") - strings.Count(got, text+" [queued]</a>") // which is the outline
			if shown != want {
				t.Errorf("%s, %s: shown %d times, want %d", when, format, shown, want)
			}
		}
	}
	back := queue("no, the aardvark")
	see("queued", "the aardvark", 1)
	if _, err := s.AppendEntry(session.NewTakenBack(back.ID)); err != nil {
		t.Fatal(err)
	}
	see("taken back", "the aardvark", 0)
	q := queue("in a pond, please")
	see("queued", "in a pond, please", 1)
	if n := hitsFor(t, h, "pond"); n != 1 {
		t.Errorf("it is found %d times", n)
	}
	if _, err := s.AppendEntry(q.Message()); err != nil {
		t.Fatal(err)
	}
	see("heard", "in a pond, please", 1)
	if n := hitsFor(t, h, "pond"); n != 1 {
		t.Errorf("as a message, it is found %d times", n)
	}
}
