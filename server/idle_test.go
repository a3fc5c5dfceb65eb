package server_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/server"
	"github.com/coppice-dev/coppice/session"
)

// TestServerArchivesIdleSessions: a server looks after its home while it runs, if the settings ask
// for that.
func TestServerArchivesIdleSessions(t *testing.T) {
	t.Parallel()
	long := time.Now().AddDate(0, 0, -100)
	set, err := home.LoadSettings(func(string) string { return "" }, home.Setting{Key: home.SettingArchiveAfter, Value: "90d"})
	if err != nil {
		t.Fatal(err)
	}
	archived := make(chan int, 1)
	dir := filepath.Join(t.TempDir(), "s")
	h, err := home.Open(t.Context(), dir, &home.Options{Settings: set, Create: true, Notify: func(n home.Notice) {
		if n.Kind == home.IdleArchived {
			archived <- n.Count
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	s, err := session.Create(t.Context(), h.Store(), session.Header{ID: "old", CreatedAt: long}, &session.Options{Now: func() time.Time { return long }})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.AppendMessage(session.RoleUser, []session.Content{session.Text("long ago")})
	if err := errors.Join(err, s.Close(), os.Chtimes(filepath.Join(dir, "old.jsonl"), long, long)); err != nil {
		t.Fatal(err)
	}
	srv, err := server.New(server.Options{Home: h})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(ctx, newPipes()) }()
	select {
	case n := <-archived:
		if n != 1 {
			t.Errorf("%d sessions were archived", n)
		}
	case <-time.After(10 * time.Second):
		t.Error("the server did not archive the idle session")
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
