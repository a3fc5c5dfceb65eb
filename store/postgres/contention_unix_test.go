//go:build unix

package postgres_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/coppice-dev/coppice/internal/postgrestest"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/storetest"
)

// stranger is a transaction of another program that is in our way.
type stranger struct {
	conn   *pgx.Conn
	tenant string
}

func newStranger(t *testing.T, where string) *stranger {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), postgrestest.Owner(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	s := &stranger{conn, postgrestest.Param(t, where, "tenant")}
	// Of two that wait for each other, the one is given up whose patience ends first.
	s.do(t, `SET deadlock_timeout = '1min'`)
	s.do(t, `BEGIN`)
	return s
}

func (s *stranger) do(t *testing.T, statement string, args ...any) {
	t.Helper()
	if _, err := s.conn.Exec(t.Context(), statement, args...); err != nil {
		t.Errorf("%s: %v", statement, err)
	}
}

// block begins something that has to wait for the stranger, and returns when it does.
func (s *stranger) block(t *testing.T, begin func() error) <-chan error {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- begin() }()
	watcher, err := pgx.Connect(t.Context(), postgrestest.Owner(t))
	if err != nil {
		t.Fatal(err)
	}
	defer watcher.Close(context.Background())
	for waits := false; !waits; time.Sleep(5 * time.Millisecond) {
		if err := watcher.QueryRow(t.Context(), `SELECT count(*) > 0 FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid))`, s.conn.PgConn().PID()).Scan(&waits); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-done:
			t.Fatalf("it does not wait: %v", err)
		default:
		}
	}
	return done
}

// contended are operations, what a stranger does before and after one of them begins to wait so
// that each waits for the other, and what there is in the end.
var contended = map[string]struct {
	do            func(ctx context.Context, s store.Store) error
	first, second string
	want          map[string]string
}{
	"append": {
		do: func(ctx context.Context, s store.Store) error {
			log, err := s.Open(ctx, "a")
			if err == nil {
				_, err = log.Append(ctx, 16, []byte(`{"n":2}`))
			}
			return err
		},
		first:  `INSERT INTO shared.lines SELECT tenant, log, life, tail, '{}' FROM shared.logs WHERE tenant = $1 AND name = 'a'`,
		second: `UPDATE shared.logs SET tail = tail + 3 WHERE tenant = $1 AND name = 'a'`,
		want:   map[string]string{"a": `{"n":0} {"n":1} {"n":2} `},
	},
	"redaction": {
		do: func(ctx context.Context, s store.Store) error {
			part := store.Part{Kind: store.PartLog, Name: "a", Place: s.Parts().Where(store.PartLog, "a")}
			return s.Parts().Edit(ctx, part, func(line []byte) ([]byte, error) { return bytes.ReplaceAll(line, []byte("n"), []byte("x")), nil })
		},
		first:  `SELECT FROM shared.lines JOIN shared.logs USING (tenant, log, life) WHERE tenant = $1 AND name = 'a' FOR UPDATE OF lines`,
		second: `UPDATE shared.logs SET modified = now() WHERE tenant = $1 AND name = 'a'`,
		want:   map[string]string{"a": `{"x":0} {"x":1} `},
	},
	"batch": {
		do: func(ctx context.Context, s store.Store) error {
			b := s.Batch()
			for _, name := range []string{"b", "c"} {
				if err := b.Add(ctx, name, store.Lines([]byte(`{"in":"`+name+`"}`))); err != nil {
					return err
				}
			}
			for _, err := range b.Commit(ctx) {
				return err
			}
			return nil
		},
		first:  `INSERT INTO shared.logs SELECT $1, substring(sha256(convert_to($1, 'UTF8') || '\x00' || 'c') FOR 16), 0, 'c', 1, 0, now(), true`,
		second: `INSERT INTO shared.logs SELECT $1, substring(sha256(convert_to($1, 'UTF8') || '\x00' || 'b') FOR 16), 0, 'b', 1, 0, now(), true`,
		want:   map[string]string{"b": `{"in":"b"} `, "c": `{"in":"c"} `},
	},
}

// Another program locks rows in the opposite order, and the server gives up what we do. Nobody
// notices.
func TestDeadlocks(t *testing.T) {
	t.Parallel()
	for name, c := range contended {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			where := postgrestest.URL(t)
			s := mustOpen(t, where, nil)
			storetest.MustCreate(t, s, "a", `{"n":0}`, `{"n":1}`)
			other := newStranger(t, where)
			other.do(t, c.first, other.tenant)
			done := other.block(t, func() error { return c.do(t.Context(), s) })
			other.do(t, c.second, other.tenant) // succeeds when ours was rolled back
			other.do(t, `ROLLBACK`)
			if err := <-done; err != nil {
				t.Error(err)
			}
			wantLogs(t, s, c.want)
		})
	}
}

// In a database whose transactions are serializable, one that waited for another fails. Nobody
// notices.
func TestSerializationFailures(t *testing.T) {
	t.Parallel()
	where := postgrestest.URL(t)
	s := mustOpen(t, postgrestest.With(t, where, "default_transaction_isolation", "serializable"), nil)
	log := storetest.MustCreate(t, s, "a", `{"n":0}`, `{"n":1}`)
	for n := range 2 {
		other := newStranger(t, where)
		other.do(t, `UPDATE shared.logs SET modified = now() WHERE tenant = $1 AND name = 'a'`, other.tenant)
		done := other.block(t, func() error {
			_, err := log.Append(t.Context(), store.Pos(16+8*n), fmt.Appendf(nil, `{"n":%d}`, n+2))
			return err
		})
		other.do(t, `COMMIT`)
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	wantLogs(t, s, map[string]string{"a": `{"n":0} {"n":1} {"n":2} {"n":3} `})
}

func wantLogs(t *testing.T, s store.Store, want map[string]string) {
	t.Helper()
	for name, text := range want {
		got := ""
		for _, line := range storetest.MustRead(t, storetest.MustOpen(t, s, name), 0) {
			got += string(line.Data) + " "
		}
		if got != text {
			t.Errorf("%s has %s, want %s", name, got, text)
		}
	}
}
