package trajectory_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/coppice-dev/coppice/store/memory"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/format/trajectory"
	"github.com/coppice-dev/coppice/transcript/transcripttest"
)

var fixtures = map[string]*transcript.Format{
	"tau-bench.json": trajectory.TauBench(), "task-7.traj": trajectory.SWEAgent(), "steps.traj": trajectory.SWEAgent(),
	"mini.traj.json": trajectory.SWEAgent(), "openhands.jsonl": trajectory.OpenHands(), "events.json": trajectory.OpenHands(),
}

func open(t testing.TB, name string) *transcript.File {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return transcript.FileOf("/data/"+name, data)
}

func TestRead(t *testing.T) {
	for name, format := range fixtures {
		t.Run(name, func(t *testing.T) {
			got := transcripttest.Collect(t, format, open(t, name))
			transcripttest.Golden(t, filepath.Join("testdata", name+".golden"), transcripttest.Outline(got))
		})
	}
}

// TestTwice: importing twice is importing once.
func TestTwice(t *testing.T) {
	for name, format := range fixtures {
		importer := transcript.Importer{Store: memory.New(nil)}
		first, err := importer.Import(t.Context(), format, open(t, name))
		if err != nil || first.New() == 0 {
			t.Fatalf("%s: %d new, %v", name, first.New(), err)
		}
		second, err := importer.Import(t.Context(), format, open(t, name))
		if err != nil || second.New() != 0 {
			t.Errorf("%s: %d new at the second time, %v", name, second.New(), err)
		}
	}
}

func TestDetect(t *testing.T) {
	for name, want := range fixtures {
		for _, format := range trajectory.Formats() {
			if format.Detect(open(t, name)) != (format.Name == want.Name) {
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
