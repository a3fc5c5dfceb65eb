package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
)

// teller writes tales into a store. Its clock goes on with every entry; the
// first error ends it all.
type teller struct {
	ctx   context.Context
	store store.Store
	today time.Time
	clock time.Time
	made  []Session
	open  []*tale
	calls int
	err   error
}

func newTeller(ctx context.Context, st store.Store, now time.Time) *teller {
	return &teller{ctx: ctx, store: st, today: now.Truncate(time.Minute)}
}

// at sets the clock: so many days ago, so many minutes earlier than now.
func (t *teller) at(days, minutes int) {
	t.clock = t.today.AddDate(0, 0, -days).Add(-time.Duration(minutes) * time.Minute)
}

func (t *teller) must(err error) {
	if t.err == nil {
		t.err = err
	}
}

// tale is one session that is being told.
type tale struct {
	*teller
	s               *session.Session
	provider, model string
	input           int // tokens that the next question will send
}

// options make the ids of a session's entries words that can be typed, and the
// same in every demo: they are printed in the documentation.
func (t *teller) options(id string) *session.Options {
	n := 0
	return &session.Options{
		Now: func() time.Time { return t.clock },
		NewID: func(session.EntryType) string {
			n++
			return fmt.Sprintf("%s-%02d", id, n)
		},
	}
}

// begin starts a session.
func (t *teller) begin(id, about string, h session.Header) *tale {
	if t.err != nil {
		return &tale{teller: t}
	}
	h.ID = id
	s, err := session.Create(t.ctx, t.store, h, t.options(id))
	return t.adopt(about, s, err)
}

// adopt takes over a session that came from another.
func (t *teller) adopt(about string, s *session.Session, err error) *tale {
	t.must(err)
	one := &tale{teller: t, s: s, provider: "anthropic", model: "claude-sonnet-4-5", input: 1200}
	if err == nil {
		t.made = append(t.made, Session{s.ID(), about})
		t.open = append(t.open, one)
	}
	return one
}

// do runs a step, unless an earlier one failed, and lets time pass.
func (t *tale) do(step func() (string, error)) string {
	if t.err != nil {
		return ""
	}
	t.clock = t.clock.Add(41 * time.Second)
	id, err := step()
	t.must(err)
	return id
}

func (t *tale) name(name string, tags ...string) {
	t.do(func() (string, error) { return t.s.AppendSessionInfo(name) })
	if len(tags) > 0 {
		t.do(func() (string, error) { return t.s.AppendEntry(session.Tags(tags...)) })
	}
}

func (t *tale) uses(provider, model, thinking string) {
	t.provider, t.model = provider, model
	t.do(func() (string, error) { return t.s.AppendModelChange(provider, model) })
	if thinking != "" {
		t.do(func() (string, error) { return t.s.AppendThinkingLevelChange(thinking) })
	}
}

func (t *tale) system(text string) string { return t.says(session.RoleSystem, text) }

func (t *tale) user(text string, more ...session.Content) string {
	return t.says(session.RoleUser, text, more...)
}

func (t *tale) says(role session.MessageRole, text string, more ...session.Content) string {
	tokens := len(text)/4 + 1
	t.input += tokens
	m := &session.MessageEntry{Role: role, Content: append([]session.Content{session.Text(text)}, more...), Tokens: &tokens}
	return t.message(m)
}

func (t *tale) message(m *session.MessageEntry) string {
	return t.do(func() (string, error) {
		ids, err := t.s.AppendAll(session.Entry{Type: session.TypeMessage, Message: m})
		if err != nil {
			return "", err
		}
		return ids[0], nil
	})
}

// model answers, with what the answer cost.
func (t *tale) answer(content ...session.Content) string {
	output := 0
	for i := range content {
		output += len(render.Gist(&session.Entry{Message: &session.MessageEntry{Content: content[i : i+1]}}, 0))/4 + 12
	}
	cached := t.input * 3 / 4
	fresh := t.input - cached
	t.calls++
	t.input += output
	return t.message(&session.MessageEntry{
		Role: session.RoleAssistant, Content: content, Model: t.model, Provider: t.provider, Tokens: &output,
		Usage: &session.Usage{
			Input: fresh, CacheRead: cached, Output: output,
			CostMicroUSD: fresh*3 + cached*3/10 + output*15, // $3, $0.30 and $15 a million
		},
		StopReason: "end_turn", ResponseID: fmt.Sprintf("resp_demo_%03d", t.calls),
	})
}

// tool calls a tool and gets its result.
func (t *tale) tool(said, name string, input map[string]any, result string, failed bool) string {
	call := fmt.Sprintf("call_%03d", t.calls+1)
	blocks := []session.Content{session.ToolUse(call, name, input)}
	if said != "" {
		blocks = append([]session.Content{session.Text(said)}, blocks...)
	}
	t.answer(blocks...)
	tokens := len(result)/4 + 1
	t.input += tokens
	return t.message(&session.MessageEntry{
		Role: session.RoleTool, Tokens: &tokens, Content: []session.Content{session.ToolResult(call, result, failed)},
	})
}

func (t *tale) label(id, label string) {
	t.do(func() (string, error) { return t.s.SetLabel(id, label) })
}

func (t *tale) back(id string) {
	t.do(func() (string, error) { return "", t.s.Branch(id) })
}

// finish closes the sessions and dates their files as if they had been written
// when their last entries say.
func (t *teller) finish() {
	for _, one := range t.open {
		last := one.s.Header().CreatedAt
		for e, err := range one.s.Entries() {
			if err == nil && e.Timestamp.After(last) {
				last = e.Timestamp
			}
		}
		t.must(one.s.Close())
		dir, ok := store.As[store.Directory](t.store)
		if !ok {
			continue // no times to set
		}
		err := os.Chtimes(dir.Path(one.s.ID()), last, last)
		if !errors.Is(err, os.ErrNotExist) { // it was archived
			t.must(err)
		}
	}
}
