package format_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/memory"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/format/geminicli"
	"github.com/coppice-dev/coppice/transcript/transcripttest"
)

func geminicliWrite(t *testing.T, s *transcript.Script, home string) *transcript.Output {
	t.Helper()
	out, err := geminicli.Format().Write(t.Context(), s, transcript.Env{Home: home, Getenv: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	geminicliCheckRules(t, out.Files[0])
	return out
}

// geminicliCheckRules holds a recording to what Gemini CLI insists on when it resumes one:
// a first line with id, project and times, the first eight characters of the id
// in the file's name, and messages with id, time, a known type and content; calls
// with id, name, args and a status.
func geminicliCheckRules(t *testing.T, f transcript.OutputFile) {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(string(f.Data), "\n"), "\n")
	var header struct{ SessionID, ProjectHash, StartTime, LastUpdated, Kind string }
	if err := json.Unmarshal([]byte(lines[0]), &header); err != nil {
		t.Fatal(err)
	}
	if header.SessionID == "" || len(header.ProjectHash) != 64 || header.StartTime == "" || header.LastUpdated == "" || header.Kind != "main" {
		t.Errorf("the header is %s", lines[0])
	}
	if !strings.HasSuffix(f.Path, "-"+header.SessionID[:8]+".jsonl") || !regexp.MustCompile(`^tmp/[a-z0-9-]+/chats/session-\d{4}-\d\d-\d\dT\d\d-\d\d-`).MatchString(f.Path) {
		t.Errorf("the path is %s", f.Path)
	}
	for _, line := range lines[1:] {
		var m struct {
			ID, Type  string
			Timestamp time.Time
			Content   json.RawMessage
			ToolCalls []struct {
				ID, Name, Status string
				Args             map[string]any
			}
		}
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatal(err)
		}
		if m.ID == "" || m.Timestamp.IsZero() || m.Content == nil || m.Type != "user" && m.Type != "gemini" {
			t.Errorf("not a message: %s", line)
		}
		for _, call := range m.ToolCalls {
			if call.ID == "" || call.Name == "" || call.Args == nil || !slices.Contains([]string{"success", "error", "cancelled", "executing"}, call.Status) {
				t.Errorf("not a call: %+v in %s", call, line)
			}
		}
	}
}

// TestGeminiCLIRoundTrip: a recording without branches is written again with equal JSON
// values.
func TestGeminiCLIRoundTrip(t *testing.T) {
	t.Parallel()
	path := "testdata/geminicli/session-2026-08-01T10-00-abcd1234.jsonl"
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	// The first turn: a context, a prompt, two answers with everything in them.
	lines := strings.SplitAfter(string(data), "\n")
	// A call that never came back would be answered in a context.
	pending := regexp.MustCompile(`\{"id":"c4".*?"executing".*?\},`)
	straight := lines[0] + lines[1] + lines[2] + pending.ReplaceAllString(lines[5], "") + lines[6]
	c := transcripttest.Collect(t, geminicli.Format(), transcript.FileOf("x.jsonl", []byte(straight)))
	s, err := transcripttest.Script(t.Context(), c.Conversations[0])
	if err != nil {
		t.Fatal(err)
	}
	out := geminicliWrite(t, s, t.TempDir())
	values := func(text string) (list []any) {
		for line := range strings.Lines(text) {
			var v any
			if err := json.Unmarshal([]byte(line), &v); err != nil {
				t.Fatal(err)
			}
			list = append(list, v)
		}
		return list[1:]
	}
	got, want := values(string(out.Files[0].Data)), values(straight)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the messages differ (-read +written):\n%s", diff)
	}
	if out.Resume != "gemini --resume abcd1234-0000-4000-8000-000000000001" || len(out.Files) != 3 {
		t.Errorf("the output is %+v", out)
	}
}

// TestGeminiCLIFirstProject: without a list of projects the program moves what lies under a hash,
// unless an older version keeps its sessions there. So the first export makes the list.
func TestGeminiCLIFirstProject(t *testing.T) {
	t.Parallel()
	first := "u1"
	s, err := transcripttest.ScriptOf(t.Context(), session.Header{Type: session.TypeSession, ID: "x", Version: 1, CWD: "/work/garden", CreatedAt: transcripttest.Now()}, []session.Entry{
		{Type: session.TypeMessage, ID: first, Timestamp: transcripttest.Now(), Message: &session.MessageEntry{Role: "user", Content: []session.Content{session.Text("hi")}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	env := transcript.Env{Home: home, Getenv: func(string) string { return "" }}
	prepare := func() *transcript.Output {
		t.Helper()
		out, err := (&transcript.Exporter{Env: env}).Prepare(t.Context(), geminicli.Format(), s, nil)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	out := prepare()
	if len(out.Files) != 3 || !strings.HasPrefix(out.Files[0].Path, "tmp/garden/chats/") || string(out.Files[1].Data) != "/work/garden" ||
		string(out.Files[2].Data) != `{"projects":{"/work/garden":"garden"}}` {
		t.Errorf("%+v", out.Files)
	}
	s.Now = s.Now.Add(time.Hour)
	if again := prepare(); string(again.Files[0].Data) != string(out.Files[0].Data) {
		t.Error("an hour later the bytes are others")
	}
	hash := fmt.Sprintf("%x", sha256.Sum256([]byte("/work/garden")))
	transcripttest.WriteFile(t, filepath.Join(home, ".gemini", "tmp", hash, "chats", "x.json"), "{}")
	if out := prepare(); len(out.Files) != 1 || !strings.Contains(out.Files[0].Path, hash) {
		t.Errorf("%+v", out.Files)
	}
}

// TestGeminiCLIOldConversationStays: when it starts, the program deletes recordings whose
// lastUpdated is long ago. An export of an old conversation is not one of them, and importing
// it again finds the conversation that it came from, unchanged and as old as it was.
func TestGeminiCLIOldConversationStays(t *testing.T) {
	t.Parallel()
	st := memory.New(nil)
	defer st.Close()
	long := time.Now().AddDate(0, -3, 0).UTC().Truncate(time.Millisecond)
	s, err := session.Create(t.Context(), st, session.Header{CWD: "/work/garden", CreatedAt: long}, &session.Options{Now: func() time.Time { return long }})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, role := range []session.MessageRole{session.RoleUser, session.RoleAssistant} {
		if _, err := s.AppendMessage(role, []session.Content{session.Text("said by " + string(role))}); err != nil {
			t.Fatal(err)
		}
	}
	env := transcript.Env{Home: t.TempDir(), Getenv: func(string) string { return "" }}
	ledger := transcript.LedgerOf(st)
	x := &transcript.Exporter{Env: env, Ledger: ledger}
	out, err := x.Export(t.Context(), s, geminicli.Format(), transcript.Destination{})
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(out.Paths[0])
	if err != nil {
		t.Fatal(err)
	}
	var lines []struct{ LastUpdated, StartTime, Timestamp time.Time }
	if err := json.Unmarshal([]byte("["+strings.ReplaceAll(strings.TrimSpace(string(data)), "\n", ",")+"]"), &lines); err != nil {
		t.Fatal(err)
	}
	if old := time.Since(lines[0].LastUpdated); old > time.Hour {
		t.Errorf("the recording was last used %v ago: Gemini CLI deletes it", old)
	}
	if !lines[0].StartTime.Equal(long) || !lines[1].Timestamp.Equal(long) || !lines[2].Timestamp.Equal(long) {
		t.Errorf("the times are %+v, want %v", lines, long)
	}
	// As after a visit of the program: it wrote to the file, and added nothing that was said.
	more := `{"$set":{"lastUpdated":"` + time.Now().UTC().Format(time.RFC3339Nano) + `"}}` + "\n"
	if err := os.WriteFile(out.Paths[0], append(data, more...), 0o600); err != nil {
		t.Fatal(err)
	}
	end := s.LeafID()
	f, err := transcript.OpenFile(out.Paths[0])
	if err != nil {
		t.Fatal(err)
	}
	rep, err := (&transcript.Importer{Store: st, Ledger: ledger}).Import(t.Context(), geminicli.Format(), f)
	if err != nil {
		t.Fatal(err)
	}
	if len(rep.Sessions) != 1 || rep.Sessions[0].ID != s.Header().ID || rep.Sessions[0].New != 0 {
		t.Errorf("importing it again says %+v", rep.Sessions)
	}
	if _, err := s.Refresh(); err != nil || s.LeafID() != end {
		t.Errorf("importing it again moves the leaf from %s to %s, %v", end, s.LeafID(), err)
	}
}

func TestGeminiCLIWriteCoppice(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 6, 1, 10, 0, 0, 0, time.UTC)
	id := func(s string) *string { return &s }
	say := func(own, parent, role string, blocks ...session.Content) session.Entry {
		e := session.Entry{Type: session.TypeMessage, ID: own, Timestamp: at, Message: &session.MessageEntry{Role: role, Content: blocks}}
		if parent != "" {
			e.ParentID = id(parent)
		}
		return e
	}
	thinking := session.Content{Type: "thinking", Thinking: &session.ThinkingContent{Content: "**S**\n\nD", Signature: "sig"}}
	entries := []session.Entry{
		say("u0", "", "user", session.Text("long ago")),
		{Type: "compaction", ID: "k", ParentID: id("u0"), Timestamp: at, Compaction: &session.CompactionEntry{Summary: "S"}},
		say("s", "k", "system", session.Text("be brief")),
		say("a1", "s", "assistant", thinking, session.Text("one"), session.Text("two"), session.ToolUse("c1", "ls", nil)),
		say("t1", "a1", "tool", session.ToolResult("c1", "x", true)),
		say("dead", "a1", "user", session.Text("left")),
		{Type: "branch_summary", ID: "b", ParentID: id("t1"), Timestamp: at, BranchSummary: &session.BranchSummaryEntry{Summary: "B", FromID: "dead"}},
		{Type: "merge", ID: "m", ParentID: id("b"), Merge: &session.MergeEntry{Summary: "M", FromID: "dead"}},
		{Type: "label", ID: "l", ParentID: id("m"), Timestamp: at, Label: &session.LabelEntry{TargetID: "a1", Label: "x"}},
	}
	entries[3].Message.Usage = &session.Usage{Input: 1, CacheRead: 2, Output: 5, Reasoning: 3}
	s, err := transcripttest.ScriptOf(t.Context(), session.Header{Type: session.TypeSession, ID: "x", Version: 1, CWD: "/home/ada/My Garden!"}, entries)
	if err != nil {
		t.Fatal(err)
	}
	s.Name = "Trees"
	out := geminicliWrite(t, s, t.TempDir())
	lines := strings.Split(strings.TrimSuffix(string(out.Files[0].Data), "\n"), "\n")
	want := []string{
		`{"id":"k","timestamp":"2026-06-01T10:00:00.000Z","type":"user","content":[{"text":"Previous conversation summary: S"}]}`,
		`{"id":"a1","timestamp":"2026-06-01T10:00:00.000Z","type":"gemini","content":[{"text":"one"},{"text":"two"}],"thoughts":[{"subject":"S","description":"D"}],"tokens":{"input":3,"output":2,"cached":2,"thoughts":3,"tool":0,"total":8},"toolCalls":[{"id":"c1","name":"ls","args":{},"result":[{"functionResponse":{"id":"c1","name":"ls","response":{"error":"x"}}}],"status":"error"}]}`,
		`{"id":"b","timestamp":"2026-06-01T10:00:00.000Z","type":"user","content":[{"text":"Summary of a branch of the conversation that was left: B"}]}`,
		`{"id":"m","timestamp":"2026-11-15T12:00:00.000Z","type":"user","content":[{"text":"Summary of another branch of the conversation: M"}]}`,
	}
	if diff := cmp.Diff(want, lines[1:]); diff != "" {
		t.Errorf("the messages differ (-want +got):\n%s", diff)
	}
	if !strings.Contains(lines[0], `"summary":"Trees","directories":["/home/ada/My Garden!"]`) {
		t.Errorf("the header is %s", lines[0])
	}
	var losses []string
	for _, l := range out.Losses {
		losses = append(losses, l.EntryID+" "+l.What)
	}
	if diff := cmp.Diff([]string{"k history", "s system prompt", "a1 thinking signature", "l label", " branches"}, losses); diff != "" {
		t.Errorf("losses differ (-want +got):\n%s", diff)
	}
}

// TestGeminiCLIWriteListsWhatIsDropped: each block that is not in the recording is a loss, and so
// is the place of a text that follows a call.
func TestGeminiCLIWriteListsWhatIsDropped(t *testing.T) {
	t.Parallel()
	odd := func(kind string) session.Content {
		return session.Content{Type: session.ContentType(kind), Raw: json.RawMessage(`{"type":"` + kind + `"}`)}
	}
	result := session.ToolResult("c1", "x", false)
	result.ToolResult.Parts = []session.Content{session.Text("x"), odd("chart")}
	say := func(id, role string, blocks ...session.Content) session.Entry {
		return session.Entry{Type: session.TypeMessage, ID: id, Message: &session.MessageEntry{Role: role, Content: blocks}}
	}
	entries := []session.Entry{
		say("u", "user", session.Text("hi"), odd("drift"), session.Content{Type: "file", File: &session.FileContent{Name: "gone.txt"}}),
		say("a", "assistant", session.Text("before"), session.ToolUse("c1", "ls", nil), session.Text("after"), session.Text("twice"), odd("search")),
		say("t", "tool", result, odd("log")),
		say("b", "assistant", session.Text("all"), session.ToolUse("c2", "ls", nil)),
		say("r", "tool", session.ToolResult("c2", "y", false)),
	}
	for i := 1; i < len(entries); i++ {
		entries[i].ParentID = &entries[i-1].ID
	}
	s, err := transcripttest.ScriptOf(t.Context(), session.Header{Type: session.TypeSession, ID: "x", Version: 1, CWD: "/w"}, entries)
	if err != nil {
		t.Fatal(err)
	}
	var losses []string
	for _, l := range geminicliWrite(t, s, t.TempDir()).Losses {
		losses = append(losses, l.EntryID+" "+l.What)
	}
	if diff := cmp.Diff([]string{"u drift", "u file", "a " + transcript.LossPlace, "a search", "t chart", "t log"}, losses); diff != "" {
		t.Errorf("losses differ (-want +got):\n%s", diff)
	}
	// What is announced for its place must still be there.
	x := &transcript.Exporter{Env: transcript.Env{Home: t.TempDir(), Getenv: func(string) string { return "" }}}
	if _, err := x.Prepare(t.Context(), geminicli.Format(), s, nil); err != nil {
		t.Error(err)
	}
}

// TestGeminiCLIWriteTitle: after a compaction the first prompt is no longer in the recording, and
// what stands there instead must not become the title.
func TestGeminiCLIWriteTitle(t *testing.T) {
	t.Parallel()
	first, compaction := "u", "k"
	entries := []session.Entry{
		{Type: session.TypeMessage, ID: first, Message: &session.MessageEntry{Role: "user", Content: []session.Content{session.Text("plant trees\nmany of them")}}},
		{Type: "compaction", ID: compaction, ParentID: &first, Compaction: &session.CompactionEntry{Summary: "S"}},
		{Type: session.TypeMessage, ID: "v", ParentID: &compaction, Message: &session.MessageEntry{Role: "user", Content: []session.Content{session.Text("go on")}}},
	}
	for n, want := range map[int]string{1: "", 3: "plant trees"} {
		s, err := transcripttest.ScriptOf(t.Context(), session.Header{Type: session.TypeSession, ID: "x", Version: 1, CWD: "/w"}, entries[:n])
		if err != nil {
			t.Fatal(err)
		}
		line, _, _ := strings.Cut(string(geminicliWrite(t, s, t.TempDir()).Files[0].Data), "\n")
		var header struct{ Summary string }
		if err := json.Unmarshal([]byte(line), &header); err != nil || header.Summary != want {
			t.Errorf("%d entries: the title is %q, %v, want %q", n, header.Summary, err, want)
		}
	}
}

// TestGeminiCLIWriteProject: newer versions of Gemini CLI have a list of projects, which
// says where a project's recordings are.
func TestGeminiCLIWriteProject(t *testing.T) {
	t.Parallel()
	script := func(cwd string) *transcript.Script {
		s, err := transcripttest.ScriptOf(t.Context(), session.Header{Type: session.TypeSession, ID: "x", Version: 1, CWD: cwd}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	home := filepath.Join(t.TempDir(), "ada")
	list := filepath.Join(home, ".gemini", "projects.json")
	if err := os.MkdirAll(filepath.Dir(list), 0o700); err != nil {
		t.Fatal(err)
	}
	known := `{"projects":{"/a/garden":"garden","/b/garden":"garden-1"},"v":1}`
	if err := os.WriteFile(list, []byte(known), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		cwd, want string
		files     int
	}{
		{"/a/garden", "tmp/garden/", 1},
		{"/c/Garden", "tmp/garden-2/", 3},
		{"/", "tmp/project/", 3},
		{"", "tmp/ada/", 3}, // the home directory
	}
	for _, tt := range tests {
		out := geminicliWrite(t, script(tt.cwd), home)
		if !strings.HasPrefix(out.Files[0].Path, tt.want) || len(out.Files) != tt.files {
			t.Errorf("for %q the files are %v, want %s…", tt.cwd, out.Files, tt.want)
		}
		if said := slices.ContainsFunc(out.Losses, func(l transcript.Loss) bool { return l.What == "directory" }); said != (tt.cwd == "") {
			t.Errorf("for %q the losses are %v", tt.cwd, out.Losses)
		}
	}
	merge := geminicliWrite(t, script("/c/Garden"), home).Files[2].Merge
	data, err := merge([]byte(known))
	if want := `{"projects":{"/a/garden":"garden","/b/garden":"garden-1","/c/Garden":"garden-2"},"v":1}`; err != nil || string(data) != want {
		t.Errorf("the list becomes %s, %v, want %s", data, err, want)
	}
	if _, err := merge([]byte("{")); err == nil {
		t.Error("a damaged list is replaced")
	}
}

// TestGeminiCLIWriteTornReply: calls that another program kept by themselves have their
// results.
func TestGeminiCLIWriteTornReply(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	message := func(id, role, response string, blocks ...session.Content) session.Entry {
		return session.Entry{Type: session.TypeMessage, ID: id, Timestamp: at, Message: &session.MessageEntry{
			Role: role, ResponseID: response, Content: blocks,
		}}
	}
	list := []session.Entry{
		message("u", "user", "", session.Text("both")),
		message("a1", "assistant", "r", session.ToolUse("c1", "run", nil)),
		message("a2", "assistant", "r", session.ToolUse("c2", "run", nil)),
		message("t1", "tool", "", session.ToolResult("c1", "RESULT-A", false)),
		message("t2", "tool", "", session.ToolResult("c2", "RESULT-B", false)),
	}
	for i := range list[1:] {
		list[i+1].ParentID = &list[i].ID
	}
	sc, err := transcripttest.ScriptOf(t.Context(), session.Header{Type: session.TypeSession, ID: "s", Version: 1, CWD: "/p"}, list)
	if err != nil {
		t.Fatal(err)
	}
	data := string(geminicliWrite(t, sc, t.TempDir()).Files[0].Data)
	if !strings.Contains(data, "RESULT-A") || !strings.Contains(data, "RESULT-B") || strings.Contains(data, "cancelled") {
		t.Errorf("a result is missing: %s", data)
	}
}

// TestGeminiCLIWriteWhatLooksLikeACommand: Gemini CLI passes over prompts that begin with a
// slash or a question mark when it resumes. Those of other programs were sent.
func TestGeminiCLIWriteWhatLooksLikeACommand(t *testing.T) {
	t.Parallel()
	s, err := transcripttest.ScriptOf(t.Context(), session.Header{Type: session.TypeSession, ID: "s", Version: 1, CWD: "/p"}, []session.Entry{
		{Type: session.TypeMessage, ID: "u", Message: &session.MessageEntry{Role: "user", Content: []session.Content{session.Text("/etc/hosts is wrong")}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	out := geminicliWrite(t, s, t.TempDir())
	if !strings.Contains(string(out.Files[0].Data), "\u200b") {
		t.Errorf("Gemini CLI will take it for a command: %s", out.Files[0].Data)
	}
	c := transcripttest.Collect(t, geminicli.Format(), transcript.FileOf("x.jsonl", out.Files[0].Data))
	if got := c.Conversations[0].Records[0].Entry.Message; len(got.Content) != 1 || got.Content[0].Text.Content != "/etc/hosts is wrong" || got.Metadata != nil {
		t.Errorf("it is read back as %+v", got)
	}
}

// TestGeminiCLIWriteEarlyForms: a message in a form that Gemini CLI no longer reads is written
// in today's.
func TestGeminiCLIWriteEarlyForms(t *testing.T) {
	t.Parallel()
	const old = `{"sessionId":"x","projectHash":"h","messages":[{"id":"a","role":"user","parts":[{"text":"hi"}],"ts":1},{"id":"b","type":"model","parts":[{"text":"yo"}]},{"id":"c","type":"user","content":""}]}`
	c := transcripttest.Collect(t, geminicli.Format(), transcript.FileOf("x.json", []byte(old)))
	s, err := transcripttest.Script(t.Context(), c.Conversations[0])
	if err != nil {
		t.Fatal(err)
	}
	geminicliWrite(t, s, t.TempDir()) // which checks the rules
}
