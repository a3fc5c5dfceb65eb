package home_test

import (
	"errors"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/agent/summary"
	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/providertest"
	"github.com/coppice-dev/coppice/session"
)

// answering starts a server that answers with a text, and opens a home whose settings lead
// there.
func answering(t *testing.T, text string, more ...func(*providertest.Answer)) (*house, *providertest.Server) {
	t.Helper()
	server := providertest.New(t, func(*providertest.Request) providertest.Answer {
		a := providertest.Answer{Message: session.MessageEntry{
			Content: []session.Content{session.Text(text)}, Usage: &session.Usage{Input: 100, Output: 10},
		}}
		for _, change := range more {
			change(&a)
		}
		return a
	})
	h := newHouse(t)
	h.Home = h.open(&home.Options{Create: true, Settings: settings(t, env{
		"HOME": t.TempDir(), "COPPICE_MODEL": "anthropic/claude-x", "COPPICE_BASE_URL": server.URL,
	})})
	return h, server
}

// longStory begins a session that is worth a summary: two questions with long answers,
// between which a file was read.
func (h *house) longStory() *session.Session {
	h.Helper()
	s := h.say(session.Header{}, "Where does the parser lose tokens?")
	for _, m := range []struct {
		role    session.MessageRole
		content session.Content
	}{
		{session.RoleAssistant, session.ToolUse("c1", "read", map[string]any{"path": "parser.go"})},
		{session.RoleTool, session.ToolResult("c1", strings.Repeat("a line of code\n", 200), false)},
		{session.RoleAssistant, session.Text("In the lexer." + strings.Repeat(" It is a long story.", 200))},
		{session.RoleUser, session.Text("Repair it.")},
		{session.RoleAssistant, session.Text("Done.")},
	} {
		if _, err := s.AppendMessage(m.role, []session.Content{m.content}); err != nil {
			h.Fatal(err)
		}
	}
	return s
}

// kept is how much the tests below keep: the last question and its answer.
var kept = 20

func TestModelWritesTheSummaryOfACompaction(t *testing.T) {
	t.Parallel()
	h, server := answering(t, "## Goal\nThe lexer lost tokens.")
	s := h.longStory()
	request := home.CompactRequest{Session: s.ID(), KeepTokens: &kept, Auto: &home.AutoRequest{Instructions: "mind the lexer"}}

	request.DryRun = true
	if plan, err := h.Entries.Compact(t.Context(), request); err != nil || plan.Entry != "" || plan.Auto != nil || len(server.Requests()) > 0 {
		t.Fatalf("a dry run: %+v, %v; the model was asked %d times", plan, err, len(server.Requests()))
	}
	request.DryRun = false
	done, err := h.Entries.Compact(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	if a := done.Auto; a == nil || a.Provider != "anthropic" || a.Model != "claude-x" || a.Requests != 1 || a.Usage.Input != 100 {
		t.Errorf("the result says %+v", done.Auto)
	}
	if body := string(server.Requests()[0].Body); !strings.Contains(body, "mind the lexer") || !strings.Contains(body, "Where does the parser") {
		t.Errorf("the model was asked %s", body)
	}
	now, err := h.Entries.Context(t.Context(), home.ContextRequest{Session: s.ID()})
	if err != nil || now.Compaction != done.Entry {
		t.Fatalf("the compaction in force is %q, want %q (%v)", now.Compaction, done.Entry, err)
	}
	if _, err := s.Refresh(); err != nil {
		t.Fatal(err)
	}
	e, err := s.Entry(done.Entry)
	if err != nil || !strings.Contains(e.Compaction.Summary, "The lexer lost tokens.") || !reflect.DeepEqual(summary.FilesOf(&e).Read, []string{"parser.go"}) {
		t.Errorf("the compaction is %+v (%v)", e.Compaction, err)
	}
	if spent, err := session.SpentIn(s); err != nil || spent.Tokens() != 110 {
		t.Errorf("the session has cost %+v (%v)", spent, err)
	}
	if _, err := h.Entries.Revert(t.Context(), home.RevertRequest{Session: s.ID()}); err != nil {
		t.Errorf("it cannot be taken back: %v", err)
	}
}

// Whatever goes wrong, the conversation stays as it was. What the attempts cost is in the log.
func TestModelThatFailsChangesNothing(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*providertest.Answer)
		is     error
		paid   bool
	}{
		"refused": {func(a *providertest.Answer) { a.Status, a.Body = http.StatusUnauthorized, `{"error":{"message":"no"}}` }, provider.ErrDenied, false},
		"empty":   {func(a *providertest.Answer) { a.Message.Content = []session.Content{session.Text("  ")} }, nil, true},
		"too long": {func(a *providertest.Answer) {
			a.Message.Content = []session.Content{session.Text(strings.Repeat("much ", 5000))}
		}, nil, true},
	} {
		h, server := answering(t, "", tt.change)
		s := h.longStory()
		ids := h.ids(s)
		_, compact := h.Entries.Compact(t.Context(), home.CompactRequest{Session: s.ID(), KeepTokens: &kept, Auto: &home.AutoRequest{}})
		_, rename := h.Sessions.Rename(t.Context(), home.RenameRequest{Session: s.ID(), Auto: &home.AutoRequest{}})
		_, branch := h.Entries.Branch(t.Context(), home.BranchRequest{Session: s.ID(), Entry: ids[0], Auto: &home.AutoRequest{}})
		for op, err := range map[string]error{"compact": compact, "rename": rename, "branch": branch} {
			if err == nil || tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("%s, %s: %v", name, op, err)
			}
		}
		if _, err := s.Refresh(); err != nil {
			t.Fatal(err)
		}
		bills := 0
		for _, id := range h.ids(s)[len(ids):] {
			e, err := s.Entry(id)
			switch _, ok := session.BillOf(&e); {
			case ok:
				bills++
			case err != nil || e.Custom == nil || e.Custom.CustomType != session.CustomAsking && e.Custom.CustomType != session.CustomRequest:
				t.Errorf("%s: the session has a new entry %+v (%v)", name, e, err)
			}
		}
		if sent := h.why(home.WhyRequest{Session: s.ID()}); len(sent) != len(server.Requests()) {
			t.Errorf("%s: %d requests, and the log has %+v", name, len(server.Requests()), sent)
		}
		if tt.paid && bills != len(server.Requests()) || !tt.paid && bills > 0 {
			t.Errorf("%s: %d requests, and %d bills in the log", name, len(server.Requests()), bills)
		}
		if len(server.Requests()) < 3 {
			t.Errorf("%s: the model was asked %d times", name, len(server.Requests()))
		}
	}
}

func (h *house) ids(s *session.Session) []string {
	h.Helper()
	shape, err := s.Shape()
	if err != nil {
		h.Fatal(err)
	}
	return shape.IDs()
}

// A summary takes a while. That somebody goes on with the conversation in the meantime
// does not spoil it.
func TestConversationMayGoOnWhileAModelWrites(t *testing.T) {
	t.Parallel()
	var s *session.Session
	h, _ := answering(t, "## Goal\nThe lexer lost tokens.", func(*providertest.Answer) {
		if _, err := s.AppendMessage(session.RoleUser, []session.Content{session.Text("Thanks!")}); err != nil {
			t.Error(err)
		}
	})
	s = h.longStory()
	done, err := h.Entries.Compact(t.Context(), home.CompactRequest{Session: s.ID(), KeepTokens: &kept, Auto: &home.AutoRequest{}})
	if err != nil {
		t.Fatal(err)
	}
	now, err := h.Entries.Context(t.Context(), home.ContextRequest{Session: s.ID()})
	if err != nil || now.Compaction != done.Entry {
		t.Fatalf("the compaction in force is %q, want %q (%v)", now.Compaction, done.Entry, err)
	}
	if last := now.Entries[len(now.Entries)-1]; session.TextOf(last.Message.Content) != "Thanks!" {
		t.Errorf("the context ends with %+v", last.Message)
	}
	if _, err := s.Refresh(); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Entries.Branch(t.Context(), home.BranchRequest{Session: s.ID(), Entry: h.ids(s)[0], Auto: &home.AutoRequest{}}); home.KindOf(err) != home.KindConflict {
		t.Errorf("a summary of a branch that has grown: %v", err)
	}
}

// Sessions that continue each other are one conversation for a model too.
func TestModelWritesAboutAllSessionsOfAConversation(t *testing.T) {
	t.Parallel()
	h, server := answering(t, "## Goal\nThe lexer lost tokens.")
	first := h.longStory()
	second, err := first.Continue()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = second.Close() })
	if _, err := second.AppendMessage(session.RoleUser, []session.Content{session.Text("And now the docs.")}); err != nil {
		t.Fatal(err)
	}
	done, err := h.Entries.Compact(t.Context(), home.CompactRequest{Session: first.ID(), KeepTokens: &kept, Auto: &home.AutoRequest{}})
	if err != nil {
		t.Fatal(err)
	}
	now, err := h.Entries.Context(t.Context(), home.ContextRequest{Session: second.ID()})
	if err != nil || now.Compaction == "" || now.Compaction != done.Entry {
		t.Errorf("the compaction in force is %q, want %q (%v)", now.Compaction, done.Entry, err)
	}
	named, err := h.Sessions.Rename(t.Context(), home.RenameRequest{Session: first.ID(), Auto: &home.AutoRequest{}})
	if err != nil || named.Session != second.ID() {
		t.Fatalf("%+v, %v", named, err)
	}
	if body := string(server.Requests()[1].Body); !strings.Contains(body, "The lexer lost tokens") || !strings.Contains(body, "And now the docs") {
		t.Errorf("the title is made from %s", body)
	}
}

func TestModelChoosesTheName(t *testing.T) {
	t.Parallel()
	h, _ := answering(t, `"The lexer that lost tokens"`)
	s := h.longStory()
	named, err := h.Sessions.Rename(t.Context(), home.RenameRequest{Session: s.ID(), Auto: &home.AutoRequest{}})
	if err != nil || named.Name != "The lexer that lost tokens" || named.Auto == nil {
		t.Fatalf("%+v, %v", named, err)
	}
	if _, err := s.Refresh(); err != nil {
		t.Fatal(err)
	}
	if spent, err := session.SpentIn(s); err != nil || spent.Tokens() != 110 {
		t.Errorf("the session has cost %+v (%v)", spent, err)
	}
	empty := h.say(session.Header{})
	if _, err := h.Sessions.Rename(t.Context(), home.RenameRequest{Session: empty.ID(), Auto: &home.AutoRequest{}}); home.KindOf(err) != home.KindInvalid {
		t.Errorf("a name for nothing: %v", err)
	}
}

func TestTextIsGivenOrWritten(t *testing.T) {
	t.Parallel()
	h, server := answering(t, "## Goal\nTokens.")
	s, auto := h.longStory(), &home.AutoRequest{}
	for op, err := range map[string]error{
		"rename":  second(h.Sessions.Rename(t.Context(), home.RenameRequest{Session: s.ID(), Name: "x", Auto: auto})),
		"compact": second(h.Entries.Compact(t.Context(), home.CompactRequest{Session: s.ID(), KeepTokens: &kept, Summary: "x", Auto: auto})),
		"branch":  second(h.Entries.Branch(t.Context(), home.BranchRequest{Session: s.ID(), Entry: h.ids(s)[0], Summary: "x", Auto: auto})),
	} {
		if home.KindOf(err) != home.KindInvalid {
			t.Errorf("%s with both: %v", op, err)
		}
	}
	if n := len(server.Requests()); n > 0 {
		t.Errorf("the model was asked %d times", n)
	}
}

func TestModelSummarisesTheBranchThatIsLeft(t *testing.T) {
	t.Parallel()
	h, server := answering(t, "## Goal\nIt was the lexer.")
	s := h.longStory()
	first := h.ids(s)[0]
	moved, err := h.Entries.Branch(t.Context(), home.BranchRequest{Session: s.ID(), Entry: first, Auto: &home.AutoRequest{}})
	if err != nil || !moved.Moved || moved.Auto == nil {
		t.Fatalf("%+v, %v", moved, err)
	}
	if _, err := s.Refresh(); err != nil {
		t.Fatal(err)
	}
	e, err := s.Entry(moved.Leaf)
	if err != nil || e.BranchSummary == nil || !strings.Contains(e.BranchSummary.Summary, "It was the lexer.") {
		t.Fatalf("the leaf is %+v (%v)", e, err)
	}
	if spent, err := session.SpentIn(s); err != nil || spent.Tokens() != 110 {
		t.Errorf("the session has cost %+v (%v)", spent, err)
	}
	asked := len(server.Requests())
	again, err := h.Entries.Branch(t.Context(), home.BranchRequest{Session: s.ID(), Entry: moved.Leaf, Auto: &home.AutoRequest{}})
	if err != nil || again.Moved || len(server.Requests()) != asked {
		t.Errorf("where the leaf is already: %+v, %v", again, err)
	}
}

// Without a model in the settings, the built-in one writes, and a notice says so.
func TestBuiltInModelWritesByDefault(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	var asked []home.Notice
	h.Home = h.open(&home.Options{Create: true, Notify: func(n home.Notice) {
		if n.Kind == home.ModelAsked {
			asked = append(asked, n)
		}
	}})
	s := h.longStory()
	for op, err := range map[string]error{
		"compact": second(h.Entries.Compact(t.Context(), home.CompactRequest{Session: s.ID(), KeepTokens: &kept, Auto: &home.AutoRequest{}})),
		"rename":  second(h.Sessions.Rename(t.Context(), home.RenameRequest{Session: s.ID(), Auto: &home.AutoRequest{}})),
	} {
		if err != nil {
			t.Errorf("%s: %v", op, err)
		}
	}
	if len(asked) != 2 || !asked[0].ByDefault || asked[0].Provider != "offline" {
		t.Errorf("the notices are %+v", asked)
	}
	_, err := h.Entries.Compact(t.Context(), home.CompactRequest{
		Session: h.longStory().ID(), KeepTokens: &kept, Auto: &home.AutoRequest{ModelChoice: home.ModelChoice{Model: "anthropic/c"}},
	})
	if !errors.Is(err, provider.ErrDenied) {
		t.Errorf("another model without a key: %v", err)
	}
}

func second[T any](_ T, err error) error { return err }
