package cli

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice/home"
)

// limitFlag adds -n, which means the same in every command that lists something:
// how many, and 0 for all. See limitIn.
func limitFlag(cmd *cobra.Command, limit *int, byDefault int) {
	cmd.Flags().IntVarP(limit, "limit", "n", byDefault, "how many; 0 is all")
}

// limitIn turns what was given for -n into the limit of a request, in which 0 is the
// default and -1 means all.
func limitIn(n int) (int, error) {
	if n < 0 {
		return 0, misuse("-n (--limit) is %d; it must not be negative, and 0 is all", n)
	}
	if n == 0 {
		return -1, nil
	}
	return n, nil
}

// timesIn turns what was given for --since and --until into times.
func timesIn(since, until string, now time.Time) (from, to time.Time, err error) {
	if from, err = home.ParseTime("since", since, now); err != nil {
		return from, to, err
	}
	to, err = home.ParseTime("until", until, now)
	return from, to, err
}

// ifGiven returns where the value of a flag is, or nil if the flag was not given: where the zero
// value means something, only this tells the two apart.
func ifGiven[T any](cmd *cobra.Command, flag string, value *T) *T {
	if cmd.Flags().Changed(flag) {
		return value
	}
	return nil
}

// linkFlag gives a command the flag --link.
func linkFlag(cmd *cobra.Command, link *bool) {
	cmd.Flags().BoolVar(link, "link", false, "only this session, not the whole conversation")
}

// chainFlag keeps the flag --chain, which asked for what is now the default.
func chainFlag(cmd *cobra.Command) {
	cmd.Flags().Bool("chain", true, "with the sessions that it continues and is continued by")
	_ = cmd.Flags().MarkHidden("chain")
	cmd.MarkFlagsMutuallyExclusive("chain", "link")
}
