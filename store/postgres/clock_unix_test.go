//go:build unix

package postgres_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/internal/needs"
	"github.com/coppice-dev/coppice/internal/postgrestest"
	"github.com/coppice-dev/coppice/store/lease"
	"github.com/coppice-dev/coppice/store/postgres"
	"github.com/coppice-dev/coppice/store/storetest"
)

// The clocks of a program and of the server are an hour apart. What counts is the server's, so
// that programs with different clocks agree; how long ago something was is right on both.
func TestClocks(t *testing.T) {
	t.Parallel()
	needs.This(t, needs.Faketime)
	found, err := filepath.Glob("/usr/lib/*/faketime/libfaketime.so.1")
	if err != nil || len(found) == 0 {
		t.Fatal("there is no libfaketime; scripts/deps.sh installs it")
	}
	bin, err := postgrestest.Find()
	if err != nil {
		t.Fatal(err)
	}
	server, err := postgrestest.Start(bin, socketDir(t), "fsync=off")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { server.Stop() }()
	if _, err := postgres.Migrate(t.Context(), server.URL(nil)); err != nil {
		t.Fatal(err)
	}
	for shift, ahead := range map[string]time.Duration{"+1h": time.Hour, "-1h": -time.Hour} {
		server.Kill()
		server.Env = []string{"LD_PRELOAD=" + found[0], "FAKETIME=" + shift}
		if err := server.Run(); err != nil {
			t.Fatal(err)
		}
		t.Run(shift, func(t *testing.T) { testClock(t, mustOpen(t, server.URL(nil), nil), ahead) })
	}
}

func testClock(t *testing.T, s *postgres.Store, ahead time.Duration) {
	near := func(what string, got, want time.Time) {
		t.Helper()
		if off := got.Sub(want).Abs(); off > 5*time.Minute { // a machine can be slow, but not so slow
			t.Errorf("%s is %v off", what, off)
		}
	}
	log := storetest.MustCreate(t, s, "a", `{"n":0}`)
	storetest.MustAppend(t, log, `{"n":1}`)
	stat, err := s.Stat(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	near("the last append", stat.Modified, time.Now().Add(ahead))
	held, err := lease.At(s, "a").Take(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lease.At(s, "a").Take(t.Context(), nil); err == nil {
		t.Error("two have a lease")
	}
	if err := held.Release(t.Context()); err != nil {
		t.Error(err)
	}
	if err := s.Remove(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	all, err := s.Trash().List(t.Context())
	if err != nil || len(all) != 1 {
		t.Fatalf("the trash has %v, %v", all, err)
	}
	near("the removal, by our clock,", all[0].Removed, time.Now())
	stamp, err := time.Parse("20060102T150405.000000000Z", all[0].ID[len("a."):])
	if err != nil {
		t.Fatal(err)
	}
	near("the removal, by the server's clock,", stamp, time.Now().Add(ahead))
	if gone, err := s.Trash().Empty(t.Context(), time.Now().Add(-30*time.Minute)); err != nil || len(gone) != 0 {
		t.Errorf("what was just removed is taken for older than half an hour: %v, %v", gone, err)
	}
	if gone, err := s.Trash().Empty(t.Context(), time.Now().Add(30*time.Minute)); err != nil || len(gone) != 1 {
		t.Errorf("what was just removed stays: %v, %v", gone, err)
	}
}
