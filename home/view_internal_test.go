package home

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/session"
)

// TestWhatIsLookedAtIsClosed: a conversation stays open as long as somebody looks at it, and some
// minutes more.
func TestWhatIsLookedAtIsClosed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		h, err := Open(ctx, dir, &Options{Create: true})
		if err != nil {
			t.Fatal(err)
		}
		made, err := h.Sessions.Create(ctx, CreateRequest{})
		if err != nil {
			t.Fatal(err)
		}
		say := &session.MessageEntry{Role: session.RoleUser, Content: []session.Content{session.Text("hello")}}
		if _, err := h.Entries.Append(ctx, AppendRequest{Session: made.Session, Message: say}); err != nil {
			t.Fatal(err)
		}
		look := func() {
			t.Helper()
			if _, err := h.Entries.Rows(ctx, RowsRequest{Session: made.Session}); err != nil {
				t.Fatal(err)
			}
		}
		open := func(want int) {
			t.Helper()
			synctest.Wait()
			if list, _ := h.keeper.views.Contents(); len(list) != want {
				t.Errorf("%d conversations are open, and should be %d", len(list), want)
			}
		}
		for range 3 {
			look()
			time.Sleep(viewedFor - time.Second) // of the bubble
			open(1)
		}
		time.Sleep(time.Second)
		open(0)
		look()
		if _, err := h.Sessions.Archive(ctx, ArchiveRequest{Session: made.Session}); err != nil {
			t.Fatal(err)
		}
		open(0)
		look()
		if err := h.Close(); err != nil {
			t.Error(err)
		}
		open(0)
	})
}

// TestALongLookKeepsNothingBack: one caller still seeks in a conversation that was rewritten,
// and others see what is there now.
func TestALongLookKeepsNothingBack(t *testing.T) {
	t.Parallel()
	ctx, dir, secret := t.Context(), t.TempDir(), "hunter2-"+"correct-horse"
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	h, err := Open(ctx, dir, &Options{Create: true})
	must(err)
	defer h.Close()
	made, err := h.Sessions.Create(ctx, CreateRequest{})
	must(err)
	say := &session.MessageEntry{Role: session.RoleUser, Content: []session.Content{session.Text("hello " + secret)}}
	_, err = h.Entries.Append(ctx, AppendRequest{Session: made.Session, Message: say})
	must(err)
	must(h.look(ctx, OpenRequest{Session: made.Session}, func(v *viewed, _ render.Conversation) error {
		v.mu.Unlock()
		defer v.mu.Lock()
		other, err := Open(ctx, dir, nil)
		must(err)
		defer other.Close()
		_, err = other.Upkeep.Redact(ctx, RedactRequest{Value: secret, Apply: true})
		must(err)
		rows, err := h.Entries.Rows(ctx, RowsRequest{Session: made.Session})
		must(err)
		if len(rows.Rows) != 1 || strings.Contains(rows.Rows[0].Gist, secret) {
			t.Errorf("the rows are %+v", rows.Rows)
		}
		return nil
	}))
}
