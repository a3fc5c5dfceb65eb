package format_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/format/geminicli"
	"github.com/coppice-dev/coppice/transcript/transcripttest"
)

const (
	head    = `{"sessionId":"aaaaaaaa-0000-4000-8000-000000000000","projectHash":"h","startTime":"2026-01-01T00:00:00Z","lastUpdated":"2026-01-01T00:00:00Z","kind":"main"}`
	setup   = `{"id":"s","timestamp":"2026-01-01T00:00:00Z","type":"user","content":[{"text":"<session_context>\nToday is Thursday.\n</session_context>"}]}`
	prompt  = `{"id":"u1","timestamp":"2026-01-01T00:00:01Z","type":"user","content":[{"text":"run both"}]}`
	answer  = `{"id":"g1","timestamp":"2026-01-01T00:00:02Z","type":"gemini","content":CONTENT,"thoughts":[{"subject":"S","description":"D"}],"tokens":{"input":23,"output":29,"cached":5,"thoughts":3,"tool":0,"total":52},"model":"m","toolCalls":[{"id":"c1","name":"run","args":{"x":1},"status":"success","result":RESULT1},{"id":"c2","name":"run","args":{"x":2},"status":"success","result":RESULT2}]}`
	result1 = `{"functionResponse":{"id":"c1","name":"run","response":{"output":"ONE"}}}`
	result2 = `{"functionResponse":{"id":"c2","name":"run","response":{"output":"TWO"}}}`
	both    = `[` + result1 + `,` + result2 + `]`
	echo    = `{"id":"u2","timestamp":"2026-01-01T00:00:03Z","type":"user","content":` + both + `}`
	notice  = `{"id":"i1","timestamp":"2026-01-01T00:00:03Z","type":"info","content":"Updated."}`
	done    = `{"id":"g2","timestamp":"2026-01-01T00:00:04Z","type":"gemini","content":"done","thoughts":[],"tokens":{"input":30,"output":1,"cached":0,"thoughts":0,"tool":0,"total":31},"model":"m"}`
)

func answered(content, one, two string) string {
	return strings.NewReplacer("CONTENT", content, "RESULT1", one, "RESULT2", two).Replace(answer)
}

// created is a recording as the program makes it.
func created() []string {
	return []string{head, `{"$set":{"messages":[` + setup + `]}}`, prompt, answered(`"ok"`, "["+result1+"]", "["+result2+"]"), notice, echo, done}
}

// resumed is what the program appends when somebody goes on: all messages once more,
// in other words, and what is new.
func resumed() []string {
	thought := `{"text":"**S** D","thought":true}`
	call := `{"functionCall":{"id":"c%d","name":"run","args":{"x":%d}}}`
	content := `[` + thought + `,{"text":"ok"},` + fmt.Sprintf(call, 1, 1) + `,` + fmt.Sprintf(call, 2, 2) + `]`
	again := strings.Replace(echo, `"u2"`, `"g1_response"`, 1)
	again = strings.Replace(again, "00:00:03", "09:00:00", 1)
	last := strings.Replace(done, `"done"`, `[{"text":"done"}]`, 1)
	list := strings.Join([]string{setup, prompt, answered(content, both, both), again, echo, last}, ",")
	return []string{`{"$set":{"messages":[` + list + `]}}`, `{"id":"u3","timestamp":"2026-01-01T09:00:01Z","type":"user","content":[{"text":"and then?"}]}`}
}

func recording(lines ...string) string { return strings.Join(lines, "\n") + "\n" }

func read(t *testing.T, text string) *transcript.Collected {
	t.Helper()
	return transcripttest.Collect(t, geminicli.Format(), transcript.FileOf("session-x.jsonl", []byte(text)))
}

// results returns the results of a conversation, by call.
func results(c *transcript.Collected) string {
	var list []string
	for _, r := range c.Conversations[0].Records {
		if r.Entry.Message == nil {
			continue
		}
		for _, b := range r.Entry.Message.Content {
			if b.ToolResult != nil {
				list = append(list, b.ToolResult.ToolUseID+"="+b.ToolResult.Content)
			}
		}
	}
	return strings.Join(list, " ")
}

func TestGeminiCLIOneResultForEachCall(t *testing.T) {
	t.Parallel()
	shared := answered(`"ok"`, both, both)
	bare := `{"id":"g1","timestamp":"2026-01-01T00:00:02Z","type":"gemini","content":[{"functionCall":{"id":"c1","name":"run","args":{}}}],"model":"m"}`
	alone := `{"id":"u2","timestamp":"2026-01-01T00:00:03Z","type":"user","content":[` + result1 + `]}`
	for name, test := range map[string]struct{ text, want string }{
		"in the call and after it":        {recording(created()...), "c1=ONE c2=TWO"},
		"both in each call":               {recording(head, prompt, shared, done), "c1=ONE c2=TWO"},
		"in the call after it was said":   {recording(head, prompt, bare, echo, answered(`"ok"`, both, both), done), "c1=ONE c2=TWO"},
		"after the call and not in it":    {recording(head, prompt, bare, alone, done), "c1=ONE"},
		"after it was resumed":            {recording(append(created(), resumed()...)...), "c1=ONE c2=TWO"},
		"the same one twice in the call":  {recording(head, prompt, answered(`"ok"`, "["+result1+","+result1+"]", "["+result2+"]"), done), "c1=ONE c2=TWO"},
		"a result that names another one": {recording(head, prompt, answered(`"ok"`, "["+result2+"]", "["+result2+"]"), done), "c1=TWO c2=TWO"},
	} {
		t.Run(name, func(t *testing.T) {
			c := read(t, test.text)
			if got := results(c); got != test.want {
				t.Errorf("the results are %s, want %s", got, test.want)
			}
			for _, r := range c.Conversations[0].Records {
				if m := r.Entry.Message; m != nil && m.Content[0].ToolResult != nil && m.Role != session.RoleTool {
					t.Errorf("a result is said by %s", m.Role)
				}
			}
		})
	}
}

// TestGeminiCLIResumeIsNoBranch: going on adds what is new, to what was imported before or in
// one go.
func TestGeminiCLIResumeIsNoBranch(t *testing.T) {
	t.Parallel()
	st, err := file.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	path := filepath.Join(t.TempDir(), "session-2026-01-01T00-00-aaaaaaaa.jsonl")
	im := &transcript.Importer{Store: st, Ledger: transcript.LedgerOf(st)}
	add := func(text string, want int) string {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := transcript.OpenFile(path)
		if err != nil {
			t.Fatal(err)
		}
		report, err := im.Import(t.Context(), geminicli.Format(), f)
		if err != nil || len(report.Sessions) != 1 || report.New() != want {
			t.Fatalf("the import is %+v, %v, want %d new entries", report, err, want)
		}
		return report.Sessions[0].ID
	}
	add(recording(created()...), 6)
	id := add(recording(append(created(), resumed()...)...), 1)
	s, err := session.Open(t.Context(), st, id, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c, err := s.Context(session.ContextOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range c.Entries {
		got = append(got, e.ID)
	}
	if want := "s u1 g1 g1:results g2 u3"; strings.Join(got, " ") != want {
		t.Errorf("the context is %s, want %s", got, want)
	}
	if u := c.Entries[2].Message.Usage; u == nil || c.Entries[2].Message.Model != "m" {
		t.Errorf("the answer is %+v", c.Entries[2].Message)
	}
}

// TestGeminiCLIResumeWithinTheMinute: the program then goes on in the same file. It begins the
// recording again, with an empty list, before it fills it.
func TestGeminiCLIResumeWithinTheMinute(t *testing.T) {
	t.Parallel()
	empty := `{"$set":{"messages":[` + setup + `]}}`
	bare := `{"id":"g1","timestamp":"2026-01-01T00:00:02Z","type":"gemini","content":[{"text":"ok"},{"functionCall":{"id":"c1","name":"run","args":{"x":1}}},{"functionCall":{"id":"c2","name":"run","args":{"x":2}}}],"model":"m"}`
	again := strings.Replace(echo, `"u2"`, `"g1_response"`, 1)
	exported := []string{head, prompt, answered(`"ok"`, "["+result1+"]", "["+result2+"]"), done}
	filled := `{"$set":{"messages":[` + strings.Join([]string{setup, prompt, bare, again, done}, ",") + `]}}`
	next := `{"id":"u3","timestamp":"2026-01-01T09:00:01Z","type":"user","content":[{"text":"and then?"}]}`
	for name, test := range map[string]struct{ text, want string }{
		"its own":   {recording(append(append(created(), head, empty), resumed()...)...), "s u1 g1 g1:results i1 g2 u3"},
		"an export": {recording(append(exported, head, empty, filled, next)...), "u1 g1 g1:results g2 u3"},
	} {
		t.Run(name, func(t *testing.T) {
			c := read(t, test.text)
			var ids []string
			for i, r := range c.Conversations[0].Records {
				ids = append(ids, r.ID)
				if i > 0 && r.Parent != c.Conversations[0].Records[i-1].ID {
					t.Errorf("%s follows %s", r.ID, r.Parent)
				}
			}
			if got := strings.Join(ids, " "); got != test.want {
				t.Errorf("the records are %s, want %s", got, test.want)
			}
			if got := results(c); got != "c1=ONE c2=TWO" {
				t.Errorf("the results are %s", got)
			}
		})
	}
}

// TestGeminiCLISetMessagesStillBranches: a turn that was given up, and one that says something
// else, are not the same.
func TestGeminiCLISetMessagesStillBranches(t *testing.T) {
	t.Parallel()
	given := recording(append(created(), `{"$set":{"messages":[`+setup+`,`+prompt+`]}}`)...)
	if leaf := read(t, given).Conversations[0].Leaf; leaf != "u1" {
		t.Errorf("after a turn was given up the leaf is %s", leaf)
	}
	other := strings.Replace(done, `"done"`, `"something else"`, 1)
	c := read(t, recording(append(created(), `{"$set":{"messages":[`+setup+`,`+prompt+`,`+answered(`"ok"`, both, both)+`,`+other+`]}}`)...))
	last := c.Conversations[0].Records[len(c.Conversations[0].Records)-1]
	if last.Entry.Message.Content[0].Text.Content != "something else" {
		t.Errorf("the last message is %+v", last.Entry.Message)
	}
}

// TestGeminiCLIRecordingWithoutAPrompt: each start leaves one, even under the id of a
// conversation that is resumed.
func TestGeminiCLIRecordingWithoutAPrompt(t *testing.T) {
	t.Parallel()
	if c := read(t, recording(head, `{"$set":{"messages":[`+setup+`]}}`, notice)); len(c.Conversations) != 0 {
		t.Errorf("%d conversations", len(c.Conversations))
	}
}
