package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/session"
)

func tagCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "tag ID [+TAG -TAG …]",
		Short: "Show, add (+) and take away (-) tags",
		Long: "Without changes, the tags of the session are printed. --suggest prints words that\n" +
			"set the session apart from others, of which tags can be made: those first that\n" +
			"are tags of other sessions.",
		Example: "  coppice tag 0197ab +work -draft\n" +
			"  coppice tag 0197ab",
		GroupID:           "keep",
		ValidArgsFunction: a.completeSession(1),
		// -draft is not a flag: the arguments are told apart below.
		DisableFlagParsing: true,
	}
	var args, changes []string
	var suggest bool
	cmd.Flags().BoolVar(&suggest, "suggest", false, "print words of which tags can be made")
	cmd.PersistentPreRunE = func(cmd *cobra.Command, given []string) error {
		var err error
		if args, changes, err = parseTagArgs(cmd, given); err != nil {
			return usageError{err}
		}
		return a.prepare(cmd)
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if help, _ := cmd.Flags().GetBool("help"); help {
			return cmd.Help()
		}
		if len(args) != 1 {
			return usageError{fmt.Errorf("one session and its changes are needed, each of which begins with + or -; there are %d other arguments", len(args))}
		}
		if suggest {
			return a.suggestTags(cmd.Context(), args[0], changes)
		}
		return a.runTag(cmd, args[0], changes)
	}
	return a.withJSON(cmd)
}

// parseTagArgs separates the changes (+a, -b) from the flags, which it parses,
// and the arguments, which it returns.
func parseTagArgs(cmd *cobra.Command, given []string) (args, changes []string, err error) {
	var rest []string
	for _, arg := range given {
		isChange := strings.HasPrefix(arg, "+") || strings.HasPrefix(arg, "-") && !strings.HasPrefix(arg, "--")
		if isChange && arg != "-h" {
			changes = append(changes, arg)
		} else {
			rest = append(rest, arg)
		}
	}
	cmd.DisableFlagParsing = false
	defer func() { cmd.DisableFlagParsing = true }()
	if err := cmd.ParseFlags(rest); err != nil {
		return nil, nil, err
	}
	return cmd.Flags().Args(), changes, nil
}

// tagChange says for each tag whether it is added or taken away.
type tagChange map[string]bool

func newTagChange(changes []string) (tagChange, error) {
	change := make(tagChange)
	for _, c := range changes {
		tag := strings.TrimSpace(c[1:])
		if tag == "" {
			return nil, usageError{fmt.Errorf("%q names no tag", c)}
		}
		change[tag] = c[0] == '+'
	}
	return change, nil
}

// from returns what has to be added to a session's tags, and taken away.
func (change tagChange) from(tags []string) (add, remove []string) {
	has := make(map[string]bool, len(tags))
	for _, tag := range tags {
		has[tag] = true
	}
	for tag, wanted := range change {
		switch {
		case wanted && !has[tag]:
			add = append(add, tag)
		case !wanted && has[tag]:
			remove = append(remove, tag)
		}
	}
	return add, remove
}

func (a *app) runTag(cmd *cobra.Command, id string, changes []string) error {
	change, err := newTagChange(changes)
	if err != nil {
		return err
	}
	return a.withEachLink(cmd.Context(), id, func(name string, links []opened) error {
		if len(change) == 0 {
			return a.printTags(name, links)
		}
		entry, err := changeTags(links, change)
		if err != nil {
			return plainly("tag", name, err)
		}
		tags, err := tagsOf(links)
		if err != nil {
			return err
		}
		a.say("the tags of session %s are now: %s", name, orNone(tags))
		if entry == "" {
			return nil // they were that before
		}
		return a.print("%s", entry)
	})
}

// tagsOf returns the tags of a conversation: those of all its sessions.
func tagsOf(links []opened) ([]string, error) {
	var all session.TagSet
	for _, o := range links {
		tags, err := o.Tags()
		if err != nil {
			return nil, err
		}
		all.Add(tags...)
	}
	return all.Sorted(), nil
}

const mostSuggested = 8

// suggestTags prints words that set a session apart, and that are not its tags.
func (a *app) suggestTags(ctx context.Context, id string, changes []string) error {
	if len(changes) > 0 {
		return usageError{errors.New("--suggest only prints; give the changes without it")}
	}
	return a.withIndex(ctx, func(ix *index.Index) error {
		s, err := a.sessionIn(ctx, ix, id)
		if err != nil {
			return err
		}
		tags, err := ix.Tags(ctx)
		if err != nil {
			return err
		}
		topics, err := ix.Topics(ctx, index.StatsOptions{Session: s.ID}, 4*mostSuggested)
		if err != nil {
			return err
		}
		isTag := make(map[string]bool)
		for _, tag := range tags {
			isTag[strings.ToLower(tag.Name)] = true
		}
		words := []string{}
		for _, topic := range topics {
			if !slices.Contains(s.Tags, topic.Word) {
				words = append(words, topic.Word)
			}
		}
		slices.SortStableFunc(words, func(x, y string) int {
			switch {
			case isTag[x] == isTag[y]:
				return 0
			case isTag[x]:
				return -1
			}
			return 1
		})
		words = words[:min(len(words), mostSuggested)]
		if a.flags.json {
			return a.printJSON(suggestionsJSON{s.ID, words})
		}
		for _, word := range words {
			if err := a.print("%s", word); err != nil {
				return err
			}
		}
		return nil
	})
}

// suggestionsJSON is what tag --suggest --json prints.
type suggestionsJSON struct {
	Session   string   `json:"session"`
	Suggested []string `json:"suggested"`
}

func orNone(tags []string) string {
	if len(tags) == 0 {
		return "none"
	}
	return oneLine(strings.Join(tags, " "), 0)
}

// tagsJSON is what tag --json prints.
type tagsJSON struct {
	Session string   `json:"session"`
	Tags    []string `json:"tags"`
}

func (a *app) printTags(name string, links []opened) error {
	tags, err := tagsOf(links)
	if err != nil {
		return err
	}
	if a.flags.json {
		return a.printJSON(tagsJSON{name, append([]string{}, tags...)})
	}
	for _, tag := range tags {
		if err := a.print("%s", oneLine(tag, 0)); err != nil {
			return err
		}
	}
	return nil
}

// changeTags changes the tags of a conversation and returns the id of the entry
// that does so, or "" if they are like that already. What is added goes to the last
// session; what is taken away is taken from all that have it.
func changeTags(links []opened, change tagChange) (string, error) {
	all, err := tagsOf(links)
	if err != nil {
		return "", err
	}
	add, _ := change.from(all)
	entry := ""
	for i, o := range links {
		tags, err := o.Tags()
		if err != nil {
			return "", err
		}
		_, remove := change.from(tags)
		if i < len(links)-1 {
			if len(remove) == 0 {
				continue
			}
		} else if len(add)+len(remove) == 0 {
			continue
		}
		entry, err = remark(o.Session, func() (string, error) {
			if i < len(links)-1 {
				return o.ChangeTags(nil, remove)
			}
			return o.ChangeTags(add, remove)
		})
		if err != nil {
			return "", err
		}
	}
	return entry, nil
}
