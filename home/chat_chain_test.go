package home_test

import (
	"slices"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/internal/demo"
	"github.com/coppice-dev/coppice/session"
)

// ids returns the ids of entries.
func ids(entries []session.Entry) (ids []string) {
	for i := range entries {
		ids = append(ids, entries[i].ID)
	}
	return ids
}

// What a chat sends is what Context shows, in a conversation of several sessions too,
// whichever of them is named.
func TestAChatSendsTheWholeConversation(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	all, err := demo.Write(t.Context(), h.Store(), time.Now(), false)
	if err != nil {
		t.Fatal(err)
	}
	long := 0
	for _, told := range all {
		shown, err := h.Entries.Context(t.Context(), home.ContextRequest{Session: told.ID})
		if err != nil {
			t.Fatal(err)
		}
		if shown.Conversation == "" {
			continue
		}
		long++
		c := h.chat(home.ChatRequest{Session: told.ID})
		status, err := c.Status(t.Context())
		if err != nil || status.Tokens < shown.Measured.Tokens/2 {
			t.Errorf("%s: the status is %+v, %v; the conversation has %d tokens", told.ID, status, err, shown.Measured.Tokens)
		}
		h.tell(c, "go on")
		why, err := h.Entries.Why(t.Context(), home.WhyRequest{Session: told.ID})
		if err != nil {
			t.Fatal(err)
		}
		last := why.Requests[len(why.Requests)-1]
		sent, err := h.Entries.Context(t.Context(), home.ContextRequest{Session: told.ID, Leaf: last.Leaf})
		if err != nil {
			t.Fatal(err)
		}
		if last.Rebuilt == nil || !*last.Rebuilt || last.Record.Entries != len(sent.Entries) || last.Session != c.Agent().Session().SessionOf("") {
			t.Errorf("%s: %d entries were sent in session %s, and %d are shown; %+v", told.ID, last.Record.Entries, last.Session, len(sent.Entries), last.Rebuilt)
		}
		of := ids(sent.Entries)
		for i := range shown.Entries {
			if e := &shown.Entries[i]; !session.IsPrompt(e) && !slices.Contains(of, e.ID) {
				t.Errorf("%s: %s was shown before, and is not sent", told.ID, e.ID)
			}
		}
		if after, err := h.Entries.Context(t.Context(), home.ContextRequest{Session: told.ID}); err != nil || !slices.Equal(ids(after.Entries)[:len(of)], of) || len(after.Entries) != len(of)+1 {
			t.Errorf("%s: %d entries were sent, and after the answer there are %d, %v", told.ID, len(of), len(after.Entries), err)
		}
	}
	if long == 0 {
		t.Error("no conversation has several sessions")
	}
}
