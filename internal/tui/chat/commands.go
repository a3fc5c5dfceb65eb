package chat

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/render/terminal"
	"github.com/coppice-dev/coppice/session"
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
		u.print("  " + u.paint(terminal.Cyan, name) + "  " + c.does)
	}
	u.print("")
	u.note("  @FILE in a message sends that file or image with it; Tab completes paths, commands\n" +
		"  and their arguments. !COMMAND runs a command and shows the model what it printed;\n" +
		"  !!COMMAND only shows you.\n" +
		"  Alt-Enter, or a backslash before Enter, begins another line; ↑ recalls what you said,\n" +
		"  also in other conversations, and Ctrl-R searches it; Ctrl-G opens an editor.\n" +
		"  Esc or Ctrl-C stops the answer and keeps what arrived; Ctrl-D leaves.")
	return nil
}

func (u *ui) cmdExit(context.Context, string) error {
	u.done = true
	return nil
}

func (u *ui) cmdNew(ctx context.Context, title string) error {
	r := u.request("", title)
	r.Context = slices.Clip(u.o.Request.Context) // what /context added belongs to the old one
	r.CWD = u.o.Request.CWD
	before := u.chat.Dir()
	if err := u.switchTo(ctx, r); err != nil {
		return err
	}
	u.forget()
	u.note("  a new conversation; it is kept when you say something")
	if now := u.chat.Dir(); now != before {
		u.note("  it is about " + now + ", where the chat began")
	}
	return nil
}

func (u *ui) cmdLoad(ctx context.Context, id string) error {
	if id == "" {
		return errUsage
	}
	r := u.request(id, "")
	r.Context, r.CWD = nil, "" // it has a directory of its own
	if err := u.switchTo(ctx, r); err != nil {
		return err
	}
	u.greet(ctx)
	return nil
}

func (u *ui) cmdList(ctx context.Context, argument string) error {
	limit := 10
	if argument != "" {
		if _, err := fmt.Sscan(argument, &limit); err != nil || limit < 1 {
			return errUsage
		}
	}
	list, err := u.o.Home.Sessions.List(ctx, home.ListRequest{Limit: limit})
	if err != nil {
		return err
	}
	var ids []string
	for i := range list.Sessions {
		ids = append(ids, list.Sessions[i].Name)
	}
	short, err := u.o.Home.Sessions.Short(ctx, home.SessionNamesRequest{Sessions: ids})
	if err != nil {
		return err
	}
	names := render.Names(short.Names)
	wide := 0
	for _, id := range ids {
		wide = max(wide, ansi.StringWidth(names.Shown(id)))
	}
	here, _ := u.session()
	s := u.style()
	for i := range list.Sessions {
		one := &list.Sessions[i]
		mark := "  "
		if one.ID == here {
			mark = s.Paint(terminal.Green, "◉ ")
		}
		row := "  " + mark + s.Paint(terminal.Cyan, terminal.Pad(names.Shown(one.Name), wide)) +
			s.Paint(terminal.Dim, fmt.Sprintf("  %12s  %4d  ", s.When(one.Updated), one.Messages)) + render.OneLine(one.Title, 0)
		u.print(ansi.Truncate(row, s.Width, "…"))
	}
	if len(ids) == 0 {
		u.note("  there are no conversations yet")
	}
	return nil
}

func (u *ui) cmdTree(ctx context.Context, _ string) error {
	id, err := u.session()
	if err != nil {
		return err
	}
	// Others may have written, and the chat's own session belongs to the agent.
	c, err := u.o.Home.Conversation(ctx, home.OpenRequest{Session: id, Link: true})
	if err != nil {
		return err
	}
	defer c.Close() // it was only read
	drawn, err := c.Rendered(ctx)
	if err != nil {
		return err
	}
	out, err := render.NewOutline(drawn, render.OutlineOptions{Leaf: u.chat.Conversation().LeafID()})
	if err != nil {
		return err
	}
	return u.drawInto(func(w *strings.Builder) error {
		return terminal.Tree(ctx, w, drawn, out, u.style(), terminal.FoldIfLong)
	})
}

func (u *ui) cmdBranch(ctx context.Context, argument string) error {
	entry, word, _ := strings.Cut(argument, " ")
	word = strings.TrimSpace(word)
	if entry == "" || word != "" && !strings.HasPrefix("summary", word) {
		return errUsage
	}
	a := u.chat.Agent()
	if a == nil {
		return errNoSession
	}
	var moved *home.BranchResult
	var names render.Names
	u.start(ctx, a, func(ctx context.Context) (_ *agent.Outcome, err error) {
		if moved, err = u.chat.Branch(ctx, entry, word != ""); err == nil {
			names, err = u.entryNames(ctx, moved.Session)
		}
		return nil, err
	}, func(err error) {
		switch {
		case err != nil:
			u.fail(err)
		case !moved.Moved:
			u.note("  the conversation is there already")
		default:
			u.note("  the next message follows " + names.Shown(moved.Leaf) + "; /branch " + names.Shown(moved.Left) + " goes back")
		}
	})
	return nil
}

func (u *ui) cmdFork(ctx context.Context, entry string) error {
	id, err := u.session()
	if err != nil {
		return err
	}
	forked, err := u.o.Home.Sessions.Fork(ctx, home.ForkRequest{Session: id, At: entry})
	if err != nil {
		return err
	}
	if err := u.switchTo(ctx, u.request(forked.Session, "")); err != nil {
		return err
	}
	u.note("  this is the copy: " + render.ShortID(forked.Session) + "; /load " + render.ShortID(forked.From) + " goes back")
	return nil
}

func (u *ui) cmdLabel(ctx context.Context, argument string) error {
	name, entry, _ := strings.Cut(argument, " ")
	if name == "" {
		return errUsage
	}
	labelled, err := u.chat.Label(ctx, strings.TrimSpace(entry), name)
	if err != nil {
		return err
	}
	names, err := u.entryNames(ctx, labelled.Session)
	if err != nil {
		return err
	}
	u.note("  " + names.Shown(labelled.Target) + " has the label " + labelled.Label)
	return nil
}

func (u *ui) cmdRetry(ctx context.Context, _ string) error {
	if u.chat.Agent() == nil {
		return errNoSession
	}
	a, err := u.chat.Start(ctx)
	if err != nil {
		return err
	}
	u.turn(ctx, a, a.Retry)
	return nil
}

func (u *ui) cmdResume(ctx context.Context, _ string) error {
	if u.chat.Agent() == nil {
		return errNoSession
	}
	a, err := u.chat.Start(ctx)
	if err != nil {
		return err
	}
	u.turn(ctx, a, a.Resume)
	return nil
}

func (u *ui) cmdCompact(ctx context.Context, instructions string) error {
	if u.chat.Agent() == nil {
		return errNoSession
	}
	a, err := u.chat.Start(ctx)
	if err != nil {
		return err
	}
	u.start(ctx, a, func(ctx context.Context) (*agent.Outcome, error) {
		_, err := a.Compact(ctx, instructions)
		return nil, err
	}, func(err error) {
		switch {
		case errors.Is(err, context.Canceled):
			u.print("", u.paint(terminal.Yellow, "  ■ stopped; nothing was changed"))
		case err != nil:
			u.fail(err)
		}
	})
	u.job.view.doing, u.job.view.compacting = "writing a summary", true
	return nil
}

func (u *ui) cmdUndo(ctx context.Context, _ string) error {
	if u.chat.Agent() == nil {
		return errNoSession
	}
	if err := u.chat.Undo(); err != nil {
		return err
	}
	u.note("  the compaction is taken back; the model is sent everything again")
	u.status(ctx)
	return nil
}

func (u *ui) cmdContext(ctx context.Context, argument string) error {
	if argument != "" {
		return u.changeContext(strings.Fields(argument))
	}
	id, err := u.session()
	if err != nil {
		return err
	}
	now, err := u.o.Home.Entries.Context(ctx, home.ContextRequest{Session: id, Link: true})
	if err != nil {
		return err
	}
	names, err := u.entryNames(ctx, id)
	if err != nil {
		return err
	}
	s, wide := u.style(), 0
	for i := range now.Entries {
		wide = max(wide, ansi.StringWidth(names.Shown(now.Entries[i].ID)))
	}
	for i := range now.Entries {
		e := &now.Entries[i]
		before := "  " + s.Paint(terminal.Dim, terminal.Pad(names.Shown(e.ID), wide)) + "  "
		u.print(s.Row(e, before, s.Paint(terminal.Dim, fmt.Sprintf("%7s  ", render.Thousands(now.Costs[i].Tokens))), names.Shown))
	}
	status, err := u.chat.Status(ctx)
	if err != nil {
		return err
	}
	u.note("  " + windowUse(status.Tokens, status.Window) + ", with the tools and as reported by the provider where it did")
	u.note("  " + render.Counted(len(now.Entries), "entry", "entries") + " · " + render.Counted(now.Measured.Tokens, "token", "tokens") +
		" counted entry by entry · " + render.Counted(len(now.LeftOut), "entry", "entries") + " of the path left out or changed")
	return nil
}

// changeContext adds files to what the model is sent, or takes out those with a minus.
func (u *ui) changeContext(files []string) error {
	var add, remove []string
	for _, name := range files {
		if gone, ok := strings.CutPrefix(name, "-"); ok {
			remove = append(remove, u.chat.Path(gone))
		} else {
			add = append(add, u.chat.Path(name))
		}
	}
	if err := errors.Join(u.chat.RemoveFiles(remove...), u.chat.AddFiles(add...)); err != nil {
		return err
	}
	if len(remove) > 0 {
		u.note("  " + render.Counted(len(remove), "file is", "files are") + " no longer sent")
	}
	if len(add) > 0 {
		u.note("  " + render.Counted(len(add), "file", "files") + " will be sent with the next message, and again after each change")
	}
	return nil
}

// cmdModel lists the models that can be asked, or has another one answer: one of the list by
// its number, or any by its name.
func (u *ui) cmdModel(ctx context.Context, name string) error {
	found, err := u.o.Home.Settings().Models()
	if err != nil {
		return err
	}
	ready := slices.DeleteFunc(slices.Clone(found.Models), func(m home.KnownModel) bool { return !m.Ready })
	if name != "" {
		if n, err := strconv.Atoi(name); err == nil && n >= 1 && n <= len(ready) {
			name = ready[n-1].Name()
		}
		if err := u.chat.SetModel(name); err != nil {
			return err
		}
	}
	now := u.chat.Model().Model.Info()
	text := "  " + render.ModelName(now.Provider, now.Model)
	if now.Window > 0 {
		text += " · a window of " + render.Thousands(now.Window) + " tokens"
	}
	if name != "" {
		u.note(text)
		return nil
	}
	wide := 0
	for i := range ready {
		wide = max(wide, ansi.StringWidth(ready[i].Name()))
	}
	for i := range ready {
		u.modelRow(i+1, &ready[i], wide, ready[i].Model == now.Model)
	}
	u.note(text)
	if others := len(found.Models) - len(ready); others > 0 {
		u.note(fmt.Sprintf("  /model N or PROVIDER/MODEL changes it; %d more need a key, see coppice models", others))
	} else {
		u.note("  /model N or PROVIDER/MODEL changes it")
	}
	return nil
}

func (u *ui) modelRow(n int, m *home.KnownModel, wide int, isNow bool) {
	s, mark := u.style(), "  "
	if isNow {
		mark = s.Paint(terminal.Green, "◉ ")
	}
	facts := fmt.Sprintf("  %6s", render.Count(int64(m.Window)))
	if m.Priced {
		facts += fmt.Sprintf("  %s in, %s out", render.Money(int(m.InputMicroUSD)), render.Money(int(m.OutputMicroUSD)))
	}
	if m.Default {
		facts += "  default"
	}
	row := fmt.Sprintf("  %s%3d  ", mark, n) + s.Paint(terminal.Cyan, terminal.Pad(render.OneLine(m.Name(), 0), wide)) + s.Paint(terminal.Dim, facts)
	u.print(ansi.Truncate(row, s.Width, "…"))
}

// cmdSystem shows the instructions: those that go with the next request, or else those that
// the conversation has.
func (u *ui) cmdSystem(context.Context, string) error {
	text, err := u.chat.Instructions()
	if err != nil {
		return err
	}
	if c := u.chat.Conversation(); text == "" && c != nil {
		now, err := c.Context(session.ContextOptions{Shared: true})
		if err != nil {
			return err
		}
		for i := range now.Entries {
			if session.IsPrompt(&now.Entries[i]) {
				text = session.TextOf(now.Entries[i].Message.Content)
			}
		}
	}
	if text == "" {
		u.note("  the model is told nothing before the conversation; --system and the setting system name a file with instructions")
		return nil
	}
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		u.print(wrapped(line, "", u.style())...)
	}
	return nil
}

func (u *ui) cmdThinking(ctx context.Context, level string) error {
	if level != "" {
		if err := u.chat.SetThinking(level); err != nil {
			return err
		}
	}
	now, err := u.chat.Status(ctx)
	if err != nil {
		return err
	}
	if now.Thinking == "" {
		now.Thinking = "the provider's default"
	}
	u.note("  thinking: " + now.Thinking + " · the levels are " + strings.Join(provider.ThinkingLevels, ", "))
	return nil
}

func (u *ui) cmdImage(_ context.Context, argument string) error {
	if argument == "" {
		return errUsage
	}
	files := strings.Fields(argument)
	for i := range files {
		files[i] = u.chat.Path(files[i])
	}
	content, err := u.chat.Prompt("", files...)
	if err != nil {
		return err
	}
	u.images = append(u.images, files...)
	for i := range content {
		u.note("  " + render.MediaGist(&content[i]) + " goes with the next message")
	}
	return nil
}

func (u *ui) cmdTools(ctx context.Context, list string) (err error) {
	if list != "" {
		err = u.chat.SetTools(ctx, strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })...)
	}
	if err != nil {
		return err
	}
	tools := u.chat.Tools()
	for i := range tools {
		row := "  " + u.paint(terminal.Yellow, terminal.Pad(render.OneLine(tools[i].Name, 30), 10)) + "  " + render.OneLine(tools[i].Description, 0)
		u.print(ansi.Truncate(row, u.style().Width, "…"))
	}
	if len(tools) == 0 {
		u.note("  the model has no tools; /tools all gives it some")
	} else {
		u.note("  they work in " + u.chat.Dir())
	}
	return nil
}

func (u *ui) cmdApprove(ctx context.Context, rule string) error {
	box, err := u.chat.Toolbox(ctx)
	if err != nil {
		return err
	}
	if rule != "" {
		if err := box.Allow(rule); err != nil {
			return err
		}
	}
	if rules := box.Rules(); len(rules) > 0 {
		u.note("  allowed without asking: " + strings.Join(rules, ", "))
	}
	if rule != "" {
		return nil
	}
	a := u.chat.Agent()
	if a == nil {
		u.note("  no call waits for approval")
		return nil
	}
	calls, err := a.Pending()
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(calls, func(p agent.Pending) bool { return p.State == agent.CallWaiting }) {
		u.note("  no call waits for approval")
		return nil
	}
	return u.cmdResume(ctx, "")
}

func (u *ui) cmdSearch(ctx context.Context, query string) error {
	if query == "" {
		return errUsage
	}
	found, err := u.o.Home.Search.Find(ctx, home.FindRequest{Query: query, Limit: 8})
	if err != nil {
		return err
	}
	s := u.style()
	for i := range found.Hits {
		hit := &found.Hits[i]
		head := "  " + s.Paint(terminal.Cyan, render.ShortID(hit.Name())) + s.Paint(terminal.Dim, " · "+s.When(hit.Time)+" · ") + render.OneLine(hit.Title, 0)
		u.print(ansi.Truncate(head, s.Width, "…"))
		u.print(ansi.Truncate("    "+s.Paint(terminal.Dim, render.OneLine(hit.Snippet, 0)), s.Width, "…"))
	}
	switch {
	case len(found.Hits) > 0:
		u.note("  /load ID continues one of them")
	case len(found.DidYouMean) > 0:
		u.note("  nothing found; did you mean " + strings.Join(found.DidYouMean, " or ") + "?")
	default:
		u.note("  nothing found")
	}
	return nil
}

func (u *ui) cmdExport(ctx context.Context, path string) error {
	if path == "" {
		return errUsage
	}
	id, err := u.session()
	if err != nil {
		return err
	}
	written, err := u.o.Home.Transfer.Export(ctx, home.ExportRequest{OpenRequest: home.OpenRequest{Session: id}, Path: u.chat.Path(path)}, nil)
	if err != nil {
		return err
	}
	u.note("  wrote " + strings.Join(written.Paths, ", "))
	return nil
}
