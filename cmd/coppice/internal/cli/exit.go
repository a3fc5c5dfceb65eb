package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
)

// The exit codes.
const (
	exitOK          = 0
	exitError       = 1
	exitUsage       = 2
	exitPartial     = 3
	exitNotFound    = 10
	exitLocked      = 11
	exitCorrupt     = 12
	exitConflict    = 13
	exitInterrupted = 130
)

// usageError is a mistake in the typed command.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// misuse makes the error of such a mistake.
func misuse(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// errPartial says that some of several things were done. What was not has been
// reported by then.
var errPartial = home.ErrPartial

// exitCodes is the one table from what went wrong to exit codes.
var exitCodes = map[home.Kind]int{
	home.KindInvalid:     exitUsage,
	home.KindPartial:     exitPartial,
	home.KindNotFound:    exitNotFound,
	home.KindLocked:      exitLocked,
	home.KindCorrupt:     exitCorrupt,
	home.KindConflict:    exitConflict,
	home.KindInterrupted: exitError, // unless the user asked for it: see run
}

// exitCode returns what the program ends with.
func exitCode(err error) int {
	if err == nil {
		return exitOK
	}
	if code, ok := exitCodes[kindOfError(err)]; ok {
		return code
	}
	return exitError
}

// kindOfError is what went wrong, the command line's own errors included.
func kindOfError(err error) home.Kind {
	var usage usageError
	switch {
	case errors.Is(err, errPartial):
		return home.KindPartial
	case errors.As(err, &usage):
		return home.KindInvalid
	}
	return home.KindOf(err)
}

// hinted gives an error the hint that only the command line can give: which
// command or flag helps. It takes the place of a hint in general words.
func hinted(err error, hint string) error { return &hintError{err, hint} }

// hintError is an error with a hint.
type hintError struct {
	error
	hint string
}

func (e *hintError) Unwrap() error { return e.error }

// explain returns what an error says and what the user may do about it. A hint
// of the command line wins over one that has to hold for every face.
func (t *talk) explain(err error) (text, hint string) {
	info := home.Describe(err)
	if t.call != nil {
		info = home.DescribeIn(err, t.call)
	}
	text, hint = info.Message, info.Hint
	if t.talkScreen != nil {
		for id, name := range t.short {
			text = strings.ReplaceAll(text, id, name)
		}
	}
	hint = strings.ReplaceAll(hint, "coppice migrate", t.command("migrate", nil)) // which stores name
	if over, ok := errors.AsType[*store.LimitError](err); ok {
		hint += ": " + t.command("config set", []string{string(over.Limit), "NUMBER"})
	}
	if trashed, ok := errors.AsType[*home.TrashedError](err); ok {
		hint = t.command("trash restore", []string{render.ShortID(trashed.Session)}) + " brings it back"
	}
	if broken, ok := errors.AsType[*session.Error](err); ok && broken.Name != "" {
		name := []string{t.short.Name(broken.Name)}
		switch {
		case broken.Op == "open" && errors.Is(broken, session.ErrCorrupt):
			hint = t.command("repair", name) + " brings back a backup, if there is one; " + t.command("rm --link", name) + " moves the file to the trash"
		case broken.Op == "read" && errors.Is(broken, home.ErrIncomplete):
			hint = t.command("fsck", name) + " says more; " + t.command("repair", name) + " mends what can be mended"
		}
	}
	if own, ok := errors.AsType[*hintError](err); ok {
		hint = own.hint
	}
	if hint == "" {
		hint = t.whereToLook(err)
	}
	return text, hint
}

// whereToLook says which command finds what was named and is not there.
func (t *talk) whereToLook(err error) string {
	if wrong, ok := errors.AsType[*fs.PathError](err); ok && wrong.Op == "write" && errors.Is(wrong, fs.ErrNotExist) {
		return "the directory " + filepath.Dir(wrong.Path) + " must exist"
	}
	wrong, ok := errors.AsType[*session.Error](err)
	if !ok || wrong.Kind != session.ErrNotExist || wrong.Err != nil {
		return ""
	}
	switch wrong.Op {
	case "find session":
		return t.command("ls", nil) + " lists them, and " + t.command("search", []string{"WORDS"}) + " finds one by what was said in it"
	case "find entry":
		return t.command("tree", []string{"ID"}) + " lists the entries of a session"
	case "find session in the trash":
		return t.command("trash", nil) + " lists what is there"
	}
	return ""
}

// errorJSON is what --json prints on standard error when a command fails.
type errorJSON struct {
	Error struct {
		Kind    home.Kind `json:"kind"`
		Message string    `json:"message"`
		Field   string    `json:"field,omitempty"`
		Hint    string    `json:"hint,omitempty"`
	} `json:"error"`
}

// failureJSON describes a failure to a program.
func (t *talk) failureJSON(err error) (e errorJSON) {
	e.Error.Kind, e.Error.Field = kindOfError(err), home.Describe(err).Field
	e.Error.Message, e.Error.Hint = t.explain(err)
	return e
}
