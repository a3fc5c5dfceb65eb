package index_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/session"
)

func TestTitlesOfPrompts(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, want string
		said       []string
	}{
		{"the first line that says something", "Fix it", []string{"\n  Fix   it \nnow"}},
		{"the first prompt", "one", []string{"one", "two"}},
		{"a command before a prompt", "read the theme", []string{"/mode", "/model gpt", "read the theme", "more"}},
		{"only commands", "/mode", []string{"/mode", "/clear"}},
		{"a path is no command", "/etc/hosts is wrong", []string{"/etc/hosts is wrong", "well?"}},
		{"a directory is no command", "/tmp is full", []string{"/tmp is full", "well?"}},
		{"a reminder before a prompt", "List files", []string{"<system-reminder>\nBe safe.\n</system-reminder>\n\nList files"}},
		{"two additions", "go", []string{"<environment_context>\nx</environment_context>\n<system-reminder>y</system-reminder> go"}},
		{"only a reminder", "then this", []string{"<system-reminder>Be safe.</system-reminder>", "then this"}},
		{"a reminder without an end", "then this", []string{"<system-reminder>Be safe.", "then this"}},
		{"the user's own markup", "<div>why is this red?</div>", []string{"<div>why is this red?</div>"}},
		{"nothing", "", []string{"", " \n"}},
		{"control characters are marked", "a\uFFFD[31mb\uFFFDc d", []string{"a\x1b[31mb\x07c\td"}},
		{"and those that turn text round", "a\uFFFDb", []string{"a\u202eb"}},
		{"a command that a program wrote down", "then this", []string{"<command-name>/clear</command-name>\n<command-message>clear</command-message>", "then this"}},
		{"only such a command", "/review", []string{"<command-message>review</command-message>\n<command-name>/review</command-name>"}},
		{"what a command printed", "then this", []string{"<local-command-stdout>Set model</local-command-stdout>", "then this"}},
		{"an interruption", "then this", []string{"[Request interrupted by user for tool use]", "then this"}},
		{"what a program wraps around a prompt", "Why red?", []string{"<user_query>\nWhy red?\n</user_query>"}},
		{"what an editor puts before a prompt", "fix it", []string{
			"# Context from my IDE setup:\n\n## Open tabs:\n- a.go\n\n## My request for Codex:\nfix it\n",
		}},
		{"instructions before a prompt", "go", []string{"# AGENTS.md instructions for /p\n\n<INSTRUCTIONS>\n# Rules\n</INSTRUCTIONS>\ngo"}},
		{"permissions before a prompt", "go", []string{"<permissions instructions>x</permissions instructions>go"}},
		{"an element nobody knows", "go", []string{"<open_tabs count=\"2\">a.go</open_tabs> go"}},
		{"an element that is all there is", "<my-button>Save</my-button>", []string{"<my-button>Save</my-button>"}},
		{"a heading", "Fix any errors", []string{"# Fix any errors\nbelow"}},
		{"an introduction to a heading", "Retry webhooks", []string{"Implement the following plan:\n\n# Retry webhooks\n\nmore"}},
		{"an introduction to a list", "Fix these: the login", []string{"Fix these:\n\n- the login\n- the logout"}},
		{"an introduction to nothing", "Implement:", []string{"Implement:\n"}},
		{"code before words", "why?", []string{"---\nwhy?"}},
		{"only signs", "???", []string{"???"}},
		{"a command with a task", "/review the last commit", []string{"/review the last commit", "thanks"}},
		{"a command in a script without spaces", "/fix 壊れたログイン", []string{"/fix 壊れたログイン", "thanks"}},
		{"a long line", strings.Repeat("long ", 100) + "line", []string{strings.Repeat("long ", 100) + "line\nmore"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got index.Title
			for _, text := range test.said {
				e := session.Entry{Type: session.TypeMessage, Message: &session.MessageEntry{
					Role: session.RoleUser, Content: []session.Content{session.Text(text)},
				}}
				got = index.BetterTitle(got, index.TitleIn(&e))
			}
			if got.Text != test.want {
				t.Errorf("the title is %q, want %q", got.Text, test.want)
			}
		})
	}
}

// Sessions in which no user says anything are called by what comes closest.
func TestTitlesWithoutAPrompt(t *testing.T) {
	t.Parallel()
	message := func(role string, content ...session.Content) session.Entry {
		return session.Message(role, content...)
	}
	injected := func(text string) session.Entry {
		e := message(session.RoleUser, session.Text(text))
		e.Message.Metadata = map[string]any{"injected": "program"}
		return e
	}
	call := message(session.RoleAssistant, session.ToolUse("c", "get_weather", map[string]any{"city": "Paris"}))
	result := message(session.RoleTool, session.ToolResult("c", "sunny", false))
	reply := message(session.RoleAssistant, session.Text("\n## Paris is sunny.\nVery."))
	system := message(session.RoleSystem, session.Text("Be brief."))
	for _, test := range []struct {
		name, want string
		entries    []session.Entry
	}{
		{"a reply", "Paris is sunny.", []session.Entry{system, call, result, reply, injected("Stop hook feedback: go on")}},
		{"a call", "get_weather Paris", []session.Entry{system, call, result}},
		{"a call with something in it", "exec git status", []session.Entry{message(session.RoleAssistant, session.ToolUse("c1", "exec", map[string]any{
			"env": "", "cmd": "git status\n", "dir": "/tmp", "time": 5,
		}))}},
		{"a command line", "aider --lint", []session.Entry{message(session.RoleSystem, session.Text("/home/ada/.venv/bin/aider --lint\nAider v0.47"))}},
		{"an empty shell command", "Paris is sunny.", []session.Entry{injected("<bash-input></bash-input>"), reply}},
		{"only a system prompt", "Be brief.", []session.Entry{system}},
		{"a program's words", "Search for it", []session.Entry{system, injected("Search for it")}},
		{"only a result", "", []session.Entry{result}},
		{"the command that started it", "/init", []session.Entry{
			injected("<command-name>/clear</command-name>"),
			injected("<command-message>init is running</command-message>\n<command-name>/init</command-name>"),
			injected("Please analyze this codebase"), reply,
		}},
		{"only an errand", "Paris is sunny.", []session.Entry{injected("<command-name>/clear</command-name>"), reply}},
		{"what a command was asked to do", "/fix the broken login", []session.Entry{
			injected("<command-message>fix</command-message>\n<command-name>/fix</command-name>\n<command-args>the broken login</command-args>"),
			message(session.RoleUser, session.Text("thanks")),
		}},
		{"a shell command", "! git status", []session.Entry{
			injected("<bash-input>git status</bash-input>"), injected("<bash-stdout>clean</bash-stdout><bash-stderr></bash-stderr>"), reply,
		}},
		{"a prompt that comes last", "hello", []session.Entry{
			system, call, injected("<command-name>/init</command-name>"), reply, message(session.RoleUser, session.Text("hello")),
		}},
		{"no message", "", []session.Entry{{Compaction: &session.CompactionEntry{Summary: "hello"}}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got index.Title
			for i := range test.entries {
				got = index.BetterTitle(got, index.TitleIn(&test.entries[i]))
			}
			if got.Text != test.want {
				t.Errorf("the title is %q, want %q", got.Text, test.want)
			}
		})
	}
}

// A prompt that is made of additions must not cost the square of its length: every
// message that is indexed passes here.
func TestTitleOfAdditionsOnly(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		strings.Repeat("<task></task>", 800_000),
		strings.Repeat("<task>", 800_000) + strings.Repeat("</task>", 800_000),
		strings.Repeat("<system-reminder></system-reminder>", 300_000),
	} {
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			e := session.Message(session.RoleUser, session.Text(text))
			index.TitleIn(&e)
		}()
		select {
		case <-ended:
		case <-time.After(time.Minute): // the square would take half an hour
			t.Fatalf("%.20q… takes too long", text)
		}
	}
}

// A prompt that repeats the id of an earlier entry does not count, so it must not keep
// the next one from being the title.
func TestTitleIsOfAnEntryThatCounts(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	lines := `{"type":"session","id":"s","version":1,"timestamp":"2026-03-14T12:00:00Z"}
{"type":"message","id":"a","parent_id":null,"timestamp":"2026-03-14T12:00:01Z","message":{"role":"assistant","content":[{"type":"text","text":{"content":"a greeting"}}]}}
{"type":"message","id":"a","parent_id":null,"timestamp":"2026-03-14T12:00:02Z","message":{"role":"user","content":[{"type":"text","text":{"content":"a repetition"}}]}}
{"type":"message","id":"b","parent_id":"a","timestamp":"2026-03-14T12:00:03Z","message":{"role":"user","content":[{"type":"text","text":{"content":"the prompt"}}]}}
{"type":"message","id":"c","parent_id":"b","timestamp":"2026-03-14T12:00:04Z","message":{"role":"user","content":[{"type":"text","text":{"content":"another prompt"}}]}}
`
	if err := os.WriteFile(filepath.Join(f.dir, "s.jsonl"), []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	s := must[index.Session](t)(f.open(t).Get(t.Context(), "s"))
	if s.Title != "the prompt" {
		t.Errorf("the title is %q", s.Title)
	}
}
