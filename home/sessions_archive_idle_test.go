package home_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/lease"
)

// idleHome has sessions that have been idle for longer than its setting says, and others. It
// returns the notices about what was archived on the side, and the names of what is archived.
func idleHome(t *testing.T, after string) (h *home.Home, archived func() string, told func() []home.Notice) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "s")
	var mu sync.Mutex
	var notices []home.Notice
	h, err := home.Open(t.Context(), dir, &home.Options{
		Settings: settings(t, env{"HOME": t.TempDir(), "COPPICE_SYNC": "never", "COPPICE_ARCHIVE_AFTER": after}), Create: true,
		Notify: func(n home.Notice) {
			mu.Lock()
			defer mu.Unlock()
			notices = append(notices, n)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	for name, days := range map[string]int{"old": 100, "open": 100, "followed": 100, "worked-on": 100, "tagged": 100, "new": 3} {
		keep(t, dir, name, days, "said long ago")
		at := time.Now().AddDate(0, 0, -days)
		if name == "tagged" {
			at = time.Now() // somebody has just written to it, and said nothing
		}
		if err := os.Chtimes(filepath.Join(dir, name+".jsonl"), at, at); err != nil {
			t.Fatal(err)
		}
	}
	archived = func() string {
		t.Helper()
		var names []string
		all, err := store.All(t.Context(), h.Store())
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range all {
			if l.Archived {
				names = append(names, l.Name)
			}
		}
		slices.Sort(names)
		return strings.Join(names, " ")
	}
	told = func() (list []home.Notice) {
		mu.Lock()
		defer mu.Unlock()
		for _, n := range notices {
			if n.Kind == home.IdleArchived {
				list = append(list, n)
			}
		}
		return list
	}
	return h, archived, told
}

// TestIdleSessionsAreArchived: what was idle for as long as the setting says is compressed on the
// side, and is there as before. What somebody has open, follows, works on or has just written to
// is left alone, until it is idle, too.
func TestIdleSessionsAreArchived(t *testing.T) {
	t.Parallel()
	h, archived, told := idleHome(t, "90d")
	ctx := t.Context()
	c, err := h.Conversation(ctx, home.OpenRequest{Session: "open"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	watching, stop := context.WithCancel(ctx)
	defer stop()
	listens, stopped := make(chan struct{}), make(chan error, 1)
	go func() {
		_, err := h.Entries.Follow(home.WithBegun(watching, func() { close(listens) }), home.FollowRequest{Session: "followed"}, nil)
		stopped <- err
	}()
	<-listens
	work, err := lease.At(h.Store(), "worked-on").Take(ctx, func(error) {})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Upkeep.Tidy(ctx, home.TidyRequest{Stale: true, DryRun: true}); err != nil || archived() != "" {
		t.Fatalf("a dry run archived %q, %v", archived(), err)
	}
	if _, err := h.Upkeep.Tidy(ctx, home.TidyRequest{Stale: true}); err != nil {
		t.Fatal(err)
	}
	if got := archived(); got != "old" {
		t.Errorf("archived is %q, want old", got)
	}
	if list := told(); len(list) != 1 || list[0].Count != 1 || list[0].Error != nil {
		t.Errorf("the notices are %+v", list)
	}
	found, err := h.Sessions.List(ctx, home.ListRequest{})
	if err != nil || len(found.Sessions) != 6 {
		t.Errorf("listed are %+v, %v", found, err)
	}
	if _, err := h.Entries.Append(ctx, home.AppendRequest{Session: "old", Message: &session.MessageEntry{Role: session.RoleUser, Content: []session.Content{session.Text("again")}}}); err != nil {
		t.Error(err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	stop()
	<-stopped
	if err := work.Release(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Upkeep.Retain(ctx, home.RetainRequest{OlderThan: home.Age(1000 * 24 * time.Hour)}); err != nil {
		t.Fatal(err)
	}
	if got := archived(); got != "followed open worked-on" {
		t.Errorf("archived is %q once nobody uses them any more", got)
	}
}

// TestIdleSessionsStay: without the setting nothing is archived.
func TestIdleSessionsStay(t *testing.T) {
	t.Parallel()
	h, archived, told := idleHome(t, "")
	h.KeepUp(t.Context()) // returns at once: there is nothing to keep up
	if _, err := h.Upkeep.Tidy(t.Context(), home.TidyRequest{Stale: true}); err != nil || archived() != "" || len(told()) > 0 {
		t.Errorf("archived is %q, %v, and %v was told", archived(), err, told())
	}
}

// TestKeepUpArchives checks that a long-running program archives when it starts, and stops with its context.
func TestKeepUpArchives(t *testing.T) {
	t.Parallel()
	h, archived, told := idleHome(t, "90d")
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		h.KeepUp(ctx)
		close(done)
	}()
	for range 1000 {
		if len(told()) > 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	stop()
	<-done
	if got := archived(); got != "followed old open worked-on" {
		t.Errorf("archived is %q", got)
	}
}
