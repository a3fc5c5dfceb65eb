package chat_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/cmd/coppice/internal/tui/chat"
	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/session"
)

// garden is a directory with some files.
func garden(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"beds/peas.md": "Peas are green.", "beds/pears.md": "Pears are not.", "one bed.txt": "Beans climb.",
		"dot.gif": "GIF89a", ".gitignore": "*.log\n", "beds/pests.log": "aphids",
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// sitIn starts a chat about a directory.
func sitIn(t *testing.T, dir string) *person {
	return sit(t, openHome(t), func(o *chat.Options) { o.Request.CWD = dir })
}

// texts returns what the model is sent, a line for each message.
func (p *person) texts() string {
	p.t.Helper()
	now, err := p.last().Context(session.ContextOptions{})
	if err != nil {
		p.t.Fatal(err)
	}
	var b strings.Builder
	for i := range now.Entries {
		m := now.Entries[i].Message
		b.WriteString(string(m.Role) + ": " + session.TextOf(m.Content))
		if m.Content[0].Image != nil {
			b.WriteString(" with an image")
		}
		b.WriteString("\n")
	}
	return b.String()
}

func TestFilesThatAMessageNamesGoWithIt(t *testing.T) {
	t.Parallel()
	dir := garden(t)
	p := sitIn(t, dir)
	p.types("say look at @be", "\t", "pe", "\t", "\t")
	p.sees("pears.md  peas.md", "› say look at @beds/pea") // what is ignored is not offered
	p.types("s", "\t", "and @dot", "\t", "or @\"one", "\t", "@gone.txt, @all me@example.org @beds/")
	p.sees("look at @beds/peas.md and @dot.gif or @\"one bed.txt\" @gone.txt, @all")
	p.says("")
	p.sees("  + beds/peas.md\n", "  + one bed.txt\n", "  + dot.gif\n", "there is no file gone.txt in\n", "beds/ is a directory")
	p.doesNotSee("no file all")
	p.doesNotSee("no file example")
	p.runs("/context -beds/peas.md", "1 file is no longer sent")
	p.runs("/context -beds/pears.md", "files that the model is sent")
	p.leaves(ctrlD)
	got := p.texts()
	for _, want := range []string{"Beans climb.", "with an image"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q was not sent:\n%s", want, got)
		}
	}
	if strings.Contains(got, "Peas are green.") {
		t.Errorf("the file is still sent:\n%s", got)
	}
}

// An image that is dragged to the terminal arrives as its path. Files that a pasted text names
// are not meant.
func TestWhatIsPastedNamesNoFilesButAnImage(t *testing.T) {
	t.Parallel()
	dir := garden(t)
	p := sitIn(t, dir)
	p.types("\x1b[200~see\n@beds/peas.md\x1b[201~", enter)
	p.sees("You said: see\n  @beds/peas.md")
	p.doesNotSee("+ beds")
	p.types("\x1b[200~'" + filepath.Join(dir, "dot.gif") + "'\x1b[201~")
	p.sees("› @" + dir)
	p.says("what is this?")
	p.sees("  + dot.gif\n")
	p.leaves(ctrlD)
	if got := p.texts(); !strings.Contains(got, "with an image") || strings.Contains(got, "Peas are green.") {
		t.Errorf("this was sent:\n%s", got)
	}
}

func TestCommandsOfThePersonRunAndAreTold(t *testing.T) {
	t.Parallel()
	p := sitIn(t, garden(t))
	p.runs("!cat beds/pe*.md; exit 3", "│ Pears are not.Peas are green.", "│ [exit code 3]", "the model sees this with your next message")
	p.runs("!!echo for $((6*7)) eyes", "│ for 42 eyes")
	p.types("!sleep 600", enter)
	p.sees("running sleep 600")
	p.types("\x1b")
	p.sees("ended before it was done: stopped by the user")
	p.says("say seen")
	p.leaves(ctrlD)
	got := p.texts()
	if !strings.HasPrefix(got, "bashExecution: $ cat beds/pe*.md; exit 3\nPears are not.Peas are green.") || strings.Contains(got, "42") {
		t.Errorf("this was sent:\n%s", got)
	}
}

func TestTabCompletesArguments(t *testing.T) {
	t.Parallel()
	p := sitIn(t, garden(t))
	p.says("say one")
	p.runs("/label first", "has the label first")
	id := p.sessions()[0].ID
	short, err := p.home.Sessions.Short(t.Context(), home.SessionNamesRequest{Sessions: []string{id}})
	if err != nil {
		t.Fatal(err)
	}
	for typed, want := range map[string]string{
		"/model par":       "› /model offline/parrot ",
		"/thinking mi":     "› /thinking minimal ",
		"/tools gr":        "› /tools grep ",
		"/branch fi":       "› /branch first ",
		"/context -beds/p": "› /context -beds/pea",
		"/export one":      "› /export one bed.txt ",
		"!cat beds/peas":   "› !cat beds/peas.md ",
		"/load ":           "› /load " + short.Names[id] + " ",
	} {
		p.types(typed, "\t")
		p.sees(want)
		p.types(ctrlC)
	}
	p.leaves(ctrlD)
}
