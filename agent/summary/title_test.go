package summary_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/coppice-dev/coppice/agent/summary"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/digest"
	"github.com/coppice-dev/coppice/provider/offline"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/window"
)

func (s *story) path() []session.Entry {
	s.t.Helper()
	path, err := s.Forward("")
	if err != nil {
		s.t.Fatal(err)
	}
	return path
}

func TestTitleOfTheOfflineModelIsTheFirstRequest(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	s.reply("Hello!")
	s.user("\n  Warum ist der   Himmel blau?\nUnd das Meer?")
	s.reply("Wegen der Streuung.")
	got, err := summary.Title(t.Context(), &offline.Model{}, s.path(), summary.Options{})
	if err != nil || got.Text != "Warum ist der Himmel blau?" || bills(got) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	long := newStory(t)
	long.user(strings.Repeat("ärgerlich ", 30))
	got, err = summary.Title(t.Context(), &offline.Model{}, long.path(), summary.Options{})
	if n := utf8.RuneCountInString(got.Text); err != nil || n > digest.MaxTitle || n < 20 {
		t.Errorf("%q has %d characters, %v", got.Text, n, err)
	}
}

// What programs say in the user's name is not what the conversation is about.
func TestInjectedMessagesAreNotTheUsers(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	if err := s.Append(session.Entry{Type: session.TypeMessage, Message: &session.MessageEntry{
		Role: session.RoleUser, Content: []session.Content{session.Text("<environment>linux</environment>")}, Metadata: map[string]any{"injected": true},
	}}); err != nil {
		t.Fatal(err)
	}
	s.user("Blue sky")
	for _, write := range []func() (*summary.Summary, error){
		func() (*summary.Summary, error) {
			return summary.Title(t.Context(), &offline.Model{}, s.path(), summary.Options{})
		},
		func() (*summary.Summary, error) {
			return summary.Branch(t.Context(), &offline.Model{}, s.path(), summary.Options{})
		},
	} {
		if got, err := write(); err != nil || strings.TrimPrefix(got.Text, "## Goal\n") != "Blue sky" {
			t.Errorf("%q, %v", got.Text, err)
		}
	}
	m := writes(goal)
	if _, err := summary.Branch(t.Context(), m.Model(), s.path(), summary.Options{}); err != nil || m.tasks[0].Turns[0].Who != digest.Program {
		t.Errorf("%v: %+v", err, m.tasks)
	}
}

func TestTitleIsOneShortLine(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	s.user("hi")
	for answer, want := range map[string]string{
		"Why the sky is blue":                         "Why the sky is blue",
		"\n\"Why the sky is blue.\"\n":                "Why the sky is blue",
		"**Title:** “Blue sky”":                       "Blue sky",
		"# Title: Blue   sky\n\nIt is about the sky.": "Blue sky",
		"«Le ciel bleu»":                              "Le ciel bleu",
		"「青い空」":                                       "青い空",
		"<think>Hm.</think>\nBlue sky":                "Blue sky",
		"Don't panic":                                 "Don't panic",
		"Fix: parser":                                 "Fix: parser",
		strings.Repeat("word ", 20):                   strings.TrimSpace(strings.Repeat("word ", 11)) + "…",
		strings.Repeat("空", 70):                       strings.Repeat("空", 59) + "…",
	} {
		got, err := summary.Title(t.Context(), writes(answer).Model(), s.path(), summary.Options{})
		if err != nil || got.Text != want {
			t.Errorf("of %q: %q, %v; want %q", answer, got.Text, err, want)
		}
	}
	for name, a := range map[string]answer{
		"empty": says(" "), "only quotes": says(`""`), "an answer": says(strings.Repeat("Hello, I am a model. ", 20)),
		"cut off": stops(provider.StopMaxTokens, session.Text("Blue")), "a call": stops("", session.ToolUse("c", "x", nil)),
	} {
		got, err := summary.Title(t.Context(), newModel(a).Model(), s.path(), summary.Options{})
		if !errors.Is(err, summary.ErrUnusable) || got.Text != "" || bills(got) != 1 {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func TestTitleOfNothing(t *testing.T) {
	t.Parallel()
	m := writes("x")
	if _, err := summary.Title(t.Context(), m.Model(), nil, summary.Options{}); !errors.Is(err, summary.ErrNothing) || len(m.sent) > 0 {
		t.Errorf("%v after %d requests", err, len(m.sent))
	}
}

// A title costs little, however long the conversation is, and it knows how it went on.
func TestTitleReadsTheBeginningAndTheEnd(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	for i := range 50 {
		s.user(fmt.Sprintf("MARK-%d. ", i) + strings.Repeat("words ", 1000))
		s.call("read", "f", "RESULT")
	}
	m := writes("A title")
	if _, err := summary.Title(t.Context(), m.Model(), s.path(), summary.Options{}); err != nil {
		t.Fatal(err)
	}
	text := m.everything()
	for want, there := range map[string]bool{"MARK-0.": true, "MARK-49.": true, "MARK-25.": false, "RESULT": false} {
		if strings.Contains(text, want) != there {
			t.Errorf("%s in the request: %v", want, !there)
		}
	}
	if len(text) > 8000 {
		t.Errorf("the request has %d bytes", len(text))
	}
	small := writes("A title")
	small.Window = 1200
	if _, err := summary.Title(t.Context(), small.Model(), s.path(), summary.Options{}); err != nil {
		t.Fatalf("in a small window: %v", err)
	}
	r := small.sent[0]
	if n := size(window.Estimate("test", "m"), r) + r.MaxTokens; n > small.Window || !strings.Contains(small.everything(), "MARK-0.") {
		t.Errorf("%d tokens of %d", n, small.Window)
	}
}

// After a compaction, the summary says what the conversation is about.
func TestTitleOfACompactedConversation(t *testing.T) {
	t.Parallel()
	s, last := worked(t)
	if _, err := s.AppendCompaction("## Goal\nFix the parser", last, 0); err != nil {
		t.Fatal(err)
	}
	entries, err := s.GetContext()
	if err != nil {
		t.Fatal(err)
	}
	got, err := summary.Title(t.Context(), &offline.Model{}, entries[:2], summary.Options{})
	if err != nil || got.Text != "Fix the parser" {
		t.Errorf("%q, %v", got.Text, err)
	}
}
