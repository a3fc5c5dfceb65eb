package cli

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/render/terminal"
)

// picking lets a person at a terminal who gave a command no ID choose one from a list.
func (a *app) picking(cmd *cobra.Command) *cobra.Command {
	run := cmd.RunE
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 && a.canPick() {
			return nil
		}
		return fits(cmd, args)
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			id, err := a.pick(cmd.Context())
			if err != nil {
				return err
			}
			args = []string{id}
		}
		return run(cmd, args)
	}
	return cmd
}

// canPick reports whether there is a person to ask.
func (a *app) canPick() bool {
	return terminalOf(a.stdin) != nil && a.isTerminal() && !a.flags.json
}

// maxPicked is how many conversations are offered at once.
const maxPicked = 9

// pick asks which conversation is meant: by its number in a list, by words that narrow the
// list, or by any of its names. An empty line ends it with errNothingFound.
func (a *app) pick(ctx context.Context) (id string, err error) {
	err = a.withHome(ctx, false, func(h *home.Home) error {
		lines, words := bufio.NewReader(a.stdin), ""
		for {
			found, err := h.Sessions.Suggest(ctx, home.SuggestRequest{Words: words, Limit: maxPicked})
			if err != nil {
				return err
			}
			list := found.Sessions
			if len(list) == 0 && words == "" {
				a.say("no sessions")
				return errNothingFound
			}
			if err := a.sayOffers(ctx, h, list, words); err != nil {
				return err
			}
			line, err := whileWaited(ctx, func() (string, error) { return lines.ReadString('\n') })
			if err == io.EOF { // the end of the input is an empty line
				err = nil
			}
			if err != nil {
				return err
			}
			if words = strings.TrimSpace(line); words == "" {
				return errNothingFound
			}
			if n, err := strconv.Atoi(words); err == nil && n >= 1 && n <= len(list) {
				id = list[n-1].Name
				return nil
			}
			if meant, err := h.Sessions.Resolve(ctx, home.SessionRequest{Session: words}); err == nil {
				id = meant.Session
				return nil
			}
		}
	})
	return id, err
}

// sayOffers prints a numbered list and asks for a choice.
func (a *app) sayOffers(ctx context.Context, h *home.Home, list []home.SessionInfo, words string) error {
	short, err := namesIn(ctx, h, list)
	if err != nil {
		return err
	}
	if len(list) == 0 {
		a.say("nothing fits %q", words)
	}
	for i := range list {
		before := "  " + a.paint(bold, strconv.Itoa(i+1)) + "  " + a.paint(cyan, terminal.Pad(short.Shown(list[i].Name), 12)) + "  " +
			a.paint(dim, terminal.Pad(a.when(list[i].Updated, time.Now()), 12)) + "  "
		a.say("%s%s", before, render.OneLine(titleWithMarks(list[i]), max(a.width()-33, 8)))
	}
	_, err = io.WriteString(a.err, "which one? (a number, or words of the title; Enter: none) ")
	return errors.Join(err, a.err.Flush())
}

// whileWaited reads from a person until they answer or ctx is done. Then the program ends, and
// with it the goroutine that still reads.
func whileWaited[T any](ctx context.Context, read func() (T, error)) (T, error) {
	type answer struct {
		got T
		err error
	}
	answers := make(chan answer, 1)
	go func() {
		got, err := read()
		answers <- answer{got, err}
	}()
	select {
	case one := <-answers:
		return one.got, one.err
	case <-ctx.Done():
		return *new(T), ctx.Err()
	}
}
