package index_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/session"
)

// marking returns an index, caught up, that takes its store for a large one.
func (f *fixture) marking(tb testing.TB) *index.Index {
	tb.Helper()
	ix := f.open(tb)
	ix.SetSweepAlways(0)
	mustCatchUp(tb, ix) // settles what opening left
	return ix
}

func TestLargeStoreIsAskedForMarkedSessionsOnly(t *testing.T) {
	t.Parallel()
	f := newFileFixture(t)
	s := f.say("one")
	f.say("two")
	ix := f.marking(t)
	if report := mustCatchUp(t, ix); report.Sessions != 0 {
		t.Errorf("nothing is marked, but %+v", report)
	}
	f.append(s, session.RoleUser, session.Text("needle"))
	if report := mustCatchUp(t, ix); report.Sessions != 1 || report.Changed != 1 || report.Entries != 1 {
		t.Errorf("one session is marked, but %+v", report)
	}
	if hits := search(t, ix, index.SearchOptions{Query: "needle"}); len(hits) != 1 {
		t.Errorf("hits %+v", hits)
	}
	if report := mustCatchUp(t, ix); report.Sessions != 0 {
		t.Errorf("the mark was not given back: %+v", report)
	}
}

func TestMarkedSessionsComeAndGo(t *testing.T) {
	t.Parallel()
	f := newFileFixture(t)
	f.say("one")
	gone := f.say("two")
	ix := f.marking(t)
	f.say("needle")
	if err := f.st.Remove(context.Background(), gone.ID()); err != nil {
		t.Fatal(err)
	}
	if report := mustCatchUp(t, ix); report.Sessions != 1 || report.Changed != 1 || report.Removed != 1 {
		t.Errorf("one came and one went, but %+v", report)
	}
	if err := f.st.Archive(context.Background(), search(t, ix, index.SearchOptions{Query: "needle"})[0].Name); err != nil {
		t.Fatal(err)
	}
	mustCatchUp(t, ix)
	yes := true
	if page, _, err := ix.List(context.Background(), index.ListOptions{Archived: &yes}); err != nil || len(page) != 1 {
		t.Errorf("archived: %+v, %v", page, err)
	}
	if report := mustCatchUp(t, ix); report.Sessions != 0 {
		t.Errorf("marks are left: %+v", report)
	}
	if left, err := os.ReadDir(filepath.Join(filepath.Dir(f.st.IndexPath()), "locks")); err != nil || len(left) != 2 {
		t.Errorf("the locks of two sessions are left, not %v, %v", left, err)
	}
}

// A writer that has the lock may write at any time: its mark must stay.
func TestMarkStaysWhileSomebodyWrites(t *testing.T) {
	t.Parallel()
	f := newFileFixture(t)
	s := f.say("one")
	ix := f.marking(t)
	log, err := f.st.Open(context.Background(), s.ID())
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	release, err := log.Pin(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if report := mustCatchUp(t, ix); report.Sessions != 1 || report.Changed != 0 {
			t.Errorf("with the lock taken: %+v", report)
		}
	}
	release()
	mustCatchUp(t, ix)
	if report := mustCatchUp(t, ix); report.Sessions != 0 {
		t.Errorf("with the lock free: %+v", report)
	}
}

func TestNoAppendIsMissedWhileTheIndexCatchesUp(t *testing.T) {
	t.Parallel()
	f := newFileFixture(t)
	sessions := []*session.Session{f.say("one"), f.say("two")}
	ix := f.marking(t)
	const appends = 100
	done := make(chan error, 1)
	go func() {
		for i := range appends {
			if _, err := sessions[i%2].AppendMessage(session.RoleUser, []session.Content{session.Text("needle")}); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	for writing := true; writing; {
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
			writing = false
		default:
		}
		mustCatchUp(t, ix)
	}
	total := 0
	for _, s := range must[[]index.Session](t)(listAll(ix)) {
		total += s.Messages
	}
	if total != appends+2 {
		t.Errorf("%d messages are in the index, not %d", total, appends+2)
	}
}

func listAll(ix *index.Index) ([]index.Session, error) {
	page, _, err := ix.List(context.Background(), index.ListOptions{Limit: -1})
	return page, err
}

// What a program does that knows nothing of marks is found, sooner or later.
func TestForeignProgramsAreFound(t *testing.T) {
	t.Parallel()
	f := newFileFixture(t)
	s := f.say("one", "two")
	ix := f.marking(t)
	data, err := os.ReadFile(f.st.Path(s.ID()))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(f.st.Path("copied"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	if report := mustCatchUp(t, ix); report.Changed != 1 {
		t.Errorf("a file came, but %+v", report)
	}
	line := []byte(`{"type":"message","id":"x","parent_id":null,"timestamp":"2026-03-14T13:00:00Z","message":{"role":"user","content":"needle"}}` + "\n")
	if err := os.WriteFile(f.st.Path(s.ID()), append(data, line...), 0o600); err != nil {
		t.Fatal(err)
	}
	if report, err := ix.Sweep(context.Background(), nil); err != nil || report.Changed != 1 || report.Sessions != 2 {
		t.Errorf("a file was written to, but %+v, %v", report, err)
	}
	ix.SetSweepAlways(2)
	if err := os.WriteFile(f.st.Path(s.ID()), data, 0o600); err != nil {
		t.Fatal(err)
	}
	if report := mustCatchUp(t, ix); report.Changed != 1 {
		t.Errorf("a small store is always looked at, but %+v", report)
	}
}

// Marks that were deleted say nothing.
func TestDeletedMarksAreNotTrusted(t *testing.T) {
	t.Parallel()
	f := newFileFixture(t)
	s := f.say("one")
	ix := f.marking(t)
	f.append(s, session.RoleUser, session.Text("needle"))
	if err := os.RemoveAll(filepath.Join(filepath.Dir(f.st.IndexPath()), "changed")); err != nil {
		t.Fatal(err)
	}
	if report := mustCatchUp(t, ix); report.Changed != 1 {
		t.Errorf("report %+v", report)
	}
	f.append(s, session.RoleUser, session.Text("more"))
	if report := mustCatchUp(t, ix); report.Changed != 1 {
		t.Errorf("after the directory came again: %+v", report)
	}
}

// A second index must not rely on marks that the first takes away.
func TestIndexElsewhereLooksAtEverything(t *testing.T) {
	t.Parallel()
	f := newFileFixture(t)
	s := f.say("one")
	ix := f.marking(t)
	other, err := index.Open(context.Background(), f.st, filepath.Join(t.TempDir(), "other.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	other.SetSweepAlways(0)
	mustCatchUp(t, other)
	f.append(s, session.RoleUser, session.Text("needle"))
	for _, ix := range []*index.Index{ix, other} {
		if report := mustCatchUp(t, ix); report.Changed != 1 {
			t.Errorf("report %+v", report)
		}
	}
}
