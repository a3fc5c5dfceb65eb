package summary_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/agent/summary"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/digest"
	"github.com/coppice-dev/coppice/provider/offline"
	"github.com/coppice-dev/coppice/session"
)

// stops is an answer with a stop reason.
func stops(reason string, content ...session.Content) answer {
	return func(*digest.Task) (*session.MessageEntry, error) {
		return &session.MessageEntry{Content: content, StopReason: reason, Usage: &session.Usage{Input: 10, Output: 5}}, nil
	}
}

// Whatever is not a summary is an error; what it cost is reported, and nothing else is.
func TestAnswerThatIsNoSummaryIsAnError(t *testing.T) {
	t.Parallel()
	text := session.Text(goal)
	broken := errors.New("connection reset")
	for name, test := range map[string]struct {
		answer answer
		want   error
	}{
		"empty":            {says(""), summary.ErrUnusable},
		"white space":      {says(" \n\t"), summary.ErrUnusable},
		"only thoughts":    {stops("", session.Content{Type: session.ContentTypeThinking, Thinking: &session.ThinkingContent{Content: goal}}), summary.ErrUnusable},
		"thoughts as text": {says("<think>" + goal + "</think>\n"), summary.ErrUnusable},
		"an empty block":   {says("```markdown\n```"), summary.ErrUnusable},
		"a call":           {stops("", text, session.ToolUse("c", "bash", nil)), summary.ErrUnusable},
		"a call that ends": {stops(provider.StopEndTurn, text, session.ToolUse("c", "bash", nil)), summary.ErrUnusable},
		"cut off":          {stops(provider.StopMaxTokens, text), summary.ErrUnusable},
		"refused":          {stops(provider.StopRefusal, text), summary.ErrUnusable},
		"paused":           {stops(provider.StopPause, text), summary.ErrUnusable},
		"filtered":         {stops("content_filter", text), summary.ErrUnusable},
		"an apology":       {says("I'm sorry, but I can't help with that."), summary.ErrUnusable},
		"an error":         {says("Error: 503 Service Unavailable"), summary.ErrUnusable},
		"an answer":        {says("Sure, here is the parser:\n\n# parser.go\nfunc parse() {}"), summary.ErrUnusable},
		"too long":         {says(goal + strings.Repeat("word ", 6000)), summary.ErrUnusable},
		"no smaller":       {says(goal + strings.Repeat("word ", 2500)), summary.ErrNoGain},
		"an answer that broke off": {func(*digest.Task) (*session.MessageEntry, error) {
			return &session.MessageEntry{Content: []session.Content{text}, Usage: &session.Usage{Input: 10}}, broken
		}, broken},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := worked(t)
			sum, err := summary.Compaction(t.Context(), newModel(test.answer).Model(), s.plan(60), summary.Options{})
			if !errors.Is(err, test.want) {
				t.Fatalf("%v, want %v", err, test.want)
			}
			if sum.Text != "" || bills(sum) != 1 || sum.Requests != 1 {
				t.Errorf("text %q, %d costs, %d requests", sum.Text, bills(sum), sum.Requests)
			}
		})
	}
}

// A model that marks its answer as incomplete, but gives no error, has not written a
// summary either.
func TestPartialAnswerIsAnError(t *testing.T) {
	t.Parallel()
	s, _ := worked(t)
	half := &session.MessageEntry{Role: session.RoleAssistant, Content: []session.Content{session.Text(goal)}, StopReason: provider.StopEndTurn}
	for _, r := range []*provider.Response{{Message: half, Partial: true}, {}} {
		m := streamer{stream: func(yield func(provider.Event, error) bool) {
			yield(provider.Event{Type: provider.EventStop, Response: r}, nil)
		}}
		if sum, err := summary.Compaction(t.Context(), m, s.plan(60), summary.Options{}); !errors.Is(err, summary.ErrUnusable) || sum.Text != "" {
			t.Errorf("%q, %v", sum.Text, err)
		}
	}
}

// Nothing that a model answers is quoted at length in an error: it may end in a log.
func TestErrorQuotesOnlyTheBeginning(t *testing.T) {
	t.Parallel()
	s, _ := worked(t)
	_, err := summary.Compaction(t.Context(), writes(strings.Repeat("äöü ", 900)).Model(), s.plan(60), summary.Options{})
	if err == nil || len(err.Error()) > 300 {
		t.Errorf("%v", err)
	}
}

func TestErrorOfTheModelIsReturned(t *testing.T) {
	t.Parallel()
	s, _ := worked(t)
	m := newModel(fails(provider.ErrDenied))
	if sum, err := summary.Compaction(t.Context(), m.Model(), s.plan(60), summary.Options{}); !errors.Is(err, provider.ErrDenied) || sum.Text != "" || len(m.sent) != 1 {
		t.Errorf("%q, %v after %d requests", sum.Text, err, len(m.sent))
	}
	for _, kind := range []string{"unavailable", "broken", "limited"} {
		_, err := summary.Compaction(t.Context(), &offline.Model{}, s.plan(60), summary.Options{Instructions: "say half of it\nfail " + kind})
		if err == nil {
			t.Errorf("the built-in model did not fail as %s", kind)
		}
	}
}

// Some models put things around the summary.
func TestSummaryIsTakenOutOfItsWrapping(t *testing.T) {
	t.Parallel()
	const want = "## Goal\nTo be done.\n\n## Next steps\n- a"
	for _, text := range []string{
		want, "\n" + want + "\n", "```markdown\n" + want + "\n```", "```\n" + want + "\n```\n", "<think>Hm. ## Goal?</think>\n" + want,
		"Here is the summary:\n\n" + want, want + "\n\n## Files\nChanged:\n- a.go\n",
	} {
		s, _ := worked(t)
		sum, err := summary.Compaction(t.Context(), writes(text).Model(), s.plan(60), summary.Options{Files: func(*session.ToolUseContent) (read, changed []string) { return nil, nil }})
		if err != nil || sum.Text != want {
			t.Errorf("of %q: %q, %v", text, sum.Text, err)
		}
	}
	code := goal + "```\nx\n```"
	s, _ := worked(t)
	sum, err := summary.Compaction(t.Context(), writes(code).Model(), s.plan(60), summary.Options{})
	if err != nil || !strings.HasPrefix(sum.Text, code) {
		t.Errorf("a summary with code: %q, %v", sum.Text, err)
	}
	for _, heading := range []string{"**Goal**", "# GOAL", "### Key decisions:", "__Next steps__"} {
		if _, err := summary.Compaction(t.Context(), writes(heading+"\nText.").Model(), s.plan(60), summary.Options{}); err != nil {
			t.Errorf("heading %s: %v", heading, err)
		}
	}
}

func TestNothingToSummarise(t *testing.T) {
	t.Parallel()
	system := session.Entry{Type: session.TypeMessage, Message: &session.MessageEntry{Role: session.RoleSystem, Content: []session.Content{session.Text("x")}}}
	m := writes(goal)
	if _, err := summary.Branch(t.Context(), m.Model(), []session.Entry{system}, summary.Options{}); !errors.Is(err, summary.ErrNothing) || len(m.sent) > 0 {
		t.Errorf("%v after %d requests", err, len(m.sent))
	}
}

func TestWindowThatIsTooSmallIsAnErrorBeforeAnythingIsAsked(t *testing.T) {
	t.Parallel()
	s, _ := worked(t)
	m := writes(goal)
	m.Window = 800
	if _, err := summary.Compaction(t.Context(), m.Model(), s.plan(60), summary.Options{}); !errors.Is(err, session.ErrInvalid) || len(m.sent) > 0 {
		t.Errorf("%v after %d requests", err, len(m.sent))
	}
}
