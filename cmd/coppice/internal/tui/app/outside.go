package app

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	tea "charm.land/bubbletea/v2"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/render/plain"
	"github.com/coppice-dev/coppice/session"
)

// Viewers are the user's own programs to read a file with.
type Viewers struct {
	Editor func(path string) *exec.Cmd
	Pager  func(path string) *exec.Cmd // it returns nil if there is none
}

// writing writes a text to read elsewhere.
type writing func(ctx context.Context, w io.Writer) error

// askOutside asks in which program to read something.
func (a *App) askOutside(what string, write writing) tea.Cmd {
	a.choose("read "+what+" in your",
		answer{"e", "editor", func() tea.Cmd { return a.outside(a.Viewers.Editor, write) }},
		answer{"p", "pager", func() tea.Cmd { return a.outside(a.Viewers.Pager, write) }})
	return nil
}

// outside shows a text in another program, which gets a copy that cannot be changed and goes when
// the program ends. Like all that is drawn, the copy cannot act on the terminal.
func (a *App) outside(viewer func(path string) *exec.Cmd, write writing) tea.Cmd {
	return func() tea.Msg {
		dir, err := os.MkdirTemp("", "coppice-")
		if err != nil {
			return err
		}
		path := filepath.Join(dir, "copy.md")
		if err := writeCopy(a.ctx, path, write); err != nil {
			return errors.Join(err, os.RemoveAll(dir))
		}
		cmd := viewer(path)
		if cmd == nil {
			return errors.Join(errors.New("there is no pager; PAGER names one"), os.RemoveAll(dir))
		}
		return tea.Exec(&borrower{Cmd: cmd}, func(ran error) tea.Msg {
			if err := errors.Join(ran, os.RemoveAll(dir)); err != nil {
				return err
			}
			return done{}
		})()
	}
}

func writeCopy(ctx context.Context, path string, write writing) (err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o400)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := plain.NewWriter(f)
	return errors.Join(write(ctx, w), w.Flush())
}

// conversationText writes a conversation up to an entry as Markdown; "" is its end.
func (a *App) conversationText(id, leaf string) writing {
	return func(ctx context.Context, w io.Writer) error {
		r := home.ExportRequest{OpenRequest: home.OpenRequest{Session: id}, Format: "md", Leaf: leaf, Path: "-"}
		_, err := a.Home.Transfer.Export(ctx, r, func(p home.ExportPiece) error {
			_, err := w.Write(p.Data)
			return err
		})
		return err
	}
}

// askWhatOutside asks what to read elsewhere.
func (r *transcript) askWhatOutside() tea.Cmd {
	entry, all := r.entryText(), r.conversationText(r.id, r.leaf)
	r.choose("read", answer{"e", "this entry", func() tea.Cmd { return r.askOutside("it", entry) }},
		answer{"a", "all of this branch", func() tea.Cmd { return r.askOutside("it", all) }})
	return nil
}

// entryText writes the whole of the selected entry.
func (r *transcript) entryText() writing {
	i := r.list.Cursor()
	q := r.request(i)
	q.Count, q.Limit = r.lastOf(i)+1-i, wholeText
	return func(ctx context.Context, w io.Writer) error {
		result, err := r.Home.Entries.Rows(ctx, q)
		if err != nil || len(result.Rows) == 0 {
			return err
		}
		text := textOf(&result.Rows[0], func(call string) *session.ToolResultContent { return answerIn(result.Rows, call) })
		_, err = io.WriteString(w, text+"\n")
		return err
	}
}
