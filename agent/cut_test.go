package agent_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/offline"
	"github.com/coppice-dev/coppice/provider/providertest"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
)

// TestResumeAfterEveryLine cuts the log of a rich conversation after every line, which is
// where a crash can leave it, and has another agent go on. The conversation always comes
// to its end, no effect happens twice, no result says that a call which never started may
// have run, and the model, which refuses what the real ones refuse, never refuses.
func TestResumeAfterEveryLine(t *testing.T) {
	t.Parallel()
	c := newCutTest(t)
	st := newStore(t)
	c.converse(t, st, nil)
	lines := linesIn(t, st, cutSession)
	first := c.effects
	if len(first) != 8 || len(lines) < 50 {
		t.Fatalf("the conversation is not rich: %d effects, %d lines", len(first), len(lines))
	}
	for n := 1; n <= len(lines); n++ {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			done := make(map[string]int)
			for call, at := range first {
				if at <= n { // it happened before the crash
					done[call] = at
				}
			}
			after := newStore(t)
			key, err := st.Notes("agent").Read(t.Context(), "key") // it is the same store
			if err == nil {
				err = after.Notes("agent").Write(t.Context(), "key", key)
			}
			if err != nil {
				t.Fatal(err)
			}
			log, err := after.Create(t.Context(), cutSession, store.Lines(lines[:n]...))
			if err != nil {
				t.Fatal(err)
			}
			_ = log.Close()
			c.converse(t, after, done)
		})
	}
}

const cutSession = "cut"

// cutTest is a conversation with a model that calls tools whose effects are counted.
type cutTest struct {
	model  provider.Model
	mu     sync.Mutex
	broken bool // the model has broken off once

	effects map[string]int // by call: how many lines the log had when it ran
}

func newCutTest(t *testing.T) *cutTest {
	c := &cutTest{}
	c.model = clientOf(t, "anthropic", providertest.New(t, c.answer))
	return c
}

// answer is the model. What it says depends on the prompt and on how often it has spoken
// since.
func (c *cutTest) answer(r *providertest.Request) providertest.Answer {
	prompt, step, summarised := "", 0, false
	for i := range r.Entries {
		m := r.Entries[i].Message
		if m == nil {
			continue
		}
		text := session.TextOf(m.Content)
		summarised = summarised || strings.Contains(text, "## Goal")
		if m.Role == session.RoleUser && strings.HasPrefix(text, "prompt ") {
			prompt, step = text[:len("prompt 1")], 0
		}
		if m.Role == session.RoleAssistant && strings.HasPrefix(text, "at "+prompt) {
			_, _ = fmt.Sscanf(text[len("at prompt 1"):], "/%d", &step)
			step++
		}
	}
	calls := map[string][]string{
		"prompt 1/0": {"effect", "look", "ask", "never", "missing", "effect"},
		"prompt 1/1": {"alone", "effect"},
		"prompt 3/0": {"effect", "look"},
		"prompt 3/1": {"ask", "effect"},
	}
	where := fmt.Sprintf("%s/%d", prompt, step)
	m := session.MessageEntry{Role: session.RoleAssistant, StopReason: provider.StopEndTurn}
	m.Content = []session.Content{session.Text("at " + where + " I say a few words in several pieces")}
	if len(calls[where]) > 0 {
		m.StopReason = provider.StopToolUse
	}
	for i, name := range calls[where] {
		id := strings.NewReplacer(" ", "_", "/", "_").Replace(fmt.Sprintf("%s_%s_%d", name, where, i))
		m.Content = append(m.Content, session.ToolUse(id, name, map[string]any{"n": i}))
	}
	a := providertest.Answer{Message: m}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case where == "prompt 2/0" && !c.broken:
		c.broken, a.Cut = true, 5
	case where == "prompt 3/1" && !summarised:
		a.Status, a.Body = http.StatusBadRequest, `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}`
	}
	return a
}

// converse has the conversation, or what is left of it, after effects that were done
// before, and checks how it went.
func (c *cutTest) converse(t *testing.T, st store.Store, done map[string]int) {
	t.Helper()
	c.broken, c.effects = false, make(map[string]int)
	s, err := session.Open(t.Context(), st, cutSession, nil)
	if err != nil {
		s, err = session.Create(t.Context(), st, session.Header{ID: cutSession}, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	fresh := unstarted(t, s, done)
	a := startIn(t, s, agent.Options{
		Model: c.model, System: "go on", Tools: c.tools(t, st), RetryWait: 1, Draft: 1,
		Compaction: agent.Compaction{Keep: 60, Model: &offline.Model{}},
		Approve: func(_ context.Context, call agent.Call) (agent.Decision, error) {
			if call.Name == "never" {
				return agent.Deny, nil
			}
			return agent.Allow, nil
		},
	})
	if _, err := a.Resume(t.Context()); err != nil {
		t.Fatalf("resume: %v", err)
	}
	for n := c.prompts(t, s) + 1; n <= 3; n++ {
		send(t, a, fmt.Sprintf("prompt %d %s", n, strings.Repeat("and a few words ", 10)))
	}
	_ = a.Close()
	check(t, s)
	c.compare(t, s, done, fresh)
}

// prompts returns how many prompts the conversation has.
func (c *cutTest) prompts(t *testing.T, s *session.Session) (n int) {
	t.Helper()
	path, err := s.Forward("")
	if err != nil {
		t.Fatal(err)
	}
	for i := range path {
		if path[i].BeginsTurn() {
			n++
		}
	}
	return n
}

func (c *cutTest) tools(t *testing.T, st store.Store) []agent.Tool {
	var tools []agent.Tool
	for _, name := range []string{"effect", "look", "ask", "never", "alone"} {
		tool := agent.Tool{Tool: provider.Tool{Name: name}, Repeatable: name == "look", Alone: name == "alone"}
		if name == "ask" || name == "never" {
			tool.Ask = agent.AskAlways
		}
		tool.Run = func(_ context.Context, call agent.Call) (agent.Result, error) {
			lines := linesIn(t, st, cutSession)
			if !slices.ContainsFunc(lines, func(line []byte) bool {
				return bytes.Contains(line, []byte(`"running"`)) && bytes.Contains(line, []byte(call.ID))
			}) {
				t.Errorf("%s runs, and the log does not say so", call.ID)
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			if name != "look" {
				if _, again := c.effects[call.ID]; again {
					t.Errorf("%s ran twice", call.ID)
				}
				c.effects[call.ID] = len(lines)
			}
			return agent.Result{Text: "done " + call.ID}, nil
		}
		tools = append(tools, tool)
	}
	return tools
}

func linesIn(t *testing.T, st store.Store, name string) (lines [][]byte) {
	t.Helper()
	log, err := st.Open(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	for line, err := range log.Forward(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, bytes.Clone(line.Data))
	}
	return lines
}

// unstarted returns the calls in a log that it does not say were started.
func unstarted(t *testing.T, s *session.Session, done map[string]int) map[string]bool {
	t.Helper()
	calls := make(map[string]bool)
	for e, err := range s.Entries() {
		if err != nil {
			t.Fatal(err)
		}
		if e.Message != nil {
			for _, block := range e.Message.Content {
				if block.ToolUse != nil {
					calls[block.ToolUse.ID] = true
				}
			}
		}
		if e.Custom != nil && e.Custom.CustomType == session.CustomCalls && e.Custom.Data["state"] == "running" {
			for _, id := range e.Custom.Data["calls"].([]any) {
				delete(calls, id.(string))
			}
		}
	}
	for id := range calls {
		if _, ok := done[id]; ok {
			t.Errorf("%s ran, and the log does not say that it was started", id)
		}
	}
	return calls
}

// compare holds the log to what was done.
func (c *cutTest) compare(t *testing.T, s *session.Session, done map[string]int, fresh map[string]bool) {
	t.Helper()
	for id := range c.effects {
		if _, again := done[id]; again {
			t.Errorf("%s was done again", id)
		}
	}
	path, err := s.Forward("")
	if err != nil {
		t.Fatal(err)
	}
	results, ends := make(map[string]string), 0
	for i := range path {
		m := path[i].Message
		if m == nil {
			continue
		}
		if m.StopReason == provider.StopEndTurn {
			ends++
		}
		for _, block := range m.Content {
			if r := block.ToolResult; r != nil {
				if results[r.ToolUseID] != "" {
					t.Errorf("%s has two results", r.ToolUseID)
				}
				results[r.ToolUseID] = r.Content
			}
		}
	}
	if ends != 3 || len(results) != 12 {
		t.Errorf("%d turns of 3 came to their end, with %d results of 12:\n%s", ends, len(results), strings.Join(said(t, s), "\n"))
	}
	for id, text := range results {
		_, before := done[id]
		_, now := c.effects[id]
		switch {
		case strings.HasPrefix(id, "missing"), strings.HasPrefix(id, "never"), strings.HasPrefix(id, "look"):
			if strings.Contains(text, "interrupted") {
				t.Errorf("%s cannot have been interrupted: %s", id, text)
			}
		case strings.Contains(text, "interrupted"):
			if now || fresh[id] {
				t.Errorf("%s: %s, but it ran now: %t, and had not been started: %t", id, text, now, fresh[id])
			}
		case !before && !now:
			t.Errorf("%s has the result %q and was never done", id, text)
		}
	}
}
