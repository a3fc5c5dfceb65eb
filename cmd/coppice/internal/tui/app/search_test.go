package app_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/file"
)

// garden has two conversations, and the UI on them.
func garden(t *testing.T) *driver {
	t.Helper()
	h := newHome(t)
	talk(t, h, "Garden", "Which trees can be coppiced?", "Hazel and willow.")
	talk(t, h, "Kitchen", "How long do eggs boil?", "Seven minutes.")
	d := drive(t, h)
	d.sees("Garden", "Kitchen")
	return d
}

// TestQuotesAreClosedWhileTheyAreTyped finds a phrase before its end is typed.
func TestQuotesAreClosedWhileTheyAreTyped(t *testing.T) {
	t.Parallel()
	d := garden(t)
	d.press("/", `"`)
	d.sees("Garden", "Kitchen")
	d.types("hazel and")
	d.loses("Kitchen")
	d.sees("1 hit", "Garden")
	d.types(` willow" `)
	d.sees("1 hit", "Garden")
}

// TestSearchStaysWhenTheBoxIsLeft goes to the list with what the beginning of a word has found.
func TestSearchStaysWhenTheBoxIsLeft(t *testing.T) {
	t.Parallel()
	d := garden(t)
	d.press("/")
	d.types("haz")
	d.sees("[Hazel]")
	d.press("enter")
	d.sees("sessions › Garden")
	for range 2 { // the first one may end the search there
		if strings.Contains(d.screen(), "sessions › Garden") {
			d.press("esc")
		}
	}
	d.loses("sessions › Garden")
	talk(t, d.home, "Wood", "Hazard", "None.")
	d.sees("[Hazard]", "[Hazel]") // it was read again
}

func TestSearchSaysWhatMayHaveBeenMeant(t *testing.T) {
	t.Parallel()
	d := garden(t)
	d.press("/")
	d.types("wilow")
	d.sees("nothing was found", "did you mean: willow")
	if strings.Contains(d.screen(), "the newest of more") {
		t.Error("it speaks of more than nothing")
	}
}

// TestSearchReadsWhatIsOnTheScreen and nothing else: each page costs as much as the whole search.
func TestSearchReadsWhatIsOnTheScreen(t *testing.T) {
	t.Parallel()
	var from atomic.Int64
	d := drive(t, overhear(t, many(t, 70), func(_ context.Context, request any) {
		if r, ok := request.(*home.FindRequest); ok {
			from.Store(max(from.Load(), int64(r.Offset)))
		}
	}))
	d.press("/")
	d.types("question")
	d.sees("[question] 0068")
	d.types(" 0069")
	d.loses("0068") // and what was begun for the word before is begun by now
	if n := from.Load(); n != 0 {
		t.Errorf("it read hits from %d on", n)
	}
	d.press("backspace", "backspace", "backspace", "backspace", "backspace")
	d.sees("[question] 0068")
	d.press("tab", "G")
	d.until("the last hits", func(string) bool { return from.Load() > 0 })
}

// TestEnterAfterFilters goes to the list: nothing was looked for in the sessions.
func TestEnterAfterFilters(t *testing.T) {
	t.Parallel()
	d := garden(t)
	d.press("/")
	d.types("since:7d")
	d.sees("2 sessions", "Enter to the list")
	d.press("enter", "down", "s")
	d.sees("pinned “Garden”")
}

// TestSearchInSeveralTexts says that no text has all the words.
func TestSearchInSeveralTexts(t *testing.T) {
	t.Parallel()
	d := garden(t)
	d.press("/")
	d.types("trees hazel")
	d.sees("Garden", "2 hits", "in several texts each · 1 session")
	d.types(" willow")
	d.sees("in several texts each")
	d.press("esc")
	d.loses("in several texts each")
}

// TestSearchForAFile lists the sessions in which a tool touched it.
func TestSearchForAFile(t *testing.T) {
	t.Parallel()
	d := garden(t)
	id := talk(t, d.home, "Wood", "Read the plan", "Reading.")
	call := session.MessageEntry{Role: session.RoleAssistant, Content: []session.Content{session.ToolUse("c", "read", map[string]any{"path": "trees/plan.md"})}}
	if _, err := d.home.Entries.Append(t.Context(), home.AppendRequest{Session: id, Message: &call}); err != nil {
		t.Fatal(err)
	}
	d.press("/")
	d.types("file:pl")
	d.sees("/ file:plan.md") // the rest is offered
	d.press("tab")
	d.loses("Garden")
	d.sees("file:plan.md", "1 session", "Wood")
	d.types("hazel")
	d.sees("nothing was found")
}

// TestEarlierSearchesAndCommands come back with the up key.
func TestEarlierSearchesAndCommands(t *testing.T) {
	t.Parallel()
	d := garden(t)
	for _, words := range []string{"hazel", "eggs"} {
		d.press("/")
		d.types(words)
		d.sees("1 hit")
		d.press("esc")
		d.sees("2 sessions")
	}
	d.press("/", "up")
	d.sees("/ eggs", "1 hit", "Kitchen")
	d.press("up")
	d.sees("/ hazel", "1 hit", "Garden")
	d.press("esc")
	for _, line := range []string{"one", "two"} {
		d.press(":")
		d.types(line)
		d.press("enter")
		d.sees("is not a command")
	}
	d.press(":", "up", "up")
	d.sees(": one")
	d.press("down", "enter")
	d.sees(`"two" is not a command`)
}

func TestCommandsThatAreNoneOfAShell(t *testing.T) {
	t.Parallel()
	d := garden(t)
	for line, want := range map[string]string{`tag % +a"b`: "a quote is not closed", "show % | head": "there are no pipes"} {
		d.press(":")
		d.types(line)
		d.press("enter")
		d.sees(want)
	}
}

// TestTagsAreEdited begins with the tags that a session has.
func TestTagsAreEdited(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	id := talk(t, h, "Garden", "Which trees?", "Hazel.")
	if _, err := h.Sessions.Tag(t.Context(), home.TagRequest{Session: id, Add: []string{"old", "two words"}}); err != nil {
		t.Fatal(err)
	}
	d := drive(t, h)
	d.sees("Garden")
	d.press("T")
	d.sees("tags old 'two words'")
	d.press("home", "delete", "delete", "delete", "end")
	d.types(`"three more words"`)
	d.press("enter")
	d.sees("tagged “Garden”")
	info, err := h.Sessions.Get(t.Context(), home.SessionRequest{Session: id})
	if err != nil || strings.Join(info.Tags, ",") != "three more words,two words" {
		t.Errorf("%q, %v", info.Tags, err)
	}
}

func TestRenameBeginsWithTheTitle(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	id := talk(t, h, "", "Which trees?", "Hazel.")
	d := drive(t, h)
	d.sees("Which trees?")
	d.press("R")
	d.sees("rename to Which trees?")
	d.press("enter")
	if info, err := h.Sessions.Get(t.Context(), home.SessionRequest{Session: id}); err != nil || info.Named {
		t.Errorf("it has a name that was not given: %v", err)
	}
}

// TestSubagentsAreListedIfThereIsNothingElse filters by a project in which only a subagent worked.
func TestSubagentsAreListedIfThereIsNothingElse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	st, err := file.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, head := range []session.Header{
		{ID: "lead", CWD: "/src/garden"},
		{ID: "helper", CWD: "/src/elsewhere", ParentSession: "lead", Relation: session.RelationSubagent},
	} {
		s, err := session.Create(t.Context(), st, head, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.AppendMessage(session.RoleUser, []session.Content{session.Text("I am the " + head.ID)}); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	h := openHome(t, dir, nil)
	d := drive(t, h)
	d.sees("I am the lead", "1 session")
	d.loses("I am the helper")
	d.press("/")
	d.types("project:elsewhere ")
	d.sees("I am the helper", "1 session")
}
