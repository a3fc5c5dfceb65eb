package indextest

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/memory"
)

// sessionStore is a store of sessions, on which a clock goes on by a second with each entry.
type sessionStore struct {
	t   testing.TB
	st  *archivedStore
	now time.Time
}

// archivedStore is a store in memory that reports one log as archived.
type archivedStore struct {
	store.Store
	archived string
}

// List implements store.Store.
func (s *archivedStore) List(ctx context.Context) iter.Seq2[store.Stat, error] {
	return func(yield func(store.Stat, error) bool) {
		s.Store.List(ctx)(func(stat store.Stat, err error) bool {
			stat.Archived = stat.Name == s.archived
			return yield(stat, err)
		})
	}
}

func newSessionStore(t testing.TB) *sessionStore {
	t.Helper()
	st := &archivedStore{Store: memory.New(nil)}
	t.Cleanup(func() { st.Close() })
	return &sessionStore{t: t, st: st, now: time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)}
}

// open opens the index in a place, as another program would.
func (d *sessionStore) open(t testing.TB, place Place) *index.Index {
	t.Helper()
	r, err := place(t.Context())
	if err != nil {
		t.Fatalf("open the room: %v", err)
	}
	ix := index.New(d.st, r, nil)
	t.Cleanup(func() {
		if err := ix.Close(); err != nil {
			t.Errorf("close the index: %v", err)
		}
	})
	return ix
}

func (d *sessionStore) catchUp(t testing.TB, ix *index.Index) index.Report {
	t.Helper()
	report, err := ix.CatchUp(t.Context(), nil)
	if err != nil || len(report.Unread) > 0 {
		t.Fatalf("catch up: %v, unread: %v", err, report.Unread)
	}
	return report
}

func (d *sessionStore) options() *session.Options {
	return &session.Options{Now: func() time.Time {
		d.now = d.now.Add(time.Second)
		return d.now
	}}
}

func (d *sessionStore) create(h session.Header) *session.Session {
	d.t.Helper()
	s := must[*session.Session](d.t)(session.Create(d.t.Context(), d.st, h, d.options()))
	d.t.Cleanup(func() { s.Close() })
	return s
}

// say makes a session in which the user says some things.
func (d *sessionStore) say(id string, texts ...string) {
	d.t.Helper()
	s := d.create(session.Header{ID: id})
	for _, text := range texts {
		d.add(s, session.Message(session.RoleUser, session.Text(text)))
	}
	d.check(s.Close())
}

func (d *sessionStore) add(s *session.Session, e session.Entry) string {
	d.t.Helper()
	return must[string](d.t)(s.AppendEntry(e))
}

func (d *sessionStore) check(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
}

// answer is a response of a model, which was billed.
func answer(id, model string, u session.Usage, content ...session.Content) session.Entry {
	e := session.Message(session.RoleAssistant, content...)
	e.Message.Model, e.Message.Usage, e.Message.ResponseID = model, &u, id
	return e
}

func imported(id string) session.Fields {
	return session.Fields{{Name: session.OriginField, Value: []byte(`{"format":"claude-code","id":"` + id + `","path":"/x"}`)}}
}

// world is a store with sessions of all kinds.
type world struct {
	*sessionStore
	names map[string]string // of entries and of the sessions of the chain, by their ids
	links []string          // the ids of the chain
	long  string            // how ids of entries begin that are too long for a key of a database
}

// newWorld makes the sessions. It calls grown after each.
func newWorld(d *sessionStore, grown func()) *world {
	w := &world{sessionStore: d, names: make(map[string]string), long: strings.Repeat("long ", 700)}
	for _, create := range []func(){w.alpha, w.beta, w.gamma, w.chain, w.odd, w.delta, func() { w.check(w.create(session.Header{ID: "empty"}).Close()) }} {
		create()
		grown()
	}
	w.st.archived = "gamma"
	return w
}

// appendNamed appends an entry, and records its name: how the tests refer to it.
func (w *world) appendNamed(s *session.Session, name string, e session.Entry) string {
	w.t.Helper()
	id := w.add(s, e)
	w.names[id] = name
	return id
}

// alpha has a branch that was left, and all kinds of texts.
func (w *world) alpha() {
	s := w.create(session.Header{ID: "alpha", CWD: "/home/ann/web", Key: "chat:1"})
	defer s.Close()
	ask := w.appendNamed(s, "ask", session.Message(session.RoleUser, session.Text("How do I fix the readFile helper in src/store/main.go?")))
	w.appendNamed(s, "look", answer("r1", "claude-sonnet-4-5", session.Usage{Input: 10, Output: 5},
		session.Thinking("perhaps the descriptor leaks", ""),
		session.Text("Let me look at it."), session.ToolUse("c1", "bash", map[string]any{"command": "grep --line-number open main.go"})))
	w.appendNamed(s, "grep", session.Message(session.RoleTool, session.ToolResult("c1", "42: open(path) // TODO leaks\n", false)))
	w.appendNamed(s, "blob", session.Message(session.RoleTool, session.ToolResult("c1", strings.Repeat("padding ", 6000)+"haystack needle", false)))
	w.check(s.Branch(ask))
	w.appendNamed(s, "defer", session.Message(session.RoleAssistant, session.Text("Use defer file.Close() and be done.")))
	w.names[must[string](w.t)(s.SetLabel(ask, "the first question"))] = "label"
	w.appendNamed(s, "title", session.Name("Leaking descriptors"))
	w.appendNamed(s, "tags", session.Tags("golang", "forge/bug"))
	w.add(s, session.Pinned(true))
}

// beta speaks in many tongues, a month later.
func (w *world) beta() {
	w.now = w.now.AddDate(0, 1, 0)
	s := w.create(session.Header{ID: "beta", CWD: "/home/ann/webshop"})
	defer s.Close()
	w.appendNamed(s, "tongues", session.Message(session.RoleUser, session.Text("Crème brûlée: 中文字处理 と ひらがな and 한국어, camelcase 🚀")))
	w.appendNamed(s, "cases", session.Message(session.RoleAssistant, session.Text("We leak nothing here. snake_case and camelCase and kebab-case.")))
	w.add(s, session.Tags("forge", "forgery"))
}

// gamma was imported, touched files, and started a subagent.
func (w *world) gamma() {
	s := w.create(session.Header{ID: "gamma", CWD: `C:\work\Web`, Extra: imported("fe5e1c67-1111")})
	defer s.Close()
	w.appendNamed(s, "oak", session.Message(session.RoleUser, session.Text("plant an oak")))
	w.appendNamed(s, "patch", answer("r2", "gpt-9-unknown", session.Usage{Input: 100, Output: 50}, session.ToolUse("c1", "apply_patch", map[string]any{
		"input": "*** Begin Patch\n*** Update File: src\\main.go\n+x\n*** End Patch",
	}), session.ToolUse("c2", "read", map[string]any{"path": "/etc/Hosts"})))
	sub := w.create(session.Header{ID: "sub", ParentSession: "gamma", Relation: session.RelationSubagent, Extra: imported("fe5e1c67-1111/agent-1")})
	defer sub.Close()
	w.appendNamed(sub, "acorn", session.Message(session.RoleUser, session.Text("count the acorns of the oak")))
	w.appendNamed(sub, "read", session.Message(session.RoleAssistant, session.ToolUse("c1", "read", map[string]any{"path": "store/main.go"})))
}

// delta is a fork of beta.
func (w *world) delta() {
	s := must[*session.Session](w.t)(session.Open(w.t.Context(), w.st, "beta", w.options()))
	defer s.Close()
	fork := must[*session.Session](w.t)(s.Fork(w.t.Context(), w.st, &session.ForkOptions{
		Header: &session.Header{ID: "delta", ParentSession: "beta", Relation: session.RelationFork, CWD: "/home/ann"}, Options: w.options(),
	}))
	defer fork.Close()
	w.appendNamed(fork, "ours", session.Message(session.RoleUser, session.Text("the fork leaked")))
	w.appendNamed(fork, "fork title", session.Name("äpfel"))
}

// chain is three sessions that continue each other. Each has the prompt and says two things, for 10 tokens.
func (w *world) chain() {
	s := w.create(session.Header{CWD: "/src", Key: "tg:7"})
	prompt := w.appendNamed(s, "prompt", session.Message(session.RoleSystem, session.Text("never say xylophone")))
	for n, word := range []string{"first", "second", "third"} {
		if n > 0 {
			next := must[*session.Session](w.t)(s.Continue(must[session.Entry](w.t)(s.Entry(prompt))))
			w.check(s.Close())
			s = next
		}
		w.links = append(w.links, s.ID())
		w.names[s.ID()] = fmt.Sprintf("link%d", n+1)
		w.appendNamed(s, word+"?", session.Message(session.RoleUser, session.Text(word+" turnip")))
		w.appendNamed(s, word+"!", answer("r-"+word, "claude-opus-4-1", session.Usage{Input: 4, Output: 6}, session.Text(word+" parsnip"),
			session.ToolUse("c-"+word, "read", map[string]any{"path": "deep/" + word + ".go"})))
		w.add(s, session.Tags("veg/"+word))
	}
	w.check(s.Close())
}

// odd is a log with whatever logs may have: long ids, NUL, and what is no UTF-8.
func (w *world) odd() {
	line := func(id, parent, rest string) []byte {
		if parent != "null" {
			parent = `"` + parent + `"`
		}
		w.now = w.now.Add(time.Second)
		return fmt.Appendf(nil, `{"id":%q,"parent_id":%s,"timestamp":%q,%s}`, id, parent, w.now.Format(time.RFC3339), rest)
	}
	first, second := w.long+"1", w.long+"2"
	w.names[first], w.names[second], w.names["n"] = "nul", "odd tool", "odd title"
	log := must[store.Log](w.t)(w.st.Create(w.t.Context(), "odd", store.Lines(
		fmt.Appendf(nil, `{"type":"session","id":"odd","version":1,"timestamp":%q,"cwd":"/od\u0000d/`+strings.Repeat("d", 3000)+`","key":"`+strings.Repeat("k", 3000)+`"}`, w.now.Format(time.RFC3339)),
		line(first, "null", `"type":"message","message":{"role":"user","content":[{"type":"text","text":{"content":"zero\u0000byte bad`+"\xff\xfe"+`utf `+strings.Repeat("w", 100_000)+` behind `+strings.Repeat("many words ", 5_000)+`lastly"}}]}`),
		line(second, first, `"type":"message","message":{"role":"assistant","model":"mo\u0000del","content":[{"type":"tool_use","tool_use":{"id":"c","name":"to\u0000ol`+strings.Repeat("t", 3000)+`","input":{"path":"/`+strings.Repeat("p", 3000)+`"}}}]}`),
		line("t", second, `"type":"custom","custom":{"custom_type":"`+session.CustomTags+`","data":{"tags":["ta\u0000g","`+strings.Repeat("g", 3000)+`"]}}`),
		line("n", "t", `"type":"session_info","session_info":{"name":"Zz`+strings.Repeat(" title", 600)+`"}`),
	)))
	w.check(log.Close())
}
