package summary_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/agent/summary"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/digest"
	"github.com/coppice-dev/coppice/provider/offline"
	"github.com/coppice-dev/coppice/session"
)

// worked is a session with some work and a last request.
func worked(t *testing.T) (s *story, last string) {
	t.Helper()
	s = newStory(t)
	s.add(session.RoleSystem, session.Text("You are careful. SYSTEM-TEXT"))
	s.user("Fix the parser, please.\nIt loses tokens.")
	s.call("read", "parser.go", strings.Repeat("line of code\n", 300)+"THE-END")
	s.call("edit", "parser.go", "done")
	s.call("read", "parser.go", "package parser") // to see whether it was changed
	s.call("read", "lexer.go", "package lexer")
	s.add(session.RoleAssistant,
		session.Content{Type: session.ContentTypeThinking, Thinking: &session.ThinkingContent{Content: "SECRET-THOUGHT"}},
		session.Text("I have fixed it."+strings.Repeat(" Words.", 300)))
	return s, s.user("Now the lexer.")
}

func TestOfflineModelWritesACompaction(t *testing.T) {
	t.Parallel()
	s, last := worked(t)
	plan := s.plan(60)
	if plan.FirstKept != last {
		t.Fatalf("kept from %s", plan.FirstKept)
	}
	sum, err := summary.Compaction(t.Context(), &offline.Model{}, plan, summary.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Fix the parser, please.", "I have fixed it.", "- parser.go", "- lexer.go"} {
		if !strings.Contains(sum.Text, want) {
			t.Errorf("the summary lacks %q:\n%s", want, sum.Text)
		}
	}
	id, err := sum.Append(s.Session, plan)
	if err != nil {
		t.Fatal(err)
	}
	c, err := s.Context(session.ContextOptions{})
	if err != nil || c.Compaction != id || len(c.Entries) != 3 {
		t.Fatalf("context of %d entries with compaction %q, want %q: %v", len(c.Entries), c.Compaction, id, err)
	}
	want := summary.Files{Read: []string{"lexer.go"}, Changed: []string{"parser.go"}}
	if diff := cmp.Diff(want, summary.FilesOf(&c.Entries[1])); diff != "" {
		t.Errorf("files of the compaction (-want +got):\n%s", diff)
	}
	if spent, err := session.SpentIn(s.Session); err != nil || spent.Reported == 0 {
		t.Errorf("the cost is not in the log: %+v, %v", spent, err)
	}
	if _, err := s.Undo(); err != nil {
		t.Errorf("undo: %v", err)
	}
}

func TestRequestIsTextWithoutSystemThinkingAndLongResults(t *testing.T) {
	t.Parallel()
	s, _ := worked(t)
	m := writes(goal)
	if _, err := summary.Compaction(t.Context(), m.Model(), s.plan(60), summary.Options{Instructions: "Mind the tests.", MaxTokens: 800}); err != nil {
		t.Fatal(err)
	}
	r, task := m.sent[0], m.tasks[0]
	if len(m.sent) != 1 || len(r.Entries) != 2 || len(r.Tools) != 0 || !r.NoCache {
		t.Fatalf("%d requests, the first with %d entries and %d tools", len(m.sent), len(r.Entries), len(r.Tools))
	}
	if r.MaxTokens < 800 || task.MaxTokens > 800 || task.MaxTokens == 0 || task.Instructions != "Mind the tests." {
		t.Errorf("limit %d, task %+v", r.MaxTokens, task)
	}
	text := m.everything()
	for _, no := range []string{"SYSTEM-TEXT", "SECRET-THOUGHT", "Now the lexer."} {
		if strings.Contains(text, no) {
			t.Errorf("the request has %q", no)
		}
	}
	for _, want := range []string{"Fix the parser", "THE-END", "left out", "[Call edit]", "[Result edit]", `{"path":"parser.go"}`} {
		if !strings.Contains(text, want) {
			t.Errorf("the request lacks %q", want)
		}
	}
	if len(text) > 8000 {
		t.Errorf("the request has %d bytes: the result was not shortened", len(text))
	}
}

// What is not text is at least named.
func TestEveryKindOfContentIsMentioned(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	data := &session.Source{Type: "base64", MediaType: "application/pdf", Data: "QUJD"}
	s.add(session.RoleUser, session.Image("image/png", "QUJD"))
	s.add(session.RoleAssistant, session.Content{Type: session.ContentTypeThinking, Thinking: &session.ThinkingContent{Content: "hm"}})
	s.add(session.RoleUser,
		session.Content{Type: session.ContentTypeFile, File: &session.FileContent{Name: "report.pdf", Source: data}},
		session.Content{Type: session.ContentTypeAudio, Audio: &session.AudioContent{Source: &session.Source{Type: "base64", MediaType: "audio/wav", Data: "QUJD"}}},
		session.Content{Type: "novel", Raw: []byte(`{"type":"novel"}`)})
	s.add(session.RoleAssistant, session.ToolUse("c", "shoot", map[string]any{}))
	s.add(session.RoleTool, session.Content{Type: session.ContentTypeToolResult, ToolResult: &session.ToolResultContent{ToolUseID: "c", IsError: true, Parts: []session.Content{session.Text("broken"), session.Image("image/gif", "QUJD")}}})
	path, err := s.Forward("")
	if err != nil {
		t.Fatal(err)
	}
	m := writes(goal)
	if _, err := summary.Branch(t.Context(), m.Model(), path, summary.Options{}); err != nil {
		t.Fatal(err)
	}
	want := []digest.Turn{
		{Who: digest.User, Text: "[image, image/png]"},
		{Who: digest.Assistant, Text: "[no text]"},
		{Who: digest.User, Text: "[file report.pdf, application/pdf]\n[audio, audio/wav]\n[novel]"},
		{Who: digest.Call, Name: "shoot", Text: "{}"},
		{Who: digest.Failure, Name: "shoot", Text: "broken\n[image, image/gif]"},
	}
	if diff := cmp.Diff(want, m.tasks[0].Turns); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestLongArgumentsAreShortened(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	s.user("x")
	s.call("write", "FIRST "+strings.Repeat("long ", 5000)+" LAST", "ok")
	m := writes(goal)
	if _, err := summary.Branch(t.Context(), m.Model(), s.path(), summary.Options{}); err != nil {
		t.Fatal(err)
	}
	if text := m.tasks[0].Turns[1].Text; len(text) > 3000 || !strings.Contains(text, "FIRST") || !strings.Contains(text, "LAST") || !strings.Contains(text, "left out") {
		t.Errorf("the arguments have %d bytes", len(text))
	}
}

func TestPreviousSummaryIsUpdated(t *testing.T) {
	t.Parallel()
	s, _ := worked(t)
	plan := s.plan(60)
	first, err := summary.Compaction(t.Context(), writes(goal+"Early fact: 42.").Model(), plan, summary.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := first.Append(s.Session, plan); err != nil {
		t.Fatal(err)
	}
	s.call("write", "lexer.go", "ok")
	s.call("read", "ast.go", "package ast")
	s.reply(strings.Repeat("The lexer works. ", 100))
	s.user("Thanks. Now the docs.")
	m := writes(goal + "Early fact: 42. Lexer done.")
	second, err := summary.Compaction(t.Context(), m.Model(), s.plan(60), summary.Options{})
	if err != nil {
		t.Fatal(err)
	}
	task := m.tasks[0]
	if task.Previous != goal+"Early fact: 42." {
		t.Errorf("the previous summary is %q, want what the model wrote, without the files", task.Previous)
	}
	if strings.Contains(digest.Text(task.Turns), "Early fact") {
		t.Error("the previous summary is among the turns")
	}
	want := summary.Files{Read: []string{"ast.go"}, Changed: []string{"parser.go", "lexer.go"}}
	if diff := cmp.Diff(want, second.Files); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if at := strings.Index(second.Text, "## Files"); strings.Count(second.Text, "parser.go") != 1 || at < strings.Index(second.Text, "Lexer done.") {
		t.Errorf("the files are not once at the end:\n%s", second.Text)
	}
}

// A summary that a person wrote keeps its own section about files.
func TestSummaryOfAPersonStaysWhole(t *testing.T) {
	t.Parallel()
	s, last := worked(t)
	const text = "We work on the parser.\n\n## Files\nAll of them matter."
	if _, err := s.AppendCompaction(text, last, 0); err != nil {
		t.Fatal(err)
	}
	s.reply(strings.Repeat("Yes. ", 200))
	s.user("Go on.")
	m := writes(goal)
	if _, err := summary.Compaction(t.Context(), m.Model(), s.plan(60), summary.Options{}); err != nil {
		t.Fatal(err)
	}
	if m.tasks[0].Previous != text {
		t.Errorf("previous %q", m.tasks[0].Previous)
	}
}

func TestPreviousSummaryThatIsTooLongIsReadInPieces(t *testing.T) {
	t.Parallel()
	s, last := worked(t)
	if _, err := s.AppendCompaction("FIRST-WORDS "+strings.Repeat("many words and more ", 800)+" LAST-WORDS", last, 0); err != nil {
		t.Fatal(err)
	}
	s.reply("SPOKEN " + strings.Repeat("Yes. ", 200))
	s.user("Go on.")
	m := writes(goal)
	m.Window = 4000
	if _, err := summary.Compaction(t.Context(), m.Model(), s.plan(60), summary.Options{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"FIRST-WORDS", "LAST-WORDS", "left out", "SPOKEN"} {
		if !strings.Contains(m.everything(), want) {
			t.Errorf("no request has %q", want)
		}
	}
}

// When the cut splits a turn, the model learns what the turn is about.
func TestRequestOfASplitTurnIsShownAsCurrent(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	s.user("Rewrite all files. REQUEST")
	for range 20 {
		s.call("edit", "a.go", strings.Repeat("ok ", 50))
	}
	plan := s.plan(300)
	if plan.Kind != session.CutStep {
		t.Fatalf("the plan cuts at a %v", plan.Kind)
	}
	m := writes(goal)
	if _, err := summary.Compaction(t.Context(), m.Model(), plan, summary.Options{}); err != nil {
		t.Fatal(err)
	}
	if m.tasks[0].Current != "Rewrite all files. REQUEST" || strings.Contains(digest.Text(m.tasks[0].Turns), "REQUEST") {
		t.Errorf("the task is %+v", m.tasks[0])
	}
}

func TestEventsOfTheModelArePassedOn(t *testing.T) {
	t.Parallel()
	s, _ := worked(t)
	var events []provider.EventType
	_, err := summary.Compaction(t.Context(), &offline.Model{}, s.plan(60), summary.Options{Emit: func(e provider.Event) { events = append(events, e.Type) }})
	if err != nil || !slices.Contains(events, provider.EventText) || !slices.Contains(events, provider.EventStop) {
		t.Errorf("events %v, %v", events, err)
	}
}

// streamer is a model that streams whatever a test wants.
type streamer struct {
	provider.Func
	stream func(yield func(provider.Event, error) bool)
}

func (s streamer) Stream(context.Context, *provider.Request) iter.Seq2[provider.Event, error] {
	return s.stream
}

// A model that does not notice that it is no longer wanted does not keep the caller
// waiting, and what it says later is not passed on.
func TestCancelledSummaryReturnsAtOnce(t *testing.T) {
	t.Parallel()
	s, _ := worked(t)
	asked, release, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	deaf := streamer{stream: func(yield func(provider.Event, error) bool) {
		defer close(done)
		yield(provider.Event{Type: provider.EventText, Text: "in time"}, nil)
		close(asked)
		<-release
		yield(provider.Event{Type: provider.EventText, Text: "too late"}, nil)
	}}
	because := errors.New("the user pressed Ctrl-C")
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		<-asked
		cancel(because)
	}()
	var heard []string
	sum, err := summary.Compaction(ctx, deaf, s.plan(60), summary.Options{Emit: func(e provider.Event) { heard = append(heard, e.Text) }})
	close(release)
	<-done
	if !errors.Is(err, because) || sum.Text != "" || !slices.Equal(heard, []string{"in time"}) {
		t.Errorf("%q, %v after %q", sum.Text, err, heard)
	}
	if _, err := summary.Title(ctx, deaf, s.plan(60).Summarise, summary.Options{}); !errors.Is(err, because) {
		t.Errorf("after the end: %v", err)
	}
}
