package format_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/memory"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/format/api"
	"github.com/coppice-dev/coppice/transcript/transcripttest"
)

// apiFixtures returns the test files with the format that each is of: the longest
// name that its own begins with.
func apiFixtures(t testing.TB) map[string]*transcript.Format {
	t.Helper()
	files, err := filepath.Glob("testdata/api/*-*.*")
	if err != nil {
		t.Fatal(err)
	}
	of := make(map[string]*transcript.Format)
	for _, file := range files {
		for _, format := range api.Formats() {
			if name := filepath.Base(file); strings.HasPrefix(name, format.Name+"-") && !strings.HasSuffix(name, ".golden") &&
				(of[file] == nil || len(of[file].Name) < len(format.Name)) {
				of[file] = format
			}
		}
	}
	if len(of) < 15 {
		t.Fatalf("only %d fixtures", len(of))
	}
	return of
}

// written returns the formats that are also written.
func written() []*transcript.Format {
	return slices.DeleteFunc(api.Formats(), func(f *transcript.Format) bool { return f.Write == nil })
}

// apiOpen gives a fixture a path that is the same everywhere.
func apiOpen(t testing.TB, file string) *transcript.File {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return transcript.FileOf("/data/"+filepath.Base(file), data)
}

func TestAPIRead(t *testing.T) {
	t.Parallel()
	for file, format := range apiFixtures(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			got := transcripttest.Collect(t, format, apiOpen(t, file))
			transcripttest.Golden(t, file+".golden", transcripttest.Outline(got))
		})
	}
}

// TestAPIDetect: the first format that says it is its own is the right one.
func TestAPIDetect(t *testing.T) {
	t.Parallel()
	for file, want := range apiFixtures(t) {
		for _, format := range api.Formats() {
			if format.Detect(apiOpen(t, file)) {
				if format.Name != want.Name {
					t.Errorf("%s is taken for %s", file, format.Name)
				}
				break
			}
		}
	}
	long := `{"messages":[{"content":"` + strings.Repeat("x", 100<<10) + `","role":"user"}]}`
	if !api.OpenAI().Detect(transcript.FileOf("/x", []byte(long))) {
		t.Error("a long message hides its role")
	}
	calls := `{"input":[{"type":"function_call","call_id":"1","name":"x","arguments":"{}"},{"type":"function_call_output","call_id":"1","output":"y"}]}`
	if !api.Responses().Detect(transcript.FileOf("/x", []byte(calls))) {
		t.Error("a request of calls alone is not recognised")
	}
	for name, text := range map[string]string{
		"nothing": "", "text": "hello", "number": "7", "object": `{"a":1}`, "sharegpt": `[{"conversations":[{"from":"human","value":"x"}]}]`,
		"alpaca": `[{"instruction":"a","input":"","output":"b"}]`, "events of nobody": "data: {}\n\n",
		"users": `[{"role":"admin","name":"x"}]`, "members": `[{"role":"user","name":"x"}]`,
		"messages of types": `{"messages":[{"id":"a","type":"user","content":"hi"},{"id":"b","type":"gemini","content":"hello"}]}`,
		"codex":             `{"type":"response_item","timestamp":"t","payload":{"type":"function_call"}}`,
	} {
		for _, format := range api.Formats() {
			if format.Detect(transcript.FileOf("/x", []byte(text))) {
				t.Errorf("%s is taken for %s", name, format.Name)
			}
		}
	}
}

// TestAPIRoundTrip: a request that is imported and exported has equal values.
func TestAPIRoundTrip(t *testing.T) {
	t.Parallel()
	for file, format := range apiFixtures(t) {
		if !strings.HasSuffix(file, "-request.json") || format.Write == nil {
			continue
		}
		t.Run(filepath.Base(file), func(t *testing.T) {
			c := transcripttest.Collect(t, format, apiOpen(t, file))
			script, err := transcripttest.Script(t.Context(), c.Conversations[0])
			if err != nil {
				t.Fatal(err)
			}
			script.Facts = c.Conversations[0].Extra
			out, err := format.Write(t.Context(), script, transcript.Env{})
			if err != nil {
				t.Fatal(err)
			}
			if len(out.Losses) > 0 {
				t.Errorf("lost: %v", out.Losses)
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(value(t, want), value(t, out.Files[0].Data)); diff != "" {
				t.Errorf("it came back otherwise (-want +got):\n%s", diff)
			}
			if again, err := format.Write(t.Context(), script, transcript.Env{}); err != nil || !bytes.Equal(again.Files[0].Data, out.Files[0].Data) {
				t.Errorf("written again it has other bytes, %v", err)
			}
		})
	}
}

// TestAPIConversion: what came from one provider can be written for each other, and
// read there with the same calls and results.
func TestAPIConversion(t *testing.T) {
	t.Parallel()
	for file, from := range apiFixtures(t) {
		if !strings.HasSuffix(file, "-request.json") {
			continue
		}
		c := transcripttest.Collect(t, from, apiOpen(t, file))
		script, err := transcripttest.Script(t.Context(), c.Conversations[0])
		if err != nil {
			t.Fatal(err)
		}
		for _, to := range written() {
			out, err := to.Write(t.Context(), script, transcript.Env{})
			if err != nil {
				t.Errorf("%s to %s: %v", from.Name, to.Name, err)
				continue
			}
			back := transcripttest.Collect(t, to, transcript.FileOf("/x", out.Files[0].Data))
			if want, got := callsOf(c), callsOf(back); want != got {
				t.Errorf("%s to %s: %+v became %+v", from.Name, to.Name, want, got)
			}
			if thinks(c) && !thinks(back) && len(out.Losses) == 0 {
				t.Errorf("%s to %s: thinking is lost in silence", from.Name, to.Name)
			}
		}
	}
}

type calls struct{ uses, results int }

func callsOf(c *transcript.Collected) (n calls) {
	for _, r := range c.Conversations[0].Records {
		if r.Entry.Message == nil {
			continue
		}
		for _, b := range r.Entry.Message.Content {
			if b.ToolUse != nil {
				n.uses++
			}
			if b.ToolResult != nil {
				n.results++
			}
		}
	}
	return n
}

func thinks(c *transcript.Collected) bool {
	for _, r := range c.Conversations[0].Records {
		if r.Entry.Message == nil {
			continue
		}
		for _, b := range r.Entry.Message.Content {
			if b.Thinking != nil {
				return true
			}
		}
	}
	return false
}

// TestAPITwice: importing twice is importing once.
func TestAPITwice(t *testing.T) {
	t.Parallel()
	for file, format := range apiFixtures(t) {
		importer := transcript.Importer{Store: memory.New(nil)}
		first, err := importer.Import(t.Context(), format, apiOpen(t, file))
		if err != nil || first.New() == 0 {
			t.Fatalf("%s: %d new, %v", file, first.New(), err)
		}
		second, err := importer.Import(t.Context(), format, apiOpen(t, file))
		if err != nil || second.New() != 0 {
			t.Errorf("%s: %d new at the second time, %v", file, second.New(), err)
		}
	}
}

// TestAPIGrown: a request that was sent again with more messages continues its
// conversation.
func TestAPIGrown(t *testing.T) {
	t.Parallel()
	importer := transcript.Importer{Store: memory.New(nil)}
	for i, text := range []string{
		`{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]}`,
		`{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"a"}]}`,
	} {
		report, err := importer.Import(t.Context(), api.OpenAI(), transcript.FileOf("/x/chat.json", []byte(text)))
		if err != nil {
			t.Fatal(err)
		}
		if len(report.Sessions) != 1 || i == 1 && (report.Sessions[0].Known != 2 || report.Sessions[0].Created) {
			t.Errorf("the report is %+v", report.Sessions)
		}
	}
}

// TestAPICorpus reads the real data sets of this shape, where there are any.
func TestAPICorpus(t *testing.T) {
	t.Parallel()
	dir := os.Getenv("COPPICE_CORPUS")
	if dir == "" {
		return
	}
	for _, name := range []string{"sgd-dialogues/sgd-test.messages.jsonl", "llama-factory/kto_en_demo.json", "llama-factory/mllm_demo.json"} {
		path := filepath.Join(dir, name)
		c := transcripttest.Collect(t, api.OpenAI(), transcripttest.Open(t, path))
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		messages := 0
		for _, conversation := range c.Conversations {
			messages += len(conversation.Records)
		}
		if n, m := bytes.Count(data, []byte(`"messages":`)), bytes.Count(data, []byte(`"role":`)); n != len(c.Conversations) || m != messages || len(c.Problems) > 0 {
			t.Errorf("%s: %d conversations of %d, %d messages of %d, problems %v", name, len(c.Conversations), n, messages, m, c.Problems)
		}
	}
}

func TestAPIRefused(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, text string
		format     *transcript.Format
		kind       error
	}{
		{"not JSON", `{"messages":[`, api.OpenAI(), session.ErrCorrupt},
		{"an error", `{"error":{"message":"no"}}`, api.Anthropic(), session.ErrInvalid},
		{"another thing", `{"a":1}`, api.OpenAI(), session.ErrInvalid},
		{"a stream that is none", "data: {\n\n", api.OpenAI(), session.ErrInvalid},
		{"a stream where there are none", "data: {}\n\n", api.Bedrock(), session.ErrInvalid},
		{"no messages", `[7]`, api.Google(), nil},
		{"half a list", `[{"role":"user"},`, api.OpenAI(), session.ErrCorrupt},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, err := transcript.Collect(t.Context(), tt.format, transcript.FileOf("/x", []byte(tt.text)))
			if !errors.Is(err, tt.kind) {
				t.Errorf("the error is %v, want %v", err, tt.kind)
			}
			if tt.kind == nil && len(c.Problems) == 0 {
				t.Error("no problem was reported")
			}
		})
	}
}

func TestAPISamples(t *testing.T) {
	t.Parallel()
	for pattern, want := range map[string]string{
		"openai-chat/*.json": "openai", "openai-chat/*.sse.txt": "openai",
		"openai-responses/*.json": "openai-responses", "openai-responses/*.sse.txt": "openai-responses",
		"anthropic-messages/*.req*.json": "anthropic", "anthropic-messages/*.sse.txt": "anthropic",
		"gemini-contents/*.json": "google", "gemini-contents/*.sse.txt": "google", "bedrock-converse/*.json": "bedrock",
		"opencode-session-recordings/*anthropic*": "anthropic", "opencode-session-recordings/*o*-tool-loop.req2.json": "",
	} {
		for _, file := range transcripttest.Samples(t, pattern) {
			if !strings.HasSuffix(file, "ORIGIN.txt") {
				checkSample(t, file, want)
			}
		}
	}
}

func checkSample(t *testing.T, file, want string) {
	t.Helper()
	for _, format := range api.Formats() {
		f := transcripttest.Open(t, file)
		if !format.Detect(f) {
			continue
		}
		if want != "" && format.Name != want {
			t.Errorf("%s is taken for %s", file, format.Name)
		}
		c, err := transcript.Collect(t.Context(), format, f)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			return
		}
		if len(c.Conversations) != 1 || len(c.Problems) > 0 {
			t.Errorf("%s: %d conversations, problems %v", file, len(c.Conversations), c.Problems)
		}
		if data, err := os.ReadFile(file); err == nil && strings.HasSuffix(file, ".json") {
			if got, want := callsOf(c), apiCounted(t, data); got != want {
				t.Errorf("%s: %+v, counted %+v", file, got, want)
			}
		}
		return
	}
	t.Errorf("%s is of no format", file)
}

// apiCounted counts the calls and results of a request by walking all of its JSON
// and looking at the names that the formats have for them.
func apiCounted(t *testing.T, data []byte) (n calls) {
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, e := range v {
				walk(e)
			}
		case map[string]any:
			switch v["type"] {
			case "tool_use", "function_call":
				n.uses++
			case "tool_result", "function_call_output":
				n.results++
			}
			for name, e := range v {
				switch name {
				case "tools", "toolConfig":
					continue
				case "tool_calls":
					n.uses += len(e.([]any))
				case "tool_call_id", "toolResult", "functionResponse":
					n.results++
				case "toolUse", "functionCall":
					n.uses++
				}
				walk(e)
			}
		}
	}
	walk(value(t, data))
	return n
}

func FuzzAPIRead(f *testing.F) {
	for file := range apiFixtures(f) {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, format := range api.Formats() {
			file := transcript.FileOf("/data/x", data)
			format.Detect(file)
			c, err := transcript.Collect(t.Context(), format, file)
			if err != nil || len(c.Conversations) == 0 || len(c.Conversations[0].Records) == 0 {
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

// TestAPINothingToSay: a request needs a message, so that a system prompt alone makes
// none.
func TestAPINothingToSay(t *testing.T) {
	t.Parallel()
	at := transcripttest.Now()
	entries := []session.Entry{{Type: session.TypeMessage, ID: "a", Timestamp: at, Message: &session.MessageEntry{
		Role: "system", Content: []session.Content{session.Text("be brief")},
	}}}
	script, err := transcripttest.ScriptOf(t.Context(), session.Header{Type: session.TypeSession, ID: "s1", Version: 1, CreatedAt: at}, entries)
	if err != nil {
		t.Fatal(err)
	}
	for _, format := range []*transcript.Format{api.Anthropic(), api.Google()} {
		if _, err := new(transcript.Exporter).Prepare(t.Context(), format, script, nil); !errors.Is(err, session.ErrInvalid) {
			t.Errorf("%s: the error is %v", format.Name, err)
		}
	}
}
