package format_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/format/codex"
	"github.com/coppice-dev/coppice/transcript/transcripttest"
)

func codexCollect(t *testing.T, path string) *transcript.Collected {
	t.Helper()
	return transcripttest.Collect(t, codex.Format(), transcripttest.Open(t, path))
}

func codexFixtures(t testing.TB) []string {
	t.Helper()
	var all []string
	for _, pattern := range []string{"testdata/codex/*.json*", "testdata/codex/day/*.jsonl", "testdata/codex/bases/*.jsonl", "testdata/codex/home/sessions/*/*/*/*.jsonl"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, found...)
	}
	return all
}

// TestCodexRead compares what is found in each fixture with the outline beside it. The
// codexFixtures are the four eras, rollouts without items (old and new events), the
// output of codex exec, and a day with forks and subagents.
func TestCodexRead(t *testing.T) {
	t.Parallel()
	for _, path := range codexFixtures(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			golden := strings.TrimSuffix(path, filepath.Ext(path)) + ".txt"
			transcripttest.Golden(t, golden, transcripttest.Outline(codexCollect(t, path)))
		})
	}
}

// TestCodexReadCompressed: cold rollouts are compressed.
func TestCodexReadCompressed(t *testing.T) {
	t.Parallel()
	path := "testdata/codex/bare.jsonl"
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	enc, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	f := transcript.FileOf("rollout.jsonl.zst", enc.EncodeAll(data, nil))
	got := transcripttest.Outline(transcripttest.Collect(t, codex.Format(), f))
	if diff := cmp.Diff(transcripttest.Outline(codexCollect(t, path)), got); diff != "" {
		t.Errorf("compressed it says something else (-plain +compressed):\n%s", diff)
	}
}

// TestCodexReadFork: a fork repeats its original's records under the same ids and with
// the same times, and has only its own besides.
func TestCodexReadFork(t *testing.T) {
	t.Parallel()
	parent := codexCollect(t, "testdata/codex/day/rollout-2026-03-01T09-00-00-019c1000-0000-7000-8000-000000000001.jsonl").Conversations[0]
	fork := codexCollect(t, "testdata/codex/day/rollout-2026-03-01T09-10-00-019c1000-0000-7000-8000-000000000002.jsonl").Conversations[0]
	if fork.Family != parent.ID {
		t.Errorf("the fork's family is %q, want %q", fork.Family, parent.ID)
	}
	for i := range 3 {
		if diff := cmp.Diff(transcripttest.Line(&parent.Records[i]), transcripttest.Line(&fork.Records[i])); diff != "" {
			t.Errorf("record %d differs (-original +fork):\n%s", i, diff)
		}
	}
	if len(fork.Records) != 4 || fork.Records[3].ID == parent.Records[3].ID || fork.Records[3].Parent != parent.Records[2].ID {
		t.Errorf("the fork does not go on from the third record: %v", fork.Records)
	}
}

// TestCodexReadForkOfLines: a fork that only names the lines of its original goes on from
// there, over several threads, whether the original was read before or not.
func TestCodexReadForkOfLines(t *testing.T) {
	t.Parallel()
	file := func(n string) string {
		return "testdata/codex/bases/rollout-2026-11-16T08-00-00-019e8bd0-0000-7000-8000-00000000000" + n + ".jsonl"
	}
	parent := codexCollect(t, file("1")).Conversations[0]
	for n, want := range map[string][]string{
		"2": {"garden rules", "plant an oak", "Planted.", "plant a birch instead", "A birch, then."},
		"4": {"garden rules", "plant an oak", "Planted.", "plant a birch instead", "A birch, then.", "and a beech"},
	} {
		fork := codexCollect(t, file(n)).Conversations[0]
		if fork.Family != parent.ID || fork.Parent != "" {
			t.Errorf("the family of fork %s is %q, want %q", n, fork.Family, parent.ID)
		}
		if fork.Records[0].ID != parent.Records[0].ID {
			t.Errorf("fork %s begins with %s, want the original's %s", n, fork.Records[0].ID, parent.Records[0].ID)
		}
		s, err := transcripttest.Script(t.Context(), fork)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, codexTexts(s.Context.Entries)); diff != "" {
			t.Errorf("fork %s (-want +got):\n%s", n, diff)
		}
	}
	for _, order := range [][]string{{"1", "2", "4"}, {"4", "2", "1"}} {
		var paths []string
		for _, n := range order {
			paths = append(paths, file(n))
		}
		if got := transcripttest.Import(t, codex.Format(), paths...); len(got) != 1 {
			t.Errorf("read in the order %v, they become %d sessions, want 1", order, len(got))
		}
	}
}

// TestCodexReadForkedSubagent: what a subagent has from its parent is part of what its model
// is sent, and of what is exported. The parent paid for it.
func TestCodexReadForkedSubagent(t *testing.T) {
	t.Parallel()
	c := codexCollect(t, "testdata/codex/bases/rollout-2026-11-16T08-00-00-019e8bd0-0000-7000-8000-000000000003.jsonl").Conversations[0]
	if c.Relation != session.RelationSubagent || c.ParentCall != "call_1" {
		t.Errorf("the subagent is %+v", c.Conversation)
	}
	s, err := transcripttest.Script(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"garden rules", "plant an oak", "ask a helper to water it", "water the oak", "Wet."}
	if diff := cmp.Diff(want, codexTexts(s.Context.Entries)); diff != "" {
		t.Errorf("the context (-want +got):\n%s", diff)
	}
	var spent session.Spent
	for i := range s.Path {
		spent.Add(&s.Path[i])
	}
	if spent.Reported != 11 {
		t.Errorf("the subagent spent %d tokens, want 11", spent.Reported)
	}
	out := string(codexWrite(t, s).Files[0].Data)
	for _, text := range want {
		if strings.Count(out, `{"type":"message"`) < len(want) || !strings.Contains(out, `"text":"`+text+`"`) {
			t.Errorf("%q is not in the export:\n%s", text, out)
		}
	}
}

// codexTexts are the texts of messages and summaries.
func codexTexts(entries []session.Entry) (list []string) {
	for _, e := range entries {
		switch {
		case e.Compaction != nil:
			list = append(list, "summary: "+e.Compaction.Summary)
		case e.Message != nil:
			list = append(list, session.TextOf(e.Message.Content))
		}
	}
	return list
}

func TestCodexReadWithoutHeader(t *testing.T) {
	t.Parallel()
	item := `{"type":"response_item","payload":{"type":"message","role":"user","content":"hi"}}`
	read := func(path string) string {
		return transcripttest.Collect(t, codex.Format(), transcript.FileOf(path, []byte(item))).Conversations[0].ID
	}
	if got := read("/x/rollout-2026-01-01T00-00-00-019c1000-0000-7000-8000-00000000000a.jsonl"); got != "019c1000-0000-7000-8000-00000000000a" {
		t.Errorf("the id in the name is not found: %s", got)
	}
	if a, b := read("/a.jsonl"), read("/b.jsonl"); a == "" || a == b {
		t.Errorf("conversations are %q and %q", a, b)
	}
}

// TestCodexReadSaidAgain: what is said again after it was taken back is another record.
func TestCodexReadSaidAgain(t *testing.T) {
	t.Parallel()
	said := `{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"plant one"}]}}` + "\n"
	back := `{"type":"event_msg","payload":{"type":"thread_rolled_back","num_turns":1}}` + "\n"
	meta := `{"type":"session_meta","payload":{"id":"x"}}` + "\n"
	c := transcripttest.Collect(t, codex.Format(), transcript.FileOf("x.jsonl", []byte(meta+said+back+said+back+said)))
	transcripttest.CheckTree(t, c)
	for _, r := range c.Conversations[0].Records {
		if r.Parent != transcript.Root {
			t.Errorf("%s follows %s, want nothing", r.ID, r.Parent)
		}
	}
	if n := len(c.Conversations[0].Records); n != 3 {
		t.Errorf("there are %d records, want 3", n)
	}
}

func TestCodexReadEmpty(t *testing.T) {
	t.Parallel()
	meta := `{"timestamp":"2026-02-01T10:00:00.000Z","type":"session_meta","payload":{"id":"x","cwd":"/p"}}`
	c := transcripttest.Collect(t, codex.Format(), transcript.FileOf("x.jsonl", []byte(meta)))
	if len(c.Conversations) != 1 || c.Conversations[0].CWD != "/p" {
		t.Errorf("found %+v", c.Conversations)
	}
}

func TestCodexReadBadDocument(t *testing.T) {
	t.Parallel()
	f := transcript.FileOf("x.json", []byte(`{"session":{"id":"x"},"items":[`))
	if _, err := transcript.Collect(t.Context(), codex.Format(), f); err == nil {
		t.Error("half a document is read")
	}
}

func TestCodexDetect(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, text string
		want       bool
	}{
		{"envelope", `{"timestamp":"x","type":"session_meta","payload":{"id":"x"}}`, true},
		{"item first", `{"type":"response_item","payload":{}}`, true},
		{"flat", `{"timestamp":"x","type":"session_meta","id":"x"}`, true},
		{"flat without id", `{"timestamp":"x","type":"session_meta"}`, false},
		{"bare", `{"id":"x","timestamp":"t","instructions":null}`, true},
		{"document", "\n{ \"session\": {}, \"items\": [] }", true},
		{"exec", `{"type":"thread.started","thread_id":"x"}`, true},
		{"another stream", `{"type":"thread.started"}`, false},
		{"pi", `{"type":"session","id":"x","timestamp":"t","cwd":"/p"}`, false},
		{"nothing", ``, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := codex.Format().Detect(transcript.FileOf("x", []byte(tt.text))); got != tt.want {
				t.Errorf("it is detected: %v, want %v", got, tt.want)
			}
		})
	}
}

func TestCodexPlaces(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	env := transcript.Env{Home: "/home/ada", Getenv: func(string) string { return home }}
	places := codex.Format().Places(env)
	if len(places) != 2 || places[0].Dir != filepath.Join(home, "sessions") || places[1].Dir != filepath.Join(home, "archived_sessions") {
		t.Errorf("places are %v", places)
	}
	for path, want := range map[string]bool{
		"2026/01/02/rollout-x.jsonl": true, "rollout-x.jsonl.zst": true, "rollout-x.json": true,
		"2026/01/02/other.jsonl": false, "rollout-x.txt": false,
	} {
		if got := places[0].Match(path); got != want {
			t.Errorf("%s is taken: %v, want %v", path, got, want)
		}
	}
}

func FuzzCodexRead(f *testing.F) {
	for _, path := range codexFixtures(f) {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		file := transcript.FileOf("x.jsonl", data)
		c, err := transcript.Collect(t.Context(), codex.Format(), file)
		if err != nil {
			return // half a document
		}
		for _, conv := range c.Conversations {
			seen := map[string]bool{transcript.Root: true}
			for i, r := range conv.Records {
				if _, err := r.Entry.MarshalJSON(); err != nil {
					t.Errorf("record %d cannot be kept: %v", i, err)
				}
				if !seen[r.Parent] || seen[r.ID] {
					t.Errorf("record %d (%s) does not follow an earlier one (%s)", i, r.ID, r.Parent)
				}
				seen[r.ID] = true
			}
		}
	})
}

// TestCodexImport: importing twice is importing once, and a fork becomes a branch of
// what it was forked from: two of the day's five threads are one session, and so
// are the two threads of the home.
func TestCodexImport(t *testing.T) {
	t.Parallel()
	for pattern, want := range map[string]int{"testdata/codex/day/*.jsonl": 4, "testdata/codex/home/sessions/*/*/*/*.jsonl": 1, "testdata/codex/*.json*": 7} {
		if got := transcripttest.Import(t, codex.Format(), transcripttest.Fixtures(t, pattern)...); len(got) != want {
			t.Errorf("%s becomes %d sessions, want %d", pattern, len(got), want)
		}
	}
}

// A compaction that stands between a call and its result is stored with another cut.
// That must not make it another compaction when the file is read again.
func TestCodexImportOfACutThatWasMoved(t *testing.T) {
	t.Parallel()
	lines := []string{
		`{"timestamp":"2026-02-01T10:00:00.000Z","type":"session_meta","payload":{"id":"019c0000-0000-7000-8000-0000000000aa","timestamp":"2026-02-01T10:00:00.000Z","cwd":"/w"}}`,
		`{"timestamp":"2026-02-01T10:00:01.000Z","type":"response_item","payload":{"type":"message","id":"m1","role":"user","content":[{"type":"input_text","text":"list"}]}}`,
		`{"timestamp":"2026-02-01T10:00:02.000Z","type":"response_item","payload":{"type":"function_call","id":"f1","call_id":"c1","name":"shell","arguments":"{}"}}`,
		`{"timestamp":"2026-02-01T10:00:03.000Z","type":"compacted","payload":{"message":"S","replacement_history":[]}}`,
		`{"timestamp":"2026-02-01T10:00:04.000Z","type":"response_item","payload":{"type":"function_call_output","id":"o1","call_id":"c1","output":"a"}}`,
		`{"timestamp":"2026-02-01T10:00:05.000Z","type":"response_item","payload":{"type":"message","id":"m2","role":"assistant","content":[{"type":"output_text","text":"done"}]}}`,
	}
	path := filepath.Join(t.TempDir(), "rollout-2026-02-01T10-00-00-019c0000-0000-7000-8000-0000000000aa.jsonl")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	transcripttest.Import(t, codex.Format(), path)
}
