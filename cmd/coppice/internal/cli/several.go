package cli

import (
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/render"
)

// each does something for every one that the user named, once. One that fails does
// not keep the others from being done; the error of the last that failed is
// left to the caller unless some were done.
func (a *app) each(ctx context.Context, given []string, do func(given string) error) error {
	var last error
	done := 0
	for i, id := range given {
		if slices.Contains(given[:i], id) {
			continue
		}
		err := do(id)
		if err == nil {
			done++
			continue
		}
		if last != nil {
			a.sayError(last)
		}
		last = err
		if ctx.Err() != nil {
			return err
		}
	}
	if last != nil && done > 0 {
		a.sayError(last)
		return errPartial
	}
	return last
}

// eachSession is each for sessions, every conversation once.
func (a *app) eachSession(ctx context.Context, h *home.Home, r home.DistinctRequest, do func(id string) error) error {
	meant, err := h.Sessions.Distinct(ctx, r)
	if err != nil {
		return err
	}
	return a.each(ctx, meant.Sessions, do)
}

// sessionNames returns the short names of sessions.
func sessionNames(ctx context.Context, h *home.Home, r home.SessionNamesRequest) (render.Names, error) {
	found, err := h.Sessions.Short(ctx, r)
	if err != nil {
		return nil, err
	}
	return found.Names, nil
}

// namesIn returns the short names of the sessions in a list.
func namesIn(ctx context.Context, h *home.Home, list []home.SessionInfo) (render.Names, error) {
	names := make([]string, len(list))
	for i := range list {
		names[i] = list[i].Name
	}
	return sessionNames(ctx, h, home.SessionNamesRequest{Sessions: names})
}

// nameOf returns the short name of a session, or its id for a program or if the names cannot be
// found out. It asks the store, since the index may be what is damaged.
func (a *app) nameOf(ctx context.Context, h *home.Home, session string) string {
	if a.flags.json {
		return session
	}
	names, _ := sessionNames(ctx, h, home.SessionNamesRequest{All: true})
	return names.Name(session)
}

// flagText is the text that a flag means: itself, or standard input for "-".
func (a *app) flagText(value string) (string, error) {
	if value != "-" {
		return value, nil
	}
	text, err := io.ReadAll(a.stdin)
	return strings.TrimRight(string(text), "\r\n"), err
}

// completeEntryOf completes a session and then entries of it.
func (a *app) completeEntryOf(cmd *cobra.Command, args []string, begin string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return a.completeSession(1)(cmd, args, begin)
	}
	return a.completeEntries(cmd, args, begin)
}

// age is a flag for how long ago: see home.ParseAge.
type age struct {
	time.Duration
	given string
}

func (d *age) String() string { return d.given }

func (d *age) Type() string { return "duration" }

// Set takes what people write for an age. What they gave is kept, so that a command that is
// printed to be copied has the same words.
func (d *age) Set(text string) error {
	duration, err := home.ParseAge(text)
	if err == nil {
		d.Duration, d.given = duration, text
	}
	return err
}
