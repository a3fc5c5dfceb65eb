package cli

import (
	"strings"

	"github.com/spf13/cobra"
)

func labelCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "label ID ENTRY TEXT",
		Short: "Give an entry a name of your own",
		Long: "Gives an entry a label. Wherever an entry is asked for, its label will do. An\n" +
			"empty TEXT takes the label away; - reads it from standard input.",
		GroupID:           "keep",
		Args:              cobra.ExactArgs(3),
		ValidArgsFunction: a.completeEntryOf,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.runLabel(cmd, args[0], args[1], args[2])
		},
	}
}

func (a *app) runLabel(cmd *cobra.Command, id, entry, text string) error {
	text, err := a.flagText(text)
	if err != nil {
		return err
	}
	text = strings.TrimSpace(text)
	return a.withLink(cmd.Context(), id, entry, func(o opened) error {
		target, err := resolveEntry(o.Session, entry)
		if err != nil {
			return err
		}
		label, err := remark(o.Session, func() (string, error) { return o.SetLabel(target, text) })
		if err != nil {
			return plainly("label", o.name, err)
		}
		labels, err := o.Labels() // which may lack a secret that the text had
		if err != nil {
			return err
		}
		if text == "" {
			a.say("entry %s has no label now", target)
		} else {
			a.say("entry %s is now %q", target, labels[target])
		}
		return a.print("%s", label)
	})
}

func renameCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:               "rename ID NAME",
		Short:             "Give a session a display name",
		Long:              "Gives a session a display name; - reads it from standard input.",
		GroupID:           "keep",
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: a.completeSession(1),
		RunE:              func(cmd *cobra.Command, args []string) error { return a.runRename(cmd, args[0], args[1]) },
	}
}

func (a *app) runRename(cmd *cobra.Command, id, name string) error {
	name, err := a.flagText(name)
	if err != nil {
		return err
	}
	name = strings.TrimSpace(name)
	return a.withLink(cmd.Context(), id, "", func(o opened) error {
		was, err := o.Name()
		if err != nil {
			return err
		}
		info, err := remark(o.Session, func() (string, error) { return o.AppendSessionInfo(name) })
		if err != nil {
			return plainly("rename", o.name, err)
		}
		if name, err = o.Name(); err != nil { // which may lack a secret that the name had
			return err
		}
		if was == "" {
			a.say("session %s is now %q", o.name, name)
		} else {
			a.say("session %s is now %q; it was %q", o.name, name, was)
		}
		return a.print("%s", info)
	})
}
