package adk_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"google.golang.org/adk/v2/session"
	"google.golang.org/genai"

	"github.com/coppice-dev/coppice/adapter/adk"
	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/offline"
	coppice "github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/memory"
)

// A runner that dies while a tool runs leaves a call that no other loop runs again.
func TestCallsRunOnce(t *testing.T) {
	c := converse(t, memory.New(nil), nil)
	to := c.create("s", nil)
	c.append(to, text("user", "rose"))
	call := &session.Event{Author: "gardener"}
	call.Content = genai.NewContentFromParts([]*genai.Part{{FunctionCall: &genai.FunctionCall{ID: "c1", Name: "water", Args: map[string]any{"plant": "rose"}}}}, genai.RoleModel)
	c.append(to, call)
	s := c.coppice()
	ran := false
	a := mustGet(agent.New(s, agent.Options{Model: &offline.Model{}, Tools: []agent.Tool{{
		Tool: provider.Tool{Name: "water"},
		Run:  func(context.Context, agent.Call) (agent.Result, error) { ran = true; return agent.Result{}, nil },
	}}}))(t)
	defer a.Close()
	mustGet(a.Resume(t.Context()))(t)
	entries := mustGet(s.GetContext())(t)
	if got := gist(entries); ran || !strings.Contains(got, "[interrupted: the program ended while the tool was running") {
		t.Errorf("ran: %v; the context is\n%s", ran, got)
	}
	requireSound(t, s)
}

// After a compaction a runner sends the summary and what came after it. The log, and services
// that do not ask for summaries, have all events.
func TestCompact(t *testing.T) {
	st := memory.New(nil)
	c := converse(t, st, &adk.Options{Compacted: true})
	say := func(text string) {
		t.Helper()
		run(t, gardener(t, c, false), "s", genai.NewContentFromText(text, genai.RoleUser))
	}
	for range 8 {
		say(strings.Repeat("rose ", 20))
	}
	all := c.get("s", 0).Events().Len()
	options := agent.KeeperOptions{Compaction: agent.Compaction{Model: &offline.Model{}, Keep: 400}}
	done := mustGet(c.Compact(t.Context(), c.get("s", 0), options))(t)
	if done.TokensAfter >= done.TokensBefore {
		t.Errorf("%d tokens became %d", done.TokensBefore, done.TokensAfter)
	}
	shorter := c.get("s", 0)
	first := shorter.Events().At(0)
	if n := shorter.Events().Len(); n >= all || first.Author != "user" || !strings.Contains(first.Content.Parts[0].Text, "Goal") {
		t.Errorf("%d of %d events; the first is %+v", n, all, first.Content)
	}
	say("ivy") // the session that was read above is not stale for it
	now := c.get("s", 0).Events()
	if got := now.At(now.Len() - 1).Content.Parts[0].Text; got != "ivy is wet" {
		t.Errorf("the answer is %q", got)
	}
	if v, err := shorter.State().Get("wet rose"); v != true || err != nil {
		t.Errorf("the state is lost: %v, %v", v, err)
	}
	if n := converse(t, st, nil).get("s", 0).Events().Len(); n != all+4 {
		t.Errorf("%d events without summaries, want %d", n, all+4)
	}
	if n := c.get("s", 3).Events().Len(); n != 3 {
		t.Errorf("%d of the last 3 events", n)
	}
	requireSound(t, c.coppice())
	if _, err := c.Compact(t.Context(), nil, options); !errors.Is(err, coppice.ErrInvalid) {
		t.Errorf("no session: %v", err)
	}
	if _, err := c.Compact(t.Context(), shorter, agent.KeeperOptions{}); !errors.Is(err, coppice.ErrInvalid) {
		t.Errorf("no model: %v", err)
	}
}
