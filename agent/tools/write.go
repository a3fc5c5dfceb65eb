package tools

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/store/vfs"
)

func (k *toolset) write() (agent.Tool, error) {
	return pathTool(k, Write, "writes", "Write a file, with the directories that are missing. An existing file is replaced as a whole, and must have been read as a whole before; "+
		"to change part of it, use edit.",
		func(ctx context.Context, call agent.Call, in writeInput, p path) (agent.Result, error) {
			return k.changeFile(ctx, call, p, func(at *openedPath, before fs.FileInfo) ([]byte, string, error) {
				if before == nil && !p.outside { // elsewhere, a missing directory is more likely a mistake
					if err := at.root.MkdirAll(filepath.Dir(at.name), 0o777); err != nil {
						return nil, "", err
					}
				}
				done := "wrote the new file"
				if before != nil {
					done = fmt.Sprintf("replaced what was in the file (%s):", size(before.Size()))
				}
				lines := strings.Count(in.Content, "\n")
				if in.Content != "" && !strings.HasSuffix(in.Content, "\n") {
					lines++
				}
				return []byte(in.Content), fmt.Sprintf("%s %s, %s, %s", done, p, count(lines, "line"), size(int64(len(in.Content)))), nil
			})
		})
}

// changeFile gives a file the content that change returns, while no other call changes files
// here. The file must be the approved one, with the content that the model has seen; before
// describes it, or is nil if there is none. text says what was done, for the model.
func (k *toolset) changeFile(ctx context.Context, call agent.Call, p path,
	change func(at *openedPath, before fs.FileInfo) (content []byte, text string, err error),
) (agent.Result, error) {
	if err := k.changing.LockContext(ctx); err != nil {
		return agent.Result{}, err
	}
	defer k.changing.Unlock()
	at, err := k.dir.open(p)
	if err != nil {
		return agent.Result{}, err
	}
	defer at.close()
	if err := k.memory.isApproved(call, p, at); err != nil {
		return agent.Result{}, err
	}
	before, was, err := k.known(call, p, at)
	if err != nil {
		return agent.Result{}, err
	}
	content, text, err := change(at, before)
	if err == nil {
		err = k.replace(at, before, was, content)
	}
	if err != nil {
		return agent.Result{}, err
	}
	k.memory.changed(call, at, sha256.Sum256(content))
	return agent.Result{Text: text}, nil
}

// known describes a file that a call would change, which the model must have seen; before is
// nil if there is none.
func (k *toolset) known(call agent.Call, p path, at *openedPath) (before fs.FileInfo, was digest, err error) {
	if before, err = at.look(); before == nil || err != nil {
		return nil, was, err
	}
	if was, err = at.digest(); err != nil {
		return nil, was, err
	}
	if err = k.memory.hasSeen(call, at, was); err != nil {
		err = fmt.Errorf("%s: %w", p, err)
	}
	return before, was, err
}

// checkChange returns why a call of write or edit cannot run, as things are now.
func (k *toolset) checkChange(call agent.Call) error {
	p, err := k.dir.pathIn(call.Name, call.Input)
	if err != nil {
		return err
	}
	at, err := k.dir.open(p)
	if err != nil {
		return explain(p, err)
	}
	defer at.close()
	if call.Name == Write {
		_, _, err = k.known(call, p, at)
		return explain(p, err)
	}
	in, err := agent.Arguments[editInput](call.Input)
	if err == nil {
		err = in.check()
	}
	if err != nil {
		return err
	}
	before, _, err := k.known(call, p, at)
	if err == nil {
		_, _, err = in.changed(at, p, before)
	}
	return explain(p, err)
}

// look describes a file, or returns nil if there is none. A place never is a link.
func (p *openedPath) look() (fs.FileInfo, error) {
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
func (k *toolset) replace(at *openedPath, before fs.FileInfo, was digest, content []byte) error {
	o := vfs.Replacement{
		Perm: 0o666, Umask: true, Like: before, New: before == nil,
		Before: func() error { return at.unchanged(before, was) },
	}
	err := vfs.Replace(vfs.In(at.root), at.name, o, vfs.Data(content))
	if errors.Is(err, vfs.ErrNotDurable) {
		k.Logger.Warn("a file was written, but a power cut may undo it", "file", at.full, "error", err)
		return nil
	}
	return err
}
