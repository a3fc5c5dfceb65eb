package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// generated are the files that the program writes about itself, and the command
// for each.
var generated = []struct {
	name string
	args []string
}{
	{"completions/coppice.bash", []string{"completion", "bash"}},
	{"completions/_coppice", []string{"completion", "zsh"}}, // zsh finds it by this name
	{"completions/coppice.fish", []string{"completion", "fish"}},
	{"completions/coppice.ps1", []string{"completion", "powershell"}},
	{"man/man1/coppice.1", []string{"man"}},
}

// sharedFiles returns what is the same for every platform.
func (r *release) sharedFiles(ctx context.Context) ([]file, error) {
	var files []file
	for _, name := range []string{"README.md", "LICENSE", "CHANGELOG.md"} {
		data, err := os.ReadFile(name)
		if name == "CHANGELOG.md" && errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		files = append(files, file{name, 0o644, data})
	}
	binary, err := r.build(ctx, runtime.GOOS, runtime.GOARCH)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "coppice-dist-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "coppice.exe") // every system runs a file of this name
	if err := os.WriteFile(path, binary, 0o755); err != nil {
		return nil, err
	}
	for _, g := range generated {
		cmd := exec.CommandContext(ctx, path, g.args...)
		// The settings of whoever builds this are nobody else's.
		cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_CONFIG_HOME=", "XDG_DATA_HOME=", "COPPICE_CONFIG=", "COPPICE_HOME=", "NO_COLOR=1", "COLUMNS=80")
		text, err := output(cmd)
		if err != nil {
			return nil, err
		}
		files = append(files, file{g.name, 0o644, text})
	}
	return files, nil
}
