package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/render"
)

// rateCommand stores a rating as a tag, so that everything that finds tags finds it.
func rateCommand(a *app) *cobra.Command {
	var r home.RateRequest
	cmd := &cobra.Command{
		Use:   "rate ID good|bad|none",
		Short: "Rate a session good or bad",
		Long: "Records whether a session was good or bad, and why. The rating is a tag,\n" +
			"rated/good or rated/bad, so ls, search and tag can use it. none removes it.",
		Example: "coppice rate 0197ab bad --note 'it deleted the tests'\ncoppice ls tag:rated/bad",
		ValidArgsFunction: func(cmd *cobra.Command, args []string, begin string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) == 1 {
				return []cobra.Completion{"good", "bad", "none"}, cobra.ShellCompDirectiveNoFileComp
			}
			return a.completeSession(1)(cmd, args, begin)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			r.Session, r.Rating = args[0], args[1]
			switch r.Rating {
			case "none":
				r.Rating = ""
			case "":
				return misuse("give good, bad or none")
			}
			return a.withHome(cmd.Context(), false, func(h *home.Home) error { return a.rate(cmd.Context(), h, r) })
		},
	}
	cmd.Flags().StringVar(&r.Note, "note", "", "why; - is standard input")
	cmd.Flags().StringVar(&r.Entry, "entry", "", "the `entry` that it is about")
	_ = cmd.RegisterFlagCompletionFunc("entry", a.completeEntries)
	return a.withJSON(cmd)
}

// rate reads the reason first: it may come from standard input.
func (a *app) rate(ctx context.Context, h *home.Home, r home.RateRequest) (err error) {
	if r.Note, err = a.flagText(r.Note); err != nil {
		return err
	}
	rated, err := h.Sessions.Rate(ctx, r)
	if err != nil {
		return err
	}
	line := "session " + render.ShortID(rated.Session) + " is rated " + rated.Rating
	if rated.Rating == "" {
		line = "session " + render.ShortID(rated.Session) + " has no rating now"
	}
	return a.done(rated, rated.Entry, line)
}
