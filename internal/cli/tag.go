package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice/session"
)

func tagCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "tag ID [+TAG -TAG …]",
		Short: "Show a session's tags, add some (+), take some away (-)",
		Example: "  coppice tag 0197ab +work -draft\n" +
			"  coppice tag 0197ab",
		GroupID:           "keep",
		ValidArgsFunction: a.completeSession(1),
		// -draft is not a flag: the arguments are told apart below.
		DisableFlagParsing: true,
	}
	var args, changes []string
	cmd.PersistentPreRunE = func(cmd *cobra.Command, given []string) error {
		var err error
		if args, changes, err = parseTagArgs(cmd, given); err != nil {
			return usageError{err}
		}
		return a.settle()
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if help, _ := cmd.Flags().GetBool("help"); help {
			return cmd.Help()
		}
		if len(args) != 1 {
			return usageError{fmt.Errorf("one session and its changes are needed, each of which begins with + or -; there are %d other arguments", len(args))}
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

func (change tagChange) apply(tags []string) []string {
	set := make(map[string]bool)
	for _, tag := range tags {
		set[tag] = true
	}
	maps.Copy(set, change)
	maps.DeleteFunc(set, func(_ string, wanted bool) bool { return !wanted })
	return slices.Sorted(maps.Keys(set))
}

// changeBetween is what makes the second of the first.
func changeBetween(from, to []string) tagChange {
	change := make(tagChange)
	for _, tag := range from {
		change[tag] = false
	}
	for _, tag := range to {
		change[tag] = true
	}
	maps.DeleteFunc(change, func(tag string, added bool) bool { return added && slices.Contains(from, tag) })
	return change
}

func (a *app) runTag(cmd *cobra.Command, id string, changes []string) error {
	change, err := newTagChange(changes)
	if err != nil {
		return err
	}
	return a.withOpened(cmd.Context(), id, func(o opened) error {
		if len(change) > 0 {
			entry, err := changeTags(o.Session, change)
			if err != nil {
				return plainly("tag", o.name, err)
			}
			tags, err := o.Tags()
			if err != nil {
				return err
			}
			a.say("the tags of session %s are now: %s", o.name, orNone(tags))
			if entry == "" {
				return nil // they were that before
			}
			return a.print("%s", entry)
		}
		return a.printTags(o)
	})
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

func (a *app) printTags(o opened) error {
	tags, err := o.Tags()
	if err != nil {
		return err
	}
	if a.flags.json {
		return a.printJSON(tagsJSON{o.ID(), append([]string{}, tags...)})
	}
	for _, tag := range tags {
		if err := a.print("%s", oneLine(tag, 0)); err != nil {
			return err
		}
	}
	return nil
}

// changeTags changes the tags of a session. An entry holds all tags, so somebody
// who changes them at the same moment would lose his change: we look at what
// came in between, and if need be put it back.
func changeTags(s *session.Session, change tagChange) (id string, err error) {
	for try := 1; ; try++ {
		if _, err := s.Refresh(); err != nil {
			return id, err
		}
		was, err := s.Tags()
		if err != nil {
			return id, err
		}
		tags := change.apply(was)
		if slices.Equal(tags, was) {
			return id, nil
		}
		id, err = remark(s, func() (string, error) { return s.SetTags(tags...) })
		if err != nil || try == mostTries {
			return id, err
		}
		between, err := tagsBefore(s, id)
		if err != nil || slices.Equal(between, was) {
			return id, err
		}
		lost := changeBetween(was, between)
		maps.Copy(lost, change) // what we were told to do goes first
		change = lost
	}
}

// tagsBefore returns the tags as they were before an entry.
func tagsBefore(s *session.Session, id string) ([]string, error) {
	var tags []string
	for e, err := range s.Entries() {
		if err != nil {
			return nil, err
		}
		if e.ID == id {
			break
		}
		if e.Custom != nil && e.Custom.CustomType == session.CustomTags {
			tags = e.Custom.Tags()
		}
	}
	return tags, nil
}
