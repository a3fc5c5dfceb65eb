package chat

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/render/terminal"
	"github.com/coppice-dev/coppice/session"
)

// heard returns what a view makes of events, without colours.
func heard(events ...agent.Event) string {
	v, s := newView(), terminal.Style{Color: true, Width: 60}
	var rows []string
	for _, e := range events {
		if e.Err != nil {
			e.Error = e.Err.Error()
		}
		rows = append(rows, v.hear(e, s)...)
		_ = v.live(s)
	}
	return ansi.Strip(strings.Join(append(rows, v.end(s)...), "\n"))
}

func text(block int, s string) agent.Event {
	return agent.Event{Type: agent.MessageUpdate, Update: &provider.Event{Type: provider.EventText, Block: block, Text: s}}
}

func ended(blocks ...string) agent.Event {
	m := &session.MessageEntry{Role: session.RoleAssistant}
	for _, b := range blocks {
		m.Content = append(m.Content, session.Text(b))
	}
	return agent.Event{Type: agent.MessageEnd, Entry: &session.Entry{Type: session.TypeMessage, Message: m}}
}

// Whatever a slow terminal missed, the message in the log has it.
func TestMissedTextComesFromTheLog(t *testing.T) {
	start := agent.Event{Type: agent.MessageStart}
	missed := agent.Event{Type: agent.Missed, Missed: 3}
	for name, c := range map[string]struct {
		events []agent.Event
		want   string
	}{
		"all heard":       {[]agent.Event{start, text(0, "one "), text(0, "two"), ended("one two")}, "\n  one two"},
		"two blocks":      {[]agent.Event{start, text(0, "one"), text(1, "two"), ended("one", "two")}, "\n  one\n  two"},
		"the end missed":  {[]agent.Event{start, text(0, "one "), missed, ended("one two")}, "\n  one two"},
		"all missed":      {[]agent.Event{missed, ended("one two")}, "\n  one two"},
		"the middle gone": {[]agent.Event{start, text(0, "one "), missed, text(0, "three"), ended("one two three")}, "\n  one three\n  one two three"},
		"no text":         {[]agent.Event{start, ended()}, ""},
	} {
		if got := heard(c.events...); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestWhatGoesWrongIsShown(t *testing.T) {
	bad := errors.New("the garden gate is locked, and nobody has the key to it any more")
	call := &agent.Call{ID: "1", Name: "bash", Input: json.RawMessage(`{"command":"sleep"}`)}
	other := &agent.Call{ID: "2", Name: "read", Input: json.RawMessage(`{"path":"a"}`)}
	got := heard(
		text(0, "half"), agent.Event{Type: agent.MessageDropped, Err: bad},
		agent.Event{Type: agent.Retry, Retry: &provider.Retry{Attempt: 2, After: 4 * time.Second, Reason: "rate limited"}},
		agent.Event{Type: agent.MessageUpdate, Update: &provider.Event{Type: provider.EventRetry, Retry: &provider.Retry{Attempt: 3, Reason: "overloaded"}}},
		agent.Event{Type: agent.Error, Err: bad},
		agent.Event{Type: agent.CompactionStart}, agent.Event{Type: agent.CompactionEnd, Err: bad},
		agent.Event{Type: agent.CompactionEnd, Compacted: &agent.Compacted{TokensBefore: 30_000, TokensAfter: 8000}},
		agent.Event{Type: agent.MessageUpdate, Update: &provider.Event{Type: provider.EventCallStart, Call: &session.ToolUseContent{ID: "1", Name: "bash"}}},
		agent.Event{Type: agent.ToolStart, Call: call}, agent.Event{Type: agent.ToolStart, Call: other},
		agent.Event{Type: agent.ToolEnd, Call: call, Result: &agent.Result{Text: "1\n2\n3\n4\n5\n6\n7\n[exit code 3]", IsError: true}},
		agent.Event{Type: agent.ToolEnd, Call: other, Result: &agent.Result{Parts: []session.Content{session.Text("beans")}}},
	)
	for _, want := range []string{
		"that attempt failed and is not kept", "rate limited; trying again in 4 s", "overloaded; trying again (attempt 3)\n",
		"✗ the garden gate", "could not be compacted", "compacted from 30,000 to 8,000 tokens",
		"→ bash sleep\n  → read a\n  ← bash sleep\n  │ 1\n  │ … 3 more lines\n  │ 5\n  │ 6\n  │ 7\n  │ [exit code 3]\n  ← read a\n  │ beans",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
	if strings.Contains(got, "half") {
		t.Errorf("what was dropped is kept:\n%s", got)
	}
	for line := range strings.Lines(got) {
		if n := ansi.StringWidth(strings.TrimSuffix(line, "\n")); n > 60 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

func TestLongThoughtsAreShort(t *testing.T) {
	thought := strings.Repeat("I wonder about beans. ", 40)
	s := terminal.Style{Width: 60}
	for _, growing := range []bool{true, false} {
		rows := thoughtRows(thought, s, growing)
		if len(rows) != 3 {
			t.Errorf("growing %v: %d rows", growing, len(rows))
		}
	}
	if rows := thoughtRows(thought, s, false); !strings.HasPrefix(rows[0], "  ┊ I wonder") || !strings.HasSuffix(rows[2], "…") {
		t.Errorf("%q", rows)
	}
}

func TestARequestThatFailsAgainForTheSameReasonIsOneRow(t *testing.T) {
	retry := func(attempt int, why string) agent.Event {
		return agent.Event{Type: agent.Retry, Retry: &provider.Retry{Attempt: attempt, After: 2 * time.Second, Reason: why}}
	}
	got := heard(retry(2, "it is down"), retry(3, "it is down"), retry(4, "it is slow"))
	if strings.Count(got, "it is down") != 1 || strings.Count(got, "it is slow") != 1 {
		t.Errorf("%q", got)
	}
	if got = heard(text(0, "one\n\n"), retry(2, "it is down"), text(0, "two\n\n"), retry(3, "it is down"), text(0, "three")); strings.Count(got, "↻ it is down") != 2 {
		t.Errorf("nothing separates the attempts: %q", got)
	}
	got = heard(agent.Event{Type: agent.MessageStart}, agent.Event{
		Type: agent.MessageUpdate, Update: &provider.Event{Type: provider.EventThinking, Text: "hm"},
	}, agent.Event{Type: agent.MessageDropped, Err: context.Canceled})
	if strings.Contains(got, "canceled") {
		t.Errorf("%q", got)
	}
}
