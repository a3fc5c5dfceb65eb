package home_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/session"
)

// A card says what is needed to take a conversation up again.
func TestCardTellsWhereAConversationEnded(t *testing.T) {
	t.Parallel()
	h, id := cardHome(t)
	card, err := h.Sessions.Card(t.Context(), home.SessionRequest{Session: id})
	if err != nil {
		t.Fatal(err)
	}
	if card.First != "Make the parser faster" || card.Last != "Go on" || card.Answer != "I have changed the lexer.\n\nTests come next." || card.AnswerEntry == "" {
		t.Errorf("what was said: %+v", card)
	}
	if want := []home.CardTodo{{Text: "lexer", State: render.TodoDone}, {Text: "tests", State: render.TodoActive}}; !cmp.Equal(card.Todos, want) {
		t.Error(cmp.Diff(want, card.Todos))
	}
	if s := card.Step; s == nil || s.Tool != "bash" || s.Gist != "bash go test ./..." || s.Outcome != "" {
		t.Errorf("the last step: %+v", s)
	}
	if len(card.Open) != 1 || card.Open[0].Gist != "bash go test ./..." || card.Open[0].State != agent.CallNew || !card.Unfinished {
		t.Errorf("what is open: %+v, %v", card.Open, card.Unfinished)
	}
	var files []string
	for _, f := range card.Files {
		files = append(files, fmt.Sprint(f.Path, " ", f.Changes))
	}
	if got := strings.Join(files, ", "); got != "lexer.go 2, old.go 1" { // the edit that failed does not count
		t.Errorf("files: %s", got)
	}
	if card.Spent.Output != 30 || card.Session.Title != "Make the parser faster" || card.Model != "claude-sonnet-4-5" || card.Window != 200_000 {
		t.Errorf("numbers: %+v", card)
	}
	if !card.Whole || card.Read == 0 || card.Working != nil {
		t.Errorf("read %d, whole %v, working %v", card.Read, card.Whole, card.Working)
	}
}

// However long a conversation is, a card reads only its end; the beginning says what was asked.
func TestCardReadsOnlyTheEnd(t *testing.T) {
	t.Parallel()
	h, id := cardHome(t)
	for i := range 300 {
		sayIn(t, h, id, session.RoleUser, session.Text(fmt.Sprint("more ", i)))
		sayIn(t, h, id, session.RoleAssistant, session.Text("yes"))
	}
	card, err := h.Sessions.Card(t.Context(), home.SessionRequest{Session: id})
	if err != nil || card.Whole || card.Read >= 600 || card.Read < 100 {
		t.Fatalf("read %d, whole %v, %v", card.Read, card.Whole, err)
	}
	if card.First != "Make the parser faster" || card.Last != "more 299" || card.Answer != "yes" || card.Unfinished || len(card.Files) != 0 {
		t.Errorf("%+v", card)
	}
	if card.Spent.Output != 30 { // the index has counted all of it
		t.Errorf("spent: %+v", card.Spent)
	}
}

// Of a call that waits for a person, the card says so; what an empty session has is nothing.
func TestCardTellsWhatWaits(t *testing.T) {
	t.Parallel()
	h, id := cardHome(t)
	entry := session.Custom(session.CustomCalls, map[string]any{"state": string(agent.CallWaiting), "calls": []any{"c5"}})
	appendTo(t, h, id, &entry)
	card, err := h.Sessions.Card(t.Context(), home.SessionRequest{Session: id})
	if err != nil || len(card.Open) != 1 || card.Open[0].State != agent.CallWaiting {
		t.Errorf("%+v, %v", card.Open, err)
	}
	empty, err := h.Sessions.Create(t.Context(), home.CreateRequest{})
	if err != nil {
		t.Fatal(err)
	}
	card, err = h.Sessions.Card(t.Context(), home.SessionRequest{Session: empty.Session})
	if err != nil || card.First != "" || card.Step != nil || card.Unfinished || !card.Whole {
		t.Errorf("an empty session: %+v, %v", card, err)
	}
	if _, err := h.Sessions.Card(t.Context(), home.SessionRequest{Session: "nothing"}); home.KindOf(err) != home.KindNotFound {
		t.Errorf("no session: %v", err)
	}
}

func cardHome(t *testing.T) (*home.Home, string) {
	t.Helper()
	h, err := home.Open(t.Context(), t.TempDir(), &home.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	made, err := h.Sessions.Create(t.Context(), home.CreateRequest{})
	if err != nil {
		t.Fatal(err)
	}
	id := made.Session
	use := func(id, name string, input map[string]any) session.Content { return session.ToolUse(id, name, input) }
	edit := func(path string) map[string]any {
		return map[string]any{"file_path": path, "old_string": "a", "new_string": "b"}
	}
	sayIn(t, h, id, session.RoleUser, session.Text("Make the parser faster"))
	sayIn(t, h, id, session.RoleAssistant, use("c1", "Edit", edit("lexer.go")), use("c2", "Edit", edit("gone.go")), use("c3", "Edit", edit("old.go")))
	sayIn(t, h, id, session.RoleUser, session.ToolResult("c1", "ok", false), session.ToolResult("c2", "no such file", true), session.ToolResult("c3", "ok", false))
	sayIn(t, h, id, session.RoleAssistant, use("c4", "Edit", edit("lexer.go")), use("t1", "TodoWrite", map[string]any{"todos": []any{
		map[string]any{"content": "lexer", "status": "completed"}, map[string]any{"content": "tests", "status": "in_progress"},
	}}))
	sayIn(t, h, id, session.RoleUser, session.ToolResult("c4", "ok", false), session.ToolResult("t1", "ok", false))
	sayIn(t, h, id, session.RoleAssistant, session.Text("I have changed the lexer."), session.Text("Tests come next."))
	sayIn(t, h, id, session.RoleUser, session.Text("Go on"))
	sayIn(t, h, id, session.RoleAssistant, use("c5", "bash", map[string]any{"command": "go test ./..."}))
	return h, id
}

func sayIn(t *testing.T, h *home.Home, id string, role session.MessageRole, content ...session.Content) {
	t.Helper()
	e := session.Message(role, content...)
	if role == session.RoleAssistant && content[0].ToolUse != nil {
		e.Message.Model, e.Message.Usage = "claude-sonnet-4-5", &session.Usage{Output: 10}
	}
	appendTo(t, h, id, &e)
}

func appendTo(t *testing.T, h *home.Home, id string, e *session.Entry) {
	t.Helper()
	c, err := h.Conversation(t.Context(), home.OpenRequest{Session: id})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.AppendEntry(*e); err != nil {
		t.Fatal(err)
	}
}

// Forks are under their parents, and sessions in which nothing was said are left out, if the
// caller wants a list of what there is at all; each row says how many are under it.
func TestListOfRoots(t *testing.T) {
	t.Parallel()
	h, id := cardHome(t)
	fork, err := h.Sessions.Fork(t.Context(), home.ForkRequest{Session: id})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Sessions.Create(t.Context(), home.CreateRequest{}); err != nil { // an empty one
		t.Fatal(err)
	}
	list := func(r home.ListRequest) (ids []string) {
		t.Helper()
		l, err := h.Sessions.List(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range l.Sessions {
			ids = append(ids, fmt.Sprint(s.ID, " ", s.Forks))
			if r.Total && *l.Total != 1 {
				t.Errorf("there are %d", *l.Total)
			}
			if (s.Cost != nil) != r.Cost || r.Cost && s.ID == id && s.Cost.Output != 30 {
				t.Errorf("%s cost %+v", s.ID, s.Cost)
			}
		}
		return ids
	}
	if got := list(home.ListRequest{Roots: true, Nonempty: true, Cost: true, Total: true}); !cmp.Equal(got, []string{id + " 1"}) {
		t.Errorf("roots: %v", got)
	}
	if got := list(home.ListRequest{Parent: id}); !cmp.Equal(got, []string{fork.Session + " 0"}) {
		t.Errorf("children: %v", got)
	}
	if got := list(home.ListRequest{}); len(got) != 3 {
		t.Errorf("all: %v", got)
	}
	if _, err := h.Sessions.Remove(t.Context(), home.RemoveRequest{Session: id}); err != nil {
		t.Fatal(err)
	}
	if got := list(home.ListRequest{Roots: true, Nonempty: true}); !cmp.Equal(got, []string{fork.Session + " 0"}) {
		t.Errorf("without the parent: %v", got)
	}
}
