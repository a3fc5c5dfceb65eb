package main

import (
	"context"
	"fmt"
	"time"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/client"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/file"
)

// longSteps is how many requests a turn in a long conversation has.
const longSteps = 10

// longConversations measures the processor time of a step in conversations of some length.
// It should cost what it adds, however much was said before. The raw column is a loop that
// writes its whole request each time, and does nothing else.
func longConversations(b *bench) []row {
	st, err := file.Open(b.newDir(), nil)
	check(err)
	defer func() { check(st.Close()) }()
	var rows []row
	lengths := []int{10_000, 100_000}
	if b.quick {
		lengths = []int{1000, 10_000}
	}
	for _, n := range lengths {
		rows = append(rows, longConversation(b, st, n))
	}
	return rows
}

func longConversation(b *bench, st *file.Store, n int) row {
	s, err := session.Create(context.Background(), st, session.Header{}, nil)
	check(err)
	defer func() { check(s.Close()) }()
	var entries []session.Entry
	for i := range n / 2 {
		entries = append(entries,
			session.Message(session.RoleUser, session.Text(fmt.Sprintf("Question %d, about this and that, in a few words.", i))),
			session.Message(session.RoleAssistant, session.Text(fmt.Sprintf("Answer %d, which is longer than the question, as answers are. It has a second sentence.", i))))
	}
	_, err = s.AppendAll(entries...)
	check(err)
	model := newLongModel()
	a, err := agent.New(s, agent.Options{Model: model, Tools: []agent.Tool{{Tool: benchTool, Run: runBenchTool}}})
	check(err)
	defer func() { check(a.Close()) }()
	t := inTurns(b.rounds(5), busy(func() {
		bareLongTurn(model, entries)
	}), busy(func() {
		out, err := a.Send(context.Background(), session.Text("go"))
		check(err)
		if out.Steps != longSteps {
			check(fmt.Errorf("%d steps, want %d", out.Steps, longSteps))
		}
	}))
	return beside(fmt.Sprintf("step after %d messages, processor time", n), t[0]/longSteps, t[1]/longSteps, 3*time.Millisecond)
}

// bareLongTurn writes the requests of a turn, and appends what would come back.
func bareLongTurn(model *longModel, entries []session.Entry) {
	entries = append(entries[:len(entries):len(entries)], session.Message(session.RoleUser, session.Text("go")))
	for range longSteps {
		r := &provider.Request{Entries: entries, Tools: []provider.Tool{benchTool}}
		_, err := model.Encode(r)
		check(err)
		m, err := model.Answer(context.Background(), r, nil)
		check(err)
		entries = append(entries, session.Entry{Type: session.TypeMessage, Message: m})
		for _, c := range m.Content {
			if c.ToolUse != nil {
				entries = append(entries, session.Message(session.RoleTool, session.ToolResult(c.ToolUse.ID, "a few words of a file", false)))
			}
		}
	}
}

// longModel calls a tool in every step of a turn but the last. It writes its requests for
// Anthropic, and does not send them.
type longModel struct {
	provider.Func
	client *client.Client
	calls  int
}

func newLongModel() *longModel {
	c, err := client.New(client.Options{Provider: "anthropic", Model: "claude-sonnet-4-5", BaseURL: "http://localhost"})
	check(err)
	m := &longModel{client: c}
	m.About = provider.Info{Provider: "anthropic", Model: "claude-sonnet-4-5", Window: 1 << 30}
	m.Func.Answer = func(_ context.Context, r *provider.Request, _ func(string) error) (*session.MessageEntry, error) {
		steps := 1
		for i := len(r.Entries) - 1; !r.Entries[i].BeginsTurn(); i -= 2 { // a call and its result
			steps++
		}
		if steps == longSteps {
			return &session.MessageEntry{Role: session.RoleAssistant, Content: []session.Content{session.Text("done")}}, nil
		}
		m.calls++
		call := session.ToolUse(fmt.Sprint("call", m.calls), benchTool.Name, map[string]any{"text": "a few words of a file"})
		return &session.MessageEntry{Role: session.RoleAssistant, Content: []session.Content{call}}, nil
	}
	return m
}

func (m *longModel) Encode(r *provider.Request) (*provider.Encoded, error) { return m.client.Encode(r) }
