package agent_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/providertest"
	"github.com/coppice-dev/coppice/session"
)

// agreeable is a model that says one word.
func agreeable(*providertest.Request) providertest.Answer {
	return providertest.Answer{Message: session.MessageEntry{Role: session.RoleAssistant, StopReason: provider.StopEndTurn, Content: []session.Content{session.Text("ok")}}}
}

// TestOddAnswers: whatever a model answers, the conversation can go on with every other model.
func TestOddAnswers(t *testing.T) {
	t.Parallel()
	image := session.Image("image/png", "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
	thought := session.Content{Type: session.ContentTypeThinking, Thinking: &session.ThinkingContent{Content: "hm", Signature: "bm90IHlvdXJz"}}
	hidden := session.Content{Type: session.ContentTypeThinking, Thinking: &session.ThinkingContent{Redacted: "bm90IHlvdXJz"}}
	raw := session.Content{Raw: json.RawMessage(`{"type":"server_tool_use","id":"s1","name":"web_search","input":{}}`)}
	for name, content := range map[string][]session.Content{
		"an empty text":         {session.Text("")},
		"a blank text":          {session.Text(" \n ")},
		"only a thought":        {thought},
		"only a hidden thought": {hidden},
		"a thought and a text":  {thought, session.Text("so")},
		"a picture":             {image},
		"a result":              {session.ToolResult("nobody", "asked", false)},
		"a call without input":  {session.ToolUse("c", "one", nil)},
		"a call cut off":        {session.Text("I"), session.ToolUseJSON("c", "one", json.RawMessage(`{"text":"a`))},
		"a call of nothing":     {session.ToolUse("c", "", map[string]any{})},
		"a call of a bad name":  {session.ToolUse("c", "no such tool!", map[string]any{})},
		"calls without ids":     {session.ToolUse("", "one", map[string]any{}), session.ToolUse("", "one", map[string]any{})},
		"an id of many signs":   {session.ToolUse(strings.Repeat("é/", 200), "one", map[string]any{})},
		"a thought and a call":  {thought, session.ToolUse("c", "one", map[string]any{"text": "1"})},
		"what nobody knows":     {raw},
	} {
		t.Run(name, func(t *testing.T) {
			dialects(t, agreeable, func(t *testing.T, _ *providertest.Server, model provider.Model) {
				answered := false
				a := start(t, agent.Options{Tools: []agent.Tool{echo("one")}, Model: answers(func(*provider.Request) (*session.MessageEntry, error) {
					if answered {
						return &session.MessageEntry{Content: []session.Content{session.Text("done")}}, nil
					}
					answered = true
					return &session.MessageEntry{Provider: "p", Model: "m", StopReason: provider.StopMaxTokens, Content: content}, nil
				})})
				send(t, a, "go")
				answered = false
				send(t, a, "the same again") // with the same ids
				if err := a.SetModel(model); err != nil {
					t.Fatal(err)
				}
				send(t, a, "and you?")
				check(t, a.Session())
				if unfinished, err := a.Unfinished(); err != nil || unfinished {
					t.Errorf("unfinished: %v, %v", unfinished, err)
				}
			})
		})
	}
}

// TestOddPrompts: what a user cannot say is refused before it is in the log, where it would
// spoil the conversation.
func TestOddPrompts(t *testing.T) {
	t.Parallel()
	dialects(t, agreeable, func(t *testing.T, _ *providertest.Server, model provider.Model) {
		for name, content := range map[string]session.Content{
			"empty": session.Text(""), "blank": session.Text(" \n"), "a result": session.ToolResult("x", "y", false),
			"a call": session.ToolUse("x", "y", nil), "a thought": {Type: session.ContentTypeThinking, Thinking: &session.ThinkingContent{Content: "hm"}},
			"nothing": {}, "not UTF-8": session.Text("\xff\xfe"),
		} {
			a := start(t, agent.Options{Model: model})
			_, err := a.Send(t.Context(), content)
			if refused := errors.Is(err, session.ErrInvalid); refused == (name == "not UTF-8") || refused && len(said(t, a.Session())) > 0 {
				t.Errorf("%s: %v", name, err)
			}
			if _, err := a.Send(t.Context(), session.Text("hello")); err != nil {
				t.Errorf("after %s: %v", name, err)
			}
		}
	})
}

// TestForeignSession goes on with a session that another program has written, with
// everything that such programs leave behind.
func TestForeignSession(t *testing.T) {
	t.Parallel()
	dialects(t, agreeable, func(t *testing.T, _ *providertest.Server, model provider.Model) {
		s := newSession(t)
		var entries []session.Entry
		parent := ""
		add := func(m session.MessageEntry) {
			e := session.Entry{Type: session.TypeMessage, ID: fmt.Sprintf("e%d", len(entries)), Timestamp: time.Unix(int64(len(entries)), 0), Message: &m}
			if parent != "" {
				before := parent
				e.ParentID = &before
			}
			parent = e.ID
			entries = append(entries, e)
		}
		text := func(role, text string) {
			add(session.MessageEntry{Role: role, Content: []session.Content{session.Text(text)}})
		}
		text("developer", "you are of help")
		text(session.RoleAssistant, "I speak first")
		add(session.MessageEntry{Role: session.RoleTool, Content: []session.Content{session.ToolResult("orphan", "from where?", false)}})
		text(session.RoleUser, "hello")
		add(session.MessageEntry{Role: session.RoleAssistant, Content: []session.Content{session.ToolUse("c1", "one", map[string]any{}), session.ToolUse("c2", "unknown", map[string]any{})}})
		add(session.MessageEntry{Role: session.RoleTool, Content: []session.Content{session.ToolResult("c1", "once", false)}})
		add(session.MessageEntry{Role: session.RoleTool, Content: []session.Content{session.ToolResult("c1", "twice", false)}})
		text(session.RoleUser, "never mind")
		text(session.RoleUser, "or do")
		add(session.MessageEntry{Role: session.RoleAssistant})
		text(session.RoleBashExecution, "ls")
		text(session.RoleCustom, "something else")
		add(session.MessageEntry{Role: session.RoleAssistant, Content: []session.Content{session.ToolUse("c3", "one", map[string]any{"text": "3"})}})
		if err := s.Graft(entries...); err != nil {
			t.Fatal(err)
		}
		a := startIn(t, s, agent.Options{Model: model, System: "be brief", Tools: []agent.Tool{echo("one")}})
		if _, err := a.Resume(t.Context()); err != nil {
			t.Fatalf("resume: %v", err)
		}
		send(t, a, "hello again")
		if _, err := a.Retry(t.Context()); err != nil {
			t.Errorf("retry: %v", err)
		}
		if unfinished, err := a.Unfinished(); err != nil || unfinished {
			t.Errorf("unfinished: %v, %v", unfinished, err)
		}
	})
}
