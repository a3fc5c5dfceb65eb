//go:build unix

package postgres_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/coppice-dev/coppice/internal/postgrestest"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/postgres"
	"github.com/coppice-dev/coppice/store/storetest"
)

// smallDatabase returns the URL of a database on a file system with little room, and where that
// is. Only root can mount one.
func smallDatabase(t *testing.T) (where, dir string) {
	t.Helper()
	owner := postgrestest.Owner(t)
	server, err := os.Stat(filepath.Join(hostOf(t, owner), "data"))
	if err != nil {
		t.Fatal(err)
	}
	who, ok := server.Sys().(*syscall.Stat_t)
	if !ok {
		t.Fatal("who owns the server?")
	}
	dir = socketDir(t)
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", fmt.Sprintf("size=32m,mode=700,uid=%d,gid=%d", who.Uid, who.Gid), "tmpfs", dir).CombinedOutput(); err != nil {
		_ = os.Remove(dir)
		t.Skipf("no file system can be mounted here: %v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", "-l", dir).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
		_ = os.Remove(dir)
	})
	tables := filepath.Join(dir, "tables")
	if err := errors.Join(os.Mkdir(tables, 0o700), os.Chown(tables, int(who.Uid), int(who.Gid))); err != nil {
		t.Fatal(err)
	}
	postgrestest.Exec(t, owner, `CREATE TABLESPACE small LOCATION '`+tables+`'`)
	postgrestest.Exec(t, owner, `CREATE DATABASE small TABLESPACE small`)
	t.Cleanup(func() {
		conn, err := pgx.Connect(context.Background(), owner)
		if err == nil {
			_, err = conn.Exec(context.Background(), `DROP DATABASE small WITH (FORCE)`)
		}
		if err == nil {
			_, err = conn.Exec(context.Background(), `DROP TABLESPACE small`)
		}
		if err != nil {
			t.Error(err)
			return
		}
		conn.Close(context.Background())
	})
	u, err := url.Parse(owner)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/small"
	return u.String(), dir
}

// When the disk of the server is full, writes are refused whole, everything can still be read, and
// once there is room again, the same handle continues.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	where, dir := smallDatabase(t)
	if _, err := postgres.Migrate(t.Context(), where); err != nil {
		t.Fatal(err)
	}
	s := mustOpen(t, where, nil)
	ballast := filepath.Join(dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 4<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	random := make([]byte, 100<<10) // which the server cannot compress
	_, _ = rand.Read(random)
	line := func(n int) []byte { return fmt.Appendf(nil, `{"n":%d,"text":"%x"}`, n, random) }
	log := storetest.MustCreate(t, s, "a")
	end, n, err := store.Pos(0), 0, error(nil)
	for ; n < 1000; n++ {
		var next store.Pos
		if next, err = log.Append(t.Context(), end, line(n)); err != nil {
			break
		}
		end = next
	}
	wantFull := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrUnknown) || !strings.Contains(err.Error(), "No space left") {
			t.Errorf("%s on a full disk: %v", what, err)
		}
	}
	wantFull("append", err)
	_, err = s.Create(t.Context(), "b", store.Lines(line(0), line(1)))
	wantFull("create", err)
	_, err = s.Blobs().Put(t.Context(), line(2))
	wantFull("put", err)
	check := func() {
		t.Helper()
		lines := storetest.MustRead(t, log, 0)
		if len(lines) != n {
			t.Fatalf("%d appends were acknowledged, and there are %d lines", n, len(lines))
		}
		for i, got := range lines {
			if !bytes.Equal(got.Data, line(i)) {
				t.Fatalf("line %d is %.40s…", i, got.Data)
			}
		}
	}
	check()
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	if _, err := log.Append(t.Context(), end, line(n)); err != nil {
		t.Fatalf("there is room again: %v", err)
	}
	n++
	check()
	t.Logf("%d lines fit; the error was %v", n, err)
}
