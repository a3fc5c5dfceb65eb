package conversation_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/coppice-dev/coppice/conversation"
	"github.com/coppice-dev/coppice/internal/soak"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/memory"
)

// crashing is a store whose machine may stop before a log is made.
type crashing struct {
	store.Store
	crash bool
}

var errCrash = errors.New("crash")

func (c *crashing) Create(ctx context.Context, name string, lines iter.Seq2[[]byte, error]) (store.Log, error) {
	if c.crash {
		return nil, errCrash
	}
	return c.Store.Create(ctx, name, lines)
}

func (c *crashing) CreateCopy(ctx context.Context, name string, lines iter.Seq2[[]byte, error], of store.Log) (store.Log, error) {
	if c.crash {
		return nil, errCrash
	}
	return c.Store.CreateCopy(ctx, name, lines, of)
}

// machine is a conversation beside a plain list of what was said in it.
type machine struct {
	t        *rapid.T
	st       *crashing
	limit    int
	managers []*conversation.Sessions // of two programs
	systems  []*conversation.Chat
	id       string
	said     []string // the truth
	open     []string // calls that wait for their result
	loose    bool     // a call was left without a result
	n        int
}

func newMachine(t *rapid.T) *machine {
	m := &machine{
		t: t, st: &crashing{Store: memory.New(nil)}, limit: rapid.IntRange(1, 8).Draw(t, "limit"),
		managers: make([]*conversation.Sessions, 2), systems: make([]*conversation.Chat, 2),
	}
	m.restart(0)
	m.restart(1)
	return m
}

// restart is what is left of a program after it was killed: nothing.
func (m *machine) restart(i int) {
	manager, err := conversation.NewSessions(m.st, quiet(m.limit))
	m.ok(err)
	m.managers[i] = manager
	m.systems[i] = conversation.NewChat(manager, conversation.NewWindow(nil))
	if m.id != "" {
		m.ok(m.systems[i].Load(m.id))
	}
}

func (m *machine) ok(err error) {
	m.t.Helper()
	if err != nil {
		m.t.Fatal(err)
	}
}

func (m *machine) pick(t *rapid.T) int { return rapid.IntRange(0, 1).Draw(t, "program") }

// add says something through one of the programs.
func (m *machine) add(t *rapid.T, msg conversation.Message) {
	i := m.pick(t)
	if m.id != "" && m.systems[i].ID() == "" {
		m.ok(m.systems[i].Load(m.id))
	}
	stored, err := m.systems[i].Add(msg)
	if errors.Is(err, errCrash) {
		m.st.crash = false
		m.restart(i)
		return // it was refused, so it must not be there
	}
	m.ok(err)
	if m.id == "" {
		m.id = m.systems[i].ID()
	}
	m.said = append(m.said, texts([]conversation.Message{stored})...)
}

func (m *machine) text() string {
	m.n++
	return fmt.Sprint(m.n)
}

func (m *machine) User(t *rapid.T) {
	before := len(m.said)
	m.add(t, user(m.text()))
	if len(m.open) > 0 && len(m.said) > before {
		m.open, m.loose = nil, true
	}
}

func (m *machine) Assistant(t *rapid.T) {
	if len(m.open) == 0 {
		m.add(t, assistant(m.text()))
	}
}

func (m *machine) Call(t *rapid.T) {
	if len(m.open) > 0 {
		return
	}
	id := m.text()
	before := len(m.said)
	m.add(t, call(id))
	if len(m.said) > before {
		m.open = append(m.open, id)
	}
}

func (m *machine) Result(t *rapid.T) {
	if len(m.open) == 0 {
		return
	}
	before := len(m.said)
	m.add(t, result(m.open[0], "done"))
	if len(m.said) > before {
		m.open = m.open[1:]
	}
}

func (m *machine) System(t *rapid.T) {
	if len(m.open) == 0 && m.n%4 == 0 {
		m.add(t, systemMessage(m.text()))
	}
}

func (m *machine) Context(t *rapid.T) {
	if len(m.open) == 0 && m.n%4 == 0 {
		m.add(t, contextMessage(m.text()))
	}
}

func (m *machine) Restart(t *rapid.T) { m.restart(m.pick(t)) }

func (m *machine) CrashAtBoundary(*rapid.T) { m.st.crash = true }

func (m *machine) Evict(t *rapid.T) { m.managers[m.pick(t)].ReleaseMemory(0) }

func (m *machine) Save(t *rapid.T) {
	if m.id != "" {
		m.ok(m.systems[m.pick(t)].Save())
	}
}

// SaveTrimmed saves a session that lacks most of what is stored.
func (m *machine) SaveTrimmed(t *rapid.T) {
	if m.id == "" || m.st.crash {
		return
	}
	manager := m.managers[m.pick(t)]
	s, err := manager.LoadSession(m.id)
	m.ok(err)
	s.Messages = s.Messages[len(s.Messages)/2:]
	_, err = manager.SaveSession(s)
	m.ok(err)
}

func (m *machine) Continue(t *rapid.T) {
	if m.id == "" || m.st.crash {
		return
	}
	manager := m.managers[m.pick(t)]
	totals, err := manager.Totals(m.id)
	m.ok(err)
	s, err := manager.LoadSession(totals.Tail)
	m.ok(err)
	_, err = manager.CreateContinuationSession(s)
	m.ok(err)
}

// Check compares what both programs and a fresh one see with the list.
func (m *machine) Check(t *rapid.T) {
	if m.id == "" || m.st.crash {
		return
	}
	fresh, err := conversation.NewSessions(m.st, quiet(m.limit))
	m.ok(err)
	for _, manager := range append(slices.Clone(m.managers), fresh) {
		c, err := manager.Conversation(m.id)
		m.ok(err)
		if diff := cmp.Diff(m.said, texts(c.Messages)); diff != "" {
			t.Fatalf("what is read is not what was said:\n%s", diff)
		}
		totals, err := manager.Totals(m.id)
		m.ok(err)
		if totals.Messages != len(m.said) || totals.Tokens != c.TotalTokens() || totals.Sessions != len(c.Links) || totals.Conversation != m.id {
			t.Fatalf("totals %+v of %d messages with %d tokens in %d links", totals, len(m.said), c.TotalTokens(), len(c.Links))
		}
		m.checkLinks(t, manager, c)
	}
	for _, system := range m.systems {
		if system.ID() != "" {
			m.checkView(t, system)
		}
	}
}

// checkLinks makes sure that each link can be understood alone.
func (m *machine) checkLinks(t *rapid.T, manager *conversation.Sessions, c conversation.Conversation) {
	for i, link := range c.Links {
		s, err := manager.LoadSession(link.ID)
		m.ok(err)
		if s.Metadata[conversation.MetaContinuationIndex] != i {
			t.Fatalf("link %d has the index %v", i, s.Metadata[conversation.MetaContinuationIndex])
		}
		markers, calls := 0, map[string]bool{}
		for _, msg := range s.Messages {
			if msg.Metadata["type"] == "session_transition" {
				markers++
			}
			for _, b := range msg.Content {
				if b.ToolUse != nil {
					calls[b.ToolUse.ID] = true
				}
				if b.ToolResult != nil && !calls[b.ToolResult.ToolUseID] {
					t.Fatalf("link %d has a result without its call: %v", i, texts(s.Messages))
				}
			}
		}
		if markers != min(i, 1) {
			t.Fatalf("link %d has %d markers: %v", i, markers, texts(s.Messages))
		}
	}
}

// checkView makes sure that a model is sent everything, as if there were no
// boundaries. (The window is large.)
func (m *machine) checkView(t *rapid.T, system *conversation.Chat) {
	v, err := system.View()
	m.ok(err)
	if len(m.open) > 0 {
		return // nobody asks a model that waits for a tool
	}
	open := map[string]bool{}
	for _, e := range v.Entries {
		for _, b := range e.Message.Content {
			if b.ToolUse != nil {
				open[b.ToolUse.ID] = true
			}
			if b.ToolResult != nil && !open[b.ToolResult.ToolUseID] {
				t.Fatalf("a result without its call: %v", entryTexts(v.Entries))
			} else if b.ToolResult != nil {
				delete(open, b.ToolResult.ToolUseID)
			}
		}
	}
	if len(open) > 0 {
		t.Fatalf("calls %v have no result: %v", open, entryTexts(v.Entries))
	}
	sent := slices.DeleteFunc(slices.Clone(v.Entries), func(e session.Entry) bool {
		return len(e.ID) > len(session.InterruptedPrefix) && e.ID[:len(session.InterruptedPrefix)] == session.InterruptedPrefix
	})
	if diff := cmp.Diff(m.said, entryTexts(sent)); diff != "" {
		t.Fatalf("what is sent is not what was said:\n%s", diff)
	}
}

func TestModel(t *testing.T) {
	soak.Check(t, func(t *rapid.T) {
		m := newMachine(t)
		t.Repeat(map[string]func(*rapid.T){
			"":       m.Check,
			"User":   m.User,
			"Reply":  m.Assistant,
			"Call":   m.Call,
			"Result": m.Result, "Result2": m.Result,
			"System": m.System, "Context": m.Context,
			"Restart": m.Restart, "CrashAtBoundary": m.CrashAtBoundary, "Evict": m.Evict,
			"Save": m.Save, "SaveTrimmed": m.SaveTrimmed, "Continue": m.Continue,
		})
	})
}
