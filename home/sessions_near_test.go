package home_test

import (
	"slices"
	"testing"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/session"
)

// What tree and show print for the revision of an imported record can be typed.
func TestTheNameOfARevisionMeansIt(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	s := h.say(session.Header{ID: "s"}, "one")
	entry := h.ids(s)[0]
	revision := entry + "~89abcdef"
	if err := s.Append(session.Entry{
		Type: session.TypeMessage, ID: revision, ParentID: &entry,
		Message: &session.MessageEntry{Role: session.RoleUser, Content: []session.Content{session.Text("one, revised")}},
	}); err != nil {
		t.Fatal(err)
	}
	for given, want := range map[string]string{entry[:8]: entry, entry[:8] + "~89ab": revision, entry[:8] + "~8": revision, revision: revision} {
		if got, err := home.ResolveEntry(s, given); got != want || err != nil {
			t.Errorf("%q means %q, %v; want %q", given, got, err, want)
		}
	}
}

// Whoever names a conversation twice, by whatever name, means it once.
func TestDistinctSessions(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.say(session.Header{ID: "beans"}, "about beans")
	h.say(session.Header{ID: "peas"}, "about peas")
	got := must[*home.DistinctResult](t)(h.Sessions.Distinct(t.Context(), home.DistinctRequest{Sessions: []string{"beans", "bea", "nope", "About Peas", "beans", "peas", "nope"}})).Sessions
	if want := []string{"beans", "nope", "peas"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
