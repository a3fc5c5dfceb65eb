package home_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/session"
)

// Repairing keeps a copy of the log, and tidying looks at blobs: both finish an
// interrupted redaction first, like everything that writes.
func TestUpkeepFinishesARedactionFirst(t *testing.T) {
	t.Parallel()
	h, dir := keptHome(t)
	keep(t, dir, "s", 1, "hello")
	for name, write := range map[string]func(dryRun bool) error{
		"repair": func(dryRun bool) error {
			_, err := h.Upkeep.Repair(t.Context(), home.RepairRequest{Session: "s", DryRun: dryRun})
			return err
		},
		"tidy": func(dryRun bool) error {
			_, err := h.Upkeep.Tidy(t.Context(), home.TidyRequest{Stale: true, DryRun: dryRun})
			return err
		},
	} {
		if err := h.Store().Notes("").Write(t.Context(), "redact.pending", []byte(`{"all":true}`)); err != nil {
			t.Fatal(err)
		}
		for _, dryRun := range []bool{true, false} {
			if err := write(dryRun); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if left, err := h.Upkeep.Unfinished(t.Context()); err != nil || left.Unfinished != dryRun {
				t.Errorf("%s, dry run %v: unfinished %v, %v", name, dryRun, left, err)
			}
		}
	}
}

// What was taken out of a home does not come back through a conversation that was
// open all the while.
func TestRedactionReachesOpenConversations(t *testing.T) {
	t.Parallel()
	h, dir := keptHome(t)
	secret := "gh" + "p_" + "fOurThB1tsT3stF1x8Kq7wZ2yLp5Vc9Jh3X4"
	keep(t, dir, "leaky", 1, "use "+secret)
	keep(t, dir, "open", 1, "hello")
	c, err := h.Conversation(t.Context(), home.OpenRequest{Session: "open"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := h.Upkeep.Redact(t.Context(), home.RedactRequest{All: true, Apply: true}); err != nil {
		t.Fatal(err)
	}
	id, err := c.AppendMessage(session.RoleUser, []session.Content{session.Text("again: " + secret)})
	if err != nil {
		t.Fatal(err)
	}
	e, err := c.Entry(id)
	if err != nil || session.TextOf(e.Message.Content) != "again: [REDACTED:github-token]" {
		t.Errorf("%q, %v", session.TextOf(e.Message.Content), err)
	}
}

// Nor does it come back from a session that somebody copied into the directory by hand.
func TestForkOfACopiedSessionHasNothingThatWasRedacted(t *testing.T) {
	t.Parallel()
	h, dir := keptHome(t)
	secret := "gh" + "p_" + "fOurThB1tsT3stF1x8Kq7wZ2yLp5Vc9Jh3X4"
	keep(t, dir, "leaky", 1, "use "+secret)
	if _, err := h.Upkeep.Redact(t.Context(), home.RedactRequest{All: true, Apply: true}); err != nil {
		t.Fatal(err)
	}
	keep(t, dir, "copied", 1, "use "+secret, "thanks")
	c, err := h.Conversation(t.Context(), home.OpenRequest{Session: "copied"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, at := range []string{"", c.LeafID()} {
		forked, err := h.Sessions.Fork(t.Context(), home.ForkRequest{Session: "copied", At: at})
		if err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(filepath.Join(dir, forked.Session+".jsonl"))
		if err != nil || bytes.Contains(data, []byte(secret)) || !bytes.Contains(data, []byte("use [REDACTED:github-token]")) || !bytes.Contains(data, []byte("thanks")) {
			t.Errorf("the fork at %q: %v\n%s", at, err, data)
		}
	}
}
