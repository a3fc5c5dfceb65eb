package all_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/transcript"
	_ "github.com/coppice-dev/coppice/transcript/all"
)

func TestNames(t *testing.T) {
	t.Parallel()
	seen := make(map[string]bool)
	for _, f := range transcript.Formats() {
		switch {
		case f.Name == "" || f.Title == "" || f.Detect == nil || f.Read == nil:
			t.Errorf("format %q is not complete", f.Name)
		case seen[f.Name]:
			t.Errorf("two formats are called %q", f.Name)
		case transcript.Named(f.Name) == nil || transcript.Named(f.Name).Title != f.Title:
			t.Errorf("format %q is not found by its name", f.Name)
		}
		seen[f.Name] = true
	}
	if transcript.Named("nobody") != nil {
		t.Error("there is a format of any name")
	}
}

// TestSniffing asks all formats about the fixtures of each: no other format may
// take one for its own.
func TestSniffing(t *testing.T) {
	t.Parallel()
	packages := make(map[string]bool)
	for _, f := range transcript.Formats() {
		packages[strings.ReplaceAll(f.Name, "-", "")] = true
	}
	packages["copilot"] = true
	asked := 0
	err := filepath.WalkDir(filepath.Join("..", "format", "testdata"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.Contains(path, "fuzz") {
			return err
		}
		own := strings.Split(filepath.ToSlash(path), "/")[3]
		if !packages[own] || strings.HasSuffix(path, ".golden") {
			return nil
		}
		asked++
		f, err := transcript.OpenFile(path)
		if err != nil {
			return err
		}
		if format := transcript.Detect(f); format != nil && strings.ReplaceAll(format.Name, "-", "") != own && !strings.HasPrefix(format.Name, own) {
			t.Errorf("%s is taken for %s", path, format.Name)
		}
		return nil
	})
	if err != nil || asked < 50 {
		t.Fatalf("%d files were asked, %v", asked, err)
	}
}

// TestNothingIsAnything: files that are of no format are of none.
func TestNothingIsAnything(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"empty": "", "text.txt": "hello\n", "object.json": "{}", "list.json": "[]", "number.json": "7", "lines.jsonl": "{}\n{}\n",
		"package.json": `{"name":"x","version":"1.0.0"}`, "binary": "\x00\x01\x02", "torn.json": `{"a":`,
	} {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := transcript.OpenFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if format := transcript.Detect(f); format != nil {
			t.Errorf("%s is taken for %s", name, format.Name)
		}
	}
}

// TestNamesInAConversationAreNotItsFormat: a request in which somebody talks about the members
// of other formats, or calls a tool with them, is a request.
func TestNamesInAConversationAreNotItsFormat(t *testing.T) {
	t.Parallel()
	const names = `{"level":"info","info":{"projectID":"p"},"parts":["x"],"projectID":"p","mapping":{"a":{"children":[]}},"current_node":"a",` +
		`"chat_messages":[],"last_active":1,"created_at":2,"metadata":{"session_id":"s","total_tokens":3},"id":"T-1","messages":[],` +
		`"conversation":[],"working_dir":"/","sessionId":"s","projectHash":"h","agent":"a","origin":"o","uuid":"u","parentUuid":null,"items":[],"session":{}}`
	quoted, err := json.Marshal(names)
	if err != nil {
		t.Fatal(err)
	}
	for want, text := range map[string]string{
		"openai": `{"model":"m","messages":[{"role":"user","content":` + string(quoted) + `},{"role":"assistant","tool_calls":[{"id":"c","type":"function",` +
			`"function":{"name":"log","arguments":` + string(quoted) + `}}]}],"tools":[{"type":"function","function":{"name":"log","parameters":` + names + `}}]}`,
		"anthropic": `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]},` +
			`{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"log","input":` + names + `}]}]}`,
	} {
		format := transcript.Detect(transcript.FileOf("request.json", []byte(text)))
		if format == nil || format.Name != want {
			t.Errorf("a request of %s is taken for %+v", want, format)
		}
	}
}

// BenchmarkDetect asks which format each fixture has.
func BenchmarkDetect(b *testing.B) {
	var paths []string
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && strings.Contains(path, "testdata") && !strings.Contains(path, "fuzz") {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	n := 0
	for b.Loop() {
		for _, path := range paths {
			f, err := transcript.OpenFile(path)
			if err != nil {
				b.Fatal(err)
			}
			transcript.Detect(f)
			n++
		}
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "files/s")
}
