package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/server/mcp"
)

type mcpFlags struct {
	readOnly, imports bool
}

// register adds the flags that the installed entry passes on to the server: see mcpEntry.
func (f *mcpFlags) register(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.readOnly, "read-only", false, "leave out the tools that write notes and labels")
	cmd.Flags().BoolVar(&f.imports, "import", false, "keep importing what other programs write")
}

// mcpCommand speaks on standard input and output, because that is how agents start their
// servers.
func mcpCommand(a *app) *cobra.Command {
	var f mcpFlags
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Let an agent search and read past sessions",
		Long: "Runs an MCP server on standard input and output. Through it, an agent can search\n" +
			"past sessions, read them in parts, find those about a directory or a file, look at\n" +
			"images, and leave notes and labels. You do not run it yourself: coppice mcp install\n" +
			"makes an agent start it.\n\n" +
			"Everything in a session reaches the agent as a quotation, so that it does not take\n" +
			"other people's text for instructions.",
		Example: "  coppice mcp install claude-code\n" +
			"  coppice mcp --read-only --import",
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runMCP(cmd.Context(), &f) },
	}
	f.register(cmd)
	cmd.AddCommand(mcpInstallCommand(a), mcpUninstallCommand(a))
	return cmd
}

// runMCP serves until standard input ends.
func (a *app) runMCP(ctx context.Context, f *mcpFlags) error {
	if a.screen != nil {
		return hinted(misuse("coppice mcp is for agents, not for a terminal"), "coppice mcp install lists the agents that can use it")
	}
	return a.withHome(ctx, true, func(h *home.Home) error {
		server := mcp.New(h, &mcp.Options{ReadOnly: f.readOnly, Version: thisBuild().Version})
		return importing(ctx, h, allIf(f.imports), func(ctx context.Context) error { return server.Run(ctx, mcp.Lines(a.stdin, a.data)) })
	})
}
