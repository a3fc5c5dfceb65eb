package chat_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/cmd/coppice/internal/tui/chat"
	"github.com/coppice-dev/coppice/home"
)

// project returns a directory with settings of its own.
func project(t *testing.T, settings string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, ".coppice.toml"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// fails waits for the end of the chat, and returns its error.
func (p *person) fails() string {
	p.t.Helper()
	select {
	case err := <-p.done:
		if err == nil {
			p.t.Fatalf("the chat ended without an error:\n%s", p.term)
		}
		return err.Error()
	case <-time.After(time.Minute):
		p.t.Fatalf("the chat does not end:\n%s", p.term)
	}
	return ""
}

// What a trusted project denies holds: if the project cannot be used, there is no chat.
func TestAChatEndsIfItsTrustedProjectCannotBeUsed(t *testing.T) {
	t.Parallel()
	dir := project(t, "model = 'anthropic/claude-sonnet-5'\ndeny = ['bash(touch *)']\n")
	opened := openHome(t)
	in := func(o *chat.Options) {
		o.Request = home.ChatRequest{CWD: dir, Tools: []string{"bash"}, Allow: []string{"bash"}}
		o.Prompt = `call bash {"command":"touch here"}`
	}
	p := sit(t, opened, in)
	p.sees("use it?")
	p.types("y", enter)
	if why := p.fails(); !strings.Contains(why, "there is no key") {
		t.Errorf("the chat ended with %s", why)
	}
	if _, err := os.Stat(filepath.Join(dir, "here")); err == nil {
		t.Error("what the project denies was done")
	}
	if why := sit(t, opened, in).fails(); !strings.Contains(why, "there is no key") {
		t.Errorf("the second chat ended with %s", why)
	}
}

// The tools of a project are for the conversations about it.
func TestToolsOfAProjectStayThere(t *testing.T) {
	t.Parallel()
	opened := openHome(t)
	p := sit(t, opened, nil)
	p.says("say elsewhere")
	p.leaves(ctrlD)
	elsewhere := p.sessions()[0].ID
	dir := project(t, "tools = ['all']\n")
	p = sit(t, opened, func(o *chat.Options) { o.Request.CWD = dir })
	p.sees("use it?")
	p.types("y", enter)
	p.sees("tools: read")
	p.types("/load "+elsewhere, enter)
	p.sees("Restored session")
	p.runs("/tools", "the model has no tools")
	p.leaves(ctrlD)
}

// What was said to the built-in model stays on this machine until the person says otherwise.
func TestAConversationKeepsTheBuiltInModel(t *testing.T) {
	t.Parallel()
	opened := openHome(t)
	p := sit(t, opened, nil)
	p.says("say a secret")
	p.leaves(ctrlD)
	settings, err := home.LoadSettings(func(string) string { return "" },
		home.Setting{Key: home.SettingModel, Value: "openai-chat/phi"}, home.Setting{Key: home.SettingBaseURL, Value: "http://localhost:9/v1"})
	if err != nil {
		t.Fatal(err)
	}
	again, err := home.Open(t.Context(), opened.Dir(), &home.Options{Settings: settings})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = again.Close() })
	p = restored(t, again, home.LastSession)
	p.says("say more")
	p.leaves(ctrlD)
	p = sit(t, again, func(o *chat.Options) { o.Request = home.ChatRequest{Session: home.LastSession, Model: "phi"} })
	p.sees("was offline/parrot; now openai-chat/phi\n")
	p.leaves(ctrlD)
}

// A context file is needed at the beginning. If it is gone later, the model keeps what it has.
func TestAContextFileThatIsGone(t *testing.T) {
	t.Parallel()
	opened := openHome(t)
	file := filepath.Join(t.TempDir(), "notes.md")
	with := func(o *chat.Options) { o.Request.Context = []string{file} }
	if why := sit(t, opened, with).fails(); !strings.Contains(why, "notes.md") {
		t.Errorf("the chat ended with %s", why)
	}
	if err := os.WriteFile(file, []byte("Beans."), 0o600); err != nil {
		t.Fatal(err)
	}
	p := sit(t, opened, with)
	p.says("say one")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	p.says("say two")
	p.sees("\n  two\n")
	p.runs("/context -"+file, "1 file is no longer sent")
	p.leaves(ctrlD)
}

// A command that the person ran needs no answer.
func TestACommandOfThePersonNeedsNoAnswer(t *testing.T) {
	t.Parallel()
	opened := openHome(t)
	p := sit(t, opened, nil)
	p.says("say one")
	p.runs("!echo two", "the model sees this")
	p.leaves(ctrlD)
	p = restored(t, opened, home.LastSession)
	p.sees("Restored session", "›")
	p.doesNotSee("not answered")
	p.runs("/resume", "there is nothing to resume")
	p.leaves(ctrlD)
}
