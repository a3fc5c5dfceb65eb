package cli

import (
	"fmt"

	"github.com/spf13/cobra"
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
		return 0, usageError{fmt.Errorf("-n (--limit) is %d; it must not be negative, and 0 is all", n)}
	}
	if n == 0 {
		return -1, nil
	}
	return n, nil
}
