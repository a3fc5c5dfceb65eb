package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice"
	"github.com/coppice-dev/coppice/render"
)

// completeSession offers the short names of sessions, with titles, for the first argument; with
// most greater than one, for as many; with 0, for all.
func (a *app) completeSession(most int) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begin string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if most > 0 && len(args) >= most || a.settle() != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var offers []cobra.Completion
		_ = a.withHome(cmd.Context(), false, func(h *coppice.Home) error { // without a home there is nothing to offer
			list, err := h.Sessions.Suggest(cmd.Context(), coppice.SuggestRequest{Begin: begin})
			if err != nil {
				return err
			}
			names := make([]string, len(list))
			for i := range list {
				names[i] = list[i].Name
			}
			short, err := h.Sessions.Short(cmd.Context(), names...)
			for i, name := range names {
				offer := name // if what was typed goes on after the short name, or is the beginning of the id
				if strings.HasPrefix(short.Name(name), begin) {
					offer = short.Name(name)
				}
				if !slices.Contains(args, offer) {
					offers = append(offers, cobra.CompletionWithDesc(offer, render.OneLine(list[i].Title, 60)))
				}
			}
			return err
		})
		return offers, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}

// completeEntries offers, for a flag, the labels and the ends of the branches of
// the session in the first argument.
func (a *app) completeEntries(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) == 0 || a.settle() != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var offers []cobra.Completion
	_ = a.withHome(cmd.Context(), false, func(h *coppice.Home) error {
		list, err := h.Entries.Suggest(cmd.Context(), args[0])
		for _, s := range list {
			offers = append(offers, cobra.CompletionWithDesc(s.Name, render.OneLine(s.Label+" "+s.Text, 60)))
		}
		return err
	})
	return offers, cobra.ShellCompDirectiveNoFileComp
}
