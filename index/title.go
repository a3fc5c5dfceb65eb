package index

import (
	"context"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/render/plain"
	"github.com/coppice-dev/coppice/render/typed"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
)

const (
	// maxTitle is how many bytes of a prompt are searched for a title. A title is a
	// whole line: a face with too little room shortens it.
	maxTitle = 4096

	// maxUntitled is the same for texts that replace a missing prompt. Every reply of a
	// session is searched, so this must stay cheap.
	maxUntitled = 300

	// maxSortTitle is how many bytes of a title sessions are sorted by.
	maxSortTitle = 200

	// maxLead is the longest line, in runes, that only introduces the next one:
	// "Implement the following plan:".
	maxLead = 80
)

// A Title is what a session without a name is called. The zero Title means no title.
type Title struct {
	Text  string
	Worth Worth
}

// Worth ranks titles by how well people recognise a session by them. A session keeps the
// first of its best titles: see BetterTitle.
type Worth int

// What titles are made of, the worst first. The index keeps these numbers: raise
// schemaVersion when they change.
const (
	worthNothing  Worth = iota
	worthSystem         // what a program said to the model
	worthCall           // the name of a tool
	worthInjected       // what a program says in the user's name
	worthErrand         // a command that is about the program: "/model"
	worthReply          // what the model says
	worthCommand        // any other command: "/init"
	worthPrompt         // what the user wants
)

// NameTitle returns the title for a name: its first line. The latest name of a session or
// conversation is its title, whichever branch or session it was given in; an invisible name
// removes the title.
func NameTitle(name string) string { return firstLine(clip(name, maxTitle)) }

// IsSettled reports whether no later entry can give a better title.
func (t Title) IsSettled() bool { return t.Worth == worthPrompt }

// BetterTitle returns the better of two titles, and of equals the earlier one.
func BetterTitle(earlier, later Title) Title {
	if later.Worth > earlier.Worth {
		return later
	}
	return earlier
}

// FirstTitle returns the title of a log whose session has no name. It reads no further than the
// first prompt. A conversation's title is the best of its logs' in their order, whatever of a log
// the conversation has: the copies that a session begins with give it a title like any others.
func FirstTitle(ctx context.Context, log store.Log) (Title, error) {
	var best Title
	var rewritten map[store.Pos]bool
	seen := make(map[string]bool) // an entry that repeats an earlier id does not count
	for line, err := range log.Forward(ctx, 0) {
		if err != nil {
			return best, err
		}
		head, ok := rawjson.ScanHead(line.Data)
		if line.Cut || !ok || len(head.ID) == 0 || rewritten[line.Pos] || seen[string(head.ID)] {
			continue
		}
		var e session.Entry
		if e.UnmarshalJSON(line.Data) == nil {
			seen[string(head.ID)] = e.Type.IsKnown() // else another line may have the entry: see session.Rewritten
			if !e.IsRepeated() {
				best = BetterTitle(best, TitleIn(&e))
			}
		} else if !rawjson.Valid(line.Data) && rewritten == nil { // its rest is lost
			if rewritten, err = session.Rewritten(ctx, log); err != nil {
				return best, err
			}
		}
		if best.IsSettled() {
			break
		}
	}
	return best, nil
}

// TitleIn returns the title that an entry gives a session without a name. The best is what
// the user asks for; the others serve sessions without a user.
func TitleIn(e *session.Entry) Title {
	if e.Message == nil {
		return Title{}
	}
	switch e.Message.Role {
	case session.RoleUser:
		return userTitle(e)
	case session.RoleAssistant:
		if reply := untitled(e, worthReply); reply.Text != "" {
			return reply
		}
		for i := range e.Message.Content {
			if call := e.Message.Content[i].ToolUse; call != nil {
				return newTitle(callTitle(call), worthCall)
			}
		}
	case session.RoleSystem:
		return withoutDirectory(untitled(e, worthSystem))
	}
	return Title{}
}

// callTitle is a call with the first of its arguments that is text: "get_weather
// Paris" says more than the name of a tool that hundreds of sessions use.
func callTitle(call *session.ToolUseContent) string {
	first, said := "", "" // maps have no order
	for name, value := range call.Input {
		if text, ok := value.(string); ok && (first == "" || name < first) && strings.TrimSpace(text) != "" {
			first, said = name, text
		}
	}
	return firstLine(call.Name + " " + topicOf(clip(said, maxUntitled)))
}

// withoutDirectory shortens a command line such as "/home/ada/.venv/bin/aider --lint",
// with which some programs begin their logs.
func withoutDirectory(t Title) Title {
	program, arguments, _ := strings.Cut(t.Text, " ")
	if strings.HasPrefix(program, "/") {
		t.Text = strings.TrimSpace(path.Base(program) + " " + arguments)
	}
	return t
}

// newTitle makes a title from a text. An empty text gives no title.
func newTitle(text string, worth Worth) Title {
	if text == "" {
		return Title{}
	}
	return Title{text, worth}
}

func userTitle(e *session.Entry) Title {
	var said []string
	for i := range e.Message.Content {
		switch c := &e.Message.Content[i]; {
		case c.Text != nil:
			said = append(said, c.Text.Content)
		case c.File != nil:
			said = append(said, c.File.Name)
		}
	}
	title := promptTitle(strings.Join(said, "\n"))
	// Importers mark a command as injected, too: the program wrote it down. But the
	// user typed it.
	if title.Worth == worthPrompt && e.IsInjected() && !isCommand(title.Text) {
		title.Worth = worthInjected
	}
	return title
}

// untitled returns the beginning of the first text of a message.
func untitled(e *session.Entry, worth Worth) Title {
	for i := range e.Message.Content {
		if text := e.Message.Content[i].Text; text != nil {
			if line := topicOf(clip(text.Content, maxUntitled)); line != "" {
				return Title{line, worth}
			}
		}
	}
	return Title{}
}

// promptTitle returns the title of what the user typed, without what a program put around it.
func promptTitle(text string) Title {
	for range maxAdditions {
		text = strings.TrimSpace(text)
		if command := commandIn(text); command != "" {
			return commandTitle(command)
		}
		rest, ok := afterAddition(text)
		if !ok {
			break
		}
		text = rest
	}
	if line := firstLine(clip(text, maxTitle)); isCommand(line) {
		return commandTitle(line)
	}
	return newTitle(topicOf(clip(text, maxTitle)), worthPrompt)
}

// errands are commands that say nothing about the conversation around them.
var errands = []string{
	"/add-dir", "/agents", "/auth", "/bug", "/chat", "/clear", "/compact", "/compress", "/config", "/context", "/cost", "/doctor",
	"/exit", "/export", "/fast", "/help", "/hooks", "/ide", "/login", "/logout", "/mcp", "/memory", "/mode", "/model", "/models",
	"/new", "/permissions", "/plugin", "/quit", "/rename", "/resume", "/settings", "/stats", "/status", "/terminal-setup", "/theme",
	"/undo", "/upgrade", "/usage", "/vim",
}

// commandTitle ranks a command. A command with a sentence after it asks for something, like
// any prompt: "/fix the login that times out". "/model gpt-5 high" does not.
func commandTitle(command string) Title {
	name, arguments, _ := strings.Cut(command, " ")
	switch isErrand := slices.Contains(errands, name); {
	case isErrand:
		return Title{command, worthErrand}
	case len(strings.Fields(arguments)) > 2 || strings.ContainsFunc(arguments, func(r rune) bool { return classOf(r) == dense }):
		return Title{command, worthPrompt}
	}
	return Title{command, worthCommand}
}

// directories are the beginnings of paths that people write about: "/tmp is full".
var directories = []string{
	"bin", "boot", "dev", "etc", "home", "lib", "media", "mnt", "opt", "proc", "root", "sbin", "srv", "sys", "tmp", "usr", "var",
	"Applications", "Library", "Users", "Volumes",
}

// isCommand reports whether a title is a command to the program in which it was
// typed. A path is not a command.
func isCommand(title string) bool {
	word, _, _ := strings.Cut(title, " ")
	name, ok := strings.CutPrefix(word, "/")
	return ok && name != "" && !slices.Contains(directories, name) && !strings.ContainsFunc(name, func(r rune) bool {
		return r != '-' && r != '_' && r != ':' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
}

// commandIn returns, on one line, the command that a program recorded in elements of its own
// instead of what the user typed, or "".
func commandIn(text string) string {
	command := typed.CommandIn(text)
	name, arguments, _ := strings.Cut(command, " ")
	return firstLine(name + " " + topicOf(clip(arguments, maxTitle)))
}

// notices are the beginnings of lines that a program writes in the user's name.
var notices = []string{
	"Caveat: The messages below were generated by the user while running local commands", "[Request interrupted by user",
	"# AGENTS.md instructions",
}

// wrappers are elements around what the user typed.
var wrappers = []string{"user_query", "user_message", "user-message", "USER_REQUEST", "task", "feedback"}

// maxAdditions is how many additions are taken off a prompt. Each costs a scan of the whole
// text, so a text full of them must not be scanned for each.
const maxAdditions = 64

// additions are elements that programs put before a prompt.
var additions = []string{
	"system-reminder", "environment_context", "environment_details", "user_instructions",
	"local-command-caveat", "ide_opened_file", "ide_selection", "local-command-stdout", "local-command-stderr",
	"command-message", "command-args", "bash-input", "bash-stdout", "bash-stderr", "user-prompt-submit-hook", "task-notification",
	"permissions", "INSTRUCTIONS", "turn_aborted", "user_shell_command",
}

// afterAddition takes off what a program put before a prompt, or around it. An
// element that the user may have written counts only if something follows.
func afterAddition(text string) (rest string, ok bool) {
	for _, notice := range notices {
		if strings.HasPrefix(text, notice) {
			_, rest, _ := strings.Cut(text, "\n")
			return rest, true
		}
	}
	if strings.HasPrefix(text, "# Context from my IDE setup:") {
		if _, rest, ok := strings.Cut(text, "\n## My request for Codex:"); ok {
			return rest, true
		}
	}
	name := typed.ElementName(text)
	if name == "" {
		return "", false
	}
	inner, rest, closed := typed.CutElement(text, name)
	switch {
	case slices.Contains(wrappers, name):
		return inner + "\n" + rest, closed
	case slices.Contains(additions, name):
		return rest, true // without an end, it is all of the text
	}
	return rest, closed && strings.ContainsAny(name, "_-") && strings.TrimSpace(rest) != ""
}

// topicOf returns the line that says what a text is about: the first with words in
// it, and the next one if the first only introduces it. A heading needs no
// introduction: "Implement the following plan:" comes before hundreds of them.
func topicOf(text string) string {
	topic := ""
	for line := range strings.Lines(text) {
		line = visible(line)
		if strings.HasPrefix(line, "```") || !strings.ContainsFunc(line, isWordRune) {
			continue
		}
		heading := false
		if bare := strings.TrimLeft(line, "#"); bare != line && strings.HasPrefix(bare, " ") {
			line, heading = bare[1:], true
		}
		switch {
		case topic != "" && heading:
			return line
		case topic != "":
			return topic + " " + strings.TrimPrefix(line, "- ")
		}
		if topic = line; !strings.HasSuffix(line, ":") || utf8.RuneCountInString(line) > maxLead {
			return topic
		}
	}
	if topic == "" {
		return firstLine(text)
	}
	return topic
}

func isWordRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }

// firstLine returns a text's first line that is not blank.
func firstLine(text string) string {
	for line := range strings.Lines(text) {
		if line = visible(line); line != "" {
			return line
		}
	}
	return ""
}

// visible makes a line safe to print, with marks where it was not and with single
// spaces.
func visible(line string) string {
	if trimmed := strings.TrimSpace(line); isTidy(trimmed) {
		return strings.Clone(trimmed) // the text may be long, and a title is kept
	}
	return plain.Line(strings.ToValidUTF8(line, ""))
}

// isTidy reports whether a line is plain enough to be a title as it is. Most are, and
// checking takes a fraction of the time that cleaning takes.
func isTidy(line string) bool {
	for i := range len(line) {
		if c := line[i]; c < ' ' || c >= 0x7f || c == ' ' && line[i+1] == ' ' { // the last byte is not a space
			return false
		}
	}
	return true
}
