package summary_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/coppice-dev/coppice/agent/summary"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/digest"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/memory"
	"github.com/coppice-dev/coppice/window"
)

// story writes a session.
type story struct {
	*session.Session
	t *testing.T
	n int
}

func newStory(t *testing.T) *story {
	t.Helper()
	s, err := session.Create(t.Context(), memory.New(nil), session.Header{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return &story{Session: s, t: t}
}

func (s *story) add(role session.MessageRole, content ...session.Content) string {
	s.t.Helper()
	id, err := s.AppendMessage(role, content)
	if err != nil {
		s.t.Fatal(err)
	}
	return id
}

func (s *story) user(text string) string  { return s.add(session.RoleUser, session.Text(text)) }
func (s *story) reply(text string) string { return s.add(session.RoleAssistant, session.Text(text)) }

// call makes a call and its result.
func (s *story) call(tool, path, result string) {
	s.n++
	id := fmt.Sprintf("call_%d", s.n)
	s.add(session.RoleAssistant, session.ToolUse(id, tool, map[string]any{"path": path}))
	s.add(session.RoleTool, session.ToolResult(id, result, false))
}

// plan plans a compaction that keeps a number of tokens.
func (s *story) plan(keep int) *session.CompactionPlan {
	s.t.Helper()
	counter := window.Estimate("", "")
	plan, err := s.PlanCompaction(session.PlanOptions{KeepTokens: keep, Count: func(e session.Entry) int { return window.CountEntry(counter, "", &e).Tokens }})
	if err != nil {
		s.t.Fatal(err)
	}
	return plan
}

// goal is the beginning of a summary that can be used.
const goal = "## Goal\nTo be done.\n"

// model is a model of a window that answers with functions, one per request; the last one
// answers all that follow.
type model struct {
	provider.Info
	mu      sync.Mutex
	answers []answer
	tasks   []*digest.Task // what it was asked
	sent    []*provider.Request
}

type answer func(*digest.Task) (*session.MessageEntry, error)

func newModel(answers ...answer) *model {
	return &model{Info: provider.Info{Provider: "test", Model: "m", Window: 100_000}, answers: answers}
}

// writes is a model that answers with a text.
func writes(text string) *model { return newModel(says(text)) }

func says(text string) answer {
	return func(*digest.Task) (*session.MessageEntry, error) {
		return &session.MessageEntry{Content: []session.Content{session.Text(text)}, Usage: &session.Usage{Input: 10, Output: 5}}, nil
	}
}

func fails(err error) answer {
	return func(*digest.Task) (*session.MessageEntry, error) { return nil, err }
}

func (m *model) Model() provider.Model {
	return provider.Func{About: m.Info, Answer: func(_ context.Context, r *provider.Request, _ func(string) error) (*session.MessageEntry, error) {
		task, ok := digest.Read(r)
		if !ok {
			return nil, errors.New("the request is not a task")
		}
		m.mu.Lock()
		at := min(len(m.tasks), len(m.answers)-1)
		m.tasks, m.sent = append(m.tasks, task), append(m.sent, r)
		m.mu.Unlock()
		return m.answers[at](task)
	}}
}

// everything is all that the model was given to read, without its instructions.
func (m *model) everything() string {
	var b strings.Builder
	for _, r := range m.sent {
		b.WriteString(session.TextOf(r.Entries[1].Message.Content))
	}
	return b.String()
}

// bills counts the requests of a summary whose cost is known. It has a record of every
// request.
func bills(s *summary.Summary) (n int) {
	records := 0
	for i := range s.Log {
		if _, ok := session.BillOf(&s.Log[i]); ok {
			n++
		} else if s.Log[i].Custom.CustomType == session.CustomRequest {
			records++
		}
	}
	if records != s.Requests {
		return -1
	}
	return n
}
