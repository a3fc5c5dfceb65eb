package home_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/upkeep"
)

// keptHome is a home in which files are not synced, for tests of what is kept.
func keptHome(t *testing.T) (*home.Home, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "s")
	env := map[string]string{"HOME": t.TempDir(), "COPPICE_SYNC": "never"}
	s, err := home.LoadSettings(func(name string) string { return env[name] })
	if err != nil {
		t.Fatal(err)
	}
	h, err := home.Open(t.Context(), dir, &home.Options{Settings: s, Create: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	return h, dir
}

// keep makes a session in which something was said some days ago.
func keep(t *testing.T, dir, name string, daysAgo int, texts ...string) {
	t.Helper()
	st, err := file.Open(dir, &file.Options{Sync: file.Never})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	at := time.Now().AddDate(0, 0, -daysAgo)
	s, err := session.Create(t.Context(), st, session.Header{ID: name, CreatedAt: at}, &session.Options{Now: func() time.Time { return at }})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, text := range texts {
		if _, err := s.AppendMessage(session.RoleUser, []session.Content{session.Text(text)}); err != nil {
			t.Fatal(err)
		}
	}
}

// Archiving by age goes by what was said: a file that was written a moment ago may
// hold an old conversation, as all do that were imported today.
func TestArchiveGoesByActivity(t *testing.T) {
	t.Parallel()
	h, dir := keptHome(t)
	keep(t, dir, "old", 40, "long ago")
	keep(t, dir, "new", 1, "yesterday")
	past := time.Now().AddDate(0, 0, -90)
	if err := os.Chtimes(dir+"/new.jsonl", past, past); err != nil {
		t.Fatal(err)
	}
	result, err := h.Sessions.Archive(t.Context(), home.ArchiveRequest{OlderThan: home.Age(30 * 24 * time.Hour)})
	if err != nil || len(result.Sessions) != 1 || result.Sessions[0].ID != "old" || len(result.Failed) > 0 {
		t.Fatalf("%+v, %v", result, err)
	}
	again, err := h.Sessions.Archive(t.Context(), home.ArchiveRequest{Session: "old"})
	if err != nil || len(again.Sessions) != 1 || !again.Sessions[0].Already {
		t.Errorf("archiving it again: %+v, %v", again, err)
	}
	plain, err := h.Sessions.Unarchive(t.Context(), home.OpenRequest{Session: "old"})
	if err != nil || len(plain.Sessions) != 1 || plain.Sessions[0].Path != filepath.Join(dir, "old.jsonl") {
		t.Errorf("%+v, %v", plain, err)
	}
}

func TestRetainNamesWhatGoesAndWhy(t *testing.T) {
	t.Parallel()
	h, dir := keptHome(t)
	keep(t, dir, "old", 40, "long ago")
	keep(t, dir, "middle", 10, "a while ago")
	keep(t, dir, "new", 1, "yesterday")
	if err := os.WriteFile(dir+"/junk.jsonl", []byte("nonsense\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	one := 1
	r := home.RetainRequest{OlderThan: home.Age(30 * 24 * time.Hour), MaxCount: &one, DryRun: true}
	plan, err := h.Upkeep.Retain(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range plan.Sessions {
		got = append(got, s.ID+" ("+s.Title+"): "+s.Reason+s.Removal)
	}
	if s, want := strings.Join(got, "; "), "old (long ago): older than 30d; middle (a while ago): not among the 1 latest"; s != want {
		t.Errorf("%s, want %s", s, want)
	}
	if len(plan.Failed) != 1 || plan.Failed[0].Session != "junk" || plan.Failed[0].Error == "" {
		t.Errorf("failed: %+v", plan.Failed)
	}
	r.DryRun = false
	done, err := h.Upkeep.Retain(t.Context(), r)
	if err != nil || len(done.Sessions) != 2 || !strings.HasPrefix(done.Sessions[0].Removal, "old.") {
		t.Errorf("%+v, %v", done, err)
	}
	for _, bad := range []home.RetainRequest{{}, {OlderThan: -1}} {
		if _, err := h.Upkeep.Retain(t.Context(), bad); !errors.Is(err, session.ErrInvalid) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

func TestWhatIsRemovedComesBackByManyNames(t *testing.T) {
	t.Parallel()
	h, dir := keptHome(t)
	keep(t, dir, "garden-1", 1, "roses")
	for i, name := range []string{"garden-1", "gard", "garden-1"} {
		if i == 2 { // an archive is as good
			if _, err := h.Sessions.Archive(t.Context(), home.ArchiveRequest{Session: "garden-1"}); err != nil {
				t.Fatal(err)
			}
		}
		gone, err := h.Sessions.Remove(t.Context(), home.RemoveRequest{Session: "garden-1"})
		if err != nil || gone.Title != "roses" || len(gone.Removals) != 1 {
			t.Fatalf("%+v, %v", gone, err)
		}
		trash, err := h.Upkeep.Trash(t.Context(), home.TrashRequest{})
		if err != nil || len(trash.Removals) != 1 || trash.Removals[0].Title != "roses" || trash.Removals[0].ID != gone.Removals[0] {
			t.Fatalf("%+v, %v", trash, err)
		}
		back, err := h.Upkeep.Restore(t.Context(), home.RestoreRequest{Session: name})
		if err != nil || back.Session != "garden-1" || back.Removal != gone.Removals[0] {
			t.Fatalf("%s: %+v, %v", name, back, err)
		}
	}
	if _, err := h.Upkeep.Restore(t.Context(), home.RestoreRequest{Session: "garden-1"}); !errors.Is(err, session.ErrNotExist) {
		t.Errorf("restoring what is not in the trash: %v", err)
	}
	if _, err := h.Sessions.Remove(t.Context(), home.RemoveRequest{Session: "garden-1"}); err != nil {
		t.Fatal(err)
	}
	keep(t, dir, "garden-1", 1, "beans")
	if _, err := h.Upkeep.Restore(t.Context(), home.RestoreRequest{Session: "garden-1"}); !errors.Is(err, session.ErrExist) {
		t.Errorf("restoring over another session: %v", err)
	}
	plan, err := h.Upkeep.EmptyTrash(t.Context(), home.EmptyTrashRequest{All: true, DryRun: true})
	if err != nil || len(plan.Removals) != 1 || plan.Size == 0 {
		t.Errorf("%+v, %v", plan, err)
	}
	if done, err := h.Upkeep.EmptyTrash(t.Context(), home.EmptyTrashRequest{}); !errors.Is(err, session.ErrInvalid) {
		t.Errorf("a request that says nothing: %+v, %v", done, err)
	}
	if done, err := h.Upkeep.EmptyTrash(t.Context(), home.EmptyTrashRequest{All: true}); err != nil || len(done.Removals) != 1 {
		t.Errorf("%+v, %v", done, err)
	}
	if trash, err := h.Upkeep.Trash(t.Context(), home.TrashRequest{}); err != nil || len(trash.Removals) > 0 {
		t.Errorf("%+v, %v", trash, err)
	}
}

// Check, repair and redaction take sessions by the names that people type, and a
// redaction drops and rebuilds the index.
func TestUpkeepTakesNames(t *testing.T) {
	t.Parallel()
	h, dir := keptHome(t)
	secret := "gh" + "p_" + "fOurThB1tsT3stF1x8Kq7wZ2yLp5Vc9Jh3X4"
	keep(t, dir, "garden-1", 1, "use "+secret, "please")
	if status, err := h.Upkeep.IndexStatus(t.Context()); err != nil || status.Entries == 0 {
		t.Fatalf("%+v, %v", status, err)
	}
	done, err := h.Upkeep.Redact(t.Context(), home.RedactRequest{Sessions: []string{"gard"}, Apply: true})
	if err != nil || len(done.Secrets) != 1 || done.Secrets[0].Places[0].Session != "garden-1" || done.Index == "" || len(done.Receipt.Left) > 0 {
		t.Fatalf("%+v, %v", done, err)
	}
	if left, err := h.Upkeep.Unfinished(t.Context()); err != nil || left.Unfinished {
		t.Errorf("unfinished: %v, %v", left, err)
	}
	f, err := os.OpenFile(dir+"/garden-1.jsonl", os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"ty`); errors.Join(err, f.Close()) != nil {
		t.Fatal(err)
	}
	var kinds []string
	found, err := h.Upkeep.Check(t.Context(), home.CheckRequest{Sessions: []string{"gard"}}, func(f upkeep.Finding) error {
		kinds = append(kinds, f.Kind)
		return nil
	})
	if err != nil || found.Faults != 1 || strings.Join(kinds, ",") != string(session.ProblemTail) {
		t.Errorf("%v, %+v, %v", kinds, found, err)
	}
	mended, err := h.Upkeep.Repair(t.Context(), home.RepairRequest{Session: "gard"})
	if err != nil || mended.Session != "garden-1" || len(mended.Actions) != 1 || len(mended.Left) > 0 {
		t.Errorf("%+v, %v", mended, err)
	}
	if found, err := h.Upkeep.Check(t.Context(), home.CheckRequest{}, nil); err != nil || found.Faults != 0 {
		t.Errorf("afterwards: %+v, %v", found, err)
	}
	for _, bad := range []home.RedactRequest{{}, {All: true, Sessions: []string{"gard"}}} {
		if _, err := h.Upkeep.Redact(t.Context(), bad); !errors.Is(err, session.ErrInvalid) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

func TestIndexIsRebuilt(t *testing.T) {
	t.Parallel()
	h, dir := keptHome(t)
	keep(t, dir, "garden-1", 1, "roses")
	built, err := h.Upkeep.RebuildIndex(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	status, err := h.Upkeep.IndexStatus(t.Context())
	if err != nil || status.Path != built.Path || status.Sessions != 1 || status.Entries == 0 {
		t.Errorf("%+v, %v", status, err)
	}
}

// What is taken out of a home stays out while the home is open, whether it took it
// out itself or another process did.
func TestWhatIsRedactedDoesNotComeBackIntoAnOpenHome(t *testing.T) {
	t.Parallel()
	for _, who := range []string{"itself", "another"} {
		h, dir := keptHome(t)
		secret := "gh" + "p_" + "fOurThB1tsT3stF1x8Kq7wZ2yLp5Vc9Jh3X4"
		keep(t, dir, "garden-1", 1, "use "+secret)
		by := h
		if who == "another" {
			var err error
			if by, err = home.Open(t.Context(), dir, &home.Options{Settings: h.Settings()}); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = by.Close() })
		}
		if _, err := by.Upkeep.Redact(t.Context(), home.RedactRequest{All: true, Apply: true}); err != nil {
			t.Fatal(err)
		}
		said := &session.MessageEntry{Role: session.RoleUser, Content: []session.Content{session.Text("again " + secret)}}
		if _, err := h.Entries.Append(t.Context(), home.AppendRequest{Session: "garden-1", Message: said}); err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(filepath.Join(dir, "garden-1.jsonl"))
		if err != nil || strings.Contains(string(content), secret) || !strings.Contains(string(content), "again [REDACTED:github-token]") {
			t.Errorf("redacted by %s: %v\n%s", who, err, content)
		}
	}
}

// What is removed while a person is being asked was not asked about, and stays.
func TestEmptyingTheTrashTakesOnlyWhatWasListed(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	for _, id := range []string{"old", "new"} {
		h.say(session.Header{ID: id}, "hello")
	}
	remove := func(id string) {
		t.Helper()
		if _, err := h.Sessions.Remove(t.Context(), home.RemoveRequest{Session: id}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Millisecond) // removals are told apart by the clock
	}
	remove("old")
	plan, err := h.Upkeep.EmptyTrash(t.Context(), home.EmptyTrashRequest{All: true, DryRun: true})
	if err != nil || len(plan.Removals) != 1 {
		t.Fatalf("planned %+v, %v", plan, err)
	}
	remove("new")
	gone, err := h.Upkeep.EmptyTrash(t.Context(), home.EmptyTrashRequest{Before: plan.Before})
	if err != nil || len(gone.Removals) != 1 || gone.Removals[0] != plan.Removals[0] {
		t.Errorf("deleted %+v, %v; want what was planned: %v", gone, err, plan.Removals)
	}
}
