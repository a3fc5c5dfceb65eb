package format_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/coppice-dev/coppice/internal/soak"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/memory"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/format/claudecode"
	"github.com/coppice-dev/coppice/transcript/transcripttest"
)

// claudecodeHome is a store with an importer.
type claudecodeHome struct {
	t  *testing.T
	st store.Store
	im *transcript.Importer
}

func newHome(t *testing.T) *claudecodeHome {
	st := memory.New(nil)
	return &claudecodeHome{t, st, &transcript.Importer{Store: st, Ledger: transcript.LedgerOf(fileStore(t))}}
}

func fileStore(t *testing.T) *file.Store {
	t.Helper()
	st, err := file.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	return st
}

func (h *claudecodeHome) bring(path string) *transcript.Report {
	h.t.Helper()
	r, err := h.im.Import(context.Background(), claudecode.Format(), transcripttest.Open(h.t, path))
	if err != nil {
		h.t.Fatal(err)
	}
	return r
}

func (h *claudecodeHome) open(id string) *session.Session {
	h.t.Helper()
	s, err := session.Open(context.Background(), h.st, id, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { s.Close() })
	if problems, err := s.Problems(); err != nil || slices.ContainsFunc(problems, func(p session.Problem) bool {
		return p.Kind != session.ProblemInterrupted && p.Kind != session.ProblemOrphan && p.Kind != session.ProblemRoots
	}) {
		h.t.Errorf("problems: %v, %v", problems, err)
	}
	return s
}

// claudecodeTexts returns the blocks of the conversation, briefly: the same for a reply in
// one message and in several.
func claudecodeTexts(t *testing.T, s *session.Session) []string {
	t.Helper()
	path, err := s.Forward("")
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for i := range path {
		if path[i].Message == nil {
			continue
		}
		for _, c := range path[i].Message.Content {
			switch {
			case c.Text != nil:
				list = append(list, c.Text.Content)
			case c.ToolUse != nil:
				list = append(list, "call "+c.ToolUse.ID)
			case c.ToolResult != nil:
				list = append(list, "result "+c.ToolResult.ToolUseID)
			}
		}
	}
	return list
}

// billed returns the tokens of each reply: the greatest that any of its messages
// has.
func billed(t *testing.T, st store.Store) map[string]session.Usage {
	t.Helper()
	all := make(map[string]session.Usage)
	for stat, err := range st.List(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		s, err := session.Open(context.Background(), st, stat.Name, nil)
		if err != nil {
			t.Fatal(err)
		}
		for e, err := range s.Entries() {
			if err != nil {
				t.Fatal(err)
			}
			if e.Message == nil || e.Message.Usage == nil {
				continue
			}
			u := all[e.Message.ResponseID]
			u.Input, u.Output = max(u.Input, e.Message.Usage.Input), max(u.Output, e.Message.Usage.Output)
			u.CacheRead, u.CacheWrite = max(u.CacheRead, e.Message.Usage.CacheRead), max(u.CacheWrite, e.Message.Usage.CacheWrite)
			all[e.Message.ResponseID] = u
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// age makes a file look old, so that its time tells.
func age(t *testing.T, path string, n int) {
	t.Helper()
	at := time.Now().Add(-time.Hour).Add(time.Duration(n) * time.Millisecond)
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
}

func longTalk() *script {
	s := new(script).line(`{"type":"mode","mode":"x","sessionId":"s"}`)
	parent := ""
	for i := range 6 {
		u, a, b, r, c := fmt.Sprint("user-line-number-", i), fmt.Sprint("a", i), fmt.Sprint("b", i), fmt.Sprint("r", i), fmt.Sprint("c", i)
		s.user(u, parent, "prompt "+fmt.Sprint(i))
		s.reply(a, u, fmt.Sprint(i), text("thinking about "+fmt.Sprint(i)), 2)
		s.reply(b, a, fmt.Sprint(i), call("t"+fmt.Sprint(i), "Bash"), 7)
		s.tree("progress", fmt.Sprint("p", i), b, `"data":{}`)
		s.result(r, b, "t"+fmt.Sprint(i), "out")
		s.reply(c, r, fmt.Sprint(i, "b"), text("done "+fmt.Sprint(i)), 3)
		parent = c
	}
	return s.tree("user", "edited", "c0", `"message":{"role":"user","content":"edited"}`)
}

// TestClaudeCodeImportGrows: wherever the file ended when it was read before, even in a
// line or in a reply, nothing is missing, doubled or counted twice.
func TestClaudeCodeImportGrows(t *testing.T) {
	t.Parallel()
	whole := longTalk().b.String()
	once := newHome(t)
	id := once.bring(saveAs(t, filepath.Join(t.TempDir(), sessionID+".jsonl"), whole)).Sessions[0].ID
	want, wantBilled := claudecodeTexts(t, once.open(id)), billed(t, once.st)
	if want[len(want)-1] != "edited" || len(wantBilled) != 12 || wantBilled["msg_0"].Output != 7 {
		t.Fatalf("at once: %q, %v", want, wantBilled)
	}
	for cut := 0; cut < len(whole); cut += 151 {
		h := newHome(t)
		path := saveAs(t, filepath.Join(t.TempDir(), sessionID+".jsonl"), whole[:cut])
		age(t, path, cut)
		h.bring(path)
		saveAs(t, path, whole)
		age(t, path, len(whole))
		report := h.bring(path)
		if len(report.Sessions) == 0 {
			t.Fatalf("cut at %d: nothing was imported", cut)
		}
		s := h.open(id)
		if diff := cmp.Diff(want, claudecodeTexts(t, s)); diff != "" {
			t.Fatalf("cut at %d: %s", cut, diff)
		}
		if diff := cmp.Diff(wantBilled, billed(t, h.st)); diff != "" {
			t.Fatalf("cut at %d: %s", cut, diff)
		}
		h.im.Again = true
		if report := h.bring(path); report.New() != 0 {
			t.Fatalf("cut at %d: a third reading adds %+v", cut, report.Sessions)
		}
		h.im.Ledger = nil
		if report := h.bring(path); report.New() != 0 {
			t.Fatalf("cut at %d: a reading from the beginning adds %+v", cut, report.Sessions[0])
		}
	}
}

// TestClaudeCodeImportReadsOnlyWhatIsNew: a file that grew at its end is read from there.
func TestClaudeCodeImportReadsOnlyWhatIsNew(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	s := longTalk()
	path := saveAs(t, filepath.Join(t.TempDir(), sessionID+".jsonl"), s.b.String())
	age(t, path, 0)
	h.bring(path)
	before := s.b.Len()
	s.user("next", "edited", "more").line(`{"type":"custom-title","customTitle":"Named"}`)
	saveAs(t, path, s.b.String())
	age(t, path, 1)
	report := h.bring(path)
	if report.New() != 1 || report.Bytes != int64(s.b.Len()-before) {
		t.Errorf("the report is %+v", report)
	}
	if name, err := h.open(report.Sessions[0].ID).Name(); err != nil || name != "Named" {
		t.Errorf("the name is %q, %v", name, err)
	}
	// If its beginning changed, it is read from there.
	saveAs(t, path, strings.Replace(s.b.String(), "prompt 5", "Prompt 5", 1)+"\n")
	age(t, path, 2)
	if report := h.bring(path); report.Bytes < int64(s.b.Len()) || report.Sessions[0].Revised == 0 {
		t.Errorf("after a change: %+v", report)
	}
}

func TestClaudeCodeImportFork(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	dir := t.TempDir()
	const root = "aaaaaaaa-1111-4111-8111-111111111111"
	const fork = "ffffffff-2222-4222-8222-222222222222"
	original := new(script).user(root, "", "one").reply("a1", root, "1", text("x"), 5).user("u2", "a1", "two").b.String()
	copied := strings.ReplaceAll(new(script).user(root, "", "one").reply("a1", root, "1", text("x"), 5).b.String(), sessionID, fork)
	s := new(script)
	s.b.WriteString(copied)
	s.user("f2", "a1", "another way")
	h.bring(saveAs(t, filepath.Join(dir, sessionID+".jsonl"), original))
	report := h.bring(saveAs(t, filepath.Join(dir, fork+".jsonl"), s.b.String()))
	if report.New() != 1 || report.Sessions[0].Known != 2 {
		t.Errorf("the fork: %+v", report.Sessions)
	}
	leaves, err := h.open(report.Sessions[0].ID).Leaves()
	if err != nil || !slices.Equal(leaves, []string{"u2", "f2"}) {
		t.Errorf("the branches end with %q, %v", leaves, err)
	}
	if got := billed(t, h.st); len(got) != 1 || got["msg_1"].Output != 5 {
		t.Errorf("billed %v", got)
	}
}

// branchedFrom makes lines those of a fork, as /branch writes them: with their ids,
// and with what they repeat.
func branchedFrom(origin, fork string, lines ...string) string {
	var b strings.Builder
	parent := "null"
	for _, text := range lines {
		var l struct{ UUID, ParentUUID string }
		_ = json.Unmarshal([]byte(text), &l) // else the import says it
		text = strings.Replace(text, fmt.Sprintf(`"parentUuid":%q`, l.ParentUUID), `"parentUuid":`+parent, 1)
		text = strings.ReplaceAll(text, origin, fork)
		fmt.Fprintf(&b, `%s,"forkedFrom":{"sessionId":%q,"messageUuid":%q}}`+"\n", strings.TrimSuffix(text, "}"), origin, l.UUID)
		parent = fmt.Sprintf("%q", l.UUID)
	}
	return b.String()
}

// TestClaudeCodeImportForkThatNamesItsOrigin: a fork that repeats lines under their ids is a
// branch of the original, wherever it begins and whichever is imported first, and
// so is a fork of the fork.
func TestClaudeCodeImportForkThatNamesItsOrigin(t *testing.T) {
	t.Parallel()
	const fork, second = "ffffffff-2222-4222-8222-222222222222", "ffffffff-3333-4333-8333-333333333333"
	id := transcript.HashID
	original := new(script).tree("progress", id("hook"), "", `"data":{}`).
		user(id("u1"), id("hook"), "one").reply(id("a1"), id("u1"), "1", text("x"), 5).
		tree("system", id("b"), "", `"logicalParentUuid":"`+id("a1")+`","subtype":"compact_boundary","compactMetadata":{}`).
		tree("user", id("s"), id("b"), `"isCompactSummary":true,"message":{"role":"user","content":"so far"}`).
		user(id("u2"), id("s"), "two").b.String()
	lines := strings.Split(strings.TrimSuffix(original, "\n"), "\n")
	own := func(session, uuid, parent, text string) string {
		s := &script{n: 30}
		return strings.ReplaceAll(s.user(uuid, parent, text).b.String(), sessionID, session)
	}
	for name, from := range map[string]int{"without the progress": 1, "from the compaction on": 3} {
		first := branchedFrom(sessionID, fork, lines[from:]...) + own(fork, id("f"), id("u2"), "in the fork")
		again := branchedFrom(fork, second, strings.Split(strings.TrimSuffix(first, "\n"), "\n")...) + own(second, id("g"), id("f"), "in its fork")
		for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 0, 2}} {
			dir, h := t.TempDir(), newHome(t)
			paths := []string{
				saveAs(t, filepath.Join(dir, sessionID+".jsonl"), original),
				saveAs(t, filepath.Join(dir, fork+".jsonl"), first), saveAs(t, filepath.Join(dir, second+".jsonl"), again),
			}
			seen, added := make(map[string]bool), 0
			for _, i := range order {
				report := h.bring(paths[i])
				seen[report.Sessions[0].ID] = true
				added += report.New()
				if report.Sessions[0].Revised > 0 {
					t.Errorf("%s, %v: the fork repeats %d records", name, order, report.Sessions[0].Revised)
				}
			}
			if len(seen) != 1 || added != 6 {
				t.Errorf("%s, %v: %d entries in %d sessions, want 6 in one", name, order, added, len(seen))
				continue
			}
			for id := range seen {
				s := h.open(id)
				if got := claudecodeTexts(t, s); !slices.Equal(got[len(got)-3:], []string{"two", "in the fork", "in its fork"}) {
					t.Errorf("%s, %v: the conversation is %q", name, order, got)
				}
				if of := s.Header().ParentSession; of != "" {
					t.Errorf("%s, %v: the session comes from %s", name, order, of)
				}
			}
		}
	}
}

// sample is what an independent count says of a transcript.
type sample struct {
	prompts, calls, results int
	usage                   map[string][4]int
}

// claudecodeCount counts the lines of a transcript with encoding/json alone: the human's
// and the injected texts, the calls (each once, however often a line repeats
// it), the results, and of each reply the greatest numbers of tokens.
func claudecodeCount(t *testing.T, path string) sample {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s := sample{usage: make(map[string][4]int)}
	calls := make(map[string]bool)
	seen := make(map[string]bool)
	for _, text := range strings.Split(string(data), "\n") {
		var l struct {
			Type, UUID string
			Message    struct {
				ID, Model string
				Content   json.RawMessage
				Usage     *struct {
					Input  int `json:"input_tokens"`
					Output int `json:"output_tokens"`
					Write  int `json:"cache_creation_input_tokens"`
					Read   int `json:"cache_read_input_tokens"`
				}
			}
		}
		if json.Unmarshal([]byte(text), &l) != nil || l.UUID == "" || seen[l.UUID] {
			continue
		}
		seen[l.UUID] = true
		var blocks []struct{ Type, ID string }
		_ = json.Unmarshal(l.Message.Content, &blocks)
		results := 0
		for _, b := range blocks {
			if b.Type == "tool_use" && b.ID != "" {
				calls[b.ID] = true
			}
			if b.Type == "tool_result" {
				results++
			}
		}
		s.results += results
		if l.Type == "user" && results == 0 {
			s.prompts++
		}
		if u := l.Message.Usage; l.Type == "assistant" && u != nil && l.Message.ID != "" && l.Message.Model != "<synthetic>" {
			have := s.usage[l.Message.ID]
			s.usage[l.Message.ID] = [4]int{max(have[0], u.Input), max(have[1], u.Output), max(have[2], u.Write), max(have[3], u.Read)}
		}
	}
	s.calls = len(calls)
	return s
}

// TestClaudeCodeSamples: on real transcripts the messages, calls and results are those of
// an independent count, the tokens are the sum over all replies of the greatest
// numbers that any of a reply's lines has, and twice is once.
func TestClaudeCodeSamples(t *testing.T) {
	t.Parallel()
	root := os.Getenv("COPPICE_SAMPLES")
	if root == "" {
		return
	}
	err := filepath.WalkDir(filepath.Join(root, "claude-code", "viewer"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		h := newHome(t)
		h.bring(path)
		want := claudecodeCount(t, path)
		got := sample{usage: make(map[string][4]int)}
		for id, u := range billed(t, h.st) {
			got.usage[id] = [4]int{u.Input, u.Output, u.CacheWrite, u.CacheRead}
		}
		for stat, err := range h.st.List(context.Background()) {
			if err != nil {
				t.Fatal(err)
			}
			s := h.open(stat.Name)
			for e, err := range s.Entries() {
				if err != nil {
					t.Fatal(err)
				}
				if e.Compaction != nil {
					got.prompts++
				}
				if e.Message == nil {
					continue
				}
				if e.Message.Role == "user" {
					got.prompts++
				}
				for _, c := range e.Message.Content {
					if c.ToolUse != nil {
						got.calls++
					}
					if c.ToolResult != nil {
						got.results++
					}
				}
			}
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(sample{})); diff != "" {
			t.Errorf("%s: %s", path, diff)
		}
		h.im.Again = true
		if report := h.bring(path); report.New() != 0 {
			t.Errorf("%s: importing again adds %d", path, report.New())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func FuzzClaudeCodeRead(f *testing.F) {
	f.Add([]byte(longTalk().b.String()))
	f.Add([]byte(`{"loglines":[{"type":"user","message":{"role":"user","content":"x"}}]}`))
	f.Add([]byte(`{"type":"user","uuid":"a","parentUuid":"a","sessionId":"s","message":{"content":[{"type":"tool_result"}]}}`))
	f.Add([]byte(`{"type":"system","uuid":"a","subtype":"compact_boundary","compactMetadata":[]}` + "\n" + `{"type":"user","uuid":"b","isCompactSummary":true}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		file := transcript.FileOf("x.jsonl", data)
		claudecode.Format().Detect(file)
		st := memory.New(nil)
		im := &transcript.Importer{Store: st}
		first, err := im.Import(context.Background(), claudecode.Format(), file)
		if err != nil {
			return
		}
		again, err := im.Import(context.Background(), claudecode.Format(), file)
		if err != nil || again.New() != 0 {
			t.Fatalf("importing again: %v, %d of %d are new", err, again.New(), first.New())
		}
		for stat := range st.List(context.Background()) {
			s, err := session.Open(context.Background(), st, stat.Name, nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Context(session.ContextOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestClaudeCodeImportClearedGrows: wherever the file ended when it was read before, what was
// cleared stays out of the conversation.
func TestClaudeCodeImportClearedGrows(t *testing.T) {
	t.Parallel()
	s := new(script).tree("progress", "h1", "", `"data":{"hookName":"SessionStart:startup"}`).
		user("u1", "h1", "before").reply("a1", "u1", "1", text("x"), 1).
		tree("progress", "h2", "", `"data":{"hookName":"SessionStart:clear"}`).tree("progress", "h3", "h2", `"data":{}`).
		user("u2", "h3", "after").reply("a2", "u2", "2", text("y"), 1).user("u3", "h3", "edited")
	whole := s.b.String()
	for cut := 0; cut < len(whole); cut += 97 {
		h := newHome(t)
		path := saveAs(t, filepath.Join(t.TempDir(), sessionID+".jsonl"), whole[:cut])
		age(t, path, cut)
		h.bring(path)
		saveAs(t, path, whole)
		age(t, path, len(whole))
		got := claudecodeTexts(t, h.open(h.bring(path).Sessions[0].ID))
		if diff := cmp.Diff([]string{"edited"}, got); diff != "" {
			t.Fatalf("cut at %d: %s", cut, diff)
		}
	}
}

// TestClaudeCodeImportCopies: states of one growing file, copied to wherever and imported in
// any order, become the conversation that the newest of them is.
func TestClaudeCodeImportCopies(t *testing.T) {
	t.Parallel()
	whole := longTalk().b.String()
	once := newHome(t)
	id := once.bring(saveAs(t, filepath.Join(t.TempDir(), sessionID+".jsonl"), whole)).Sessions[0].ID
	want, wantBilled := claudecodeTexts(t, once.open(id)), billed(t, once.st)
	soak.Check(t, func(rt *rapid.T) {
		h := newHome(t)
		cuts := rapid.SliceOfN(rapid.IntRange(1, len(whole)-1), 1, 4).Draw(rt, "cuts")
		for n, cut := range rapid.Permutation(append(cuts, len(whole))).Draw(rt, "order") {
			path := saveAs(t, filepath.Join(t.TempDir(), fmt.Sprint(n), sessionID+".jsonl"), whole[:cut])
			age(t, path, cut)
			h.bring(path)
		}
		if diff := cmp.Diff(want, claudecodeTexts(t, h.open(id))); diff != "" {
			rt.Fatal(diff)
		}
		if diff := cmp.Diff(wantBilled, billed(t, h.st)); diff != "" {
			rt.Fatal(diff)
		}
	})
}

// TestClaudeCodeExportSubagents: a subagent is written with the session that started it, and
// is found by the same call when it is read.
func TestClaudeCodeExportSubagents(t *testing.T) {
	t.Parallel()
	from := newHome(t)
	dir := filepath.Join(t.TempDir(), "projects", "-p")
	parent := new(script).user(transcript.HashID("u1"), "", "go").
		reply(transcript.HashID("a1"), transcript.HashID("u1"), "1", call("t1", "Task"), 1).
		tree("user", transcript.HashID("r1"), transcript.HashID("a1"), `"message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"found"}]},"toolUseResult":{"agentId":"abc"}`)
	agent := new(script).tree("user", transcript.HashID("s1"), "", `"agentId":"abc","message":{"role":"user","content":"look"}`).
		reply(transcript.HashID("s2"), transcript.HashID("s1"), "9", text("found"), 1)
	above := from.bring(saveAs(t, filepath.Join(dir, sessionID+".jsonl"), parent.b.String())).Sessions[0].ID
	sub := from.bring(saveAs(t, filepath.Join(dir, sessionID, "subagents", "agent-abc.jsonl"),
		strings.ReplaceAll(agent.b.String(), `"isSidechain":false`, `"isSidechain":true`))).Sessions[0].ID
	x := &transcript.Exporter{Env: writeEnv(), Ledger: from.im.Ledger, Subagents: func(ctx context.Context, id string) ([]*session.Session, error) {
		if id != above {
			return nil, nil
		}
		s, err := session.Open(ctx, from.st, sub, nil)
		return []*session.Session{s}, err
	}}
	out, err := x.Export(t.Context(), from.open(above), claudecode.Format(), transcript.Destination{Path: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Paths) != 2 || !strings.HasSuffix(filepath.ToSlash(out.Paths[1]), "-p/"+sessionID+"/subagents/agent-abc.jsonl") {
		t.Fatalf("written to %v", out.Paths)
	}
	lost := func() bool {
		return slices.ContainsFunc(out.Losses, func(l transcript.Loss) bool { return l.What == "subagent" })
	}
	if lost() {
		t.Errorf("the losses are %v", out.Losses)
	}
	elsewhere := newHome(t)
	for i, id := range []string{above, sub} {
		if r := from.bring(out.Paths[i]); r.New() > 0 || r.Sessions != nil && r.Sessions[0].ID != id {
			t.Errorf("%s: %d new entries in %+v", out.Paths[i], r.New(), r.Sessions)
		}
		elsewhere.bring(out.Paths[i])
	}
	there := elsewhere.open(sub)
	if diff := cmp.Diff(claudecodeTexts(t, from.open(sub)), claudecodeTexts(t, there)); diff != "" {
		t.Error(diff)
	}
	h := there.Header()
	if from, _ := session.OriginOf(&h); h.Relation != session.RelationSubagent || h.ParentSession != above || from.ParentCall != "t1" {
		t.Errorf("it is a %s of %s, started by %q", h.Relation, h.ParentSession, from.ParentCall)
	}
	one := filepath.Join(t.TempDir(), "one.jsonl")
	if out, err = x.Export(t.Context(), from.open(above), claudecode.Format(), transcript.Destination{Path: one}); err != nil || len(out.Paths) != 1 || !lost() {
		t.Errorf("as one file: %v, %v", out, err)
	}
}
