package claudecode_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/memory"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/format/claudecode"
)

// fileLine is what the program looks at when it resumes a session.
type fileLine struct {
	Type, UUID  string
	ParentUUID  *string
	IsSidechain bool
	Message     struct {
		ID      string
		Content json.RawMessage
	}
	CompactMetadata struct {
		PreservedMessages struct {
			AnchorUUID string
			UUIDs      []string
		}
	}
}

// tree is the lines of a file that have a place in its tree.
type tree struct {
	lines map[string]*fileLine
	order []string
}

func treeOf(t *testing.T, data []byte) *tree {
	t.Helper()
	f := &tree{lines: make(map[string]*fileLine)}
	for text := range strings.Lines(string(data)) {
		var l fileLine
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Fatal(err)
		}
		if l.UUID != "" {
			f.lines[l.UUID] = &l
			f.order = append(f.order, l.UUID)
		}
	}
	for _, id := range f.order {
		f.keep(f.lines[id])
	}
	return f
}

// keep hangs what a compaction keeps on the summary, and what hung there on that.
func (f *tree) keep(boundary *fileLine) {
	kept := boundary.CompactMetadata.PreservedMessages
	if len(kept.UUIDs) == 0 {
		return
	}
	for _, l := range f.lines {
		if l.ParentUUID != nil && *l.ParentUUID == kept.AnchorUUID {
			l.ParentUUID = &kept.UUIDs[len(kept.UUIDs)-1]
		}
	}
	after := kept.AnchorUUID
	for _, id := range kept.UUIDs {
		f.lines[id].ParentUUID = &after
		after = id
	}
}

// resumed returns the lines that the program goes on with: from the last one that
// nothing follows up to one without a parent.
func (f *tree) resumed() []*fileLine {
	followed := make(map[string]bool)
	for _, l := range f.lines {
		if l.ParentUUID != nil {
			followed[*l.ParentUUID] = true
		}
	}
	var path []*fileLine
	for _, id := range slices.Backward(f.order) {
		if followed[id] {
			continue
		}
		for l := f.lines[id]; l != nil; {
			path = append(path, l)
			if l.ParentUUID == nil {
				break
			}
			l = f.lines[*l.ParentUUID]
		}
		break
	}
	slices.Reverse(path)
	return path
}

// pulledIn returns the lines that the program would add to a path: those of the
// same replies, and the results that hang on its calls.
func (f *tree) pulledIn(path []*fileLine) (ids []string) {
	on, replies := make(map[string]bool), make(map[string]bool)
	for _, l := range path {
		on[l.UUID] = l.Type == "assistant"
		replies[l.Message.ID] = l.Message.ID != ""
	}
	for _, id := range f.order {
		l := f.lines[id]
		result := l.ParentUUID != nil && on[*l.ParentUUID] && strings.Contains(string(l.Message.Content), `"tool_result"`)
		if !slices.Contains(path, l) && (replies[l.Message.ID] || result) {
			ids = append(ids, id)
		}
	}
	return ids
}

// sayings are the texts, calls and results of lines, briefly.
func sayings(path []*fileLine) (list []string) {
	for _, l := range path {
		var text string
		if json.Unmarshal(l.Message.Content, &text) == nil {
			list = append(list, text)
		}
		var blocks []struct {
			Type, Text, ID string
			ToolUseID      string `json:"tool_use_id"`
		}
		if json.Unmarshal(l.Message.Content, &blocks) == nil {
			for _, b := range blocks {
				list = append(list, b.Text+b.ID+b.ToolUseID)
			}
		}
	}
	return list
}

// contextOf is the same of what a model would be sent of a session.
func contextOf(t *testing.T, s *session.Session) (list []string) {
	t.Helper()
	c, err := s.Context(session.ContextOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range c.Entries {
		if e.Compaction != nil {
			list = append(list, e.Compaction.Summary)
		}
		if e.Message == nil {
			continue
		}
		for _, b := range e.Message.Content {
			switch {
			case b.Text != nil:
				list = append(list, b.Text.Content)
			case b.ToolUse != nil:
				list = append(list, b.ToolUse.ID)
			case b.ToolResult != nil:
				list = append(list, b.ToolResult.ToolUseID)
			}
		}
	}
	return list
}

// grow makes a session of some random steps, which goes back now and then.
func grow(t *testing.T, s *session.Session, random *rand.Rand) {
	t.Helper()
	var ids []string
	open := map[string][]string{} // the calls that wait, by entry
	for n := range 5 + random.IntN(20) {
		if len(ids) > 0 && random.IntN(4) == 0 {
			if err := s.Branch(ids[random.IntN(len(ids))]); err != nil {
				t.Fatal(err)
			}
		}
		at := s.LeafID()
		waiting := open[at]
		var blocks []session.Content
		role := session.RoleUser
		switch what := random.IntN(4); {
		case len(waiting) > 0 && what > 0:
			role = session.RoleTool
			for _, id := range waiting {
				blocks = append(blocks, session.ToolResult(id, "r", false))
			}
			waiting = nil
		case what == 0 || at == "":
			blocks = append(blocks, session.Text(fmt.Sprintf("prompt %d", n)))
			waiting = nil
		case what == 1:
			role = session.RoleAssistant
			blocks = append(blocks, session.Text(fmt.Sprintf("reply %d", n)))
			waiting = nil
		default:
			role = session.RoleAssistant
			waiting = []string{fmt.Sprintf("c%d", n), fmt.Sprintf("d%d", n)}
			for _, id := range waiting {
				blocks = append(blocks, session.ToolUse(id, "run", map[string]any{}))
			}
		}
		m := &session.MessageEntry{Role: role, Content: blocks}
		if role == session.RoleAssistant {
			m.ResponseID = fmt.Sprintf("msg_%d", n/4)
		}
		if err := s.Append(session.Entry{Type: session.TypeMessage, Message: m}); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, s.LeafID())
		open[s.LeafID()] = waiting
	}
	if err := s.Branch(ids[random.IntN(len(ids))]); err != nil {
		t.Fatal(err)
	}
}

// TestWriteTree: whatever branches a session has, the program goes on where it
// stands with what a model would be sent of it; so does an import elsewhere; and an
// import here knows every line. What has no place is announced.
func TestWriteTree(t *testing.T) {
	ledger := transcript.LedgerOf(fileStore(t))
	x := &transcript.Exporter{Env: transcript.Env{Home: t.TempDir(), Getenv: func(string) string { return "" }}, Ledger: ledger}
	for seed := range uint64(30) {
		st := memory.New(nil)
		s, err := session.Create(t.Context(), st, session.Header{CWD: "/p"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		grow(t, s, rand.New(rand.NewPCG(seed, 0)))
		out, err := x.Export(t.Context(), s, claudecode.Format(), transcript.Destination{})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		data, err := os.ReadFile(out.Paths[0])
		if err != nil {
			t.Fatal(err)
		}
		want := contextOf(t, s)
		f := treeOf(t, data)
		path := f.resumed()
		if diff := cmp.Diff(want, sayings(path)); diff != "" {
			t.Fatalf("seed %d: the program goes on with (-context +program)\n%s", seed, diff)
		}
		if ids := f.pulledIn(path); len(ids) > 0 {
			t.Fatalf("seed %d: the program would take in %v", seed, ids)
		}
		elsewhere := &home{t, memory.New(nil), nil}
		elsewhere.im = &transcript.Importer{Store: elsewhere.st}
		if diff := cmp.Diff(want, contextOf(t, elsewhere.open(elsewhere.bring(out.Paths[0]).Sessions[0].ID))); diff != "" {
			t.Fatalf("seed %d: elsewhere it is (-context +import)\n%s", seed, diff)
		}
		here := &home{t, st, &transcript.Importer{Store: st, Ledger: ledger, Again: true}}
		if r := here.bring(out.Paths[0]); r.New() != 0 || len(r.Sessions) != 1 || r.Sessions[0].ID != s.Header().ID {
			t.Fatalf("seed %d: an import finds %d new entries in %+v", seed, r.New(), r.Sessions)
		}
		missing := 0
		for e, err := range s.Entries() {
			if err != nil {
				t.Fatal(err)
			}
			if e.Message != nil && e.Message.Content[0].Text != nil && !strings.Contains(string(data), e.Message.Content[0].Text.Content+`"`) {
				missing++
			}
		}
		announced := slices.ContainsFunc(out.Losses, func(l transcript.Loss) bool { return l.What == "branches" })
		if missing > 0 && !announced {
			t.Errorf("seed %d: %d texts are missing", seed, missing)
		}
		s.Close()
	}
}

// TestWriteBeforeTheClear: a session that was cleared and stands before that has all
// that was said afterwards in its file, too, and the program does not go on with it.
func TestWriteBeforeTheClear(t *testing.T) {
	talk := new(script).user("b1", "", "befor").user("u1", "", "before").reply("a1", "u1", "1", text("x"), 1).
		tree("user", "u2", "", `"message":{"role":"user","content":"<command-name>/clear</command-name>"}`).
		user("r1", "u2", "after").reply("a2", "r1", "2", text("y"), 1)
	h := newHome(t)
	path := saveAs(t, t.TempDir()+"/"+sessionID+".jsonl", uuids(talk.b.String()))
	s := h.open(h.bring(path).Sessions[0].ID)
	if err := s.Branch(transcript.HashID("a1")); err != nil {
		t.Fatal(err)
	}
	x := &transcript.Exporter{Env: transcript.Env{Home: t.TempDir(), Getenv: func(string) string { return "" }}}
	out, err := x.Export(t.Context(), s, claudecode.Format(), transcript.Destination{})
	if err != nil || len(out.Losses) > 0 {
		t.Fatal(err, out.Losses)
	}
	data, err := os.ReadFile(out.Paths[0])
	if err != nil {
		t.Fatal(err)
	}
	f := treeOf(t, data)
	if got := sayings(f.resumed()); !slices.Equal(got, []string{"before", "x"}) {
		t.Errorf("the program goes on with %q", got)
	}
	elsewhere := newHome(t)
	again := elsewhere.open(elsewhere.bring(out.Paths[0]).Sessions[0].ID)
	if got := contextOf(t, again); !slices.Equal(got, []string{"before", "x"}) {
		t.Errorf("elsewhere it is %q", got)
	}
	if err := again.Branch(transcript.HashID("a2")); err != nil {
		t.Fatal(err)
	}
	if got := contextOf(t, again); !slices.Equal(got, []string{"<command-name>/clear</command-name>", "after", "y"}) {
		t.Errorf("after the clear there is %q", got)
	}
}
