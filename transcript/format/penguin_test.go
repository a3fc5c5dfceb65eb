package format_test

import (
	"bytes"
	"compress/gzip"
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
	"github.com/coppice-dev/coppice/store/memory"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/format/penguin"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
	"github.com/coppice-dev/coppice/transcript/transcripttest"
)

var (
	first  = filepath.Join("testdata", "penguin", "session_20260401_120000_aaaa0001.json")
	second = filepath.Join("testdata", "penguin", "session_20260401_130000_aaaa0002.json")
)

func TestPenguinStandard(t *testing.T) {
	t.Parallel()
	transcripttest.Standard(t, transcripttest.Suite{
		Format: penguin.Format(), Fixtures: []string{first, second}, Sessions: 2,
		Name: "x.json", Detected: map[string]bool{`{"messages":[]}`: false},
	})
}

func TestPenguinCheckpoint(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(first)
	if err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err = w.Write([]byte(`{"metadata":{"id":"cp_1","session_id":"session_1","name":"before"},"session":` + string(data) + `}`))
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	got := transcripttest.Collect(t, penguin.Format(), transcript.FileOf("cp_1.json.gz", packed.Bytes())).Conversations[0]
	if got.Parent != "session_1" || got.Relation != session.RelationFork || got.Title != "before" || len(got.Records) != 7 {
		t.Errorf("the checkpoint is %+v with %d records", got.Conversation, len(got.Records))
	}
}

// TestPenguinRoundTrip: what Penguin wrote comes back with equal JSON values.
func TestPenguinRoundTrip(t *testing.T) {
	t.Parallel()
	paths := append(transcripttest.Samples(t, "penguin/conversations/session_2026*.json"), first)
	paths = append(paths, transcripttest.Samples(t, "penguin/seed-era/*.json")...)
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			out := penguinWrite(t, path)
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var want, got any
			if err := errors.Join(json.Unmarshal(data, &want), json.Unmarshal(out.Files[0].Data, &got)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("the session differs (-want +got):\n%s", diff)
			}
			if out.Files[0].Path != filepath.Base(path) {
				t.Errorf("it is written to %s", out.Files[0].Path)
			}
		})
	}
}

func penguinWrite(t *testing.T, path string) *transcript.Output {
	t.Helper()
	c := transcripttest.Collect(t, penguin.Format(), transcripttest.Open(t, path)).Conversations[0]
	script, err := transcripttest.Script(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	out, err := penguin.Format().Write(t.Context(), script, env)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestPenguinProgramsRules: Penguin gives up a file with a member that it does not know,
// and rebuilds an index whose ids are not those of the files.
func TestPenguinProgramsRules(t *testing.T) {
	t.Parallel()
	at := transcripttest.Now()
	follow := func(id string) *string { return &id }
	entries := []session.Entry{
		{Type: session.TypeMessage, ID: "a", Timestamp: at, Message: &session.MessageEntry{Role: "user", Content: []session.Content{session.Text("run both")}, Extra: session.Fields{{Name: "x", Value: json.RawMessage("1")}}}},
		{Type: session.TypeMessage, ID: "b", ParentID: follow("a"), Timestamp: at, Message: &session.MessageEntry{Role: "assistant", Content: []session.Content{session.ToolUse("1", "x", nil), session.ToolUse("2", "y", nil)}}},
		{Type: session.TypeMessage, ID: "c", ParentID: follow("b"), Timestamp: at, Message: &session.MessageEntry{Role: "tool", Content: []session.Content{session.ToolResult("1", "one", false), session.ToolResult("2", "two", true)}}},
		{Type: session.TypeMessage, ID: "d", ParentID: follow("c"), Timestamp: at, Message: &session.MessageEntry{Role: "custom", Content: []session.Content{session.Text("notice")}}},
		{Type: session.TypeMessage, ID: "e", ParentID: follow("d"), Timestamp: at, Message: &session.MessageEntry{Role: "bashExecution", Content: []session.Content{session.Text("ls")}}},
		{Type: session.TypeCompaction, ID: "f", ParentID: follow("e"), Timestamp: at, Compaction: &session.CompactionEntry{Summary: "s", FirstKeptEntryID: "d"}},
	}
	script, err := transcripttest.ScriptOf(t.Context(), session.Header{Type: session.TypeSession, ID: "s1", Version: 1, CreatedAt: at}, entries)
	if err != nil {
		t.Fatal(err)
	}
	script.Name = "Both"
	out, err := penguin.Format().Write(t.Context(), script, env)
	if err != nil {
		t.Fatal(err)
	}
	v, err := loose.Parse(out.Files[0].Data)
	if err != nil {
		t.Fatal(err)
	}
	known := strings.Fields("role content category id timestamp metadata tokens agent_id recipient_id message_type")
	ids := map[string]bool{}
	for m := range v.Get("messages").Items() {
		for member := range m.Members() {
			if !slices.Contains(known, member) {
				t.Errorf("a message has the member %s", member)
			}
		}
		ids[m.Get("id").Text()] = true
	}
	if len(ids) != 6 {
		t.Errorf("6 messages have the ids %v", ids)
	}
	if id := v.Get("id").Text(); !strings.HasPrefix(id, "session_20261115_120000_") || v.Get("metadata", "title").Text() != "Both" {
		t.Errorf("the session is %s", id)
	}
	if len(out.Losses) != 1 || out.Losses[0].What != "compaction" {
		t.Errorf("losses are %v", out.Losses)
	}
}

func TestPenguinIndex(t *testing.T) {
	t.Parallel()
	old, err := os.ReadFile("testdata/penguin/session_index.json")
	if err != nil {
		t.Fatal(err)
	}
	out := penguinWrite(t, first)
	for _, have := range [][]byte{old, nil} {
		merged, err := out.Files[1].Merge(have)
		if err != nil {
			t.Fatal(err)
		}
		v, _ := loose.Parse(merged)
		entry := v.Get("session_20260401_120000_aaaa0001")
		if entry.Get("message_count").Int() != 6 || entry.Get("title").Text() != "Session aaaa0001" || !entry.Has("continued_to") {
			t.Errorf("the index has %s", entry)
		}
		if have != nil && (!entry.Has("_note") || v.Get("session_20260401_130000_aaaa0002", "title").Text() != "The second part") {
			t.Errorf("what the index had is gone: %s", merged)
		}
	}
	if _, err := out.Files[1].Merge([]byte("{")); !errors.Is(err, session.ErrCorrupt) {
		t.Errorf("a broken index gives %v, want ErrCorrupt", err)
	}
	got := transcripttest.Collect(t, penguin.Format(), transcripttest.Open(t, "testdata/penguin/session_index.json"))
	if len(got.Conversations) != 0 {
		t.Error("the index is read as a session")
	}
}

func TestPenguinBadFiles(t *testing.T) {
	t.Parallel()
	torn := []byte(`{"id":"x","created_at":"","last_active"`)
	for _, f := range []*transcript.File{transcript.FileOf("session_2x.json", torn), transcript.FileOf("x.json", torn)} {
		if _, err := transcript.Collect(t.Context(), penguin.Format(), f); !errors.Is(err, session.ErrCorrupt) {
			t.Errorf("%s gives %v, want ErrCorrupt", f.Path, err)
		}
	}
	if got := transcripttest.Collect(t, penguin.Format(), transcripttest.Open(t, second+".bak")); len(got.Conversations) != 0 {
		t.Error("a backup is taken for a session of its own")
	}
	places := penguin.Format().Places(env)
	if !places[0].Match("agent/session_1.json") || places[0].Match("session_index.json") || places[0].Match("a.json.bak") || !places[1].Match("cp.json.gz") {
		t.Error("other files than sessions are looked at")
	}
}

// A file that ends in the middle is read up to there, if it has no backup.
func TestPenguinTornFileIsReadAsFarAsItGoes(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(first)
	if err != nil {
		t.Fatal(err)
	}
	whole := transcripttest.Collect(t, penguin.Format(), transcript.FileOf("/d/x.json", data)).Conversations[0]
	for name, torn := range map[string][]byte{
		"cut off": data[:bytes.LastIndex(data, []byte(`"timestamp"`))], "broken": bytes.Replace(data, []byte(`"timestamp"`), []byte(`"timestamp`), 1),
		"mark": append([]byte("\xef\xbb\xbf"), data[:bytes.LastIndex(data, []byte(`"timestamp"`))]...),
	} {
		all, err := transcript.Collect(t.Context(), penguin.Format(), transcript.FileOf("/d/x.json", torn))
		if name == "broken" { // in the first message: there is nothing before it
			if !errors.Is(err, session.ErrCorrupt) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil || len(all.Problems) != 1 || len(all.Conversations) != 1 {
			t.Fatalf("%s: %+v, %v", name, all, err)
		}
		got := all.Conversations[0]
		if got.ID != whole.ID || len(got.Records) != len(whole.Records)-1 || got.Records[0].ID != whole.Records[0].ID {
			t.Errorf("%s: %s with %d of %d records", name, got.ID, len(got.Records), len(whole.Records))
		}
	}
}

// A session that continues another keeps its place in the row.
func TestPenguinContinuationKeepsItsIndex(t *testing.T) {
	t.Parallel()
	for index, want := range map[string]int{`,"continuation_index":3`: 3, "": 1} {
		text := `{"id":"s","created_at":"2026-01-01","last_active":"","metadata":{"continued_from":"p"` + index + `},` +
			`"messages":[{"role":"user","content":"hi","id":"m","timestamp":"2026-01-01T10:00:00"}]}`
		st := memory.New(nil)
		im := transcript.Importer{Store: st}
		if _, err := im.Import(t.Context(), penguin.Format(), transcript.FileOf("/d/s.json", []byte(text))); err != nil {
			t.Fatal(err)
		}
		s, err := session.Open(t.Context(), st, transcript.SessionID("penguin", "s"), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if got := s.Header().Continuation; got != want {
			t.Errorf("%q: %d, want %d", index, got, want)
		}
	}
}

// TestPenguinRelations: the ways in which a session can come from another.
func TestPenguinRelations(t *testing.T) {
	t.Parallel()
	for member, want := range map[string]string{
		"continued_from": session.RelationContinuation, "branched_from": session.RelationFork,
		"forked_from_session_id": session.RelationFork, "recovered_from": session.RelationRecovery,
	} {
		text := `{"id":"","created_at":"2026-01-01","last_active":"","metadata":{"` + member + `":"p"},"messages":[]}`
		got := transcripttest.Collect(t, penguin.Format(), transcript.FileOf("/d/name.json", []byte(text))).Conversations[0]
		if got.Parent != "p" || got.Relation != want || got.ID != "name" {
			t.Errorf("%s gives %+v", member, got.Conversation)
		}
	}
}

// penguinSession writes a session into a directory.
func penguinSession(t *testing.T, dir, id, metadata string, messages ...string) string {
	t.Helper()
	path := filepath.Join(dir, id+".json")
	transcripttest.WriteFile(t, path, `{"id":"`+id+`","created_at":"2026-04-01T12:00:00","last_active":"2026-04-01T12:00:01","metadata":{`+
		metadata+`},"messages":[`+strings.Join(messages, ",")+`],"llm_request_lifecycles":[],"tool_call_records":[],"tool_result_records":[]}`)
	return path
}

func penguinMessage(id, role, category, text, metadata string) string {
	return `{"role":"` + role + `","content":"` + text + `","category":"` + category + `","id":"` + id + `","timestamp":"2026-04-01T12:00:00.000000","metadata":{` + metadata + `},"tokens":5}`
}

// penguinChain writes three sessions that continue each other, whose copies have ids of their own.
// The second ends in a turn that is not over, so the third begins with its prompt, too.
func penguinChain(t *testing.T) []string {
	dir := t.TempDir()
	system := func(id, text string) string { return penguinMessage(id, "system", "SYSTEM", text, "") }
	user := func(id, text string) string { return penguinMessage(id, "user", "DIALOG", text, "") }
	transition := func(id, from string) string {
		return penguinMessage(id, "system", "SYSTEM", "Continuing from session "+from, `"type":"session_transition","previous_session":"`+from+`","original_session":"s1","earlier_messages":3`)
	}
	return []string{
		penguinSession(t, dir, "s1", `"continued_to":"s2"`, system("msg_00000001", "be kind"), penguinMessage("msg_00000002", "system", "CONTEXT", "a document", ""), user("msg_00000003", "go on")),
		penguinSession(t, dir, "s2", `"continued_from":"s1","continued_to":"s3"`, system("msg_00000011", "be kind"), penguinMessage("msg_00000012", "system", "CONTEXT", "a document", ""),
			transition("msg_00000013", "s1"), system("msg_00000014", "be brief"), user("msg_00000015", "go on"), user("msg_00000016", "go on")),
		penguinSession(t, dir, "s3", `"continued_from":"s2","continuation_index":2`, system("msg_00000021", "be kind"), system("msg_00000022", "be brief"), penguinMessage("msg_00000023", "system", "CONTEXT", "a document", ""),
			user("msg_00000024", "go on"), transition("msg_00000025", "s2"), user("msg_00000026", "go on")),
	}
}

// Copies have the ids of their originals, and a marker is in place of the message after them.
func TestPenguinCopiesAreTheirOriginals(t *testing.T) {
	t.Parallel()
	paths := penguinChain(t)
	read := func(path string) *transcript.CollectedConversation {
		return transcripttest.Collect(t, penguin.Format(), transcripttest.Open(t, path)).Conversations[0]
	}
	ids := func(path string) (ids []string) {
		for _, r := range read(path).Records {
			if ids = append(ids, strings.TrimPrefix(r.ID, "msg_000000")); r.Entry.Custom != nil {
				ids = ids[:len(ids)-1]
			}
		}
		return ids
	}
	third := []string{"01", "14", "02", "16", "25", "26"}
	for i, want := range [][]string{{"01", "02", "03"}, {"01", "02", "13", "14", "15", "16"}, third} {
		if got := ids(paths[i]); !slices.Equal(got, want) {
			t.Errorf("session %d has the entries %q, want %q", i+1, got, want)
		}
	}
	session1, session2 := transcript.SessionID("penguin", "s1"), transcript.SessionID("penguin", "s2")
	want := &session.ContinuesEntry{Session: session2, Original: session1, Messages: 3}
	if diff := cmp.Diff(want, read(paths[2]).Records[4].Entry.Continues); diff != "" {
		t.Errorf("the marker (-want +got):\n%s", diff)
	}

	// Without the files beside it, the copies are all that there is.
	data, err := os.ReadFile(paths[1])
	if err != nil {
		t.Fatal(err)
	}
	alone := filepath.Join(t.TempDir(), "s2.json")
	transcripttest.WriteFile(t, alone, string(data))
	if got := ids(alone); !slices.Equal(got, []string{"11", "12", "13", "14", "15", "16"}) {
		t.Errorf("alone, the second session has the entries %q", got)
	}
	// A broken file has a backup, and sessions may continue each other in a circle.
	if data, err = os.ReadFile(paths[0]); err != nil {
		t.Fatal(err)
	}
	transcripttest.WriteFile(t, paths[0]+".bak", strings.Replace(string(data), `"continued_to"`, `"continued_from":"s3","continued_to"`, 1))
	transcripttest.WriteFile(t, paths[0], "{")
	if got := ids(paths[2]); !slices.Equal(got, third) {
		t.Errorf("from a backup, in a circle: %q, want %q", got, third)
	}
	// A copy of a session that continues another is no continuation.
	if data, err = os.ReadFile(paths[1]); err != nil {
		t.Fatal(err)
	}
	checkpoint := transcript.FileOf("cp_1.json", []byte(`{"metadata":{"id":"cp_1","session_id":"s2"},"session":`+string(data)+`}`))
	if got := transcripttest.Collect(t, penguin.Format(), checkpoint).Conversations[0].Records; got[2].Entry.Message == nil || got[0].ID != "msg_00000011" {
		t.Errorf("the checkpoint has %+v", got[:3])
	}
}

// A chain that Penguin wrote comes back unchanged.
func TestPenguinChainRoundTrip(t *testing.T) {
	t.Parallel()
	for _, path := range penguinChain(t) {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var want, got any
		if err := errors.Join(json.Unmarshal(data, &want), json.Unmarshal(penguinWrite(t, path).Files[0].Data, &got)); err != nil {
			t.Fatal(err)
		}
		for _, count := range []string{"message_count", "token_count"} {
			delete(got.(map[string]any)["metadata"].(map[string]any), count)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s differs (-want +got):\n%s", filepath.Base(path), diff)
		}
	}
}

// Entries that a session got from the one before it are in the conversation once.
func TestPenguinChainIsOneConversation(t *testing.T) {
	t.Parallel()
	st := memory.New(nil)
	im := transcript.Importer{Store: st}
	var ids []string
	for i, path := range penguinChain(t) {
		if _, err := im.Import(t.Context(), penguin.Format(), transcripttest.Open(t, path)); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, transcript.SessionID("penguin", fmt.Sprintf("s%d", i+1)))
	}
	chain, err := session.FindChain(t.Context(), st, ids[2], nil)
	if err != nil || !slices.Equal(chain.Links, ids) || len(chain.Missing) > 0 {
		t.Fatalf("the chain is %+v, %v", chain, err)
	}
	s, err := session.OpenChain(t.Context(), st, chain, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	path, err := s.Forward("")
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	for _, e := range path {
		if e.Message != nil {
			said = append(said, e.Message.Content[0].Text.Content)
		}
	}
	if want := []string{"be kind", "a document", "go on", "be brief", "go on", "go on", "go on"}; !slices.Equal(said, want) {
		t.Errorf("the conversation is %q, want %q", said, want)
	}
	if problems, err := s.Problems(); err != nil || len(problems) > 0 {
		t.Errorf("problems: %v, %v", problems, err)
	}
	// Written back as one session, it does not go on in another, and continues none.
	script, err := transcript.NewScript(s, "penguin", "", transcripttest.Now())
	if err != nil {
		t.Fatal(err)
	}
	out, err := penguin.Format().Write(t.Context(), script, env)
	if err != nil {
		t.Fatal(err)
	}
	if v, _ := loose.Parse(out.Files[0].Data); v.Get("metadata").Has("continued_to") || len(slices.Collect(v.Get("messages").Items())) != len(said) {
		t.Errorf("written: %s", out.Files[0].Data)
	}
}

// A continuation of ours is written as Penguin writes one.
func TestPenguinWritesContinuations(t *testing.T) {
	t.Parallel()
	first, err := session.Create(t.Context(), memory.New(nil), session.Header{ID: "one"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	rule, err := first.AppendMessage(session.RoleSystem, []session.Content{session.Text("be kind")})
	if err != nil {
		t.Fatal(err)
	}
	next, err := first.Continue(session.Entry{ID: rule}, session.Entry{Continues: &session.ContinuesEntry{Messages: 1}, Type: session.TypeContinues})
	if err != nil {
		t.Fatal(err)
	}
	defer next.Close()
	if _, err := next.AppendMessage(session.RoleUser, []session.Content{session.Text("two")}); err != nil {
		t.Fatal(err)
	}
	script, err := transcript.NewScript(next, "penguin", "", transcripttest.Now())
	if err != nil {
		t.Fatal(err)
	}
	out, err := penguin.Format().Write(t.Context(), script, env)
	if err != nil {
		t.Fatal(err)
	}
	v, err := loose.Parse(out.Files[0].Data)
	if err != nil {
		t.Fatal(err)
	}
	var said, kinds []string
	for m := range v.Get("messages").Items() {
		said, kinds = append(said, m.Get("content").Text()), append(kinds, m.Get("metadata", "type").Text())
	}
	if !slices.Equal(said, []string{"be kind", "Continuing from session one", "two"}) || kinds[1] != "session_transition" {
		t.Errorf("written: %q, %q", said, kinds)
	}
}

func FuzzPenguinRead(f *testing.F) { transcripttest.FuzzReader(f, penguin.Format(), first) }
