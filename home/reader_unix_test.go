//go:build unix

package home_test

import (
	"errors"
	"io/fs"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/internal/postgrestest"
	"github.com/coppice-dev/coppice/session"
)

// A read-only role gets an error, not a report of work that did not happen.
func TestReader(t *testing.T) {
	t.Parallel()
	where := postgrestest.URL(t)
	tenant := postgrestest.Param(t, where, "tenant")
	h := newHouseAt(t, where)
	h.say(session.Header{ID: "kept"}, "my password=Xk7Qp2Lm9Rt4Vb8Z")
	h.say(session.Header{ID: "removed"}, "something else")
	if err := h.Store().Remove(t.Context(), "removed"); err != nil {
		t.Fatal(err)
	}
	postgrestest.Exec(t, postgrestest.Owner(t), `INSERT INTO shared.drafts VALUES ($1, '\x00', 7, 'left', now() - interval '2 hours')`, tenant)
	if _, err := h.Sessions.List(t.Context(), home.ListRequest{}); err != nil { // so that there is an index
		t.Fatal(err)
	}
	reads := postgrestest.Role(t, where, tenant, false)
	reader := newHouseAt(t, postgrestest.With(t, where, "user", reads))

	secrets, err := reader.Upkeep.Redact(t.Context(), home.RedactRequest{All: true, Apply: true})
	if home.KindOf(err) != home.KindForbidden || !errors.Is(err, fs.ErrPermission) || secrets == nil || len(secrets.Secrets) != 1 || secrets.Receipt != nil {
		t.Errorf("a reader redacts: %+v, %v", secrets, err)
	}
	gone, err := reader.Upkeep.EmptyTrash(t.Context(), home.EmptyTrashRequest{All: true})
	if home.KindOf(err) != home.KindForbidden || gone != nil {
		t.Errorf("a reader empties the trash: %+v, %v", gone, err)
	}
	tidied, err := reader.Upkeep.Tidy(t.Context(), home.TidyRequest{Stale: true})
	if home.KindOf(err) != home.KindForbidden || len(tidied.Stale) > 0 {
		t.Errorf("a reader tidies: %+v, %v", tidied, err)
	}
	if hint := home.HintOf(err); hint != "ask the owner of the database for it: SELECT shared.admit('"+reads+"', '"+tenant+"', true)" {
		t.Errorf("the hint is %q", hint)
	}

	// Where nothing is to be done, nothing is refused.
	redacted, err := h.Upkeep.Redact(t.Context(), home.RedactRequest{All: true, Apply: true})
	if err != nil || redacted.Receipt.Kinds["password"] != 1 {
		t.Fatalf("redacted %+v, %v", redacted, err)
	}
	if again, err := reader.Upkeep.Redact(t.Context(), home.RedactRequest{All: true, Apply: true}); err != nil || again.Receipt == nil {
		t.Errorf("a reader redacts nothing: %+v, %v", again, err)
	}
}

// What is deleted for good has no words in the index of the database any more.
func TestEmptyTrashIndex(t *testing.T) {
	t.Parallel()
	where := postgrestest.URL(t)
	h := newHouseAt(t, where)
	h.say(session.Header{ID: "kept"}, "something")
	h.say(session.Header{ID: "gone"}, "zebrafinch")
	words := func() (n int) {
		t.Helper()
		conn, err := pgx.Connect(t.Context(), postgrestest.Owner(t))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(t.Context())
		err = conn.QueryRow(t.Context(), `SELECT count(*) FROM shared.index_terms WHERE tenant = $1 AND term = 'zebrafinch'`, postgrestest.Param(t, where, "tenant")).Scan(&n)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if _, err := h.Sessions.List(t.Context(), home.ListRequest{}); err != nil || words() != 1 {
		t.Fatalf("the index has %d such words, %v", words(), err)
	}
	if err := h.Store().Remove(t.Context(), "gone"); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Upkeep.EmptyTrash(t.Context(), home.EmptyTrashRequest{All: true}); err != nil || words() != 0 {
		t.Errorf("the index has %d such words, %v", words(), err)
	}
}

// What a writer may still be working on is not called stale, whether or not it would be deleted.
func TestTidyYoung(t *testing.T) {
	t.Parallel()
	where := postgrestest.URL(t)
	h := newHouseAt(t, where)
	for _, age := range []time.Duration{time.Minute, 2 * time.Hour} {
		postgrestest.Exec(t, postgrestest.Owner(t), `INSERT INTO shared.drafts VALUES ($1, '\x00', $2, 'left', now() - $3::interval)`,
			postgrestest.Param(t, where, "tenant"), int64(age), age)
	}
	for _, dryRun := range []bool{true, false} {
		if tidied, err := h.Upkeep.Tidy(t.Context(), home.TidyRequest{Stale: true, DryRun: dryRun}); err != nil || len(tidied.Stale) != 1 {
			t.Errorf("tidied %+v, %v", tidied, err)
		}
	}
}
