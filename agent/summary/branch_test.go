package summary_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/agent/summary"
	"github.com/coppice-dev/coppice/provider/digest"
	"github.com/coppice-dev/coppice/provider/offline"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/memory"
)

func idsOf(entries []session.Entry) []string {
	ids := []string{}
	for i := range entries {
		ids = append(ids, entries[i].ID)
	}
	return ids
}

func TestAbandonedIsWhatOnlyTheOldBranchHas(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	system := s.add(session.RoleSystem, session.Text("Be kind."))
	a := s.user("a")
	b := s.reply("b")
	c := s.user("c")
	d := s.add(session.RoleAssistant, session.ToolUse("x", "read", map[string]any{"path": "f"}))
	_ = s.Branch(a)
	e := s.reply("e")
	stub := session.InterruptedPrefix + "x"
	for name, test := range map[string]struct {
		from, to string
		want     []string
	}{
		"to an ancestor":           {d, a, []string{b, c, d, stub}},
		"to a sibling":             {d, e, []string{b, c, d, stub}},
		"the other way":            {e, d, []string{e}},
		"from the leaf":            {"", a, []string{e}},
		"to before the first":      {e, "", []string{a, e}},
		"to a descendant":          {a, d, []string{}},
		"to itself":                {d, d, []string{}},
		"to the root, not systems": {c, system, []string{a, b, c}},
	} {
		got, err := summary.Abandoned(s.Session, test.from, test.to)
		if diff := cmp.Diff(test.want, idsOf(got)); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
	for _, ends := range [][2]string{{"none", a}, {a, "none"}} {
		if _, err := summary.Abandoned(s.Session, ends[0], ends[1]); !errors.Is(err, session.ErrNotExist) {
			t.Errorf("from %s to %s: %v", ends[0], ends[1], err)
		}
	}
}

// What an edit took out of the context, and what a compaction replaced, is not told again.
func TestAbandonedIsTheContext(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	root := s.user("root")
	secret := s.user("secret")
	b := s.user("b")
	if _, err := s.AppendEntry(session.ContextEdit(secret)); err != nil {
		t.Fatal(err)
	}
	compaction, err := s.AppendCompaction("the summary", b, 0)
	if err != nil {
		t.Fatal(err)
	}
	got, err := summary.Abandoned(s.Session, "", root)
	if diff := cmp.Diff([]string{compaction, b}, idsOf(got)); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	m := writes(goal)
	if _, err := summary.Branch(t.Context(), m.Model(), got, summary.Options{}); err != nil || m.tasks[0].Previous != "the summary" || m.tasks[0].Kind != digest.Branch {
		t.Errorf("%v: %+v", err, m.tasks)
	}
}

// unreadable is a store whose blobs cannot be read.
type unreadable struct{ store.Store }

func (u unreadable) Blobs() store.Blobs { return unreadableBlobs{u.Store.Blobs()} }

type unreadableBlobs struct{ store.Blobs }

func (unreadableBlobs) Get(context.Context, store.Ref) ([]byte, error) {
	return nil, errors.New("the blob was read")
}

// The part that both branches share is not read, however long it is.
func TestAbandonedReadsOnlyTheContext(t *testing.T) {
	t.Parallel()
	created, err := session.Create(t.Context(), unreadable{memory.New(nil)}, session.Header{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = created.Close() })
	s := &story{Session: created, t: t}
	s.call("read", "big.txt", strings.Repeat("x", session.DefaultBlobThreshold+1))
	b := s.user("b")
	if _, err := s.AppendCompaction("the summary", b, 0); err != nil {
		t.Fatal(err)
	}
	c := s.reply("c")
	d := s.user("d")
	got, err := summary.Abandoned(s.Session, "", c)
	if diff := cmp.Diff([]string{d}, idsOf(got)); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestBranchLeavesASummaryWithFilesAndCosts(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	start := s.user("Try something.")
	s.call("write", "try.go", "ok")
	s.reply("The first way does not work.")
	left, err := summary.Abandoned(s.Session, "", start)
	if err != nil {
		t.Fatal(err)
	}
	sum, err := summary.Branch(t.Context(), &offline.Model{}, left, summary.Options{})
	if err != nil {
		t.Fatal(err)
	}
	old := s.LeafID()
	id, err := sum.AppendBranch(s.Session, start)
	if err != nil {
		t.Fatal(err)
	}
	c, err := s.Context(session.ContextOptions{})
	if err != nil || len(c.Entries) != 2 || s.LeafID() != id {
		t.Fatalf("%d entries, leaf %s: %v", len(c.Entries), s.LeafID(), err)
	}
	told := c.Entries[1]
	if !strings.Contains(told.Summary(), "The first way does not work.") || !strings.Contains(told.Summary(), "- try.go") || told.BranchSummary.FromID != old {
		t.Errorf("%+v", told.BranchSummary)
	}
	if spent, _ := session.SpentIn(s.Session); spent.Reported == 0 {
		t.Error("the cost is not in the log")
	}

	// A later summary hands its files on, and reads it as a note.
	s.reply(strings.Repeat("Another way. ", 200))
	s.user("Good.")
	m := writes(goal)
	next, err := summary.Compaction(t.Context(), m.Model(), s.plan(30), summary.Options{})
	if err != nil || !cmp.Equal(next.Files.Changed, []string{"try.go"}) {
		t.Errorf("files %+v, %v", next.Files, err)
	}
	if turns := m.tasks[0].Turns; len(turns) != 3 || turns[1].Who != digest.Note || strings.Contains(turns[1].Text, "try.go") {
		t.Errorf("%+v", turns)
	}
}

// The files of a summary that fails are not written, and neither is anything else.
func TestFailureAppendsNothing(t *testing.T) {
	t.Parallel()
	s, _ := worked(t)
	before, err := s.Shape()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := summary.Compaction(t.Context(), writes("No.").Model(), s.plan(60), summary.Options{}); err == nil {
		t.Fatal("no error")
	}
	if after, err := s.Shape(); err != nil || before.Len() != after.Len() {
		t.Errorf("%d entries, then %d: %v", before.Len(), after.Len(), err)
	}
	// A summary that comes too late for its plan is refused as a whole.
	plan := s.plan(60)
	sum, err := summary.Compaction(t.Context(), &offline.Model{}, plan, summary.Options{})
	if err != nil {
		t.Fatal(err)
	}
	plan.FirstKept = "gone"
	if _, err := sum.Append(s.Session, plan); err == nil {
		t.Error("a compaction before an entry that is not there was written")
	}
	if after, err := s.Shape(); err != nil || before.Len() != after.Len() {
		t.Errorf("%d entries, then %d: %v", before.Len(), after.Len(), err)
	}
}
