package chat

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/charmbracelet/x/ansi"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/render/terminal"
	"github.com/coppice-dev/coppice/session"
)

// This file has the commands about what the model is sent and what it may do.

func (u *ui) cmdContext(ctx context.Context, argument string) error {
	if argument != "" {
		return u.changeContext(u.pathsIn(argument))
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

// pathWord is a path among others: in quotes, or with a backslash before each space.
var pathWord = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`-?"[^"]*"|(\\ |\S)+`) })

// pathsIn returns the paths in the argument of a command. Spaces separate them, unless all of it
// is one file, as Tab completes it.
func (u *ui) pathsIn(argument string) []string {
	if _, err := os.Stat(u.chat.Path(strings.TrimPrefix(argument, "-"))); err == nil {
		return []string{argument}
	}
	words := pathWord().FindAllString(argument, -1)
	for i := range words {
		words[i] = strings.NewReplacer(`"`, "", `\ `, " ").Replace(words[i])
	}
	return words
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
	files := u.pathsIn(argument)
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
	var more []string
	if rule != "" {
		more = []string{rule}
	}
	rules, err := u.chat.Allow(ctx, more...)
	if err != nil {
		return err
	}
	if len(rules) > 0 {
		u.note("  allowed without asking: " + strings.Join(rules, ", "))
	}
	if rule != "" {
		return nil
	}
	left, err := u.unfinished(ctx)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(left.Pending, func(p agent.Pending) bool { return p.State == agent.CallWaiting }) {
		u.note("  no call waits for approval")
		return nil
	}
	return u.cmdResume(ctx, "")
}
