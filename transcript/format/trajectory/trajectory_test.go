package trajectory_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/format/trajectory"
	"github.com/coppice-dev/coppice/transcript/transcripttest"
)

// fixtures are files, their formats, and how many sessions they become.
var fixtures = map[string]struct {
	format   *transcript.Format
	sessions int
}{
	"tau-bench.json":  {trajectory.TauBench(), 1},
	"task-7.traj":     {trajectory.SWEAgent(), 1},
	"steps.traj":      {trajectory.SWEAgent(), 1},
	"mini.traj.json":  {trajectory.SWEAgent(), 1},
	"openhands.jsonl": {trajectory.OpenHands(), 2},
	"events.json":     {trajectory.OpenHands(), 1},
}

// open gives a file a path that is the same everywhere.
func open(t testing.TB, path string) *transcript.File {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return transcript.FileOf("/data/"+filepath.Base(path), data)
}

func TestStandard(t *testing.T) {
	for name, want := range fixtures {
		t.Run(name, func(t *testing.T) {
			transcripttest.Standard(t, transcripttest.Suite{
				Format: want.format, Fixtures: []string{filepath.Join("testdata", name)}, Open: open, Sessions: want.sessions,
			})
		})
	}
}

func TestDetect(t *testing.T) {
	for name, want := range fixtures {
		for _, format := range trajectory.Formats() {
			if format.Detect(open(t, filepath.Join("testdata", name))) != (format.Name == want.format.Name) {
				t.Errorf("%s: is it %s?", name, format.Name)
			}
		}
	}
	for _, text := range []string{``, `{"messages":[{"role":"user","content":"x"}]}`, `[{"role":"user","content":"x"}]`, `{"history":[["a","b"]],"instruction":"x","output":"y"}`} {
		for _, format := range trajectory.Formats() {
			if format.Detect(transcript.FileOf("/x", []byte(text))) {
				t.Errorf("%s is taken for %s", text, format.Name)
			}
		}
	}
}

func TestRefused(t *testing.T) {
	for _, text := range []string{`{"a":1}`, `{`, `7`} {
		for _, format := range trajectory.Formats() {
			if _, err := transcript.Collect(t.Context(), format, transcript.FileOf("/x", []byte(text))); err == nil {
				t.Errorf("%s: %s was read", format.Name, text)
			}
		}
	}
}

// TestCorpus reads the real trajectories, where there are any, and counts in its
// own way.
func TestCorpus(t *testing.T) {
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
	c := transcripttest.Collect(t, trajectory.TauBench(), transcripttest.Open(t, path))
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

func FuzzRead(f *testing.F) {
	for name := range fixtures {
		data, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, format := range trajectory.Formats() {
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
