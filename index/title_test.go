package index_test

import (
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/session"
)

func TestTitlesOfPrompts(t *testing.T) {
	for _, test := range []struct {
		name, want string
		said       []string
	}{
		{"the first line that says something", "Fix it", []string{"\n  Fix   it \nnow"}},
		{"the first prompt", "one", []string{"one", "two"}},
		{"a command before a prompt", "read the theme", []string{"/mode", "/model gpt", "read the theme", "more"}},
		{"only commands", "/mode", []string{"/mode", "/clear"}},
		{"a path is no command", "/etc/hosts is wrong", []string{"/etc/hosts is wrong", "well?"}},
		{"a reminder before a prompt", "List files", []string{"<system-reminder>\nBe safe.\n</system-reminder>\n\nList files"}},
		{"two additions", "go", []string{"<environment_context>\nx</environment_context>\n<system-reminder>y</system-reminder> go"}},
		{"only a reminder", "then this", []string{"<system-reminder>Be safe.</system-reminder>", "then this"}},
		{"a reminder without an end", "then this", []string{"<system-reminder>Be safe.", "then this"}},
		{"the user's own markup", "<div>why is this red?</div>", []string{"<div>why is this red?</div>"}},
		{"nothing", "", []string{"", " \n"}},
		{"a command that a program wrote down", "then this", []string{"<command-name>/clear</command-name>\n<command-message>clear</command-message>", "then this"}},
		{"only such a command", "/review", []string{"<command-message>review</command-message>\n<command-name>/review</command-name>"}},
		{"what a command printed", "then this", []string{"<local-command-stdout>Set model</local-command-stdout>", "then this"}},
		{"an interruption", "then this", []string{"[Request interrupted by user for tool use]", "then this"}},
		{"a long line", strings.Repeat("long ", 100) + "line", []string{strings.Repeat("long ", 100) + "line\nmore"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := ""
			for _, text := range test.said {
				e := session.Entry{Type: session.TypeMessage, Message: &session.MessageEntry{
					Role: session.RoleUser, Content: []session.Content{session.Text(text)},
				}}
				got = index.BetterTitle(got, index.TitleIn(&e))
			}
			if got != test.want {
				t.Errorf("the title is %q, want %q", got, test.want)
			}
		})
	}
}

func TestOnlyTheUserGivesATitle(t *testing.T) {
	said := []session.Content{session.Text("hello")}
	for name, e := range map[string]session.Entry{
		"an assistant": {Message: &session.MessageEntry{Role: session.RoleAssistant, Content: said}},
		"a program": {Message: &session.MessageEntry{
			Role: session.RoleUser, Content: said, Metadata: map[string]any{"injected": "hook"},
		}},
		"no message": {Compaction: &session.CompactionEntry{Summary: "hello"}},
	} {
		if got := index.TitleIn(&e); got != "" {
			t.Errorf("%s gave the title %q", name, got)
		}
	}
}
