package cli

import (
	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice/index"
)

func indexCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "index",
		Short:   "Look at the index, or make it anew",
		Long:    "The index is derived from the sessions. Commands that use it bring it up to date;\nit can be deleted at any time.",
		GroupID: "about",
	}
	cmd.AddCommand(a.withJSON(&cobra.Command{
		Use:   "status",
		Short: "Show what the index holds",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return a.runIndexStatus(cmd) },
	}), &cobra.Command{
		Use:   "rebuild",
		Short: "Make the index anew from the sessions",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return a.runIndexRebuild(cmd) },
	})
	return cmd
}

// statusJSON is the state of the index in the output of --json: see docs/cli.md.
type statusJSON struct {
	Path     string `json:"path"`
	Sessions int    `json:"sessions"`
	Entries  int64  `json:"entries"`
	Texts    int64  `json:"texts"`
	Size     int64  `json:"size"`
	Schema   int    `json:"schema"`
	SQLite   string `json:"sqlite"`
}

func (a *app) runIndexStatus(cmd *cobra.Command) error {
	return a.withIndex(cmd.Context(), func(ix *index.Index) error {
		s, err := ix.Status(cmd.Context())
		if err != nil {
			return err
		}
		if a.flags.json {
			return a.printJSON(statusJSON(s))
		}
		return a.print("%s\n%d sessions, %d entries, %d searchable texts, %s (format %d, SQLite %s)",
			s.Path, s.Sessions, s.Entries, s.Texts, humanBytes(s.Size), s.Schema, s.SQLite)
	})
}

func (a *app) runIndexRebuild(cmd *cobra.Command) error {
	return a.withIndex(cmd.Context(), func(ix *index.Index) error {
		bar := a.newProgress("indexing")
		report, err := ix.Rebuild(cmd.Context(), bar.show)
		bar.done()
		a.sayUnread(report)
		if err != nil {
			return err
		}
		a.say("rebuilt the index: %s", ix.Path())
		return nil
	})
}
