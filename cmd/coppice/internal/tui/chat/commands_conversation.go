package chat

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/render/terminal"
)

// This file has the commands about conversations: which one, where in it, and what becomes of it.

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
	u.askTrust(ctx)
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
			s.Paint(terminal.Dim, fmt.Sprintf("  %12s  %4d  %6s  ", s.When(one.Updated), one.Messages, home.ShortTokens(one))) + render.OneLine(one.Title, 0)
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
	return u.drawInto(func(w *strings.Builder) error {
		return terminal.Tree(ctx, w, drawn, u.chat.Conversation().LeafID(), false, u.style(), terminal.FoldIfLong)
	})
}

func (u *ui) cmdBranch(ctx context.Context, argument string) error {
	entry, word, _ := strings.Cut(argument, " ")
	word = strings.TrimSpace(word)
	if entry == "" || word != "" && !strings.HasPrefix("summary", word) {
		return errUsage
	}
	if _, err := u.session(); err != nil {
		return err
	}
	var moved *home.BranchResult
	var names render.Names
	u.work(ctx, func(ctx context.Context, _ func(home.TurnEvent) error) (err error) {
		if moved, err = u.chat.Branch(ctx, entry, word != ""); err == nil {
			names, err = u.entryNames(ctx, moved.Session)
		}
		return err
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
	id, err := u.session()
	if err != nil {
		return err
	}
	if entry = strings.TrimSpace(entry); entry == "" {
		if entry, err = u.chat.Conversation().Resolve(home.Leaf); err != nil {
			return err
		}
	}
	labelled, err := u.o.Home.Entries.Label(ctx, home.LabelRequest{Session: id, Entry: entry, Label: name})
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

func (u *ui) cmdRetry(ctx context.Context, _ string) error { return u.resume(ctx, true) }

func (u *ui) cmdResume(ctx context.Context, _ string) error { return u.resume(ctx, false) }

func (u *ui) resume(ctx context.Context, again bool) error {
	turn, err := u.chat.Resume(ctx, again)
	if err == nil {
		u.answered(ctx, turn)
	}
	return err
}

func (u *ui) cmdCompact(ctx context.Context, instructions string) error {
	turn, err := u.chat.Compact(ctx, instructions)
	if err != nil {
		return err
	}
	j := u.listen(turn)
	j.after = func(err error) {
		switch {
		case errors.Is(err, context.Canceled):
			u.print("", u.paint(terminal.Yellow, "  ■ stopped; nothing was changed"))
		case err != nil:
			u.fail(err)
		}
	}
	j.view.doing, j.view.compacting = "writing a summary", true
	return nil
}

func (u *ui) cmdUndo(ctx context.Context, _ string) error {
	if err := u.chat.Undo(); err != nil {
		return err
	}
	u.note("  the compaction is taken back; the model is sent everything again")
	u.status(ctx)
	return nil
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
	if found.Across {
		u.note("  no text has all of this; these conversations have it in several texts")
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
