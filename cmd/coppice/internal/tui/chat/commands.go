package chat

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/render/terminal"
)

// slash is a command of the chat.
type slash struct {
	name, takes, does string
	run               func(u *ui, ctx context.Context, argument string) error
	// during says when it works while the model answers.
	during during
}

// during says when a command works while the model answers: it must leave the conversation
// and the agent alone.
type during int

const (
	after   during = iota // it waits for the end of the answer
	ifAlone               // at once if it has no argument
	ifTold                // at once if it has one
	always                // at once
)

// commands returns all commands, in the order in which /help lists them.
func commands() []slash {
	return []slash{
		{"new", "[TITLE]", "begin another conversation", (*ui).cmdNew, after},
		{"list", "[N]", "list the latest conversations", (*ui).cmdList, always},
		{"load", "ID", "continue another conversation", (*ui).cmdLoad, after},
		{"tree", "", "draw this conversation with its branches", (*ui).cmdTree, always},
		{"branch", "ENTRY [summary]", "go back to an entry and continue from there", (*ui).cmdBranch, after},
		{"fork", "[ENTRY]", "copy the conversation, and continue in the copy", (*ui).cmdFork, after},
		{"label", "NAME [ENTRY]", "name an entry; the last one if none is given", (*ui).cmdLabel, after},
		{"retry", "", "answer the last message again, on a branch", (*ui).cmdRetry, after},
		{"resume", "", "finish what was interrupted", (*ui).cmdResume, after},
		{"compact", "[WHAT MATTERS]", "replace the beginning with a summary", (*ui).cmdCompact, after},
		{"undo", "", "undo the last compaction", (*ui).cmdUndo, after},
		{"context", "[FILE…|-FILE…]", "show what the model is sent; add or remove files", (*ui).cmdContext, ifAlone},
		{"model", "[N|PROVIDER/MODEL]", "list the models, or change who answers", (*ui).cmdModel, ifAlone},
		{"system", "", "show what the model is told first", (*ui).cmdSystem, always},
		{"thinking", "[LEVEL]", "show or change how much the model thinks", (*ui).cmdThinking, ifAlone},
		{"image", "FILE…", "send images with the next message", (*ui).cmdImage, always},
		{"tools", "[LIST|none]", "show or change what the model may use", (*ui).cmdTools, ifAlone},
		{"approve", "[RULE]", "decide about calls that wait, or allow calls", (*ui).cmdApprove, ifTold},
		{"output", "", "show all of the last call's result", (*ui).cmdOutput, always},
		{"edit", "[TEXT]", "write the message in an editor; so does Ctrl-G", (*ui).cmdEdit, always},
		{"search", "QUERY", "search all conversations", (*ui).cmdSearch, always},
		{"export", "FILE", "write the conversation as .md, .html, .json or .jsonl", (*ui).cmdExport, always},
		{"help", "", "this list", (*ui).cmdHelp, always},
		{"exit", "", "leave; so does Ctrl-D", (*ui).cmdExit, after},
	}
}

// errUsage means that an argument is missing.
var errUsage = errors.New("an argument is missing")

// commandsNamed returns the commands that a name may mean: a beginning is enough.
func commandsNamed(name string) (found []slash) {
	for _, c := range commands() {
		if c.name == name {
			return []slash{c}
		}
		if name != "" && strings.HasPrefix(c.name, name) {
			found = append(found, c)
		}
	}
	return found
}

// worksNow reports whether a text is a command that works while the model answers.
func worksNow(text string) bool {
	name, ok := commandIn(text)
	found := commandsNamed(name)
	if !ok || len(found) != 1 {
		return false
	}
	alone := strings.TrimSpace(strings.TrimPrefix(text, "/"+name)) == ""
	when := found[0].during
	return when == always || when == ifAlone && alone || when == ifTold && !alone
}

// command runs a command. A beginning of its name is enough if no other begins so.
func (u *ui) command(ctx context.Context, name, argument string) {
	found := commandsNamed(name)
	if name == "quit" {
		u.done = true
		return
	}
	if len(found) > 1 {
		var names []string
		for _, c := range found {
			names = append(names, "/"+c.name)
		}
		u.fail(fmt.Errorf("/%s could be %s", name, strings.Join(names, " or ")))
		return
	}
	if len(found) == 0 {
		u.fail(fmt.Errorf("there is no command /%s", name))
		u.note("    /help lists the commands; a message that begins with a slash needs a space before it")
		return
	}
	switch err := found[0].run(u, ctx, argument); {
	case errors.Is(err, errUsage):
		u.note("  usage: /" + found[0].name + " " + found[0].takes)
	case err != nil:
		u.fail(err)
	}
}

// errNoSession means that a command needs a conversation in which something was said.
var errNoSession = errors.New("nothing was said yet")

// session returns the id of the conversation.
func (u *ui) session() (string, error) {
	if c := u.chat.Conversation(); c != nil {
		return c.ID(), nil
	}
	return "", errNoSession
}

// entryNames returns what to call the entries of a session.
func (u *ui) entryNames(ctx context.Context, session string) (render.Names, error) {
	found, err := u.o.Home.Entries.Short(ctx, home.EntryNamesRequest{Sessions: []string{session}, Link: true})
	if err != nil {
		return nil, err
	}
	return found.Names, nil
}

func (u *ui) cmdHelp(context.Context, string) error {
	wide := 0
	for _, c := range commands() {
		wide = max(wide, len([]rune(c.name+c.takes)))
	}
	for _, c := range commands() {
		name := terminal.Pad("/"+c.name+" "+c.takes, wide+2)
		for _, row := range terminal.Wrap(c.does, u.style().Width-wide-6) {
			u.print("  " + u.paint(terminal.Cyan, name) + "  " + row)
			name = strings.Repeat(" ", wide+2)
		}
	}
	u.print("")
	for _, text := range []string{
		"@FILE in a message sends that file or image with it; Tab completes paths, commands and their arguments. " +
			"!COMMAND runs a command and shows the model what it printed; !!COMMAND only shows you.",
		"Alt-Enter, or a backslash before Enter, begins another line; ↑ recalls what you said, also in other conversations, " +
			"and Ctrl-R searches it; Ctrl-G opens an editor.",
		"Esc or Ctrl-C stops the answer and keeps what arrived; Ctrl-D leaves.",
	} {
		for _, row := range terminal.Wrap(text, u.style().Width-2) {
			u.note("  " + row)
		}
	}
	return nil
}

func (u *ui) cmdExit(context.Context, string) error {
	u.done = true
	return nil
}
