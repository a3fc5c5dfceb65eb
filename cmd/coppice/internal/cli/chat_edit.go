package cli

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	display "github.com/coppice-dev/coppice/cmd/coppice/internal/tui/screen"
	"github.com/coppice-dev/coppice/session/files"
	"github.com/coppice-dev/coppice/store/vfs"
)

// maxEdited is how long a message from an editor may be, in bytes.
const maxEdited = 4 << 20

// editOn returns a function that has the person write a text in their editor, on a terminal
// that is theirs as long as that takes.
func (a *app) editOn(t *display.Terminal, keys *os.File) func(text string) (string, error) {
	return func(text string) (string, error) {
		dir, err := os.MkdirTemp("", "coppice-")
		if err != nil {
			return "", err
		}
		defer os.RemoveAll(dir)
		path := filepath.Join(dir, "message.md")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return "", err
		}
		editor := a.editorCommand()
		cmd := onFile(editor, path)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = keys, a.screen, a.screen
		var ran error
		lent, err := t.Lend(func() { ran = cmd.Run() })
		switch {
		case err != nil:
			return "", err
		case !lent:
			return "", errors.New("the terminal cannot be lent to an editor on this system")
		case ran != nil:
			return "", fmt.Errorf("the editor %s (VISUAL, EDITOR): %w", editor, ran)
		}
		written, err := vfs.ReadFile(path, maxEdited)
		if err == nil && !files.IsText(written) {
			err = errors.New("what the editor wrote is not text")
		}
		return string(written), err
	}
}

// editorCommand returns the user's editor.
func (a *app) editorCommand() string { return cmp.Or(a.getenv("VISUAL"), a.getenv("EDITOR"), "vi") }

// onFile runs a command of the user, which may have arguments, on a file.
func onFile(command, path string) *exec.Cmd {
	return exec.Command("/bin/sh", "-c", command+` "$1"`, "sh", path)
}
