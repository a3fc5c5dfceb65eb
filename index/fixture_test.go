package index_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/index"
	indexpostgres "github.com/coppice-dev/coppice/index/postgres"
	"github.com/coppice-dev/coppice/index/room"
	"github.com/coppice-dev/coppice/index/sqlite"
	"github.com/coppice-dev/coppice/internal/postgrestest"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/postgres"
)

// fixture is a directory of sessions.
type fixture struct {
	tb  testing.TB
	dir string
	st  *file.Store
	now time.Time

	isFile bool            // the index is in a file
	db     *postgres.Store // if not, the database
}

func newFixture(tb testing.TB) *fixture {
	tb.Helper()
	f := &fixture{tb: tb, dir: tb.TempDir(), isFile: os.Getenv("COPPICE_TEST_HOME") != "postgres:", now: time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)}
	var err error
	if f.st, err = file.Open(f.dir, &file.Options{Sync: file.Never}); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { f.st.Close() })
	return f
}

// newFileFixture is newFixture for tests of an index in a file.
func newFileFixture(tb testing.TB) *fixture {
	tb.Helper()
	f := newFixture(tb)
	f.isFile = true
	return f
}

func (f *fixture) path() string { return filepath.Join(f.dir, ".coppice", "index.db") }

// room returns where the index is: in a file, or in a database if COPPICE_TEST_HOME is postgres:.
func (f *fixture) room(tb testing.TB) room.Room {
	tb.Helper()
	if f.isFile {
		return must[*sqlite.Room](tb)(sqlite.Open(context.Background(), f.path(), nil))
	}
	if f.db == nil {
		f.db = must[*postgres.Store](tb)(postgres.Open(context.Background(), postgrestest.URL(tb), nil))
		f.tb.Cleanup(func() { f.db.Close() })
	}
	return must[*indexpostgres.Room](tb)(indexpostgres.Open(context.Background(), f.db))
}

// open returns the index, caught up.
func (f *fixture) open(tb testing.TB) *index.Index {
	tb.Helper()
	ix := index.New(f.st, f.room(tb), nil)
	tb.Cleanup(func() { ix.Close() })
	mustCatchUp(tb, ix)
	return ix
}

func mustCatchUp(tb testing.TB, ix *index.Index) index.Report {
	tb.Helper()
	report, err := ix.CatchUp(context.Background(), nil)
	if err != nil {
		tb.Fatal(err)
	}
	if len(report.Unread) > 0 {
		tb.Fatalf("unread: %v", report.Unread)
	}
	return report
}

// options gives entries times that follow one another.
func (f *fixture) options() *session.Options {
	return &session.Options{Now: func() time.Time {
		f.now = f.now.Add(time.Second)
		return f.now
	}}
}

// create makes a session.
func (f *fixture) create(h session.Header) *session.Session {
	f.tb.Helper()
	s, err := session.Create(context.Background(), f.st, h, f.options())
	if err != nil {
		f.tb.Fatal(err)
	}
	f.tb.Cleanup(func() { s.Close() })
	return s
}

// say makes a session in which the user says some things.
func (f *fixture) say(texts ...string) *session.Session {
	f.tb.Helper()
	s := f.create(session.Header{})
	for _, text := range texts {
		f.append(s, session.RoleUser, session.Text(text))
	}
	return s
}

func (f *fixture) append(s *session.Session, role session.MessageRole, content ...session.Content) string {
	f.tb.Helper()
	id, err := s.AppendMessage(role, content)
	if err != nil {
		f.tb.Fatal(err)
	}
	return id
}

// respond appends a response with its usage.
func (f *fixture) respond(s *session.Session, responseID, model string, u session.Usage, content ...session.Content) string {
	f.tb.Helper()
	ids, err := s.AppendAll(session.Entry{Type: session.TypeMessage, Message: &session.MessageEntry{
		Role: session.RoleAssistant, Content: content, Model: model, Usage: &u, ResponseID: responseID,
	}})
	if err != nil {
		f.tb.Fatal(err)
	}
	return ids[0]
}

// must fails the test if an error came with a value.
func must[T any](tb testing.TB) func(T, error) T {
	return func(v T, err error) T {
		tb.Helper()
		if err != nil {
			tb.Fatal(err)
		}
		return v
	}
}

// search returns the hits of a query.
func search(tb testing.TB, ix *index.Index, o index.SearchOptions) []index.Hit {
	tb.Helper()
	res, err := ix.Search(context.Background(), o)
	if err != nil {
		tb.Fatal(err)
	}
	return res.Hits
}
