package cli

import (
	"context"
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

// asJSON ends a command that failed, or whose result a program reads.
func (a *app) asJSON(result any, err error) error {
	if err != nil {
		return err
	}
	return a.printJSON(result)
}

// printID prints the id of what was changed, and to a program that asked for JSON
// the whole result.
func (a *app) printID(result any, id string) error {
	if a.flags.json {
		return a.printJSON(result)
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

// entryNames returns what a line about a result calls entries of the session that was
// written to.
func (a *app) entryNames(ctx context.Context, h *home.Home, session string, entries ...string) (render.Names, error) {
	if a.flags.json {
		return nil, nil // no line is printed
	}
	return namesOf(ctx, h, home.EntryNamesRequest{Sessions: []string{session}, Link: true, Entries: entries})
}

// listedNames returns what a table calls entries. Programs get whole ids.
func (a *app) listedNames(ctx context.Context, h *home.Home, r home.EntryNamesRequest) (render.Names, error) {
	if a.width() == 0 {
		return nil, nil
	}
	return namesOf(ctx, h, r)
}

// namesOf returns the short names of entries.
func namesOf(ctx context.Context, h *home.Home, r home.EntryNamesRequest) (render.Names, error) {
	found, err := h.Entries.Short(ctx, r)
	if err != nil {
		return nil, err
	}
	return found.Names, nil
}

// hintEarlier says which command helps if an entry is in an earlier session of the
// conversation.
func hintEarlier(err error, hint func(e *home.EarlierError) string) error {
	if e, ok := errors.AsType[*home.EarlierError](err); ok {
		return hinted(err, hint(e))
	}
	return err
}
