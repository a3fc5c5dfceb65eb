package cli

import "github.com/spf13/cobra"

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
