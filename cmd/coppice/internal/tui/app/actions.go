package app

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	"mvdan.cc/sh/v3/syntax"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/render/plain"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/upkeep"
)

// actions are what can be done with sessions, in any room that is about some. What can be taken
// back does not ask first.
func (a *App) actions(ids []string) []key {
	one, any := "", ""
	switch len(ids) {
	case 0:
		one, any = "nothing is selected", "nothing is selected"
	case 1:
	default:
		one = fmt.Sprintf("it takes one session, and %d are marked", len(ids))
	}
	return acting.in([]key{
		{keys: []string{"c"}, help: "chat", why: one, do: func() tea.Cmd { return a.talk(a.Program("chat", ids[0])) }},
		{keys: []string{"r"}, help: "resume", why: one, do: func() tea.Cmd { return a.resume(ids[0]) }},
		{keys: []string{"f"}, help: "fork", why: one, do: func() tea.Cmd { return a.fork(ids[0]) }},
		{keys: []string{"o"}, help: "export", why: any, do: func() tea.Cmd { return a.export(ids) }},
		{keys: []string{"O"}, help: "to your editor or pager", why: one, rare: true, do: func() tea.Cmd { return a.askOutside("it", a.conversationText(ids[0], "")) }},
		{keys: []string{"y"}, help: "copy", why: any, do: func() tea.Cmd { return a.copy(ids) }},
		{keys: []string{"R"}, help: "rename", why: one, do: func() tea.Cmd { return a.rename(ids[0]) }},
		{keys: []string{"T"}, help: "tag", why: any, do: func() tea.Cmd { return a.tag(ids) }},
		{keys: []string{"s"}, help: "pin", why: any, do: func() tea.Cmd { return a.pin(ids) }},
		{keys: []string{"v"}, help: "rate", why: any, do: func() tea.Cmd { return a.rate(ids) }},
		{keys: []string{"X"}, help: "redact", why: any, do: func() tea.Cmd { return a.open(newRedact(a, ids)) }},
		{keys: []string{"delete", "#"}, help: "trash", why: any, do: func() tea.Cmd { return a.trash(ids) }},
	}...)
}

// sessionsCalled names some sessions for a notice.
func sessionsCalled(infos []*home.SessionInfo) string {
	if len(infos) != 1 {
		return fmt.Sprintf("%d sessions", len(infos))
	}
	return calledInQuotes(infos[0].Title)
}

func calledInQuotes(title string) string {
	if title = render.OneLine(title, 40); title == "" {
		title = render.Untitled
	}
	return "“" + title + "”"
}

// change is something that is done to sessions one after the other.
type change struct {
	what func() string // in words, once it is done
	of   string        // what of a session it changes; "" is all of it
	now  string        // what holds when it is undone, if it is one session
	do   doing
}

// doing does something to a session, and returns what takes it back; nil if nothing was done.
type doing func(ctx context.Context, info *home.SessionInfo) (undo func(context.Context) error, err error)

// each does something to sessions, and collects what takes it back. If one fails, what was done
// before can still be taken back.
func (a *App) each(ids []string, c change) tea.Cmd {
	return a.act(func(ctx context.Context) (done, error) {
		var infos []*home.SessionInfo
		var undos []func(context.Context) error
		d := done{why: "nothing was changed"}
		for _, id := range ids {
			info, err := a.Home.Sessions.Get(ctx, home.SessionRequest{Session: id})
			if err == nil {
				var back func(context.Context) error
				if back, err = c.do(ctx, info); back != nil {
					undos = append(undos, back)
					d.changed = append(d.changed, part{info.ID, c.of})
				}
			}
			if err != nil && len(infos) == 0 {
				return done{}, err
			}
			if err != nil {
				d.what, d.undo = fmt.Sprintf("%s %s, and then: %s", c.what(), sessionsCalled(infos), err), inReverse(undos, "")
				return d, nil
			}
			infos = append(infos, info)
		}
		now := ""
		if len(infos) == 1 {
			now = c.now
		}
		d.what, d.undo = c.what()+" "+sessionsCalled(infos), inReverse(undos, now)
		return d, nil
	})
}

// always are words that do not depend on what was done.
func always(words string) func() string { return func() string { return words } }

// inReverse takes back several things, the last first.
func inReverse(undos []func(context.Context) error, now string) *undo {
	if len(undos) == 0 {
		return nil
	}
	return &undo{now: now, do: func(ctx context.Context) error {
		var errs []error
		for _, undo := range slices.Backward(undos) {
			errs = append(errs, undo(ctx))
		}
		return errors.Join(errs...)
	}}
}

// resume continues a conversation in its agent, and comes back afterwards.
func (a *App) resume(id string) tea.Cmd {
	return func() tea.Msg {
		found, err := a.Home.Transfer.Resume(a.ctx, home.ResumeRequest{Session: id})
		if err != nil {
			return err
		}
		if len(found.Command) > 0 {
			if _, err := exec.LookPath(found.Command[0]); err != nil {
				return fmt.Errorf("%s is not installed, or not on the PATH; y copies the command", found.Command[0])
			}
		}
		return a.talk(a.Program("resume", id))()
	}
}

func (a *App) fork(id string) tea.Cmd {
	return a.act(func(ctx context.Context) (done, error) {
		info, err := a.Home.Sessions.Get(ctx, home.SessionRequest{Session: id})
		if err != nil {
			return done{}, err
		}
		made, err := a.Home.Sessions.Fork(ctx, home.ForkRequest{Session: id})
		if err != nil {
			return done{}, err
		}
		return done{what: "forked " + calledInQuotes(info.Title), changed: []part{{made.Session, ""}}, undo: a.removeFork(made.Session)}, nil
	})
}

// removeFork takes back a fork.
func (a *App) removeFork(session string) *undo {
	return &undo{now: "the copy is in the trash", do: func(ctx context.Context) error {
		_, err := a.Home.Sessions.Remove(ctx, home.RemoveRequest{Session: session, Link: true})
		return err
	}}
}

// exportFormats are the formats that the UI offers; :export has the others.
var exportFormats = []struct{ key, format, name string }{
	{"m", "md", "Markdown"}, {"h", "html", "HTML"}, {"j", "json", "JSON"}, {"l", "jsonl", "JSONL"},
}

func (a *App) export(ids []string) tea.Cmd {
	var answers []answer
	for _, f := range exportFormats {
		answers = append(answers, answer{f.key, f.name, func() tea.Cmd { return a.exportAs(ids, f.format) }})
	}
	a.choose("export as", answers...)
	return nil
}

// exportAs asks where to.
func (a *App) exportAs(ids []string, format string) tea.Cmd {
	given, words := "sessions/", "to the directory"
	if len(ids) == 1 {
		given, words = render.ShortID(ids[0])+"."+format, "to"
	}
	a.ask("export "+words, given, func(path string) tea.Cmd {
		if path == "" {
			return nil
		}
		return a.exportTo(ids, home.ExportRequest{Format: format, Path: index.Dir(path)})
	})
	return nil
}

func (a *App) exportTo(ids []string, r home.ExportRequest) tea.Cmd {
	return func() tea.Msg {
		if len(ids) == 1 {
			r.Session = ids[0]
			_, err := a.Home.Transfer.Export(a.ctx, r, nil)
			if home.KindOf(err) == home.KindExists && !r.Force {
				return onward(func() tea.Cmd { return a.askReplace(ids, r) })
			}
			if err != nil {
				return err
			}
			return wrote(r.Path)
		}
		if !strings.HasSuffix(r.Path, "/") {
			r.Path += "/"
		}
		failed := ""
		result, err := a.Home.Transfer.ExportAll(a.ctx, home.ExportAllRequest{ExportRequest: r, Sessions: ids}, func(e home.ExportEvent) error {
			if e.Error != nil && failed == "" {
				failed = e.Error.Message
			}
			return nil
		})
		switch {
		case err != nil:
			return err
		case result.Failed > 0:
			return fmt.Errorf("%d sessions were not written: %s", result.Failed, failed)
		}
		return wrote(fmt.Sprintf("%d sessions to %s", result.Exported, r.Path))
	}
}

// wrote is the message that files were written.
func wrote(what string) done {
	return done{what: "wrote " + what, why: "what was written stays; it is yours to delete"}
}

// askReplace asks whether to replace a file, which cannot be undone.
func (a *App) askReplace(ids []string, r home.ExportRequest) tea.Cmd {
	a.confirm(render.OneLine(filepath.Base(r.Path), 30)+" exists; this cannot be undone", "replace it", func() tea.Cmd {
		r.Force = true
		return a.exportTo(ids, r)
	})
	return nil
}

// copy puts something about sessions onto the clipboard of the terminal.
func (a *App) copy(ids []string) tea.Cmd {
	if len(ids) > 1 {
		return a.clip(fmt.Sprintf("%d ids", len(ids)), strings.Join(ids, "\n"))
	}
	id := ids[0]
	later := func(what string, f func(ctx context.Context) (string, error)) func() tea.Cmd {
		return func() tea.Cmd {
			return func() tea.Msg {
				text, err := f(a.ctx)
				if err != nil {
					return err
				}
				return onward(func() tea.Cmd { return a.clip(what, text) })
			}
		}
	}
	a.choose("copy", answer{"i", "id", func() tea.Cmd { return a.clip("the id", id) }},
		answer{"r", "resume command", later("the command", func(ctx context.Context) (string, error) { return a.resumeLine(ctx, id) })},
		answer{"a", "last answer", later("the last answer", func(ctx context.Context) (string, error) { return a.lastAnswer(ctx, id) })})
	return nil
}

// clip puts a text on the clipboard.
func (a *App) clip(what, text string) tea.Cmd {
	return tea.Batch(tea.SetClipboard(text), func() tea.Msg { return notice("copied " + what) })
}

func (a *App) resumeLine(ctx context.Context, id string) (string, error) {
	found, err := a.Home.Transfer.Resume(ctx, home.ResumeRequest{Session: id})
	if err != nil {
		return "", err
	}
	return found.Line(), nil
}

// lastAnswer returns the whole of what the model said last.
func (a *App) lastAnswer(ctx context.Context, id string) (string, error) {
	card, err := a.Home.Sessions.Card(ctx, home.SessionRequest{Session: id})
	if err != nil {
		return "", err
	}
	if card.AnswerEntry == "" {
		return "", errors.New("there is no answer to copy")
	}
	var texts []string
	_, err = a.Home.Entries.Path(ctx, home.PathRequest{Session: id, Leaf: card.AnswerEntry, Last: 1}, func(e session.Entry) error {
		if e.ID == card.AnswerEntry && e.Message != nil {
			for i := range e.Message.Content {
				if t := e.Message.Content[i].Text; t != nil {
					texts = append(texts, t.Content)
				}
			}
		}
		return nil
	})
	return strings.Join(texts, "\n\n"), err
}

func (a *App) rename(id string) tea.Cmd {
	var given string
	p := a.ask("rename to", "", func(name string) tea.Cmd {
		if name == given {
			return nil
		}
		return a.renameTo(id, name)
	})
	return a.fill(p, id, func(info *home.SessionInfo) string {
		if p.input.text() != "" {
			return "" // another one is being typed
		}
		given = strings.TrimSpace(plain.Line(info.Title))
		return given
	})
}

// fill puts what is known about a session before what is typed, when it has been read: keys that
// are pressed until then are for the question, too.
func (a *App) fill(p *prompt, id string, given func(info *home.SessionInfo) string) tea.Cmd {
	return func() tea.Msg {
		info, err := a.Home.Sessions.Get(a.ctx, home.SessionRequest{Session: id})
		return onward(func() tea.Cmd {
			switch {
			case a.prompt != p:
			case err != nil:
				a.prompt = nil
				a.fail(err)
			default:
				p.input.set(given(info) + p.input.text())
			}
			return nil
		})
	}
}

func (a *App) renameTo(id, name string) tea.Cmd {
	return a.act(func(ctx context.Context) (done, error) {
		info, err := a.Home.Sessions.Get(ctx, home.SessionRequest{Session: id})
		if err != nil {
			return done{}, err
		}
		was := ""
		if info.Named {
			was = info.Title
		}
		if _, err := a.Home.Sessions.Rename(ctx, home.RenameRequest{Session: id, Name: name}); err != nil {
			return done{}, err
		}
		back := func(ctx context.Context) error {
			_, err := a.Home.Sessions.Rename(ctx, home.RenameRequest{Session: id, Name: was})
			return err
		}
		called := calledInQuotes(info.Title)
		return done{what: "renamed " + called + " to " + calledInQuotes(name), changed: []part{{info.ID, "name"}}, undo: &undo{
			do: back, named: "the name " + calledInQuotes(name), now: "it is called " + called + " again",
		}}, nil
	})
}

// tag asks for tags. Those of a single session can be edited.
func (a *App) tag(ids []string) tea.Cmd {
	var had []string
	p := a.ask("tags (word adds, -word removes)", "", func(text string) tea.Cmd { return a.tagAs(ids, had, text) })
	if len(ids) > 1 {
		return nil
	}
	p.words = "tags"
	return a.fill(p, ids[0], func(info *home.SessionInfo) (given string) {
		had = info.Tags
		for _, tag := range had {
			word := plain.Line(tag)
			if strings.HasPrefix(word, "-") || strings.HasPrefix(word, "+") {
				word = "+" + word
			}
			if quoted, err := syntax.Quote(word, syntax.LangBash); err == nil { // there is no NUL in it
				word = quoted
			}
			given += word + " "
		}
		return given
	})
}

// tagAs changes tags. Those that were there to be edited and are not in the text go.
func (a *App) tagAs(ids, had []string, text string) tea.Cmd {
	words, err := splitLine(text)
	var r home.TagRequest
	for _, word := range words {
		if !strings.HasPrefix(word, "-") && !strings.HasPrefix(word, "+") {
			word = "+" + word
		}
		err = errors.Join(err, r.Change(word))
	}
	if err != nil {
		a.fail(err)
		return nil
	}
	for _, tag := range had {
		shown := plain.Line(tag)
		if !slices.Contains(r.Add, shown) && !slices.Contains(r.Remove, tag) {
			r.Remove = append(r.Remove, tag)
		}
		r.Add = without(r.Add, []string{shown})
	}
	if len(r.Add)+len(r.Remove) == 0 {
		return nil
	}
	return a.each(ids, change{always("tagged"), "tags", "it has the tags that it had", func(ctx context.Context, info *home.SessionInfo) (func(context.Context) error, error) {
		r := r
		r.Session = info.ID
		_, err := a.Home.Sessions.Tag(ctx, r)
		return a.tagsBack(info), err
	}})
}

// without returns those of some tags that are not among others.
func without(some, others []string) []string {
	return slices.DeleteFunc(slices.Clone(some), func(tag string) bool { return slices.Contains(others, tag) })
}

// tagsBack gives a session the tags that it had.
func (a *App) tagsBack(was *home.SessionInfo) func(context.Context) error {
	return func(ctx context.Context) error {
		now, err := a.Home.Sessions.Get(ctx, home.SessionRequest{Session: was.ID})
		if err != nil {
			return err
		}
		_, err = a.Home.Sessions.Tag(ctx, home.TagRequest{Session: was.ID, Add: without(was.Tags, now.Tags), Remove: without(now.Tags, was.Tags)})
		return err
	}
}

// pin pins sessions, or unpins them if the first one is pinned.
func (a *App) pin(ids []string) tea.Cmd {
	var first *home.SessionInfo
	what := func() string {
		if first.Pinned {
			return "unpinned"
		}
		return "pinned"
	}
	return a.each(ids, change{what, "pin", "", func(ctx context.Context, info *home.SessionInfo) (func(context.Context) error, error) {
		if first == nil {
			first = info
		}
		result, err := a.Home.Sessions.Pin(ctx, home.PinRequest{Session: info.ID, Pinned: !first.Pinned})
		if err != nil || !result.Changed {
			return nil, err
		}
		return func(ctx context.Context) error {
			_, err := a.Home.Sessions.Pin(ctx, home.PinRequest{Session: info.ID, Pinned: first.Pinned})
			return err
		}, nil
	}})
}

func (a *App) rate(ids []string) tea.Cmd {
	as := func(rating, what string) func() tea.Cmd {
		return func() tea.Cmd {
			return a.each(ids, change{always(what), "tags", "it is rated as before", func(ctx context.Context, info *home.SessionInfo) (func(context.Context) error, error) {
				result, err := a.Home.Sessions.Rate(ctx, home.RateRequest{Session: info.ID, Rating: rating})
				if err != nil || result.Entry == "" {
					return nil, err
				}
				return a.tagsBack(info), nil // a rating is a tag
			}})
		}
	}
	a.choose("rate", answer{"g", home.Good, as(home.Good, "rated good:")}, answer{"b", home.Bad, as(home.Bad, "rated bad:")},
		answer{"n", "no rating", as("", "took back the rating of")})
	return nil
}

func (a *App) trash(ids []string) tea.Cmd {
	return a.each(ids, change{always("moved to the trash:"), "", "it is in the list again", func(ctx context.Context, info *home.SessionInfo) (func(context.Context) error, error) {
		gone, err := a.Home.Sessions.Remove(ctx, home.RemoveRequest{Session: info.ID})
		if pinned, ok := errors.AsType[*upkeep.PinnedError](err); ok && pinned.Err == nil {
			return nil, fmt.Errorf("%s is pinned; s unpins it", calledInQuotes(info.Title))
		}
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context) error {
			_, err := a.Home.Upkeep.Restore(ctx, home.RestoreRequest{Session: gone.Removals[0]})
			return err
		}, nil
	}})
}
