package conversation_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/coppice-dev/coppice/conversation"
	"github.com/coppice-dev/coppice/internal/soak"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/memory"
	"github.com/coppice-dev/coppice/window"
)

// What conversation sends is the context that package session gives of the chain
// as one session, whatever was done to it: nothing more, nothing less, and in the
// same order.
func TestOneContext(t *testing.T) {
	t.Parallel()
	soak.Check(t, func(t *rapid.T) {
		st := memory.New(nil)
		limit := rapid.SampledFrom([]int{3, 5, 8, 1000}).Draw(t, "limit")
		m, err := conversation.NewSessions(st, quiet(limit))
		noError(t, err)
		defer m.Close()
		w := conversation.NewWindow(nil)
		noError(t, w.SetBudget(window.Budget{Tokens: 100_000_000}))
		noError(t, w.SetImages(window.AllImages))
		c := conversation.NewChat(m, w)
		c.SetSystemPrompt("be brief")
		n, open := 0, []string{}
		say := func() string { n++; return fmt.Sprint("message ", n) }
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			switch rapid.SampledFrom([]string{"turn", "turn", "call", "call", "result", "context", "prompt", "compact", "edit", "undo", "reload", "look"}).Draw(t, "step") {
			case "turn":
				_, err = c.PrepareConversation(say())
				noError(t, err)
				if rapid.Bool().Draw(t, "answered") {
					_, err = c.AddAssistantMessage(reply(say()))
				}
			case "call":
				n++
				open = append(open, fmt.Sprint("call", n))
				_, err = c.Add(call(open[len(open)-1]))
			case "result":
				if len(open) > 0 {
					i := rapid.IntRange(0, len(open)-1).Draw(t, "which")
					_, err = c.AddActionResult(open[i], say(), false)
					open = append(open[:i], open[i+1:]...)
				}
			case "context":
				_, err = c.AddContext("notes.md", say())
			case "prompt":
				c.SetSystemPrompt(say())
			case "compact", "edit", "undo":
				changeTail(t, st, m, c)
			case "reload":
				if id := c.ID(); id != "" {
					prompt, _ := c.SystemPrompt()
					c = conversation.NewChat(m, w)
					c.SetSystemPrompt(prompt)
					err = c.Load(id)
				}
			case "look":
				_, err = c.View()
			}
			noError(t, err)
		}
		if c.ID() == "" {
			return
		}
		compare(t, st, m, c)
	})
}

func noError(t *rapid.T, err error) {
	if err != nil {
		t.Fatal(err)
	}
}

// changeTail does to the last session of a conversation what another program may do.
func changeTail(t *rapid.T, st *memory.Store, m *conversation.Sessions, c *conversation.Chat) {
	if c.ID() == "" {
		return
	}
	totals, err := m.Totals(c.ID())
	noError(t, err)
	s, err := session.Open(t.Context(), st, totals.Tail, nil)
	noError(t, err)
	defer s.Close()
	path, err := s.Forward("")
	noError(t, err)
	var messages []string
	for _, e := range path {
		if e.Message != nil {
			messages = append(messages, e.ID)
		}
	}
	if len(messages) == 0 {
		return
	}
	switch rapid.IntRange(0, 3).Draw(t, "change") {
	case 0:
		if plan, err := s.PlanCompaction(session.PlanOptions{KeepTokens: 20, Count: func(session.Entry) int { return 5 }}); err == nil {
			_, _ = s.AppendCompaction("so far", plan.FirstKept, 100) // unless a call waits
		}
	case 1:
		_, err = s.AppendEntry(session.ContextEdit(rapid.SampledFrom(messages).Draw(t, "target")))
		noError(t, err)
	case 2:
		_, err = s.AppendEntry(session.ContextEdit(rapid.SampledFrom(messages).Draw(t, "target"), session.Text("[shorter]")))
		noError(t, err)
	case 3:
		_, _ = s.Undo() // if there is anything
	}
}

// compare holds what a chat sends against the context of the chain.
func compare(t *rapid.T, st *memory.Store, m *conversation.Sessions, c *conversation.Chat) {
	v, err := c.View()
	noError(t, err)
	chain, err := session.FindChain(t.Context(), st, c.ID(), nil)
	noError(t, err)
	whole, err := session.OpenChain(t.Context(), st, chain, nil)
	noError(t, err)
	defer whole.Close()
	context, err := whole.Context(session.ContextOptions{})
	noError(t, err)
	if diff := cmp.Diff(entryTexts(context.Entries), entryTexts(v.Entries)); diff != "" {
		t.Fatalf("%d links: what is sent is not the context:\n%s", len(chain.Links), diff)
	}
	own, err := m.Context(c.ID())
	noError(t, err)
	if diff := cmp.Diff(entryTexts(context.Entries), entryTexts(own.Entries)); diff != "" {
		t.Fatalf("Sessions.Context:\n%s", diff)
	}
	if len(chain.Links) == 1 {
		s, err := session.Open(t.Context(), st, c.ID(), nil)
		noError(t, err)
		defer s.Close()
		entries, err := s.GetContext()
		noError(t, err)
		if diff := cmp.Diff(entryTexts(entries), entryTexts(v.Entries)); diff != "" {
			t.Fatalf("GetContext:\n%s", diff)
		}
	}
}
