//go:build unix

package postgres_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/coppice-dev/coppice/internal/postgrestest"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/postgres"
	"github.com/coppice-dev/coppice/store/storetest"
)

// Another program's watcher sees an append within a second, and usually at once.
func TestWatchOtherProgram(t *testing.T) {
	t.Parallel()
	where := postgrestest.URL(t)
	writer, reader := mustOpen(t, where, nil), mustOpen(t, where, nil)
	log := storetest.MustCreate(t, writer, "a", `{"n":0}`)
	seen := make(chan time.Time, 100)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	watched := storetest.MustOpen(t, reader, "a")
	go func() {
		for _, err := range watched.Watch(ctx, 0) {
			if err != nil {
				done <- err
				return
			}
			seen <- time.Now()
		}
		done <- nil
	}()
	<-seen
	var waits []time.Duration
	for range 20 {
		storetest.MustAppend(t, log, `{"n":1}`)
		start := time.Now()
		waits = append(waits, (<-seen).Sub(start))
		time.Sleep(10 * time.Millisecond)
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	slices.Sort(waits)
	t.Logf("the watcher saw an append after %v, at most %v", waits[len(waits)/2], waits[len(waits)-1])
}

// Without notifications, a watcher sees the same, later.
func TestWatchWithoutNotifications(t *testing.T) {
	t.Parallel()
	where := postgrestest.URL(t)
	writer, reader := mustOpen(t, where, nil), mustOpen(t, where, nil)
	storetest.MustCreate(t, writer, "a", `{"n":0}`)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	n := 0
	for _, err := range storetest.MustOpen(t, reader, "a").Watch(ctx, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if n++; n == 3 {
			return
		}
		// As a program of another kind, which notifies nobody.
		postgrestest.Exec(t, postgrestest.Owner(t), `WITH l AS (UPDATE shared.logs SET tail = tail + 8 WHERE tenant = $1 AND name = 'a' RETURNING *)
			INSERT INTO shared.lines SELECT tenant, log, life, tail - 8, '{"n":1}' FROM l`, postgrestest.Param(t, where, "tenant"))
	}
	t.Fatalf("the watch ended after %d lines", n)
}

// What one program rewrites, another does not read or copy through an old handle.
func TestRewrittenByOtherProgram(t *testing.T) {
	t.Parallel()
	where := postgrestest.URL(t)
	one, two := mustOpen(t, where, nil), mustOpen(t, where, nil)
	storetest.MustCreate(t, one, "a", `{"secret":1}`, `{"n":2}`)
	old := storetest.MustOpen(t, two, "a")
	if err := old.Current(); err != nil {
		t.Fatal(err)
	}
	part := store.Part{Kind: store.PartLog, Name: "a", Place: one.Parts().Where(store.PartLog, "a")}
	edit := func(line []byte) ([]byte, error) {
		return bytes.ReplaceAll(line, []byte("secret"), []byte("gone")), nil
	}
	if err := one.Parts().Edit(t.Context(), part, edit); err != nil {
		t.Fatal(err)
	}
	if _, err := two.CreateCopy(t.Context(), "b", store.Lines([]byte(`{"secret":1}`)), old); !errors.Is(err, store.ErrReplaced) {
		t.Errorf("an old handle is copied: %v", err)
	}
	time.Sleep(150 * time.Millisecond) // for so long, what it has read may serve again
	for line, err := range old.Forward(t.Context(), 0) {
		if !errors.Is(err, store.ErrReplaced) {
			t.Errorf("an old handle reads %s, %v", line.Data, err)
		}
	}
	if err := old.Current(); !errors.Is(err, store.ErrReplaced) {
		t.Errorf("an old handle is current: %v", err)
	}
	var n int
	conn, err := pgx.Connect(t.Context(), postgrestest.Owner(t))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if err := conn.QueryRow(t.Context(), `SELECT count(*) FROM shared.lines WHERE tenant = $1 AND data LIKE '%secret%'`, postgrestest.Param(t, where, "tenant")).Scan(&n); err != nil || n != 0 {
		t.Errorf("%d lines have what was taken out, %v", n, err)
	}
}

// A blob that only a rewritten line named can be deleted; one that a line before it names, not.
func TestRewriteForgetsBlobs(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, postgrestest.URL(t), nil)
	kept, gone := storetest.MustPut(t, s.Blobs(), []byte("kept")), storetest.MustPut(t, s.Blobs(), []byte("gone"))
	storetest.MustCreate(t, s, "a", fmt.Sprintf(`{"blob":%q}`, kept), fmt.Sprintf(`{"blob":%q}`, gone))
	part := store.Part{Kind: store.PartLog, Name: "a", Place: s.Parts().Where(store.PartLog, "a")}
	err := s.Parts().Edit(t.Context(), part, func(line []byte) ([]byte, error) {
		return bytes.ReplaceAll(line, []byte(gone), []byte("redacted")), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	done, err := s.Blobs().Collect(t.Context(), kept, gone)
	if err != nil || !slices.Equal(done.Deleted, []store.Ref{gone}) || len(done.Named[kept]) != 1 {
		t.Fatalf("collected %+v, %v", done, err)
	}
}

// Logs that are written in pieces appear whole, and what a writer has left behind is found.
func TestDrafts(t *testing.T) {
	t.Parallel()
	where := postgrestest.URL(t)
	s := mustOpen(t, where, nil)
	long := []byte(`{"text":"` + strings.Repeat("x", 1<<20) + `"}`)
	many := slices.Repeat([][]byte{long}, 11)
	log, err := s.Create(t.Context(), "a", store.Lines(many...))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line, err := range log.Forward(t.Context(), 0) {
		if err != nil || !bytes.Equal(line.Data, long) {
			t.Fatalf("line %d is %.20q…, %v", n, line.Data, err)
		}
		n++
	}
	if n != len(many) {
		t.Fatalf("the log has %d lines", n)
	}
	if left := drafts(t, s); len(left) > 0 {
		t.Errorf("left behind: %+v", left)
	}
	if _, err := s.Create(t.Context(), "a", store.Lines(many...)); !errors.Is(err, store.ErrExist) {
		t.Errorf("create again: %v", err)
	}
	if left := drafts(t, s); len(left) > 0 {
		t.Errorf("left behind by a log that existed: %+v", left)
	}
	var left []store.Part
	_, err = s.Create(t.Context(), "b", func(yield func([]byte, error) bool) {
		for range 6 {
			if !yield(long, nil) {
				return
			}
		}
		left = drafts(t, s)
	})
	if err != nil || len(left) != 1 {
		t.Fatalf("while a log is written there are %+v, %v", left, err)
	}
	// As if its writer had been killed.
	postgrestest.Exec(t, postgrestest.Owner(t), `INSERT INTO shared.drafts VALUES ($1, '\x00', 7, 'c', now())`, postgrestest.Param(t, where, "tenant"))
	left = drafts(t, s)
	if err := s.Parts().Remove(t.Context(), left[0]); !errors.Is(err, store.ErrLocked) {
		t.Errorf("remove a draft that may be being written: %v", err)
	}
	postgrestest.Exec(t, postgrestest.Owner(t), `UPDATE shared.drafts SET touched = now() - interval '2 hours' WHERE tenant = $1`, postgrestest.Param(t, where, "tenant"))
	if err := s.Parts().Remove(t.Context(), left[0]); err != nil {
		t.Error(err)
	}
	if left := drafts(t, s); len(left) > 0 {
		t.Errorf("still there: %+v", left)
	}
}

func drafts(t *testing.T, s store.Store) (all []store.Part) {
	t.Helper()
	for p, err := range s.Parts().All(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if p.Kind == store.PartTemp {
			all = append(all, p)
		}
	}
	return all
}

// The store marks exactly those logs that its index has not seen yet.
func TestMarks(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, postgrestest.URL(t), nil)
	want := func(names ...string) store.Changes {
		t.Helper()
		c, err := s.Changes(t.Context(), postgres.Index)
		if err != nil || c.Epoch == "" || !slices.Equal(slices.Sorted(slices.Values(c.Names)), names) {
			t.Fatalf("the changes are %+v, %v; want %q", c, err, names)
		}
		return c
	}
	settle := func(name string, was *store.Stat) {
		t.Helper()
		if err := s.Settle(t.Context(), postgres.Index, map[string]*store.Stat{name: was}); err != nil {
			t.Fatal(err)
		}
	}
	stat := func(name string) *store.Stat {
		t.Helper()
		st, err := s.Stat(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		return &st
	}
	empty := want()
	log := storetest.MustCreate(t, s, "a", `{}`)
	storetest.MustCreate(t, s, "b", `{}`)
	if c := want("a", "b"); c.Listing != "" || c.Epoch != empty.Epoch {
		t.Errorf("the changes are %+v, were %+v", c, empty)
	}
	before := stat("a")
	storetest.MustAppend(t, log, `{}`)
	settle("a", before)
	settle("b", nil)
	want("a", "b")
	settle("a", stat("a"))
	settle("b", stat("b"))
	want()
	if err := s.Remove(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	want("a")
	settle("a", before)
	want("a")
	settle("a", nil)
	want()
	if _, err := s.Trash().Empty(t.Context(), time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	want("a")
	settle("a", nil)
	storetest.MustCreate(t, s, "a", `{}`)
	want("a")
	settle("a", stat("a"))
	want()
}

func TestMigrate(t *testing.T) {
	t.Parallel()
	where := postgrestest.Empty(t)
	if _, err := postgres.Open(t.Context(), where, nil); !errors.Is(err, store.ErrInvalid) || !strings.Contains(err.Error(), "coppice migrate") {
		t.Errorf("open without tables: %v", err)
	}
	var wg sync.WaitGroup
	made := make([]postgres.Migrated, 4)
	errs := make([]error, len(made))
	for i := range made {
		wg.Go(func() { made[i], errs[i] = postgres.Migrate(t.Context(), where) })
	}
	wg.Wait()
	first := 0
	for _, m := range made {
		if m.From == 0 {
			first++
		}
	}
	if err := errors.Join(errs...); err != nil || first != 1 {
		t.Fatalf("several at once: %+v, %v", made, err)
	}
	s := mustOpen(t, where, nil)
	storetest.MustCreate(t, s, "a", `{}`)
	table := postgrestest.Param(t, where, "schema") + ".versions"
	postgrestest.Exec(t, postgrestest.Owner(t), `INSERT INTO `+table+` (version, reads) VALUES (99, 1)`)
	mustOpen(t, where, nil) // newer, but it still serves us
	postgrestest.Exec(t, postgrestest.Owner(t), `UPDATE `+table+` SET reads = 99 WHERE version = 99`)
	if _, err := postgres.Open(t.Context(), where, nil); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("open tables of the future: %v", err)
	}
	postgrestest.Exec(t, postgrestest.Owner(t), `DELETE FROM `+table)
	if _, err := postgres.Open(t.Context(), where, nil); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("open tables of the past: %v", err)
	}
}

// Tables from before the first release are refused, and not brought up to date in part.
func TestTablesFromBeforeTheFirstRelease(t *testing.T) {
	t.Parallel()
	where := postgrestest.Empty(t)
	if _, err := postgres.Migrate(t.Context(), where); err != nil {
		t.Fatal(err)
	}
	postgrestest.Exec(t, postgrestest.Owner(t), `ALTER TABLE `+postgrestest.Param(t, where, "schema")+`.blob_backends RENAME TO depots`)
	_, openErr := postgres.Open(t.Context(), where, nil)
	_, migrateErr := postgres.Migrate(t.Context(), where)
	for _, err := range []error{openErr, migrateErr} {
		if !errors.Is(err, store.ErrInvalid) || !strings.Contains(err.Error(), "before the first release") {
			t.Errorf("%v, want one that says where the tables are from", err)
		}
	}
}

// An error of opening names the server and the database, says what to do, and never has the
// password.
func TestOpenErrors(t *testing.T) {
	t.Parallel()
	where := postgrestest.With(t, postgrestest.URL(t), "password", "k9Zq4vXw", "sslmode", "prefer")
	schema := postgrestest.Param(t, where, "schema")
	nobody := postgrestest.Role(t, where, "x", false)
	postgrestest.Exec(t, postgrestest.Owner(t), fmt.Sprintf(`REVOKE USAGE ON SCHEMA %s FROM %s`, schema, nobody))
	for what, c := range map[string]struct {
		where, hint string
		is          error
	}{
		"another database": {strings.Replace(where, "/postgres?", "/none?", 1), "createdb", nil},
		"another role":     {postgrestest.With(t, where, "user", "none"), "check the role", nil},
		"a stranger":       {postgrestest.With(t, where, "user", nobody), schema + ".admit('" + nobody + "', ", fs.ErrPermission},
		"no tables":        {postgrestest.With(t, where, "schema", "none"), "coppice migrate", store.ErrInvalid},
		"no server":        {postgrestest.With(t, where, "host", t.TempDir()), "check that the server runs", store.ErrUnavailable},
	} {
		_, err := postgres.Open(t.Context(), c.where, nil)
		e, ok := errors.AsType[*store.Error](err)
		if !ok || !strings.HasPrefix(err.Error(), "open postgres:///") || !strings.Contains(e.Hint, c.hint) || c.is != nil && !errors.Is(err, c.is) || strings.ContainsAny(err.Error(), "\n\t") {
			t.Errorf("%s: %v", what, err)
		}
		if err != nil && strings.Contains(err.Error(), "k9Zq4vXw") {
			t.Errorf("%s: the error has the password: %v", what, err)
		}
	}
}

// Names from strangers and passwords do not get into places where they do harm.
func TestURLs(t *testing.T) {
	t.Parallel()
	for _, where := range []string{"mysql://x", "postgres://%zz:k9Zq4vXw@h", "postgres://h/x?schema=a;b", "postgres://h/x?schema=9", "postgres://u:k9Zq4vXw@h/x?sslmode=wrong", "postgres://h/x?tenant=a%00b", "postgres://h/x?appends=never"} {
		_, err := postgres.Open(t.Context(), where, nil)
		if !errors.Is(err, store.ErrInvalid) || strings.Contains(err.Error(), "k9Zq4vXw") {
			t.Errorf("%s: %v", where, err)
		}
	}
	where := postgrestest.With(t, postgrestest.URL(t), "password", "k9Zq4vXw", "tenant", "it's'; DROP TABLE --")
	s := mustOpen(t, where, nil)
	storetest.MustCreate(t, s, "a", `{}`) // the tenant is text and never SQL
	if strings.Contains(s.Where(), "k9Zq4vXw") {
		t.Errorf("the store is at %s", s.Where())
	}
}

// Somebody who may only read, or only another tenant, can do nothing else, whatever they try.
func TestRoles(t *testing.T) {
	t.Parallel()
	where := postgrestest.Empty(t)
	if _, err := postgres.Migrate(t.Context(), where); err != nil {
		t.Fatal(err)
	}
	writes, belongsNextDoor := postgrestest.Role(t, where, "one", true), postgrestest.Role(t, where, "two", true)
	as := func(role string) *postgres.Store {
		return mustOpen(t, postgrestest.With(t, where, "user", role, "tenant", "one"), nil)
	}
	reads, elsewhere, demoted, dismissed := postgrestest.Role(t, where, "one", false), postgrestest.Role(t, where, "one", false), postgrestest.Role(t, where, "one", true), postgrestest.Role(t, where, "one", true)
	name := postgrestest.Param(t, where, "schema")
	postgrestest.Exec(t, postgrestest.Owner(t), fmt.Sprintf(`SELECT %[1]s.admit('%[2]s', 'three', true), %[1]s.admit('%[3]s', 'three', true), %[1]s.admit('%[3]s', 'one', false),
		%[1]s.admit('%[4]s', 'three', true), %[1]s.dismiss('%[4]s', 'one')`, name, elsewhere, demoted, dismissed))
	writer, reader, neighbour := as(writes), as(reads), as(belongsNextDoor)
	log := storetest.MustCreate(t, writer, "a", `{"n":0}`)
	ref := storetest.MustPut(t, writer.Blobs(), []byte("content"))
	storetest.MustAppend(t, log, fmt.Sprintf(`{"blob":%q}`, ref))
	storetest.MustCreate(t, writer, "removed", `{"n":0}`)
	if err := errors.Join(writer.Remove(t.Context(), "removed"), writer.Notes("r").Write(t.Context(), "note", []byte("text"))); err != nil {
		t.Fatal(err)
	}
	if got := storetest.MustRead(t, storetest.MustOpen(t, reader, "a"), 0); len(got) != 2 {
		t.Errorf("a reader reads %d lines", len(got))
	}
	for what, try := range attempts() {
		for who, role := range map[string]*postgres.Store{"only reads": reader, "writes elsewhere": as(elsewhere), "once wrote": as(demoted)} {
			if err := try(t.Context(), role); !errors.Is(err, fs.ErrPermission) {
				t.Errorf("a reader who %s may %s: %v", who, what, err)
			}
		}
		for _, role := range []*postgres.Store{neighbour, as(dismissed)} {
			if err := try(t.Context(), role); err == nil {
				t.Errorf("a neighbour may %s", what)
			}
		}
	}
	wantNothing(t, neighbour, ref)
	wantNothing(t, as(dismissed), ref)
	storetest.MustCreate(t, mustOpen(t, postgrestest.With(t, where, "user", elsewhere, "tenant", "three"), nil), "a", `{}`)
	// Whoever was dismissed everywhere has no rights at all, and the reader cannot lock a table.
	postgrestest.Exec(t, postgrestest.Owner(t), fmt.Sprintf(`SELECT %[1]s.dismiss('%[2]s', 'three')`, name, dismissed))
	for role, statement := range map[string]string{dismissed: `SELECT FROM ` + name + `.logs`, reads: `LOCK TABLE ` + name + `.lines IN SHARE MODE`} {
		if err := tellAs(t, role, statement); err == nil {
			t.Errorf("%s may %s", role, statement)
		}
	}
	if got := storetest.MustRead(t, storetest.MustOpen(t, writer, "a"), 0); len(got) != 2 {
		t.Errorf("the log has %d lines", len(got))
	}
	if _, err := writer.Blobs().Get(t.Context(), ref); err != nil {
		t.Error(err)
	}
	// Nor can they make themselves members.
	for _, role := range []string{writes, belongsNextDoor} {
		for _, statement := range []string{
			`INSERT INTO ` + name + `.members VALUES (session_user, 'one', true)`, `SELECT ` + name + `.admit(session_user, 'one', true)`,
			`SELECT ` + name + `.dismiss(session_user, 'one')`, `SELECT ` + name + `.entitle(session_user)`,
			`ALTER TABLE ` + name + `.lines DISABLE ROW LEVEL SECURITY`, `SELECT * FROM ` + name + `.members`, `TRUNCATE ` + name + `.lines`,
		} {
			if err := tellAs(t, role, statement); err == nil {
				t.Errorf("%s may %s", role, statement)
			}
		}
	}
}

// tellAs runs a statement as a role.
func tellAs(t *testing.T, role, statement string) error {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), postgrestest.With(t, postgrestest.Owner(t), "user", role))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	_, err = conn.Exec(t.Context(), `BEGIN; `+statement)
	return err
}

// attempts are the operations that change something.
func attempts() map[string]func(ctx context.Context, s store.Store) error {
	return map[string]func(ctx context.Context, s store.Store) error{
		"create": func(ctx context.Context, s store.Store) error {
			_, err := s.Create(ctx, "new", store.Lines([]byte(`{}`)))
			return err
		},
		"commit": func(ctx context.Context, s store.Store) error {
			b := s.Batch()
			return errors.Join(b.Add(ctx, "batched", store.Lines([]byte(`{}`))), b.Commit(ctx)["batched"])
		},
		"append": func(ctx context.Context, s store.Store) error {
			log, err := s.Open(ctx, "a")
			if err != nil {
				return err
			}
			end, err := log.End(ctx)
			if err == nil {
				_, err = log.Append(ctx, end, []byte(`{}`))
			}
			return err
		},
		"remove": func(ctx context.Context, s store.Store) error { return s.Remove(ctx, "a") },
		"restore": func(ctx context.Context, s store.Store) error {
			all, err := s.Trash().List(ctx)
			if err != nil || len(all) == 0 {
				return errors.Join(err, errors.New("the trash is empty"))
			}
			return s.Trash().Restore(ctx, all[0].ID)
		},
		"empty": func(ctx context.Context, s store.Store) error {
			gone, err := s.Trash().Empty(ctx, time.Now().Add(time.Hour))
			if err == nil && len(gone) == 0 {
				err = errors.New("the trash is empty")
			}
			return err
		},
		"put": func(ctx context.Context, s store.Store) error {
			_, err := s.Blobs().Put(ctx, []byte("new"))
			return err
		},
		"hold": func(ctx context.Context, s store.Store) error {
			_, err := s.Blobs().Hold(ctx)
			return err
		},
		"note": func(ctx context.Context, s store.Store) error { return s.Notes("r").Write(ctx, "new", []byte("x")) },
		"change": func(ctx context.Context, s store.Store) error {
			return s.Notes("r").Change(ctx, "note", func([]byte) ([]byte, error) { return []byte("x"), nil })
		},
		"forget": func(ctx context.Context, s store.Store) error {
			if _, err := s.Notes("r").Read(ctx, "note"); err != nil {
				return err
			}
			return s.Notes("r").Remove(ctx, "note")
		},
		"edit": func(ctx context.Context, s store.Store) error {
			return s.Parts().Edit(ctx, store.Part{Kind: store.PartLog, Name: "a"}, func(line []byte) ([]byte, error) { return []byte(`{"x":1}`), nil })
		},
	}
}

// wantNothing checks that a store shows nothing.
func wantNothing(t *testing.T, s store.Store, ref store.Ref) {
	t.Helper()
	for p, err := range s.Parts().All(t.Context()) {
		t.Errorf("it shows %+v, %v", p, err)
	}
	if _, err := s.Open(t.Context(), "a"); !errors.Is(err, store.ErrNotExist) {
		t.Errorf("it opens a log: %v", err)
	}
	if _, err := s.Blobs().Get(t.Context(), ref); !errors.Is(err, store.ErrNotExist) {
		t.Errorf("it has a blob: %v", err)
	}
	if all, err := s.Trash().List(t.Context()); err != nil || len(all) > 0 {
		t.Errorf("it has a trash: %v, %v", all, err)
	}
	if _, err := s.Notes("r").Read(t.Context(), "note"); !errors.Is(err, store.ErrNotExist) {
		t.Errorf("it has a note: %v", err)
	}
}
