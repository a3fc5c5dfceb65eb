package format_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/format/openagent"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
	"github.com/coppice-dev/coppice/transcript/transcripttest"
)

const openagentFixture = "testdata/openagent/2026-01-02_101500.json"

func TestOpenAgentStandard(t *testing.T) {
	t.Parallel()
	transcripttest.Standard(t, transcripttest.Suite{
		Format: openagent.Format(), Fixtures: []string{openagentFixture}, Sessions: 1,
		Name: "x.json", Detected: map[string]bool{`{"messages":[]}`: false},
	})
}

func TestOpenAgentIndexIsNoSession(t *testing.T) {
	t.Parallel()
	got := transcripttest.Collect(t, openagent.Format(), transcripttest.Open(t, "testdata/openagent/index.json"))
	if len(got.Conversations) != 0 || len(got.Counts) != 1 {
		t.Errorf("got\n%s", transcripttest.Outline(got))
	}
}

func TestOpenAgentBadFiles(t *testing.T) {
	t.Parallel()
	torn := transcript.FileOf("x.json", []byte(`{"metadata":{"session_id":"x","total_tokens":0`))
	if _, err := transcript.Collect(t.Context(), openagent.Format(), torn); !errors.Is(err, session.ErrCorrupt) {
		t.Errorf("half a file gives %v, want ErrCorrupt", err)
	}
	nameless := transcript.FileOf("/d/2026.json", []byte(`{"metadata":{"session_id":"","total_tokens":0},"messages":[]}`))
	if got := transcripttest.Collect(t, openagent.Format(), nameless); got.Conversations[0].ID != "2026" {
		t.Errorf("a session without an id is called %q, want its file's name", got.Conversations[0].ID)
	}
}

// openagentWrite returns what the fixture is after going through a session.
func openagentWrite(t *testing.T, path string) *transcript.Output {
	t.Helper()
	c := transcripttest.Collect(t, openagent.Format(), transcripttest.Open(t, path)).Conversations[0]
	script, err := transcripttest.Script(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	out, err := openagent.Format().Write(t.Context(), script, env)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestOpenAgentRoundTrip(t *testing.T) {
	t.Parallel()
	for _, path := range append(transcripttest.Samples(t, "openagent-terminal/sessions/20*.json"), openagentFixture) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			out := openagentWrite(t, path)
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			want, _ := loose.Parse(data)
			got, err := loose.Parse(out.Files[0].Data)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want.Get("messages").Any(), got.Get("messages").Any()); diff != "" {
				t.Errorf("messages differ (-want +got):\n%s", diff)
			}
			if out.Files[0].Path != filepath.Base(path) || len(out.Losses) != 0 {
				t.Errorf("written to %s with losses %v", out.Files[0].Path, out.Losses)
			}
		})
	}
}

// TestOpenAgentProgramsRules: the keys are exactly the ones that the program reads, times
// are local ones without a zone as it writes them itself, and the index has the
// session once.
func TestOpenAgentProgramsRules(t *testing.T) {
	t.Parallel()
	out := openagentWrite(t, openagentFixture)
	v, _ := loose.Parse(out.Files[0].Data)
	var keys []string
	for key := range v.Get("metadata").Members() {
		keys = append(keys, key)
	}
	if got := strings.Join(keys, " "); got != "session_id created_at updated_at message_count total_tokens title tags" {
		t.Errorf("the metadata are %s", got)
	}
	if created := v.Get("metadata", "created_at").Text(); created != "2026-01-02T10:15:00.125000" {
		t.Errorf("created_at is %s", created)
	}
	old, err := os.ReadFile("testdata/openagent/index.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, have := range [][]byte{old, nil} {
		merged, err := out.Files[1].Merge(have)
		if err != nil {
			t.Fatal(err)
		}
		index, _ := loose.Parse(merged)
		n := 0
		for s := range index.Get("sessions").Items() {
			if s.Get("session_id").Text() == "2026-01-02_101500" && s.Get("message_count").Int() == 6 {
				n++
			}
		}
		if n != 1 || index.Get("version").Text() != "1.0" || have != nil && !index.Has("note") {
			t.Errorf("the index is %s", merged)
		}
	}
	if _, err := out.Files[1].Merge([]byte("{")); !errors.Is(err, session.ErrCorrupt) {
		t.Errorf("a broken index gives %v, want ErrCorrupt: it must not be replaced", err)
	}
	if place := openagent.Format().Places(env)[0]; !place.Match("a.json") || place.Match("index.json") || place.Match("a/b.json") {
		t.Error("other files than sessions are looked at")
	}
}

// The program sorts its index by updated_at, and cannot compare a time that has a
// zone with one that has none.
func TestOpenAgentIndexHasOneKindOfTime(t *testing.T) {
	t.Parallel()
	old := `{"sessions":[{"session_id":"a","created_at":"2026-01-01T10:00:00Z","updated_at":"2026-01-01T12:00:00.5+02:00"},` +
		`{"session_id":"b","created_at":"2026-01-01T10:00:00","updated_at":"2026-01-01T10:00:00.25"}],"version":"1.0"}`
	merged, err := openagentWrite(t, openagentFixture).Files[1].Merge([]byte(old))
	if err != nil {
		t.Fatal(err)
	}
	index, _ := loose.Parse(merged)
	var times []string
	for s := range index.Get("sessions").Items() {
		times = append(times, s.Get("updated_at").Text())
		if created := s.Get("created_at").Text(); strings.ContainsAny(created, "Z+") {
			t.Errorf("created_at is %s", created)
		}
	}
	want := []string{"2026-01-01T10:00:00.500000", "2026-01-01T10:00:00.25", "2026-01-02T10:15:04.000000"}
	if diff := cmp.Diff(want, times); diff != "" {
		t.Errorf("updated_at (-want +got):\n%s", diff)
	}
}

// A session is never older than it was made, whatever its messages say.
func TestOpenAgentUpdatedIsNotBeforeCreated(t *testing.T) {
	t.Parallel()
	const file = `{"metadata":{"session_id":"x","created_at":"2026-01-01T10:00:00","updated_at":"2026-01-01T10:00:00","message_count":1,"total_tokens":0,"title":null,"tags":[]},` +
		`"messages":[{"role":"user","content":"hi","timestamp":"2025-12-31T10:00:00","token_count":2}]}`
	path := filepath.Join(t.TempDir(), "x.json")
	transcripttest.WriteFile(t, path, file)
	out, _ := loose.Parse(openagentWrite(t, path).Files[0].Data)
	if meta := out.Get("metadata"); meta.Get("updated_at").Text() < meta.Get("created_at").Text() {
		t.Errorf("the metadata are %s", meta)
	}
}

// What the program counted is kept; what was said since is added.
func TestOpenAgentRecordedTokens(t *testing.T) {
	t.Parallel()
	const file = `{"metadata":{"session_id":"x","created_at":"2026-01-01T10:00:00","updated_at":"2026-01-01T10:00:00","message_count":1,"total_tokens":99,"title":null,"tags":[]},` +
		`"messages":[{"role":"user","content":"hi","timestamp":"2026-01-01T10:00:00","token_count":2}]}`
	c := transcripttest.Collect(t, openagent.Format(), transcript.FileOf("x.json", []byte(file))).Conversations[0]
	script, err := transcripttest.Script(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	tokens := 5
	for want, entries := range map[int][]session.Entry{
		99:  script.Path,
		104: append(slices.Clone(script.Path), session.Entry{Type: session.TypeMessage, Message: &session.MessageEntry{Role: "assistant", Content: []session.Content{session.Text("yes")}, Tokens: &tokens}}),
	} {
		script.Path = entries
		out, err := openagent.Format().Write(t.Context(), script, env)
		if err != nil {
			t.Fatal(err)
		}
		if v, _ := loose.Parse(out.Files[0].Data); v.Get("metadata", "total_tokens").Int() != want {
			t.Errorf("total_tokens is %d, want %d", v.Get("metadata", "total_tokens").Int(), want)
		}
	}
}

// Sessions of one second get ids of their own, and keep them.
func TestOpenAgentSessionsOfOneSecond(t *testing.T) {
	t.Parallel()
	files := make(map[string][]byte)
	export := func(at time.Duration, text string) string {
		entries := []session.Entry{{Type: session.TypeMessage, ID: "a", Timestamp: transcripttest.Now(), Message: &session.MessageEntry{Role: "user", Content: []session.Content{session.Text(text)}}}}
		script, err := transcripttest.ScriptOf(t.Context(), session.Header{Type: session.TypeSession, ID: text, Version: 1, CreatedAt: transcripttest.Now().Add(at)}, entries)
		if err != nil {
			t.Fatal(err)
		}
		x := &transcript.Exporter{Env: env}
		out, err := x.Prepare(t.Context(), openagent.Format(), script, func(path string) ([]byte, error) { return files[path], nil })
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range out.Files {
			files[f.Path] = f.Data
		}
		return out.Native
	}
	for _, c := range []struct {
		at   time.Duration
		text string
		want string
	}{
		{0, "one", "2026-11-15_120000"},
		{time.Millisecond, "two", "2026-11-15_120000_1"},
		{0, "three", "2026-11-15_120000_2"},
		{time.Millisecond, "two", "2026-11-15_120000_1"},
		{0, "one", "2026-11-15_120000"},
		{time.Second, "four", "2026-11-15_120001"},
	} {
		if got := export(c.at, c.text); got != c.want {
			t.Errorf("%s is written as %s, want %s", c.text, got, c.want)
		}
	}
	if index, _ := loose.Parse(files["index.json"]); len(slices.Collect(index.Get("sessions").Items())) != 4 {
		t.Errorf("the index is %s", files["index.json"])
	}
}

func TestOpenAgentLosses(t *testing.T) {
	t.Parallel()
	parent := "a"
	entries := []session.Entry{
		{Type: session.TypeMessage, ID: "a", Message: &session.MessageEntry{Role: "user", Content: []session.Content{session.Image("image/png", "AA==")}}},
		{Type: session.TypeMessage, ID: "b", ParentID: &parent, Message: &session.MessageEntry{Role: "custom", Content: []session.Content{session.Text("one branch")}}},
		{Type: session.TypeMessage, ID: "c", ParentID: &parent, Message: &session.MessageEntry{Role: "bashExecution", Content: []session.Content{session.Text("another")}}},
		{Type: session.TypeCompaction, ID: "d", ParentID: &[]string{"c"}[0], Compaction: &session.CompactionEntry{Summary: "s", FirstKeptEntryID: "c"}},
	}
	script, err := transcripttest.ScriptOf(t.Context(), session.Header{Type: session.TypeSession, ID: "s", Version: 1, CreatedAt: transcripttest.Now()}, entries)
	if err != nil {
		t.Fatal(err)
	}
	out, err := openagent.Format().Write(t.Context(), script, env)
	if err != nil {
		t.Fatal(err)
	}
	var lost []string
	for _, l := range out.Losses {
		lost = append(lost, l.What)
	}
	if got := strings.Join(lost, " "); got != "image compaction branches" {
		t.Errorf("losses are %q", got)
	}
	if out.Files[0].Path != "2026-11-15_120000.json" {
		t.Errorf("a new session is written to %s", out.Files[0].Path)
	}
}

func FuzzOpenAgentRead(f *testing.F) {
	transcripttest.FuzzReader(f, openagent.Format(), openagentFixture)
}

// A token_count of 0 means that nobody counted. Taken for a count it would make
// the message cost nothing in a window.
func TestOpenAgentNoTokensAreNotCounted(t *testing.T) {
	t.Parallel()
	file := transcript.FileOf("/d/s.json", []byte(`{"metadata":{"session_id":"s","total_tokens":7},"messages":[
		{"role":"user","content":"hi","timestamp":"2026-01-02T10:15:00","token_count":0,"metadata":{}},
		{"role":"assistant","content":"hello","timestamp":"2026-01-02T10:15:01","token_count":7,"metadata":{}},
		{"role":"user","content":"bye","timestamp":"2026-01-02T10:15:02","token_count":null,"metadata":{}}]}`))
	records := transcripttest.Collect(t, openagent.Format(), file).Conversations[0].Records
	var got []int
	for _, r := range records {
		n := -1
		if r.Entry.Message.Tokens != nil {
			n = *r.Entry.Message.Tokens
		}
		got = append(got, n)
	}
	if diff := cmp.Diff([]int{-1, 7, -1}, got); diff != "" {
		t.Errorf("counts (-1: none) differ (-want +got):\n%s", diff)
	}
}
