package keyed_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/coppice-dev/coppice/internal/soak"
	"github.com/coppice-dev/coppice/keyed"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/vfs/vfstest"
)

// TestModel compares managers with the simplest thing that could be right: lists
// in memory. Two managers work on one disk by turns, are closed and opened again,
// and keep so few conversations open that they forget and reload all the time.
func TestModel(t *testing.T) {
	t.Parallel()
	soak.Check(t, func(t *rapid.T) {
		w := &world{t: t, disk: vfstest.NewMemory(), clock: newClock(), chats: make(map[string]*modelChat)}
		for i := range w.managers {
			w.managers[i] = w.open()
		}
		t.Repeat(map[string]func(*rapid.T){
			"add":      w.add,
			"call":     w.call,
			"answer":   w.answer,
			"replace":  w.replace,
			"summary":  w.summary,
			"truncate": w.truncate,
			"compact":  w.compact,
			"save":     w.save,
			"reopen":   w.reopen,
			"create":   w.create,
			"":         w.check,
		})
		for _, m := range w.managers {
			if err := m.Close(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

type world struct {
	t        *rapid.T
	disk     *vfstest.Memory
	clock    *clock
	managers [2]*keyed.SessionManager
	chats    map[string]*modelChat
	n        int // makes words and ids that are used once
}

// modelChat is a conversation as it should be.
type modelChat struct {
	history []keyed.Message
	all     []keyed.Message
	summary string
}

func (w *world) open() *keyed.SessionManager {
	st, err := file.Open("/d", &file.Options{FS: w.disk})
	if err != nil {
		w.t.Fatal(err)
	}
	return keyed.New(&keyed.Options{Store: st, MaxOpen: 1, Now: w.clock.now})
}

// pick chooses a manager and a key. What the manager knows alone is written
// first when the other is to be asked.
func (w *world) pick(t *rapid.T) (*keyed.SessionManager, string, *modelChat) {
	w.clock.at = w.clock.at.Add(time.Duration(rapid.IntRange(0, 2000).Draw(t, "ms")) * time.Millisecond)
	key := fmt.Sprint("chat:", rapid.IntRange(0, 2).Draw(t, "key"))
	at := rapid.IntRange(0, 1).Draw(t, "manager")
	w.settle(1-at, key)
	chat := w.chats[key]
	if chat == nil {
		chat = &modelChat{}
		w.chats[key] = chat
	}
	return w.managers[at], key, chat
}

// settle writes a summary that a manager has not written yet.
func (w *world) settle(at int, key string) {
	if err := w.managers[at].Save(key); err != nil {
		w.t.Fatal(err)
	}
}

func (c *modelChat) say(m keyed.Message) {
	c.all = append(c.all, m)
	if m.ToolCallID != "" && !hasCall(c.history, m.ToolCallID) && hasCall(c.all, m.ToolCallID) {
		return // its call was cleared
	}
	c.history = append(slices.Clip(c.history), m)
}

func hasCall(history []keyed.Message, id string) bool {
	return slices.ContainsFunc(history, func(m keyed.Message) bool {
		return slices.ContainsFunc(m.ToolCalls, func(c keyed.ToolCall) bool { return c.ID == id })
	})
}

func (w *world) word(prefix string) string {
	w.n++
	return fmt.Sprint(prefix, w.n)
}

func (w *world) add(t *rapid.T) {
	m, key, chat := w.pick(t)
	said := keyed.Message{
		Role:    rapid.SampledFrom([]string{"user", "assistant", "system"}).Draw(t, "role"),
		Content: rapid.SampledFrom([]string{w.word("word "), "the same", ""}).Draw(t, "content"),
	}
	m.AddMessage(key, said.Role, said.Content)
	chat.say(said)
}

func (w *world) call(t *rapid.T) {
	m, key, chat := w.pick(t)
	said := keyed.Message{Role: "assistant", Content: rapid.SampledFrom([]string{"", "let me see"}).Draw(t, "content")}
	for range rapid.IntRange(1, 2).Draw(t, "calls") {
		said.ToolCalls = append(said.ToolCalls, keyed.ToolCall{ID: w.word("call "), Name: "f", Arguments: map[string]any{"n": 1.0}})
	}
	m.AddFullMessage(key, said)
	chat.say(said)
}

// answer gives a result to a call that has none, in the history or not.
func (w *world) answer(t *rapid.T) {
	m, key, chat := w.pick(t)
	open := slices.DeleteFunc(calls(chat.all), func(id string) bool { return answered(chat.all, id) })
	if len(open) == 0 {
		t.Skip("no call waits")
	}
	said := keyed.Message{Role: "tool", Content: "result", ToolCallID: rapid.SampledFrom(open).Draw(t, "call")}
	m.AddFullMessage(key, said)
	chat.say(said)
}

func calls(history []keyed.Message) []string {
	var ids []string
	for _, m := range history {
		for _, c := range m.ToolCalls {
			ids = append(ids, c.ID)
		}
	}
	return ids
}

func answered(history []keyed.Message, id string) bool {
	return slices.ContainsFunc(history, func(m keyed.Message) bool { return m.ToolCallID == id })
}

func (w *world) replace(t *rapid.T) {
	m, key, chat := w.pick(t)
	// A part of the old history, between whole pairs, and something new.
	var history []keyed.Message
	if from := rapid.IntRange(0, len(chat.history)).Draw(t, "from"); legal(chat.history, from) {
		history = slices.Clone(chat.history[from:])
	}
	for range rapid.IntRange(0, 3).Draw(t, "new") {
		history = append(history, keyed.Message{Role: "user", Content: w.word("new ")})
	}
	if rapid.Bool().Draw(t, "prompt") {
		history = append([]keyed.Message{{Role: "system", Content: "prompt"}}, history...)
	}
	m.SetHistory(key, history)
	chat.history = history
	chat.all, _ = m.History(key, keyed.All) // how often something is recorded is not the model's affair
}

func (w *world) summary(t *rapid.T) {
	m, key, chat := w.pick(t)
	chat.summary = rapid.SampledFrom([]string{"", w.word("summary ")}).Draw(t, "summary")
	m.SetSummary(key, chat.summary)
}

func (w *world) truncate(t *rapid.T) {
	m, key, chat := w.pick(t)
	keep := rapid.IntRange(-1, 8).Draw(t, "keep")
	w.cut(key, chat, keep)
	m.TruncateHistory(key, keep)
}

func (w *world) compact(t *rapid.T) {
	m, key, chat := w.pick(t)
	keep := rapid.IntRange(0, 4).Draw(t, "keep")
	chat.summary = w.word("summary ")
	m.SetSummary(key, chat.summary)
	w.cut(key, chat, keep)
	m.TruncateHistory(key, keep)
}

// cut truncates the history: at the latest legal place that keeps enough. System
// messages stay, and so does the prompt of a turn that is cut between two steps.
func (w *world) cut(key string, chat *modelChat, keep int) {
	if keep <= 0 {
		chat.history = nil
		return
	}
	stays := w.stays(key)
	for at := len(chat.history) - keep; at > stays; at-- {
		if !legal(chat.history, at) {
			continue
		}
		var stay []keyed.Message
		prompt := -1
		for i, m := range chat.history[:at] {
			if m.Role == "system" {
				stay = append(stay, m)
			} else if m.Role == "user" {
				prompt = i
			}
		}
		if len(chat.history[at].ToolCalls) > 0 && prompt >= 0 {
			stay = append(stay, chat.history[prompt])
		}
		chat.history = slices.Concat(stay, chat.history[at:])
		return
	}
}

// stays returns how many messages of a history are there only because they stay
// from before a cut, as the session has it.
func (w *world) stays(key string) int {
	st, err := file.Open("/d", &file.Options{FS: w.disk})
	if err != nil {
		w.t.Fatal(err)
	}
	defer st.Close()
	id, err := session.KeyID(key)
	if err != nil {
		w.t.Fatal(err)
	}
	s, err := session.Open(context.Background(), st, id, nil)
	if err != nil {
		return 0
	}
	defer s.Close()
	c, err := s.Context(session.ContextOptions{Unpaired: true})
	if err != nil {
		w.t.Fatal(err)
	}
	at := slices.IndexFunc(c.Entries, func(e session.Entry) bool { return e.Compaction != nil })
	if at < 0 {
		return 0
	}
	kept := slices.IndexFunc(c.Entries, func(e session.Entry) bool { return e.ID == c.Entries[at].Compaction.FirstKeptEntryID })
	return max(at, kept-1)
}

// legal says whether a history may be cut before a message.
func legal(history []keyed.Message, at int) bool {
	if at == 0 || at == len(history) {
		return true
	}
	if history[at].ToolCallID != "" {
		return false
	}
	for i, m := range history[:at] {
		for _, c := range m.ToolCalls {
			switch {
			case answered(history[:at], c.ID):
			case answered(history[at:], c.ID), at <= interruptedBy(history, i):
				return false
			}
		}
	}
	return true
}

// interruptedBy returns the last place at which a history may not be cut because
// of a call that has no result: up to the message of the user that interrupted it,
// if the model has spoken since, or else to the end.
func interruptedBy(history []keyed.Message, call int) int {
	for user := call + 1; user < len(history); user++ {
		if history[user].Role != "user" {
			continue
		}
		if slices.ContainsFunc(history[user:], func(m keyed.Message) bool { return m.Role == "assistant" }) {
			return user - 1
		}
		break
	}
	return len(history)
}

func (w *world) save(t *rapid.T) {
	m, key, _ := w.pick(t)
	if err := m.Save(key); err != nil {
		t.Fatal(err)
	}
}

func (w *world) create(t *rapid.T) {
	m, key, chat := w.pick(t)
	s := m.GetOrCreate(key)
	same(w.t, "messages", s.Messages, append([]keyed.Message{}, chat.history...))
	if s.Summary != chat.summary || s.Created.After(s.Updated) {
		t.Fatalf("%+v", s)
	}
}

func (w *world) reopen(t *rapid.T) {
	at := rapid.IntRange(0, 1).Draw(t, "manager")
	if err := w.managers[at].Close(); err != nil {
		t.Fatal(err)
	}
	w.managers[at] = w.open()
}

func (w *world) check(t *rapid.T) {
	for key, chat := range w.chats {
		for at := range w.managers {
			w.settle(at, key)
		}
		for at, m := range w.managers {
			what := fmt.Sprintf("manager %d: %s", at, key)
			same(t, what+": history", m.GetHistory(key), append([]keyed.Message{}, chat.history...))
			if s := m.GetSummary(key); s != chat.summary {
				t.Fatalf("%s: summary %q, want %q", what, s, chat.summary)
			}
			all, err := m.History(key, keyed.All)
			if err != nil {
				t.Fatal(err)
			}
			same(t, what+": all", all, append([]keyed.Message{}, chat.all...))
		}
	}
}
