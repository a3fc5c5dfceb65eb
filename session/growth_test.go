package session

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/bench/shapes"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/memory"
)

// Each of these takes milliseconds where the work is in proportion to the input.
// Where each part of the input is compared with all others again, it takes so long
// that the test's time limit says so; no time is looked at here.

// openShape opens a session of an extreme shape.
func openShape(t *testing.T, name string, n int) *Session {
	t.Helper()
	for _, shape := range shapes.All {
		if shape.Name != name {
			continue
		}
		var lines [][]byte
		for line := range strings.Lines(shape.Lines(n)) {
			lines = append(lines, []byte(strings.TrimSuffix(line, "\n")))
		}
		st := memory.New(nil)
		log, err := st.Create(context.Background(), shapes.ID, store.Lines(lines...))
		if err != nil {
			t.Fatal(err)
		}
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
		s, err := Open(context.Background(), st, shapes.ID, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	t.Fatalf("no shape %q", name)
	return nil
}

func TestProblemsOfManyBranches(t *testing.T) {
	t.Parallel()
	const n = 4000
	problems, err := openShape(t, "branch points", n).Problems()
	if err != nil || len(problems) != n { // each call is without a result on some branch
		t.Errorf("%d problems, want %d; %v", len(problems), n, err)
	}
}

func TestManyDamagedLines(t *testing.T) {
	t.Parallel()
	const n = 20_000
	s := openShape(t, "damaged lines", n)
	leaves, err := s.Leaves()
	if err != nil || len(leaves) == 0 {
		t.Errorf("%d leaves; %v", len(leaves), err)
	}
	var x tree
	for i := range 200_000 { // and none of them is free any more in the end
		x.damage = append(x.damage, damage{pos: store.Pos(i)})
	}
	for i := range x.damage {
		if d := x.damageOf("gone", store.Pos(len(x.damage))); d == nil || int(d.pos) != len(x.damage)-1-i {
			t.Fatalf("missing entry %d is not in the nearest line", i)
		}
	}
	if d := x.damageOf("gone", store.Pos(len(x.damage))); d != nil {
		t.Errorf("line %d was taken twice", d.pos)
	}
}

func TestManyTags(t *testing.T) {
	t.Parallel()
	const n = 60_000
	found, err := openShape(t, "tags", n).Remarks()
	if err != nil || len(found.Tags) != n {
		t.Errorf("%d tags, want %d; %v", len(found.Tags), n, err)
	}
	gone := make([]any, len(found.Tags))
	for i, tag := range found.Tags {
		gone[i] = tag
	}
	var tags TagSet
	tags.Add(found.Tags...)
	tags.Apply(&CustomEntry{Data: map[string]any{"remove": gone}})
	if left := tags.Sorted(); len(left) != 0 {
		t.Errorf("%d tags are left", len(left))
	}
}

// toolMessage is a message of calls or of results.
func toolMessage(role MessageRole, blocks ...Content) Entry {
	return Message(role, blocks...)
}

func TestPairingOfManyCalls(t *testing.T) {
	t.Parallel()
	const n = 30_000
	calls := make([]Content, n)
	one := &Context{Entries: []Entry{{}}} // one message makes all the calls
	run := &Context{}                     // a message for each call, and no result
	late := &Context{}                    // results that came after the user spoke
	for i := range calls {
		id := fmt.Sprint(i)
		calls[i] = ToolUse(id, "run", nil)
		one.Entries = append(one.Entries, toolMessage(RoleTool, ToolResult(id, "done", false)))
		run.Entries = append(run.Entries, toolMessage(RoleAssistant, calls[i]))
		late.Entries = append(late.Entries, toolMessage(RoleTool, ToolResult(id, "done", false)))
	}
	one.Entries[0] = toolMessage(RoleAssistant, calls...)
	late.Entries = append([]Entry{toolMessage(RoleAssistant, calls...), toolMessage(RoleUser, Text("well?"))}, late.Entries...)
	for name, want := range map[string]struct {
		c                 *Context
		entries, problems int
	}{"one": {one, n + 1, 0}, "run": {run, 2 * n, n}, "late": {late, n + 2, 0}} {
		want.c.pairTools()
		if len(want.c.Entries) != want.entries || len(want.c.Problems) != want.problems {
			t.Errorf("%s: %d entries and %d problems, want %d and %d", name, len(want.c.Entries), len(want.c.Problems), want.entries, want.problems)
		}
	}
}

func TestManyEditsAreNamed(t *testing.T) {
	t.Parallel()
	const n = 50_000
	c := &Context{Edited: make(map[string]string)}
	path := make([]Entry, 2*n)
	for i := range n {
		message, edit := fmt.Sprint("m", i), fmt.Sprint("e", i)
		path[i] = Entry{ID: message, Message: &MessageEntry{}}
		path[n+i] = Entry{ID: edit, ContextEdit: &ContextEditEntry{TargetID: message}}
		c.Edited[message] = edit
	}
	left := editedIn(c, path)
	if len(left) != n || left[0].Reason != LeftOutCleared {
		t.Errorf("%d edits are named, want %d", len(left), n)
	}
}

// Changes that are taken back and made again by the thousand cost no more than they are.
func TestManyRevertsOfReverts(t *testing.T) {
	t.Parallel()
	const n = 50_000
	edit := &Entry{Type: TypeContextEdit, ID: "edit", ContextEdit: &ContextEditEntry{TargetID: "m"}}
	c, sel, then := &Context{}, &selection{}, changes{}
	then.note(c, sel, edit, nil)
	target := edit.ID
	for i := range n {
		e := &Entry{Type: TypeRevert, ID: fmt.Sprint("r", i), Revert: &RevertEntry{TargetID: target}}
		c.Entries = append(c.Entries, Entry{})
		then.note(c, sel, e, nil)
		target = e.ID
	}
	if d := depths(then.unlike, len(c.Entries)); len(d) != n+1 || d[0] == 0 {
		t.Errorf("%d spans, %d depths", len(then.unlike), len(d))
	}
}

func TestCutsAfterAGreatTurn(t *testing.T) {
	t.Parallel()
	const n = 30_000
	var c Cuts
	calls, results := make([]Content, n), make([]Content, n)
	for i := range calls {
		calls[i], results[i] = ToolUse(fmt.Sprint(i), "run", nil), ToolResult(fmt.Sprint(i), "done", false)
	}
	c.Add(toolMessage(RoleAssistant, calls...))
	c.Add(toolMessage(RoleTool, results...))
	for range n {
		c.Add(toolMessage(RoleUser, Text("next")))
	}
	if len(c.Legal()) != n+1 || c.Pending() {
		t.Errorf("%d cuts, want %d", len(c.Legal()), n+1)
	}
}

// chainOf is a tree of one long branch, and one of a single entry beside it.
func chainOf(n int) *tree {
	t := newTree()
	t.extent = extentWhole
	for i := range n {
		h := headLine{id: fmt.Sprintf("e%07d", i), isRoot: i == 0, kind: kindMessage, pos: store.Pos(i)}
		if i > 0 {
			h.parent = fmt.Sprintf("e%07d", i-1)
		}
		t.addEntry(h)
	}
	t.addEntry(headLine{id: "f", parent: "e0000000", kind: kindMessage, pos: store.Pos(n)})
	return t
}

func TestPathsOfALongTree(t *testing.T) {
	t.Parallel()
	const n = 60_000
	x := chainOf(n)
	leaf, _ := x.at(fmt.Sprintf("e%07d", n-1))
	older, kept := ancestors{nodes: x.nodes, at: leaf}, lookup{}
	halfway := older
	for i := range n { // with each entry the leaf goes on, and the first is still on its path
		id := fmt.Sprintf("e%07d", i)
		if !x.isOnPath("e0000000", id) || x.isOnPath("f", id) {
			t.Fatalf("entry %d is on another path", i)
		}
		if kept.has(older, "gone") {
			t.Fatal("an entry is found that is not there")
		}
		if older.next(); i == n/2 {
			halfway = older
		}
	}
	if !x.isOnPath("f", "f") || !x.isOnPath("e0000000", "f") || x.isOnPath("e0000001", "f") {
		t.Error("the short branch has another path")
	}
	next := halfway
	id := next.next().id
	if !kept.has(halfway, id) || kept.has(next, id) {
		t.Error("an entry is not found ahead, or still behind")
	}
}
