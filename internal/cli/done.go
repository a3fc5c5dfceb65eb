package cli

import (
	"errors"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/render"
)

// done reports what a command has written. A person gets one short line. A program
// gets the id of what was written, and the line on standard error; with --json it
// gets the whole result. Without an id nothing was written.
func (a *app) done(result any, id, line string) error {
	switch {
	case a.flags.json:
		return a.printJSON(result)
	case a.isTerminal():
		return a.print("%s", line)
	}
	a.say("%s", line)
	if id == "" {
		return nil
	}
	return a.print("%s", id)
}

// made is done for commands that programs call all the time: in a pipe they print
// the id, and nothing else.
func (a *app) made(result any, id, line string) error {
	if a.flags.json || a.isTerminal() {
		return a.done(result, id, line)
	}
	return a.print("%s", id)
}

// calling is what to call a session in an answer: as the user did, or by its short name if
// they named a place in a list or a directory, which may be another session's by now.
func calling(given, id string) string {
	if home.IsMoving(given) {
		return render.ShortID(id)
	}
	return given
}

// hintEarlier says which command helps if an entry is in an earlier session of the
// conversation.
func hintEarlier(err error, hint func(e *home.EarlierError) string) error {
	if e, ok := errors.AsType[*home.EarlierError](err); ok {
		return hinted(err, hint(e))
	}
	return err
}
