package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// What the flag parser complains of, it says in the words of its code. Here it
// gets ours.

// plainUsage makes a command, and those below it, say what is wrong with the
// arguments, and how the command is used.
func plainUsage(cmd *cobra.Command) {
	if check := cmd.Args; check != nil && !cmd.HasSubCommands() {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if check(cmd, args) == nil {
				return nil
			}
			given := "no argument was given"
			switch {
			case len(args) == 1:
				given = "one argument was given"
			case len(args) > 1:
				given = fmt.Sprintf("%d arguments were given", len(args))
			}
			return usageError{fmt.Errorf("%s; the command is: %s", given, cmd.UseLine())}
		}
	}
	for _, below := range cmd.Commands() {
		plainUsage(below)
	}
}

// plainFlag says what is wrong with the value of a flag.
func plainFlag(_ *cobra.Command, err error) error {
	var value *pflag.InvalidValueError
	if !errors.As(err, &value) {
		return err
	}
	flag, must := value.GetFlag(), ""
	switch flag.Value.Type() {
	case "int", "int64":
		must = "a whole number"
	case "bool":
		must = "true or false"
	default: // those of our own say what they must be
		return err
	}
	return usageError{fmt.Errorf("--%s is %q; it must be %s", flag.Name, value.GetValue(), must)}
}

// plainGroup says which flags do not go together, or are missing. The parser's
// errors about that have no type.
func plainGroup(err error) error {
	const exclude, need = "if any flags in the group [", "at least one of the flags in the group ["
	text := err.Error()
	switch {
	case strings.HasPrefix(text, exclude) && strings.Contains(text, "none of the others can be"):
		_, set, _ := strings.Cut(text, "none of the others can be; [")
		set, _, _ = strings.Cut(set, "]")
		return usageError{fmt.Errorf("%s exclude each other; give one of them", flagNames(set, "and"))}
	case strings.HasPrefix(text, need):
		names, _, _ := strings.Cut(strings.TrimPrefix(text, need), "]")
		return usageError{fmt.Errorf("%s is needed", flagNames(names, "or"))}
	}
	return err
}

// flagNames writes names of flags as a list in a sentence.
func flagNames(names, last string) string {
	list := strings.Fields(names)
	for i := range list {
		list[i] = "--" + list[i]
	}
	n := len(list) - 1
	if n < 1 {
		return strings.Join(list, "")
	}
	return strings.Join(list[:n], ", ") + " " + last + " " + list[n]
}
