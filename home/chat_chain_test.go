package home_test

import (
	"slices"
	"testing"

	"github.com/coppice-dev/coppice/home"
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
	h := newHouseInFiles(t)
	for _, id := range longTalk(t, h.Home, h.dir) {
		shown, err := h.Entries.Context(t.Context(), home.ContextRequest{Session: id})
		if err != nil {
			t.Fatal(err)
		}
		c := h.chat(home.ChatRequest{Session: id})
		status, err := c.Status(t.Context())
		if err != nil || status.Tokens < shown.Measured.Tokens/2 {
			t.Errorf("%s: the status is %+v, %v; the conversation has %d tokens", id, status, err, shown.Measured.Tokens)
		}
		h.tell(c, "go on")
		why, err := h.Entries.Why(t.Context(), home.WhyRequest{Session: id})
		if err != nil {
			t.Fatal(err)
		}
		last := why.Requests[len(why.Requests)-1]
		sent, err := h.Entries.Context(t.Context(), home.ContextRequest{Session: id, Leaf: last.Leaf})
		if err != nil {
			t.Fatal(err)
		}
		if last.Rebuilt == nil || !*last.Rebuilt || last.Record.Entries != len(sent.Entries) || last.Session != c.Conversation().SessionOf("") {
			t.Errorf("%s: %d entries were sent in session %s, and %d are shown; %+v", id, last.Record.Entries, last.Session, len(sent.Entries), last.Rebuilt)
		}
		of := ids(sent.Entries)
		for i := range shown.Entries {
			if e := &shown.Entries[i]; !session.IsPrompt(e) && !slices.Contains(of, e.ID) {
				t.Errorf("%s: %s was shown before, and is not sent", id, e.ID)
			}
		}
		if after, err := h.Entries.Context(t.Context(), home.ContextRequest{Session: id}); err != nil || !slices.Equal(ids(after.Entries)[:len(of)], of) || len(after.Entries) != len(of)+1 {
			t.Errorf("%s: %d entries were sent, and after the answer there are %d, %v", id, len(of), len(after.Entries), err)
		}
	}
}
