package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/render/plain"
)

// completeSession offers the short names of sessions, with titles, for the first argument; with
// most greater than one, for as many; with 0, for all.
func (a *app) completeSession(most int) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begin string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if most > 0 && len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		offers, rule := a.offering(cmd, func(ctx context.Context, h *home.Home) (offers []cobra.Completion, err error) {
			found, err := h.Sessions.Suggest(ctx, home.SuggestRequest{Begin: begin})
			if err != nil {
				return nil, err
			}
			short, err := namesIn(ctx, h, found.Sessions)
			for _, s := range found.Sessions {
				offer := s.Name // if what was typed goes on after the short name, or is the beginning of the id
				if strings.HasPrefix(short.Name(s.Name), begin) {
					offer = short.Name(s.Name)
				}
				if !slices.Contains(args, offer) {
					offers = append(offers, cobra.CompletionWithDesc(offer, render.OneLine(s.Title, 60)))
				}
			}
			return offers, err
		})
		return offers, rule | cobra.ShellCompDirectiveKeepOrder
	}
}

// completionFor completes the arguments of a command that calls them by these names.
func (a *app) completionFor(names []string) cobra.CompletionFunc {
	switch {
	case len(names) == 0:
		return nil
	case len(names) > 1 && namesEntry(names[1]):
		return a.completeEntryOf
	}
	switch names[0] {
	case "ID", "[ID", "[ID]":
		return a.completeSession(1)
	case "ID…", "[ID…]":
		return a.completeSession(0)
	}
	return nil
}

// completeEntries offers, for a flag, the labels and the ends of the branches of
// the session in the first argument.
func (a *app) completeEntries(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.offering(cmd, func(ctx context.Context, h *home.Home) (offers []cobra.Completion, err error) {
		found, err := h.Entries.Suggest(ctx, home.SessionRequest{Session: args[0]})
		if err != nil {
			return nil, err
		}
		for _, s := range found.Entries {
			offers = append(offers, cobra.CompletionWithDesc(s.Name, render.OneLine(s.Label+" "+s.Text, 60)))
		}
		return offers, nil
	})
}

// offering completes with what a home has, and never with the names of files. A shell has no
// place for errors: without a home, or settings, there is nothing to offer.
func (a *app) offering(cmd *cobra.Command, find func(ctx context.Context, h *home.Home) ([]cobra.Completion, error)) (offers []cobra.Completion, _ cobra.ShellCompDirective) {
	if a.settle() == nil {
		_ = a.withHome(cmd.Context(), false, func(h *home.Home) (err error) {
			offers, err = find(cmd.Context(), h)
			return err
		})
	}
	return offers, cobra.ShellCompDirectiveNoFileComp
}

// isCompletion reports whether a shell asks what could be typed next.
func isCompletion(args []string) bool {
	return slices.Contains(args, cobra.ShellCompRequestCmd) || slices.Contains(args, cobra.ShellCompNoDescRequestCmd)
}

// completeFlags offers values for flags by their names, in every command that has them, so
// that a shell never offers file names where no file is meant.
func (a *app) completeFlags(root *cobra.Command) {
	offers := a.flagOffers()
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		for name, offer := range offers {
			f := cmd.Flag(name)
			if _, has := cmd.GetFlagCompletionFunc(name); f != nil && !has && f.Value.Type() != "bool" {
				_ = cmd.RegisterFlagCompletionFunc(name, offer)
			}
		}
		for _, below := range cmd.Commands() {
			visit(below)
		}
	}
	visit(root)
}

// flagOffers returns what is offered for the flags of a name.
func (a *app) flagOffers() map[string]cobra.CompletionFunc {
	fixed := func(words ...string) cobra.CompletionFunc {
		return cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)
	}
	offers := map[string]cobra.CompletionFunc{
		"sort":     fixed("updated", "created", "title", "messages", "tokens", "size"),
		"relation": fixed("fork", "continuation", "recovery", "subagent"),
		"color":    fixed("auto", "always", "never"),
		"in":       fixed(home.ProgramFormats()...),
		"session":  a.completeSession(0),
		"parent":   a.completeSession(0),
	}
	for filter, values := range filterValues {
		offers[filter] = fixed(values...)
	}
	for _, entry := range []string{"at", "leaf", "raw", "first-kept", "pick"} {
		offers[entry] = a.completeEntries
	}
	for _, filter := range []string{"agent", "project", "tag", "file", "tool", "model"} {
		offers[filter] = func(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return a.valuesOf(cmd, filter)
		}
	}
	for _, dir := range []string{"cwd", "dir"} {
		offers[dir] = cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs)
	}
	return offers
}

// filterValues are the values of the filters that do not depend on what there is.
var filterValues = map[string][]string{
	"role":   {"user", "assistant", "system", "tool"},
	"kind":   {"text", "thinking", "call", "output", "summary", "title", "tag", "label"},
	"since":  {"1d", "7d", "30d", "365d"},
	"until":  {"1d", "7d", "30d", "365d"},
	"branch": {"live"},
}

// completeFilters offers filters as arguments: agent:, and then agent:codex.
func (a *app) completeFilters(filters []string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, begin string) (offers []cobra.Completion, _ cobra.ShellCompDirective) {
		name, value, typed := strings.Cut(begin, ":")
		if !typed {
			for _, filter := range filters {
				offers = append(offers, filter+":")
			}
			return offers, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
		}
		filter, _ := index.FilterOf(name, value)
		values := filterValues[filter]
		if values == nil {
			values, _ = a.valuesOf(cmd, filter)
		}
		for _, value := range values {
			offers = append(offers, name+":"+value)
		}
		return offers, cobra.ShellCompDirectiveNoFileComp
	}
}

// valuesOf returns the values of a filter that at least one session has: a value without any
// sessions is not worth typing.
func (a *app) valuesOf(cmd *cobra.Command, filter string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return a.offering(cmd, func(ctx context.Context, h *home.Home) ([]cobra.Completion, error) {
		found, err := h.Sessions.FilterValues(ctx, home.FilterValuesRequest{Filter: filter})
		if err != nil {
			return nil, err
		}
		for i, value := range found.Values {
			found.Values[i] = plain.Flat(value) // what a session has may contain anything
		}
		return found.Values, nil
	})
}

// completeSettingName offers the names of settings.
func completeSettingName(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return completeSetting(cmd, args, typed)
}

// completeSetting offers the names of settings, and then the values that one may have.
func completeSetting(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	switch len(args) {
	case 0:
		return home.SettingKeys(), cobra.ShellCompDirectiveNoFileComp
	case 1:
		if args[0] == home.SettingDir {
			return nil, cobra.ShellCompDirectiveFilterDirs
		}
		return home.SettingValues(args[0]), cobra.ShellCompDirectiveNoFileComp
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}
