package cli

import (
	"context"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
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

// age is a flag for how long ago: what time.ParseDuration reads, and days and
// weeks.
type age struct {
	time.Duration
	given string
}

func (d *age) String() string { return d.given }

func (d *age) Type() string { return "duration" }

func (d *age) Set(text string) error {
	rest, total := text, time.Duration(0)
	for {
		at := strings.IndexAny(rest, "dw")
		if at < 0 {
			break
		}
		n, err := strconv.Atoi(rest[:at])
		if err != nil || n < 0 || n > 100_000 {
			return errAge
		}
		unit := 24 * time.Hour
		if rest[at] == 'w' {
			unit *= 7
		}
		total += time.Duration(n) * unit
		rest = rest[at+1:]
	}
	if rest != "" {
		short, err := time.ParseDuration(rest)
		if err != nil || short < 0 {
			return errAge
		}
		total += short
	}
	if text == "" {
		return errAge
	}
	d.Duration, d.given = total, text
	return nil
}

var errAge = errors.New("it must be a time such as 30d, 2w, 12h or 1d12h")
