package cli

import (
	"fmt"
	"slices"

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
		return 0, usageError{fmt.Errorf("-n (--limit) is %d; it must not be negative, and 0 is all", n)}
	}
	if n == 0 {
		return -1, nil
	}
	return n, nil
}

// checkEntries refuses an entry whose name is empty. Probably a shell variable is not
// set, and using the default would be wrong.
func checkEntries(given []string) error {
	if slices.Contains(given, "") {
		return usageError{fmt.Errorf("the name of an entry is empty; give an id, a label, or %s", home.Leaf)}
	}
	return nil
}
