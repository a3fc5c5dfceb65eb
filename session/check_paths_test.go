package session_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/internal/soak"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/memory"
)

// wildTree makes a session of random calls, results, edits, reverts, compactions
// and merges, on random branches and with random targets, as no writer of ours
// would leave it.
func wildTree(t *testing.T, r *rand.Rand, size int) *session.Session {
	t.Helper()
	var ids []string
	some := func() string {
		switch r.IntN(20) {
		case 0:
			return "gone"
		case 1:
			return fmt.Sprintf("e%03d", r.IntN(size)) // which may stand further down
		}
		return ids[r.IntN(len(ids))]
	}
	blocks := func() []session.Content {
		var blocks []session.Content
		for range r.IntN(4) {
			id := fmt.Sprintf("call%d", r.IntN(5))
			switch r.IntN(5) {
			case 0, 1:
				blocks = append(blocks, session.ToolUse(id, "run", nil))
			case 2, 3:
				blocks = append(blocks, session.ToolResult(id, "done", false))
			default:
				blocks = append(blocks, session.Text("words"))
			}
		}
		return blocks
	}
	var entries []session.Entry
	for i := range size {
		e := session.Entry{ID: fmt.Sprintf("e%03d", i), Timestamp: time.Unix(int64(i+1), 0)}
		if i > 0 {
			parent := ids[max(0, len(ids)-1-r.IntN(1+r.IntN(6)))]
			e.ParentID = &parent
		}
		kind := r.IntN(14)
		if i == 0 {
			kind = 0
		}
		switch kind {
		default:
			e.Type = session.TypeMessage
			role := []session.MessageRole{session.RoleAssistant, session.RoleTool, session.RoleUser}[r.IntN(3)]
			e.Message = &session.MessageEntry{Role: role, Content: blocks()}
		case 9:
			e.Type, e.ContextEdit = session.TypeContextEdit, &session.ContextEditEntry{TargetID: some()}
			if r.IntN(2) == 0 {
				e.ContextEdit.Replacement = blocks()
			}
		case 10:
			e.Type, e.Revert = session.TypeRevert, &session.RevertEntry{TargetID: some()}
		case 11:
			e.Type, e.Compaction = session.TypeCompaction, &session.CompactionEntry{Summary: "so far", FirstKeptEntryID: some()}
		case 12:
			e.Type, e.Merge = session.TypeMerge, &session.MergeEntry{FromID: some(), EntryIDs: []string{some(), some()}}
		case 13:
			e.Type, e.Label = session.TypeLabel, &session.LabelEntry{TargetID: some(), Label: "here"}
		}
		entries, ids = append(entries, e), append(ids, e.ID)
	}
	// No session would write some of this: it goes right into the log.
	st := memory.New(nil)
	lines := [][]byte{mustGet(session.Header{Type: session.TypeSession, ID: "wild", Version: session.Version}.MarshalJSON())(t)}
	for i := range entries {
		lines = append(lines, mustGet(entries[i].MarshalJSON())(t))
	}
	if r.IntN(2) == 0 { // some stand before their parents
		for range r.IntN(size) {
			i := 1 + r.IntN(size-1)
			lines[i], lines[i+1] = lines[i+1], lines[i]
		}
	}
	mustDo(t, mustGet(st.Create(context.Background(), "wild", store.Lines(lines...)))(t).Close())
	s := mustGet(session.Open(context.Background(), st, "wild", nil))(t)
	t.Cleanup(func() { s.Close() })
	return s
}

// What Problems finds on the paths is what the contexts at all leaves report, no
// more and no less, whatever the tree is like.
func TestProblemsAreThoseOfAllContexts(t *testing.T) {
	r := soak.Rand(t)
	for n := range soak.N(80) {
		size := 40
		if n >= 150 {
			size = 8 // in small ones rare things meet
		}
		s := wildTree(t, r, size)
		want := make(map[string]bool)
		for _, leaf := range mustGet(s.Leaves())(t) {
			c := mustGet(s.Context(session.ContextOptions{Leaf: leaf}))(t)
			for _, p := range c.Problems {
				want[fmt.Sprint(p.Kind, p.EntryID, p.Detail)] = true
			}
		}
		got := make(map[string]bool)
		for _, p := range mustGet(s.Problems())(t) {
			switch p.Kind {
			case session.ProblemOrphan, session.ProblemInterrupted, session.ProblemFirstKept, session.ProblemRepeated:
				got[fmt.Sprint(p.Kind, p.EntryID, p.Detail)] = true
			case session.ProblemTarget:
				if key := fmt.Sprint(p.Kind, p.EntryID, p.Detail); want[key] {
					got[key] = true // the others are those of references that no context follows
				}
			}
		}
		if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got))); diff != "" {
			t.Fatalf("tree %d: the contexts report (-), Problems reports (+):\n%s", n, diff)
		}
	}
}

// A merge that names an entry which is not there has one fault, not one as an entry
// and another on its path.
func TestAMissingMergeTargetIsReportedOnce(t *testing.T) {
	t.Parallel()
	path := writeLog(t, headerLine,
		`{"type":"message","id":"a","parent_id":null,"timestamp":"2024-01-01T10:00:01.000Z","message":{"role":"user","content":"one"}}`,
		`{"type":"merge","id":"g","parent_id":"a","timestamp":"2024-01-01T10:00:02.000Z","merge":{"from_id":"a","entry_ids":["gone","lost"]}}`)
	var targets []string
	for _, p := range mustGet(loadScribe(t, path).Problems())(t) {
		if p.Kind == session.ProblemTarget && p.EntryID == "g" {
			targets = append(targets, p.Detail)
		}
	}
	if len(targets) != 2 || !strings.Contains(targets[0], "gone") || !strings.Contains(targets[1], "lost") {
		t.Errorf("reported: %q", targets)
	}
}
