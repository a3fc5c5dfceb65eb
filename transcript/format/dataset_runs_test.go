package format_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/transcripttest"
)

func TestDatasetOtherFilesAreNoRuns(t *testing.T) {
	t.Parallel()
	for _, text := range []string{``, `{"messages":[{"role":"user","content":"x"}]}`, `[{"role":"user","content":"x"}]`, `{"history":[["a","b"]],"instruction":"x","output":"y"}`} {
		for _, format := range runs() {
			if format.Detect(transcript.FileOf("/x", []byte(text))) {
				t.Errorf("%s is taken for %s", text, format.Name)
			}
		}
	}
}

func runs() []*transcript.Format {
	return []*transcript.Format{named("swe-agent"), named("openhands"), named("tau-bench")}
}

func TestDatasetRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`{"a":1}`, `{`, `7`} {
		for _, format := range runs() {
			if _, err := transcript.Collect(t.Context(), format, transcript.FileOf("/x", []byte(text))); err == nil {
				t.Errorf("%s: %s was read", format.Name, text)
			}
		}
	}
}

// TestDatasetCorpus reads the real trajectories, where there are any, and counts in its
// own way.
func TestDatasetCorpusOfRuns(t *testing.T) {
	t.Parallel()
	dir := os.Getenv("COPPICE_CORPUS")
	if dir == "" {
		return
	}
	path := filepath.Join(dir, "tau-bench", "gpt-4o-airline.json")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var tasks []struct {
		Traj []struct {
			Role      string
			ToolCalls []any `json:"tool_calls"`
		}
	}
	if err := json.Unmarshal(data, &tasks); err != nil {
		t.Fatal(err)
	}
	type numbers struct{ conversations, messages, calls, results int }
	want := numbers{conversations: len(tasks)}
	for _, task := range tasks {
		want.messages += len(task.Traj)
		for _, m := range task.Traj {
			want.calls += len(m.ToolCalls)
			if m.Role == "tool" {
				want.results++
			}
		}
	}
	c := transcripttest.Collect(t, named("tau-bench"), transcripttest.Open(t, path))
	got := numbers{conversations: len(c.Conversations)}
	for _, conversation := range c.Conversations {
		got.messages += len(conversation.Records)
		for _, r := range conversation.Records {
			for _, b := range r.Entry.Message.Content {
				if b.ToolUse != nil {
					got.calls++
				}
				if b.ToolResult != nil {
					got.results++
				}
			}
		}
	}
	if got != want || len(c.Problems) > 0 {
		t.Errorf("%+v, counted %+v, problems %v", got, want, c.Problems)
	}
}
