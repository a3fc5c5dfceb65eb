package format_test

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
	Subtype     string
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

// claudecodeTree is the lines of a file that have a place in its tree.
type claudecodeTree struct {
	lines map[string]*fileLine
	order []string
}

func treeOf(t *testing.T, data []byte) *claudecodeTree {
	t.Helper()
	f := &claudecodeTree{lines: make(map[string]*fileLine)}
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
	f.cut()
	for _, id := range f.order {
		f.keep(f.lines[id])
	}
	return f
}

// cut leaves out what stands before the last compaction of the file, on whatever branch
// that is, but for what it keeps.
func (f *claudecodeTree) cut() {
	for i, id := range slices.Backward(f.order) {
		l := f.lines[id]
		if l.Subtype != "compact_boundary" {
			continue
		}
		for _, before := range f.order[:i] {
			if !slices.Contains(l.CompactMetadata.PreservedMessages.UUIDs, before) {
				delete(f.lines, before)
			}
		}
		f.order = slices.DeleteFunc(f.order, func(id string) bool { return f.lines[id] == nil })
		return
	}
}

// keep hangs what a compaction keeps on the summary, and what hung there on that.
func (f *claudecodeTree) keep(boundary *fileLine) {
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
func (f *claudecodeTree) resumed() []*fileLine {
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
func (f *claudecodeTree) pulledIn(path []*fileLine) (ids []string) {
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
		if at != "" && len(waiting) == 0 && random.IntN(6) == 0 {
			c := &session.CompactionEntry{Summary: fmt.Sprintf("summary %d", n)}
			if s.Append(session.Entry{Type: session.TypeCompaction, Compaction: c}) == nil { // a call may wait further up
				ids = append(ids, s.LeafID())
				continue
			}
		}
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

// TestClaudeCodeWriteTree: whatever branches a session has, the program goes on where it
// stands with what a model would be sent of it; so does an import elsewhere; and an
// import here knows every line. What has no place is announced.
func TestClaudeCodeWriteTree(t *testing.T) {
	t.Parallel()
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
		elsewhere := &claudecodeHome{t, memory.New(nil), nil}
		elsewhere.im = &transcript.Importer{Store: elsewhere.st}
		if diff := cmp.Diff(want, contextOf(t, elsewhere.open(elsewhere.bring(out.Paths[0]).Sessions[0].ID))); diff != "" {
			t.Fatalf("seed %d: elsewhere it is (-context +import)\n%s", seed, diff)
		}
		here := &claudecodeHome{t, st, &transcript.Importer{Store: st, Ledger: ledger, Again: true}}
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

// TestClaudeCodeWriteLeftCompaction: the program cuts a file at its last compaction, whatever
// branch that is on. One of a branch that was left must not cut the live one.
func TestClaudeCodeWriteLeftCompaction(t *testing.T) {
	t.Parallel()
	s, err := session.Create(t.Context(), memory.New(nil), session.Header{CWD: "/p"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	say := func(role, text string) string {
		m := &session.MessageEntry{Role: role, Content: []session.Content{session.Text(text)}}
		if err := s.Append(session.Entry{Type: session.TypeMessage, Message: m}); err != nil {
			t.Fatal(err)
		}
		return s.LeafID()
	}
	say("user", "q1")
	first := say("assistant", "a1")
	kept := say("user", "q2")
	if err := s.Append(session.Entry{Type: session.TypeCompaction, Compaction: &session.CompactionEntry{Summary: "left", FirstKeptEntryID: kept}}); err != nil {
		t.Fatal(err)
	}
	say("user", "q3")
	if err := s.Branch(first); err != nil {
		t.Fatal(err)
	}
	say("user", "q4")
	x := &transcript.Exporter{Env: transcript.Env{Home: t.TempDir(), Getenv: func(string) string { return "" }}}
	out, err := x.Export(t.Context(), s, claudecode.Format(), transcript.Destination{})
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(out.Paths[0])
	if err != nil {
		t.Fatal(err)
	}
	if got := sayings(treeOf(t, data).resumed()); !slices.Equal(got, []string{"q1", "a1", "q4"}) {
		t.Errorf("the program goes on with %q", got)
	}
	if !strings.Contains(string(data), `"left"`) || len(out.Losses) != 1 || out.Losses[0].What != "compaction of another branch" {
		t.Errorf("losses %v of %s", out.Losses, data)
	}
}

// TestClaudeCodeWriteOddCalls: the ids of parallel calls that the provider would not take, and a
// text that a reply has twice, come back as they were.
func TestClaudeCodeWriteOddCalls(t *testing.T) {
	t.Parallel()
	s, err := session.Create(t.Context(), memory.New(nil), session.Header{CWD: "/p"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []session.MessageEntry{
		{Role: "user", Content: []session.Content{session.Text("go")}},
		{Role: "assistant", Content: []session.Content{
			session.Text("so"), session.Text("so"), session.ToolUse("call_1|fc_1", "run", map[string]any{"n": 1.0}),
			session.ToolUse("call_2|fc_2", "run", map[string]any{"n": 2.0}),
		}},
		{Role: "tool", Content: []session.Content{session.ToolResult("call_1|fc_1", "one", false)}},
		{Role: "tool", Content: []session.Content{session.ToolResult("call_2|fc_2", "two", false)}},
		{Role: "assistant", Content: []session.Content{session.Text("so"), session.Text("so on"), session.Text("so on and on")}},
	} {
		if err := s.Append(session.Entry{Type: session.TypeMessage, Message: &m}); err != nil {
			t.Fatal(err)
		}
	}
	x := &transcript.Exporter{Env: transcript.Env{Home: t.TempDir(), Getenv: func(string) string { return "" }}}
	out, err := x.Export(t.Context(), s, claudecode.Format(), transcript.Destination{})
	if err != nil || len(out.Losses) > 0 {
		t.Fatal(err, out)
	}
	elsewhere := newHome(t)
	again := elsewhere.open(elsewhere.bring(out.Paths[0]).Sessions[0].ID)
	if diff := cmp.Diff(contextOf(t, s), contextOf(t, again)); diff != "" {
		t.Errorf("(-written +read)\n%s", diff)
	}
}

// TestClaudeCodeWriteNotes: what the program put into the conversation itself is written as it was.
func TestClaudeCodeWriteNotes(t *testing.T) {
	t.Parallel()
	lines := []string{
		`"subtype":"local_command","content":"<command-name>/model</command-name>","level":"info"`,
		`"origin":{"kind":"task-notification"}`, `"isApiErrorMessage":true`, `"attachment":{"content":["hook"],"type":"hook_additional_context"}`,
		`"attachment":{"commandMode":"task-notification","prompt":"done","type":"queued_command"}`,
	}
	talk := new(script).user("u1", "", "go").tree("system", "b1", "u1", lines[0]).
		tree("user", "u2", "b1", lines[1]+`,"message":{"role":"user","content":"it is done"}`).
		tree("assistant", "a1", "u2", lines[2]+`,"message":{"id":"x","model":"none","role":"assistant","content":[{"type":"text","text":"API Error: 500"}]}`).
		tree("attachment", "r1", "a1", lines[3]).tree("attachment", "r2", "r1", lines[4]).reply("a2", "r2", "2", text("y"), 1)
	h := newHome(t)
	s := h.open(h.bring(saveAs(t, t.TempDir()+"/"+sessionID+".jsonl", uuids(talk.b.String()))).Sessions[0].ID)
	x := &transcript.Exporter{Env: transcript.Env{Home: t.TempDir(), Getenv: func(string) string { return "" }}}
	out, err := x.Export(t.Context(), s, claudecode.Format(), transcript.Destination{})
	if err != nil || len(out.Losses) > 0 {
		t.Fatal(err, out)
	}
	data, err := os.ReadFile(out.Paths[0])
	if err != nil {
		t.Fatal(err)
	}
	written := strings.NewReplacer(`\u003c`, "<", `\u003e`, ">").Replace(string(data))
	for _, want := range lines {
		if !strings.Contains(written, want) {
			t.Errorf("%s is not in\n%s", want, written)
		}
	}
	if strings.Count(written, `"version":"2.1.42"`) != 7 {
		t.Errorf("the lines do not have the version of their own: %s", written)
	}
	if got := contextOf(t, s); slices.Contains(got, "API Error: 500") || len(got) != 5 {
		t.Errorf("the model is sent %q", got)
	}
}

// TestClaudeCodeWriteBeforeTheClear: a session that was cleared and stands before that has all
// that was said afterwards in its file, too, and the program does not go on with it.
func TestClaudeCodeWriteBeforeTheClear(t *testing.T) {
	t.Parallel()
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
