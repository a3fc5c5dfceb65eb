package app_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/coppice-dev/coppice/cmd/coppice/internal/tui/app"
	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/file"
)

// many makes a home with so many sessions, the last of which is the latest.
func many(t *testing.T, n int) *home.Home {
	t.Helper()
	dir := t.TempDir()
	st, err := file.Open(dir, &file.Options{Sync: file.Never})
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now().Add(-time.Duration(n-1) * time.Hour) // the last one is of today
	for i := range n {
		at := begin.Add(time.Duration(i) * time.Hour)
		s, err := session.Create(t.Context(), st, session.Header{CreatedAt: at, CWD: fmt.Sprintf("/src/p%d", i%3)}, &session.Options{Now: func() time.Time { return at }})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.AppendMessage(session.RoleUser, []session.Content{session.Text(fmt.Sprintf("question %04d", i))}); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	return openHome(t, dir, nil)
}

func TestAnEmptyHomeSaysWhatToDo(t *testing.T) {
	t.Parallel()
	d := drive(t, newHome(t))
	d.sees("there are no sessions yet", ":import --all", "0 sessions")
	d.press("enter") // a key that cannot work says why
	d.sees("open: nothing is selected")
	for _, k := range []string{"c", "y", "delete", "X", "tab", "space"} {
		d.press(k)
	}
	if d.quit {
		t.Error("it ended")
	}
}

func TestSessionsOfThousandsScroll(t *testing.T) {
	t.Parallel()
	d := drive(t, many(t, 2500))
	d.sees("question 2499", "2,500 sessions", "today")
	d.press("G")
	d.sees("question 0000")
	d.press("g")
	d.sees("question 2499")
	for range 40 {
		d.press("pgdown")
	}
	d.until("a page in the middle", func(screen string) bool {
		return strings.Contains(screen, "question 1") && !strings.Contains(screen, "…\n")
	})
	for _, size := range [][2]int{{60, 20}, {80, 24}, {120, 40}, {200, 60}} {
		d.size(size[0], size[1])
		d.fits(size[0], size[1])
	}
	d.press("b")
	d.sees("the latest 1,000", "question")
}

func TestSearchAsYouType(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	talk(t, h, "Garden", "Which trees can be coppiced?", "Hazel and willow.")
	talk(t, h, "Kitchen", "How long do eggs boil?", "Seven minutes.")
	d := drive(t, h)
	d.sees("Garden", "Kitchen")
	d.press("/")
	d.types("haz") // the beginning of a word
	d.loses("Kitchen")
	d.sees("Garden", "[Hazel] and willow", "1 hit")
	d.types("xyz")
	d.sees("nothing was found")
	d.press("esc")
	d.sees("Garden", "Kitchen")
	if _, err := h.Sessions.Tag(t.Context(), home.TagRequest{Session: "Kitchen", Add: []string{"food"}}); err != nil {
		t.Fatal(err)
	}
	d.press("/")
	d.types("tag:f")
	d.until("a suggestion", func(screen string) bool { return strings.Contains(screen, "/ tag:food") })
	d.press("tab")
	d.loses("Garden")
	d.sees("tag:food", "Kitchen")
	d.press("tab") // to the list, with what was found
	d.press("esc")
	d.sees("Garden", "Kitchen")
	d.press("/")
	d.types("nothing:here \"")
	d.fits(columns, rows)
}

// TestAnswersThatAreOvertakenAreDropped groups twice, and gets the first answer last.
func TestAnswersThatAreOvertakenAreDropped(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	talk(t, h, "Garden", "hello")
	d := drive(t, h)
	d.sees("today", "Garden")
	regroup := func() tea.Msg {
		var ask tea.Cmd
		d.app, ask = d.app.Update(tea.KeyPressMsg{Code: 'b', Text: "b"})
		return ask()
	}
	byProject := regroup()
	d.handle(regroup())
	d.handle(byProject)
	if screen := d.screen(); !strings.Contains(screen, "today") {
		t.Errorf("it is grouped by project:\n%s", screen)
	}
}

// TestListIsLive sees a session that another program begins, and what it says.
func TestListIsLive(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	talk(t, h, "First", "hello")
	d := drive(t, h)
	d.sees("First", "1 session")
	talk(t, h, "Second", "hello")
	d.sees("First", "Second", "2 sessions")
}

func TestForksAndEmptySessionsAreFolded(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	id := talk(t, h, "Garden", "Which trees?", "Hazel.")
	if _, err := h.Sessions.Fork(t.Context(), home.ForkRequest{Session: id}); err != nil {
		t.Fatal(err)
	}
	talk(t, h, "Nothing said")
	d := drive(t, h)
	d.sees("▸1 Garden", "1 session")
	d.loses("Nothing said")
	d.press("space")
	d.sees("▾ Garden", "fork Garden")
	d.press("space")
	d.loses("fork Garden")
	d.press("e")
	d.sees("Nothing said", "2 sessions")
}

func TestCardIsBesideAWideList(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	id := talk(t, h, "Garden", "Which trees can be coppiced?", "Hazel and willow.")
	d := drive(t, h)
	d.sees("Garden")
	if strings.Contains(d.screen(), "Hazel and willow") {
		t.Error("a narrow list has the card")
	}
	d.press("tab")
	d.sees("card", "asked", "Which trees can be coppiced?", "answer", "Hazel and willow.")
	d.press("esc")
	d.size(130, 40)
	d.sees("asked", "Which trees can be coppiced?", "Hazel and willow.")
	d.fits(130, 40)
	says(t, h, id, session.RoleUser, session.Text("And oak?"))
	says(t, h, id, session.RoleAssistant, session.Text("Oak, too."))
	d.sees("Oak, too.")
}

// TestActionsDoWhatTheCommandLineDoes does each with a key, and takes it back with another.
func TestActionsDoWhatTheCommandLineDoes(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	id := talk(t, h, "Garden", "Which trees?", "Hazel.")
	d := drive(t, h)
	d.sees("Garden")
	info := func() home.SessionInfo {
		t.Helper()
		found, err := h.Sessions.Get(t.Context(), home.SessionRequest{Session: id})
		if err != nil {
			t.Fatal(err)
		}
		return *found
	}
	undo := func() {
		t.Helper()
		d.press("u")
		d.sees("undone")
	}
	d.press("s")
	d.sees("pinned “Garden”", "★")
	if !info().Pinned {
		t.Error("it is not pinned")
	}
	d.press("delete")
	d.sees("is pinned") // and so it stays
	info()
	undo()
	if info().Pinned {
		t.Error("it is still pinned")
	}
	d.press("T")
	d.types("trees +shade")
	d.press("enter")
	d.sees("tagged “Garden”")
	if got := info().Tags; !slices.Equal(got, []string{"shade", "trees"}) {
		t.Errorf("tags: %v", got)
	}
	undo()
	if got := info().Tags; len(got) != 0 {
		t.Errorf("tags after undo: %v", got)
	}
	d.press("v", "g")
	d.sees("rated good: “Garden”")
	d.press("v", "b")
	d.sees("rated bad: “Garden”")
	undo()
	if got := info().Tags; len(got) != 1 || !strings.Contains(got[0], home.Good) {
		t.Errorf("the rating before: %v", got)
	}
	d.press("R")
	d.sees("rename to Garden")
	for range "Garden" {
		d.press("backspace")
	}
	d.types("Wood")
	d.press("enter")
	d.sees("renamed “Garden”", "Wood")
	undo()
	d.sees("Garden")
	if info().Title != "Garden" {
		t.Errorf("it is called %s", info().Title)
	}
	d.press("f")
	d.sees("forked “Garden”", "▸1 Garden")
	undo()
	d.loses("▸1")
	d.press("delete")
	d.sees("moved to the trash: “Garden”")
	d.sees("there are no sessions yet")
	undo()
	d.sees("Garden")
	info()
}

func TestActionsOnMarkedSessions(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	for _, title := range []string{"One", "Two", "Three"} {
		talk(t, h, title, "hello")
	}
	d := drive(t, h)
	d.sees("One", "Two", "Three")
	d.press("m", "m")
	d.sees("2 marked", "●")
	d.press("c")
	d.sees("chat: it takes one session, and 2 are marked")
	d.press("delete")
	d.sees("moved to the trash: 2 sessions", "1 session")
	d.loses("marked")
	d.press("u")
	d.sees("undone", "3 sessions", "One", "Two", "Three")
	d.press("m")
	d.sees("1 marked")
	d.press("esc")
	d.loses("marked")
}

func TestCopySaysWhatItCopied(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	talk(t, h, "Garden", "Which trees?", "Hazel.")
	talk(t, h, "Quiet", "Anybody there?")
	d := drive(t, h)
	d.sees("Garden", "Quiet")
	d.press("down", "y", "i")
	d.sees("copied the id")
	d.press("y", "r")
	d.sees("copied the command")
	d.press("y", "a")
	d.sees("copied the last answer")
	d.press("up", "y", "a")
	d.sees("there is no answer to copy")
	d.press("m", "m", "y")
	d.sees("copied 2 ids")
}

func TestExportAsksBeforeItReplaces(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	talk(t, h, "Garden", "Which trees?", "Hazel.")
	d := drive(t, h)
	d.sees("Garden")
	path := filepath.Join(t.TempDir(), "garden.md")
	export := func() {
		t.Helper()
		d.press("o", "m")
		d.sees("export to")
		for range 40 {
			d.press("backspace")
		}
		d.types(path)
		d.press("enter")
	}
	export()
	d.sees("wrote " + path[:20])
	text, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(text), "Hazel.") {
		t.Fatalf("%s, %v", text, err)
	}
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	d.press("down")
	export()
	d.sees("cannot be undone", "y replace it")
	d.press("esc")
	if text, err = os.ReadFile(path); string(text) != "mine" {
		t.Fatalf("it was replaced: %s, %v", text, err)
	}
	export()
	d.sees("y replace it")
	d.press("y")
	d.sees("wrote " + path[:20])
}

// TestRedactShowsWhatItFound looks first, says that it cannot be undone, and asks.
func TestRedactShowsWhatItFound(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	secret := "ghp_" + strings.Repeat("a1B2c3D4e5", 4)[:36]
	id := talk(t, h, "Garden", "my token is "+secret, "Keep it secret.")
	d := drive(t, h)
	d.sees("Garden")
	d.press("X")
	d.sees("1 secret found in 1 session", "github-token")
	if strings.Contains(d.screen(), secret) {
		t.Error("the review shows the secret")
	}
	d.press("X")
	d.sees("This cannot be undone", "y take out")
	d.press("esc")
	d.press("X", "y")
	d.sees("took out 1 secret")
	d.sees("0 secrets found")
	var said strings.Builder
	if _, err := h.Entries.Path(t.Context(), home.PathRequest{Session: id}, func(e session.Entry) error {
		if e.Message != nil {
			said.WriteString(e.Message.Content[0].Text.Content)
		}
		return nil
	}); err != nil || strings.Contains(said.String(), secret) || !strings.Contains(said.String(), "REDACTED") {
		t.Errorf("%s, %v", &said, err)
	}
}

// TestRedactKeepsWhatIsNoSecret leaves what was chosen with Space, and takes out the rest.
func TestRedactKeepsWhatIsNoSecret(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	kept, taken := "ghp_"+strings.Repeat("a1B2c3D4e5", 4)[:36], "ghp_"+strings.Repeat("z9Y8x7W6v5", 4)[:36]
	id := talk(t, h, "Garden", "one "+kept+" twice "+kept, "and "+taken)
	d := drive(t, h)
	d.sees("Garden")
	d.press("X")
	d.sees("2 secrets found in 1 session", "take  github-token")
	d.press("space") // the one that occurs more often comes first
	d.sees("keep  github-token", "Space take")
	d.press("G", "space")
	d.press("X")
	d.sees("all of them are kept")
	d.press("space", "X")
	d.sees("take out 1 secret and keep 1")
	d.press("y")
	d.sees("took out 1 secret")
	d.sees("1 secret found", "keep  github-token")
	read := func() (said string) {
		if _, err := h.Entries.Path(t.Context(), home.PathRequest{Session: id}, func(e session.Entry) error {
			if e.Message != nil {
				said += session.TextOf(e.Message.Content) + ". "
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return said
	}
	if said, want := read(), "one "+kept+" twice "+kept+". and [REDACTED:github-token]. "; said != want {
		t.Errorf("it says %s", said)
	}
}

func TestHostileSessionsInEveryPlace(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	evil := "\x1b]52;c;b3duZWQ=\x07\x1b[2J\u202eevil"
	id := talk(t, h, evil, "say "+evil+" needle", "answer "+evil)
	if _, err := h.Sessions.Tag(t.Context(), home.TagRequest{Session: id, Add: []string{"x\u202ey"}}); err != nil {
		t.Log(err) // it may be refused
	}
	d := drive(t, h, func(o *app.Options) { o.Color = true })
	d.size(200, 50)
	harmless := func() {
		t.Helper()
		content := d.app.(*app.App).View().Content
		for _, bad := range []string{"\x1b]", "\x1b[2J", "\u202e", "\x07"} {
			if strings.Contains(content, bad) {
				t.Errorf("%q is on the screen: %q", bad, content)
			}
		}
	}
	d.sees("evil", "answer")
	harmless()
	d.press("R")
	d.sees("rename to")
	harmless()
	d.press("esc", "s")
	d.sees("pinned")
	harmless()
	d.press("/")
	d.types("needle")
	d.sees("hit")
	harmless()
}

func TestSort(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	talk(t, h, "Birch", "one", "two", "three")
	talk(t, h, "Ash", "one", strings.Repeat("very long ", 1000))
	talk(t, h, "Cedar", "one")
	d := drive(t, h)
	inOrder := func(words string, titles ...string) {
		t.Helper()
		d.until(strings.Join(titles, " before "), func(screen string) bool {
			at := strings.Index(screen, words)
			for _, title := range titles {
				next := strings.Index(screen, title)
				if at < 0 || next < at {
					return false
				}
				at = next
			}
			return true
		})
	}
	inOrder("today", "Cedar", "Ash", "Birch")
	d.press("S", "t")
	d.sees("sorted: by title")
	inOrder("by title", "Ash", "Birch", "Cedar")
	d.press("S", "t")
	inOrder("by title, from Z to A", "Cedar", "Birch", "Ash")
	d.press("S", "m")
	inOrder("most messages first", "Birch", "Ash", "Cedar")
	d.press("S", "s")
	inOrder("largest first", "size", "Ash", "kB", "Birch")
	d.press("S", "c")
	inOrder("today", "Cedar", "Ash", "Birch")
	d.press("S", "u", "S", "u")
	inOrder("today", "Birch", "Ash", "Cedar")
	d.size(60, 20)
	d.press("S")
	d.sees("u reverse", "s size", "Esc")
	d.press("esc")
	d.size(columns, rows)
	d.press("/")
	d.types("one")
	d.press("tab")
	d.sees("3 sessions", "1 hit")
	d.press("S")
	d.sees("sort: a search has what fits best first")
}

// TestARemovedSessionIsCounted although the one that takes its place in the list was known before.
func TestARemovedSessionIsCounted(t *testing.T) {
	t.Parallel()
	h := many(t, 200)
	d := drive(t, h)
	d.sees("question 0199", "200 sessions")
	d.press("pgdown", "pgup") // what is beside the screen is read
	d.sees("question 0199")
	list, err := h.Sessions.List(t.Context(), home.ListRequest{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Sessions.Remove(t.Context(), home.RemoveRequest{Session: list.Sessions[0].ID}); err != nil {
		t.Fatal(err)
	}
	d.loses("question 0199")
	d.sees("199 sessions")
}
