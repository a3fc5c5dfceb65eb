package tools

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/store/vfs"
)

func (k *kit) write() agent.Tool {
	t := k.pathTool(Write, "Write a file, with the directories that are missing. An existing file is replaced as a whole; to change part of it, use edit. "+
		"Paths are relative to the working directory.",
		`{"type":"object","properties":{`+
			`"path":{"type":"string"},`+
			`"content":{"type":"string"}},`+
			`"required":["path","content"],"additionalProperties":false}`)
	t.Alone = true
	t.Ask = k.asksOutside("writes", true)
	t.Run = func(ctx context.Context, call agent.Call) (agent.Result, error) {
		in, err := parse(call.Input, "path", "content")
		if err != nil {
			return refused(err)
		}
		content := in.text("content")
		p, err := k.dir.pathIn(call.Input)
		if err = errors.Join(in.err(), err); err != nil {
			return refused(err)
		}
		return k.changeFile(ctx, p, func(at *place, before fs.FileInfo) (string, error) { return k.writeAt(at, before, p, content) })
	}
	return t
}

// changeFile opens the place of a file and changes it, while no other call changes files
// here. before describes the file, or is nil if there is none.
func (k *kit) changeFile(ctx context.Context, p path, do func(at *place, before fs.FileInfo) (string, error)) (agent.Result, error) {
	text, err := func() (string, error) {
		if err := k.changing.LockContext(ctx); err != nil {
			return "", err
		}
		defer k.changing.Unlock()
		at, err := k.dir.open(p)
		if err != nil {
			return "", err
		}
		defer at.close()
		before, err := at.look()
		if err != nil {
			return "", err
		}
		return do(at, before)
	}()
	if err != nil && ctx.Err() == nil {
		return refused(explain(p, err))
	}
	return agent.Result{Text: text}, err
}

func (k *kit) writeAt(at *place, before fs.FileInfo, p path, content string) (string, error) {
	if before == nil && !p.outside { // elsewhere, a missing directory is more likely a mistake
		if err := at.root.MkdirAll(filepath.Dir(at.name), 0o777); err != nil {
			return "", err
		}
	}
	if err := k.replace(at, before, []byte(content)); err != nil {
		return "", err
	}
	done := "wrote the new file"
	if before != nil {
		done = fmt.Sprintf("replaced what was in the file (%s):", size(before.Size()))
	}
	lines := strings.Count(content, "\n")
	if content != "" && !strings.HasSuffix(content, "\n") {
		lines++
	}
	return fmt.Sprintf("%s %s, %s, %s", done, p, count(lines, "line"), size(int64(len(content)))), nil
}

// look describes a file, or returns nil if there is none. A place never is a link.
func (p *place) look() (fs.FileInfo, error) {
	info, err := p.root.Lstat(p.name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, errors.New("it is a directory")
	case !info.Mode().IsRegular():
		return nil, vfs.ErrNotRegular
	}
	return info, nil
}

// replace writes new content to a file that look described; before is nil for a new
// file. It leaves the file alone if another program has changed it since.
func (k *kit) replace(at *place, before fs.FileInfo, content []byte) error {
	o := vfs.Replacement{Perm: 0o666, Umask: true}
	if before != nil {
		o = vfs.Replacement{Perm: before.Mode().Perm()}
	}
	o.Before = func() error {
		now, err := at.look()
		if err == nil && !unchanged(before, now) {
			err = errors.New("another program changed it in the meantime: read it again")
		}
		return err
	}
	err := vfs.Replace(vfs.In(at.root), at.name, o, vfs.Data(content))
	if errors.Is(err, vfs.ErrNotDurable) {
		k.Logger.Warn("a file was written, but a power cut may undo it", "file", at.name, "error", err)
		return nil
	}
	return err
}

func unchanged(before, now fs.FileInfo) bool {
	if before == nil || now == nil {
		return before == nil && now == nil
	}
	return before.Size() == now.Size() && before.ModTime().Equal(now.ModTime())
}
