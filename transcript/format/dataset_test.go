package format_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/format/dataset"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
	"github.com/coppice-dev/coppice/transcript/transcripttest"
)

// datasetFixtures are files, their formats, and how many sessions they become.
var datasetFixtures = map[string]struct {
	format   *transcript.Format
	sessions int
}{
	"sharegpt.json":       {named("sharegpt"), 4},
	"llama-factory.jsonl": {named("llama-factory"), 2},
	"alpaca.json":         {named("alpaca"), 3},
	"lmsys.jsonl":         {named("lmsys"), 2},
	"oasst.jsonl":         {named("oasst"), 3},
	"preference.jsonl":    {named("preference"), 5},
	"ultrachat.jsonl":     {named("ultrachat"), 1},
	"mt/question.jsonl":   {named("mt-bench"), 2},
	"bfcl.jsonl":          {named("bfcl"), 1},
	"tau-bench.json":      {named("tau-bench"), 1},
	"task-7.traj":         {named("swe-agent"), 1},
	"steps.traj":          {named("swe-agent"), 1},
	"mini.traj.json":      {named("swe-agent"), 1},
	"openhands.jsonl":     {named("openhands"), 2},
	"events.json":         {named("openhands"), 1},
}

func named(name string) *transcript.Format {
	for _, f := range dataset.Formats() {
		if f.Name == name {
			return f
		}
	}
	return nil
}

// datasetOpen gives a file a path that is the same everywhere.
func datasetOpen(t testing.TB, path string) *transcript.File {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return transcript.FileOf("/data/"+filepath.Base(path), data)
}

func TestDatasetStandard(t *testing.T) {
	t.Parallel()
	for name, want := range datasetFixtures {
		t.Run(name, func(t *testing.T) {
			transcripttest.Standard(t, transcripttest.Suite{
				Format: want.format, Fixtures: []string{filepath.Join("testdata", "dataset", name)}, Open: datasetOpen, Sessions: want.sessions,
			})
		})
	}
}

func TestDatasetDetect(t *testing.T) {
	t.Parallel()
	for name, want := range datasetFixtures {
		for _, format := range dataset.Formats() {
			if format.Detect(datasetOpen(t, filepath.Join("testdata", "dataset", name))) != (format.Name == want.format.Name) {
				t.Errorf("%s: is it %s?", name, format.Name)
			}
		}
	}
}

// TestDatasetQuestionsBeside: answers are put after the questions that lie beside them.
func TestDatasetQuestionsBeside(t *testing.T) {
	t.Parallel()
	file := transcripttest.Open(t, filepath.Join("testdata", "dataset", "mt", "answers.jsonl"))
	c := transcripttest.Collect(t, named("mt-bench"), file)
	var lines []string
	for _, conversation := range c.Conversations {
		for i := range conversation.Records {
			m := conversation.Records[i].Entry.Message
			lines = append(lines, m.Role+" "+m.Content[0].Text.Content)
		}
	}
	want := []string{
		"user q1", "assistant a1", "user q2", "assistant a2", "user q1", "assistant b1", "user q2", "assistant b2", "assistant alone",
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Error(diff)
	}
	if leaf := c.Conversations[0].Leaf; leaf != c.Conversations[0].Records[3].ID {
		t.Errorf("the conversation stands at %s", leaf)
	}
}

// TestDatasetShareGPTRoundTrip: a record that is imported and exported has equal values.
func TestDatasetShareGPTRoundTrip(t *testing.T) {
	t.Parallel()
	c := transcripttest.Collect(t, named("sharegpt"), datasetOpen(t, filepath.Join("testdata", "dataset", "sharegpt.json")))
	data, err := os.ReadFile(filepath.Join("testdata", "dataset", "sharegpt.json"))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for record := range loose.Value(data).Items() {
		if !record.Has("conversations") {
			continue
		}
		conversation := c.Conversations[n]
		n++
		out := writeShareGPT(t, conversation)
		want, got := value(t, record), value(t, out.Files[0].Data)
		if pair := want.(map[string]any); pair["chosen"] != nil { // branches cannot be written
			pair["conversations"] = append(pair["conversations"].([]any), pair["chosen"])
			delete(pair, "chosen")
			delete(pair, "rejected")
			if len(out.Losses) != 1 {
				t.Errorf("the losses are %v", out.Losses)
			}
		} else if len(out.Losses) > 0 {
			t.Errorf("lost: %v", out.Losses)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("record %d came back otherwise (-want +got):\n%s", n, diff)
		}
	}
}

func writeShareGPT(t *testing.T, c *transcript.CollectedConversation) *transcript.Output {
	t.Helper()
	if c.Leaf != "" { // where an import would leave the session
		leaf := session.Entry{Type: session.TypeLeaf, Leaf: &session.LeafEntry{}}
		c.Records = append(c.Records, transcript.Record{ID: "leaf", Parent: c.Leaf, Entry: leaf})
	}
	script, err := transcripttest.Script(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	out, err := named("sharegpt").Write(t.Context(), script, transcript.Env{})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestDatasetShareGPTFromElsewhere: what ShareGPT cannot hold is listed.
func TestDatasetShareGPTFromElsewhere(t *testing.T) {
	t.Parallel()
	parent := "m2"
	entries := []session.Entry{
		{Type: session.TypeMessage, ID: "m1", Message: &session.MessageEntry{Role: "user", Content: []session.Content{
			session.Text("see "), session.Image("image/png", "AAAA"),
		}}},
		{Type: session.TypeMessage, ID: "m2", ParentID: new("m1"), Message: &session.MessageEntry{Role: "assistant", Content: []session.Content{
			{Type: session.ContentTypeThinking, Thinking: &session.ThinkingContent{Content: "hm"}},
			session.Text("I look"),
			session.ToolUse("c1", "look", map[string]any{"x": 1}), session.ToolUse("c2", "look", nil),
		}}},
		{Type: session.TypeMessage, ID: "m3", ParentID: &parent, Message: &session.MessageEntry{Role: "tool", Content: []session.Content{
			session.ToolResult("c1", "a cat", false), session.ToolResult("c2", "", true),
		}}},
	}
	script, err := transcripttest.ScriptOf(t.Context(), session.Header{ID: "s1"}, entries)
	if err != nil {
		t.Fatal(err)
	}
	out, err := named("sharegpt").Write(t.Context(), script, transcript.Env{})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"id":"s1","conversations":[{"from":"human","value":"see <image>"},{"from":"gpt","value":"I look"},` +
		`{"from":"function_call","value":"[{\"name\":\"look\",\"arguments\":{\"x\":1}},{\"name\":\"look\",\"arguments\":{}}]"},` +
		`{"from":"observation","value":"a cat"},{"from":"observation","value":""}],"images":["data:image/png;base64,AAAA"]}`
	if diff := cmp.Diff(value(t, []byte(want)), value(t, out.Files[0].Data)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(out.Losses) != 1 || out.Losses[0].What != "thinking" {
		t.Errorf("the losses are %v", out.Losses)
	}
}

// TestDatasetCorpus reads the real data sets, where there are any, and counts in its own
// way.
func TestDatasetCorpus(t *testing.T) {
	t.Parallel()
	dir := os.Getenv("COPPICE_CORPUS")
	if dir == "" {
		return
	}
	for name, format := range map[string]*transcript.Format{
		"alpaca_en_demo.json": named("alpaca"), "identity.json": named("alpaca"), "dpo_en_demo.json": named("sharegpt"),
		"glaive_toolcall_en_demo.json": named("sharegpt"), "glaive_toolcall_zh_demo.json": named("sharegpt"),
		"reason_tool_use_demo_50.jsonl": named("llama-factory"), "v1_sft_demo.jsonl": named("llama-factory"),
		"v1_dpo_demo.jsonl": named("llama-factory"), "v1_multimodal_demo.jsonl": named("llama-factory"),
	} {
		path := filepath.Join(dir, "llama-factory", name)
		c := transcripttest.Collect(t, format, transcripttest.Open(t, path))
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		got := tally(c)
		if want := datasetCounted(t, data); got != want || len(c.Problems) > 0 {
			t.Errorf("%s: %+v, counted %+v, problems %v", name, got, want, c.Problems)
		}
	}
}

type numbers struct{ conversations, calls, results int }

func tally(c *transcript.Collected) numbers {
	n := numbers{conversations: len(c.Conversations)}
	for _, conversation := range c.Conversations {
		for _, r := range conversation.Records {
			for _, b := range r.Entry.Message.Content {
				if b.ToolUse != nil {
					n.calls++
				}
				if b.ToolResult != nil {
					n.results++
				}
			}
		}
	}
	return n
}

// datasetCounted counts records, and the turns in them that are calls and results.
func datasetCounted(t *testing.T, data []byte) (n numbers) {
	t.Helper()
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, e := range v {
				walk(e)
			}
		case map[string]any:
			switch {
			case v["from"] == "function_call" && v["value"].(string)[0] == '[':
				var list []any
				if json.Unmarshal([]byte(v["value"].(string)), &list) == nil {
					n.calls += len(list)
				}
			case v["from"] == "function_call", v["type"] == "tool_call":
				n.calls++
			case v["from"] == "observation", v["role"] == "tool":
				n.results++
			}
			for _, e := range v {
				walk(e)
			}
		}
	}
	d := json.NewDecoder(bytes.NewReader(data))
	for d.More() {
		var v any
		if err := d.Decode(&v); err != nil {
			t.Fatal(err)
		}
		if list, ok := v.([]any); ok {
			n.conversations += len(list)
		} else {
			n.conversations++
		}
		walk(v)
	}
	return n
}

func FuzzDatasetRead(f *testing.F) {
	for name := range datasetFixtures {
		data, err := os.ReadFile(filepath.Join("testdata", "dataset", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, format := range dataset.Formats() {
			file := transcript.FileOf("/data/x", data)
			format.Detect(file)
			c, err := transcript.Collect(t.Context(), format, file)
			if err != nil {
				continue
			}
			for _, conversation := range c.Conversations {
				for i := range conversation.Records {
					if _, err := conversation.Records[i].Entry.MarshalJSON(); err != nil {
						t.Errorf("%s: an entry cannot be written: %v", format.Name, err)
					}
				}
			}
		}
	})
}
