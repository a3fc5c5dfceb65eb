//go:build unix

package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/internal/postgrestest"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/postgres"
	"github.com/coppice-dev/coppice/store/storetest"
)

// follow watches all logs of a store until the test ends, and returns what it tells.
func follow(t *testing.T, s *postgres.Store) <-chan string {
	t.Helper()
	names, ended := make(chan string, 1000), make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer close(ended)
		for name, err := range store.Watch(ctx, s) {
			if err != nil {
				t.Errorf("watching ends: %v", err)
				return
			}
			names <- name
		}
	}()
	t.Cleanup(func() { cancel(); <-ended })
	return names
}

func wantName(t *testing.T, names <-chan string, want string) {
	t.Helper()
	for late := time.After(30 * time.Second); ; {
		select {
		case name := <-names:
			if name == want {
				return
			}
		case <-late:
			t.Fatalf("no news of %q", want)
		}
	}
}

func waitUntil(t *testing.T, what string, is func() bool) {
	t.Helper()
	for late := time.Now().Add(30 * time.Second); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(late) {
			t.Fatal(what)
		}
	}
}

// The server notifies those who watch all logs, so they need not poll. What happens while a
// connection is broken is found with the next one. Other tenants cause no news.
func TestWatchersOfAllLogsAreTold(t *testing.T) {
	t.Parallel()
	where := postgrestest.URL(t)
	const ours = "a watch that breaks"
	here, there := mustOpen(t, postgrestest.With(t, where, "application_name", ours), nil), mustOpen(t, where, nil)
	names := follow(t, here)
	wantName(t, names, "")
	waitUntil(t, "no notification arrives", func() bool { return postgres.Hears(here) })
	storetest.MustAppend(t, storetest.MustCreate(t, there, "a", `{"n":0}`), `{"n":1}`)
	wantName(t, names, "a")

	postgrestest.Exec(t, postgrestest.With(t, where, "schema", "", "tenant", ""),
		`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1 AND query LIKE 'LISTEN%'`, ours)
	storetest.MustCreate(t, there, "b", `{"n":0}`)
	wantName(t, names, "b")
	waitUntil(t, "no notification arrives any more", func() bool { return postgres.Hears(here) })

	elsewhere := mustOpen(t, postgrestest.With(t, where, "tenant", postgrestest.Param(t, where, "tenant")+"-other"), nil)
	storetest.MustCreate(t, elsewhere, "c", `{"n":0}`)
	storetest.MustCreate(t, there, "d", `{"n":0}`)
	for {
		select {
		case name := <-names:
			if name == "c" {
				t.Fatal("there is news of a log of another tenant")
			}
			if name == "d" {
				return
			}
		case <-time.After(30 * time.Second):
			t.Fatal("no news of d")
		}
	}
}

// A watch ends with its store.
func TestWatchEndsWithItsStore(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, postgrestest.URL(t), nil)
	ended := make(chan error, 1)
	go func() {
		var last error
		for _, err := range store.Watch(t.Context(), s) {
			last = err
		}
		ended <- last
	}()
	waitUntil(t, "no notification arrives", func() bool { return postgres.Hears(s) })
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if err == nil {
			t.Error("it ends without an error")
		}
	case <-time.After(30 * time.Second):
		t.Error("it goes on")
	}
}
