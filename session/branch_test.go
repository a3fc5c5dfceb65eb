package session_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/memory"
)

func TestBranchSurvivesAReload(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	u := s.user("one")
	a := s.say("two")
	s.branch(u)
	if s.LeafID() != u {
		t.Errorf("leaf %s", s.LeafID())
	}
	again := s.again()
	if again.LeafID() != u {
		t.Errorf("after a reload the leaf is %s, want %s", again.LeafID(), u)
	}
	again.sees("user: one")
	b := again.say("other two")
	if e := mustGet(again.Entry(b))(t); *e.ParentID != u {
		t.Errorf("the next entry is a child of %s, want %s", *e.ParentID, u)
	}
	again.again().sees("user: one", "assistant: other two")
	if leaves := mustGet(again.Leaves())(t); !slices.Equal(leaves, []string{a, b}) {
		t.Errorf("leaves %v, want %v", leaves, []string{a, b})
	}
	tree := mustGet(again.GetTree())(t)
	if diff := cmp.Diff([]string{u, a, b}, entryIDs(flatten(tree))); diff != "" || len(tree[0].Children) != 2 {
		t.Errorf("tree:\n%s", diff)
	}

	// Branching to where the leaf is writes nothing.
	size := len(readBytes(t, again.File()))
	again.branch(b)
	if len(readBytes(t, again.File())) != size {
		t.Error("a branch to the leaf was recorded")
	}
}

// A program that takes the last line for the leaf, and knows nothing of leaf
// entries, goes on at the right branch; and we follow.
func TestBranchForNaiveReaders(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	u := s.user("one")
	s.say("two")
	s.branch(u)
	var lines []map[string]any
	for _, line := range bytes.Split(bytes.TrimSpace(readBytes(t, s.File())), []byte("\n")) {
		var m map[string]any
		mustDo(t, json.Unmarshal(line, &m))
		lines = append(lines, m)
	}
	byID := make(map[any]map[string]any)
	for _, m := range lines {
		byID[m["id"]] = m
	}
	var path []any
	last := lines[len(lines)-1]
	for m := last; m != nil; m = byID[m["parent_id"]] {
		if m["type"] == "message" {
			path = append(path, m["id"])
		}
	}
	if diff := cmp.Diff([]any{u}, path); diff != "" {
		t.Errorf("the naive reader's path:\n%s", diff)
	}
	// It appends a child of the last line.
	mustDo(t, s.Close())
	f := mustGet(os.OpenFile(s.File(), os.O_APPEND|os.O_WRONLY, 0))(t)
	fmt.Fprintln(f, messageLine("naive", last["id"].(string), "user", "from elsewhere"))
	mustDo(t, f.Close())
	again := s.again()
	again.sees("user: one", "user: from elsewhere")
	again.say("welcome")
	again.again().sees("user: one", "user: from elsewhere", "assistant: welcome")
	// The leaf entry is shown now, because something hangs on it.
	if types := view(flatten(mustGet(again.GetTree())(t))); !slices.Contains(types, "leaf") {
		t.Errorf("tree %q", types)
	}
}

// What comes with a summary of a branch is written with it, where the summary is.
func TestUpdateBringsWhatASummaryComesWith(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	u := s.user("one")
	left := s.say("two")
	extra := session.Fields{{Name: "files", Value: []byte(`{}`)}}
	cost := session.Entry{Type: session.TypeCustom, Custom: session.NewUsage("p", "m", "r", session.Usage{Input: 7})}
	branch := func(cost session.Entry) (id string, err error) {
		err = s.Update(t.Context(), func(tx *session.Tx) error {
			told := &session.BranchSummaryEntry{Summary: "tried two", FromID: tx.Leaf(), Extra: extra}
			tx.Branch(u)
			tx.Append(cost)
			id = tx.Append(session.Entry{Type: session.TypeBranchSummary, BranchSummary: told})
			return nil
		})
		return id, err
	}
	id := mustGet(branch(cost))(t)
	path := mustGet(s.Forward(""))(t)
	if len(path) != 3 || path[2].ID != id || path[2].BranchSummary.FromID != left || len(path[2].BranchSummary.Extra) != 1 {
		t.Fatalf("the path is %+v", path)
	}
	if bill, ok := session.BillOf(&path[1]); !ok || bill.Usage.Input != 7 {
		t.Errorf("before the summary is %+v", path[1])
	}
	if _, err := branch(session.Entry{Type: session.TypeMessage}); err == nil || s.LeafID() != id {
		t.Errorf("with an entry that is not valid: %v, leaf %s", err, s.LeafID())
	}
}

func TestBranchWithSummary(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	u := s.user("one")
	left := s.say("two")
	id := mustGet(s.BranchWithSummary(u, "tried two"))(t)
	if s.LeafID() != id {
		t.Errorf("leaf %s, want the summary %s", s.LeafID(), id)
	}
	e := mustGet(s.again().Entry(id))(t)
	if e.BranchSummary.FromID != left || *e.ParentID != u {
		t.Errorf("%s", encode(t, e))
	}
	s.say("three")
	s.again().sees("user: one", "branch: tried two", "assistant: three")
	mustGet(s.BranchWithSummary(u, ""))(t) // an empty one says nothing
	s.again().sees("user: one")
}

func TestResetLeaf(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	mustDo(t, s.ResetLeaf()) // nothing to leave
	s.user("one")
	mustDo(t, s.ResetLeaf())
	if s.LeafID() != "" || s.again().LeafID() != "" {
		t.Errorf("leaf %q", s.LeafID())
	}
	s.sees()
	s.again().sees()
	second := s.user("another beginning")
	again := s.again()
	again.sees("user: another beginning")
	if e := mustGet(again.Entry(second))(t); e.ParentID != nil {
		t.Errorf("parent %s", *e.ParentID)
	}
	if got := mustGet(again.Forward(""))(t); len(got) != 1 {
		t.Errorf("path %q", entryIDs(got))
	}
}

func TestLabels(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	a := s.user("a")
	b := s.user("b")
	mustGet(s.SetLabel(a, "first"))(t)
	mustGet(s.SetLabel(a, "renamed"))(t)
	mustGet(s.SetLabel(b, "second"))(t)
	s.branch(a)
	mustGet(s.SetLabel(b, ""))(t) // on another branch: it counts all the same
	again := s.again()
	if diff := cmp.Diff(map[string]string{a: "renamed"}, mustGet(again.Labels())(t)); diff != "" {
		t.Error(diff)
	}
	if label := mustGet(again.Labels())(t)[a]; label != "renamed" {
		t.Error(label)
	}
	if label := mustGet(again.Labels())(t)[b]; label != "" {
		t.Error(label)
	}
	if tree := mustGet(again.GetTree())(t); tree[0].Label != "renamed" || tree[0].Children[0].Label != "" {
		t.Errorf("labels in the tree: %q, %q", tree[0].Label, tree[0].Children[0].Label)
	}
}

func TestCompare(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	a := s.user("a")
	b := s.user("b")
	c := s.user("c")
	s.branch(b)
	d := s.user("d")
	mustDo(t, s.ResetLeaf())
	r := s.user("r")
	for _, test := range []struct {
		x, y, ancestor string
		shared         int
		onlyA, onlyB   []string
	}{
		{c, d, b, 2, []string{c}, []string{d}},
		{a, c, a, 1, []string{}, []string{b, c}},
		{c, c, c, 3, []string{}, []string{}},
		{c, r, "", 0, []string{a, b, c}, []string{r}},
		{"", c, "", 0, []string{r}, []string{a, b, c}},
	} {
		got := s.compare(test.x, test.y)
		if got.Ancestor != test.ancestor || got.Shared != test.shared ||
			!slices.Equal(got.OnlyA, test.onlyA) || !slices.Equal(got.OnlyB, test.onlyB) {
			t.Errorf("Compare(%s, %s) = %+v", test.x, test.y, got)
		}
	}
}

// Entries that two paths have stay shared where one of them has others in between.
func TestComparePathsByID(t *testing.T) {
	t.Parallel()
	got := session.Compare([]string{"name", "a", "b", "c"}, []string{"a", "label", "b", "d"})
	if got.Ancestor != "b" || got.Shared != 2 ||
		!slices.Equal(got.OnlyA, []string{"name", "c"}) || !slices.Equal(got.OnlyB, []string{"label", "d"}) {
		t.Errorf("%+v", got)
	}
}

func TestMerge(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	u := s.user("one")
	s.user("side")
	call := s.call("c")
	result := s.result("c")
	found := s.say("found it")
	s.branch(u)
	main := s.say("main")
	id := mustGet(s.AppendEntry(session.Merge(found, "the side branch found it")))(t)
	s.sees("user: one", "assistant: main", "merge: the side branch found it")
	if e := mustGet(s.Entry(id))(t); e.Merge.FromID != found || *e.ParentID != main {
		t.Errorf("%s", encode(t, e))
	}
	picked := mustGet(s.AppendEntry(session.Merge(found, "", call, result, found)))(t)
	full := []string{"user: one", "assistant: main", "merge: the side branch found it", "merge: ", "assistant: call c", "tool: c = out of c", "assistant: found it"}
	s.sees(full...)
	s.again().sees(full...)
	mustGet(s.AppendEntry(session.Revert(picked)))(t)
	s.sees(full[:3]...)
	s.again().sees(full[:3]...)
	leaf := s.LeafID()
	for name, ids := range map[string][]string{
		"call without result": {call}, "result without call": {result}, "result before call": {result, call},
		"not a message": {id}, "on another path": {main}, "unknown": {"nowhere"}, "result missing": {call, found},
	} {
		if _, err := s.AppendEntry(session.Merge(found, "s", ids...)); !errors.Is(err, session.ErrInvalid) {
			t.Errorf("%s: %v, want ErrInvalid", name, err)
		}
	}
	if _, err := s.AppendEntry(session.Merge(found, "")); !errors.Is(err, session.ErrInvalid) {
		t.Errorf("nothing merged: %v", err)
	}
	if s.LeafID() != leaf {
		t.Error("a refused merge was written")
	}
}

func TestCreateBranchedSession(t *testing.T) {
	t.Parallel()
	s := newScribe(t, func(c *session.Config) { c.CWD = "/src" })
	a := s.user("a")
	b := s.say("b")
	labelled := mustGet(s.SetLabel(b, "on the path"))(t)
	c := s.user("c")
	s.user("beyond")
	s.branch(a)
	side := s.user("side")
	mustGet(s.SetLabel(a, "from elsewhere"))(t)
	mustGet(s.SetLabel(b, "renamed elsewhere"))(t)
	mustGet(s.SetLabel(side, "not copied"))(t)
	before := snapshotDir(t, filepath.Dir(s.File()))[s.File()]
	path := mustGet(s.CreateBranchedSession(c))(t)
	if snapshotDir(t, filepath.Dir(s.File()))[s.File()] != before {
		t.Error("the session itself has changed")
	}
	f := loadScribe(t, path)
	f.sees("user: a", "assistant: b", "user: c")
	if h := f.Header(); h.ParentSession != s.ID() || h.Relation != session.RelationFork || h.CWD != "/src" || h.ID == s.ID() {
		t.Errorf("header %+v", h)
	}
	if diff := cmp.Diff(map[string]string{a: "from elsewhere", b: "renamed elsewhere"}, mustGet(f.Labels())(t)); diff != "" {
		t.Errorf("labels:\n%s", diff)
	}
	if got := entryIDs(mustGet(f.Forward(""))(t)); !slices.Equal(got[:4], []string{a, b, labelled, c}) {
		t.Errorf("path %q", got)
	}
	// The lines are the same bytes.
	copied := strings.Split(string(readBytes(t, path)), "\n")
	for _, id := range []string{a, b, labelled, c} {
		if !slices.ContainsFunc(copied, func(line string) bool { return line == lineOf(t, s.File(), id) }) {
			t.Errorf("the line of %s was not copied as it is", id)
		}
	}
	if kinds := f.problemKinds(); kinds != nil {
		t.Errorf("problems %q", kinds)
	}
	f.user("going on")
	f.again().sees("user: a", "assistant: b", "user: c", "user: going on")
}

// lineOf returns the line of an entry.
func lineOf(t testing.TB, path, id string) string {
	t.Helper()
	for _, line := range strings.Split(string(readBytes(t, path)), "\n") {
		if strings.Contains(line, `"id":"`+id+`"`) {
			return line
		}
	}
	t.Fatalf("no line of %s", id)
	return ""
}

// A branched session has the name and the tags of the one it came from, wherever
// in the tree they were given, and nothing twice.
func TestBranchedSessionKeepsNameAndTags(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	a := s.user("a")
	mustGet(s.AppendSessionInfo("old name"))(t)
	mustGet(s.AppendEntry(session.Tags("gone", "kept")))(t)
	b := s.user("b")
	s.branch(a)
	mustGet(s.AppendSessionInfo("new name"))(t)
	mustGet(s.AppendEntry(session.TagChange{Add: []string{"late"}, Remove: []string{"gone"}}.Entry()))(t)
	c := s.user("c")
	for _, leaf := range []string{a, b, c} {
		f := loadScribe(t, mustGet(s.CreateBranchedSession(leaf))(t))
		if name, tags := mustGet(f.Name())(t), mustGet(f.Remarks())(t).Tags; name != "new name" || !slices.Equal(tags, []string{"kept", "late"}) {
			t.Errorf("at %s: name %q, tags %q", leaf, name, tags)
		}
		again := loadScribe(t, mustGet(f.CreateBranchedSession(f.LeafID()))(t))
		if got, want := len(again.ids()), len(f.ids()); got != want {
			t.Errorf("at %s: a copy of the copy has %d entries instead of %d", leaf, got, want)
		}
	}
}

// A label that was taken away elsewhere does not come back in the copy.
func TestBranchedSessionWithoutARemovedLabel(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	a := s.user("a")
	mustGet(s.SetLabel(a, "on the path"))(t)
	b := s.user("b")
	s.branch(a)
	mustGet(s.SetLabel(a, ""))(t)
	f := loadScribe(t, mustGet(s.CreateBranchedSession(b))(t))
	if labels := mustGet(f.Labels())(t); len(labels) != 0 {
		t.Errorf("labels %v", labels)
	}
}

func TestCreateBranchedSessionWithMergesAndGaps(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	a := s.user("a")
	s.user("not wanted")
	s.branch(a)
	s.user("side")
	pick := s.say("pick")
	s.user("after the pick")
	from := s.LeafID()
	s.branch(a)
	s.say("main")
	mustGet(s.AppendEntry(session.Merge(from, "sum", pick)))(t)
	end := s.user("end")
	f := loadScribe(t, mustGet(s.CreateBranchedSession(end))(t))
	want := []string{"user: a", "assistant: main", "merge: sum", "assistant: pick", "user: end"}
	f.sees(want...)
	if strings.Contains(string(readBytes(t, f.File())), "not wanted") {
		t.Error("an unrelated branch was copied")
	}

	// Entries that are lost stay lost, and what stood before them stays attached.
	path := writeLog(t, headerLine, messageLine("a", "", "user", "one"), "garbage", messageLine("c", "b", "user", "three"),
		`{"type":"message","id":"d","parent_id":"c","times`, messageLine("e", "d", "user", "five"))
	g := loadScribe(t, path)
	g.sees("user: one", "user: three", "user: five")
	copied := loadScribe(t, mustGet(g.CreateBranchedSession("e"))(t))
	copied.sees("user: one", "user: three", "user: five")
	if got := entryIDs(mustGet(copied.Forward(""))(t)); !slices.Equal(got, []string{"a", "b", "c", "d", "e"}) {
		t.Errorf("path %q", got)
	}
	survives(t, copied.File())
}

func TestBranchedSessionInMemory(t *testing.T) {
	t.Parallel()
	st := memory.New(nil)
	s := scribe{closeWith(t, mustGet(session.Create(t.Context(), st, session.Header{ID: "mine"}, nil))(t)), t}
	if s.File() != "" || s.ID() != "mine" {
		t.Errorf("path %q, id %q", s.File(), s.ID())
	}
	a := s.user("a")
	id := mustGet(s.CreateBranchedSession(a))(t)
	f := scribe{closeWith(t, mustGet(session.Open(t.Context(), st, id, nil))(t)), t}
	f.sees("user: a")
	if _, err := session.Create(t.Context(), st, session.Header{ID: "mine"}, nil); !errors.Is(err, session.ErrExist) {
		t.Errorf("the same id again: %v", err)
	}
	if _, err := session.Create(t.Context(), st, session.Header{ID: "../x"}, nil); !errors.Is(err, session.ErrInvalid) {
		t.Errorf("an id that is no name: %v", err)
	}
}

func TestForkFrom(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	a := s.user("a")
	big := strings.Repeat("output ", 10_000)
	s.call("c")
	s.message(session.RoleTool, session.ToolResult("c", big, false))
	s.branch(a)
	s.say("other")
	mustDo(t, s.ResetLeaf())
	r := s.user("second root")
	for name, dir := range map[string]string{"same": filepath.Dir(s.File()), "other": filepath.Join(t.TempDir(), "new")} {
		f := scribe{closeWith(t, mustGet(session.ForkFrom(s.File(), dir))(t)), t}
		if filepath.Dir(f.File()) != dir || f.File() == s.File() || f.Header().ParentSession != s.ID() || f.Header().Relation != session.RelationFork {
			t.Errorf("%s: %s, %+v", name, f.File(), f.Header())
		}
		if diff := cmp.Diff(s.ids(), f.ids()); diff != "" {
			t.Errorf("%s: entries:\n%s", name, diff)
		}
		_, original, _ := strings.Cut(string(readBytes(t, s.File())), "\n")
		_, forked, _ := strings.Cut(string(readBytes(t, f.File())), "\n")
		if original != forked {
			t.Errorf("%s: the lines are not the same bytes", name)
		}
		if f.LeafID() != r || len(mustGet(f.GetTree())(t)) != 2 {
			t.Errorf("%s: leaf %s, %d roots", name, f.LeafID(), len(mustGet(f.GetTree())(t)))
		}
		if c := f.at(mustGet(f.Leaves())(t)[0]); c.Entries[2].Message.Content[0].ToolResult.Content != big || len(c.Problems) > 0 {
			t.Errorf("%s: the blob is not there: %v", name, c.Problems)
		}
		// Each goes its own way.
		f.user("only here")
		s.again().sees("user: second root")
		f.again().sees("user: second root", "user: only here")
	}
	if _, err := session.ForkFrom(filepath.Join(t.TempDir(), "none.jsonl"), t.TempDir()); !errors.Is(err, session.ErrNotExist) {
		t.Errorf("a fork of nothing: %v", err)
	}
}

// After a conflict our leaf is not the log's; a fork goes on from ours.
func TestForkKeepsOurLeaf(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	ours := s.user("ours")
	other := s.again()
	other.user("theirs")
	if _, err := s.AppendMessage(session.RoleUser, []session.Content{session.Text("x")}); !errors.Is(err, session.ErrConflict) {
		t.Fatal(err)
	}
	f := scribe{closeWith(t, mustGet(s.Fork(t.Context(), memory.New(nil), nil))(t)), t}
	if f.LeafID() != ours {
		t.Errorf("leaf %s, want %s", f.LeafID(), ours)
	}
	f.sees("user: ours")
}

// A fork copies what it does not understand.
func TestForkOfADamagedSession(t *testing.T) {
	t.Parallel()
	path := writeLog(t, headerLine, messageLine("a", "", "user", "one"), "gar\x00bage", `{"type":"x"}`, messageLine("c", "b", "user", "three"),
		`{"type":"message","id":"d","parent_id":"c","timestamp":"2024-01-01T10:00:01.000Z","message":{"role":"user","content":[{"type":"image","image":{"source":{"type":"base64","media_type":"m","blob":"sha256:../../x","size":1}}}]}}`)
	f := scribe{closeWith(t, mustGet(session.ForkFrom(path, t.TempDir()))(t)), t}
	if got := entryIDs(mustGet(f.GetContext())(t)); !slices.Equal(got, []string{"a", "c", "d"}) {
		t.Errorf("context %q", got)
	}
	_, original, _ := strings.Cut(string(readBytes(t, path)), "\n")
	_, forked, _ := strings.Cut(string(readBytes(t, f.File())), "\n")
	if original != forked {
		t.Errorf("copied as %q", forked)
	}
}

// A directory can hold a session's fork and be read by another store.
func TestForkIntoAFileStore(t *testing.T) {
	t.Parallel()
	s := scribe{closeWith(t, mustGet(session.Create(t.Context(), memory.New(nil), session.Header{CWD: "/x"}, nil))(t)), t}
	s.user("from memory")
	dir := t.TempDir()
	st := mustGet(file.Open(dir, nil))(t)
	defer st.Close()
	f := closeWith(t, mustGet(s.Fork(t.Context(), st, nil))(t))
	loadScribe(t, f.File()).sees("user: from memory")
}

// A copy of a path leaves out the branches that were merged into it, but for what
// the merges brought. That is no fault of the copy.
func TestCopyOfAPathWithMergesHasNoFaults(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	one := s.user("one")
	pick := s.say("side")
	side := s.user("more of the side")
	s.branch(one)
	mustGet(s.AppendEntry(session.Merge(side, "merged")))(t)
	mustGet(s.AppendEntry(session.Merge(side, "merged again", pick)))(t)
	s.user("two")
	want := view(mustGet(s.GetContext())(t))
	f := loadScribe(t, mustGet(s.CreateBranchedSession(s.LeafID()))(t))
	f.sees(want...)
	if kinds := f.problemKinds(); len(kinds) > 0 {
		t.Errorf("problems %q", kinds)
	}
	if slices.Contains(f.ids(), side) {
		t.Error("the branch was copied")
	}
}
