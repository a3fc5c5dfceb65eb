package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/coppice-dev/coppice/index"
)

// What the flag parser complains of, it says in the words of its code. Here it
// gets ours.

// plainUsage makes a command, and those below it, say what is wrong with the
// arguments, and how the command is used. What follows --help is not its value.
func plainUsage(cmd *cobra.Command) {
	cmd.InitDefaultHelpFlag()
	cmd.Flags().Lookup("help").Usage = "show this help"
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

// plainFlag says what is wrong with a flag or its value.
func (a *app) plainFlag(cmd *cobra.Command, err error) error {
	// Nothing after the flag was parsed, but a caller that wants JSON wants it for this
	// error too.
	a.flags.json = a.flags.json || a.asksFor("--json", "--json=true")
	if name := a.commandTyped(cmd); name != "" {
		return unknownCommand(cmd, name) // whose flags are not known
	}
	if a.asksFor("-h", "--help") {
		return pflag.ErrHelp // which may be what the mistake needs
	}
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		return unknownFlag(cmd, unknown)
	}
	var missing *pflag.ValueRequiredError
	if errors.As(err, &missing) {
		name := "--" + missing.GetSpecifiedName()
		if missing.GetSpecifiedShortnames() != "" {
			name = "-" + missing.GetSpecifiedName()
		}
		return usageError{fmt.Errorf("%s has no value; give it as %s %s", name, name, argumentOf(missing.GetFlag()))}
	}
	var value *pflag.InvalidValueError
	if !errors.As(err, &value) {
		return usageError{err}
	}
	flag, must := value.GetFlag(), "it must be "
	switch _, own := flag.Value.(*age); flag.Value.Type() {
	case "int", "int64":
		must += "a whole number"
	case "bool":
		must += "true or false"
	case "duration":
		must += "a time such as 5s or 1m30s"
		if own {
			must = errors.Unwrap(value).Error()
		}
	}
	return usageError{fmt.Errorf("--%s is %q; %s", flag.Name, value.GetValue(), must)}
}

// asksFor looks for a flag in a command line that could not be parsed.
func (a *app) asksFor(names ...string) bool {
	for _, arg := range a.args {
		if arg == "--" {
			return false
		}
		if slices.Contains(names, arg) {
			return true
		}
	}
	return false
}

// commandTyped returns what was typed where cmd expects one of its commands, or
// "" if there is nothing, or if cmd has no commands.
func (a *app) commandTyped(cmd *cobra.Command) string {
	if !cmd.HasSubCommands() {
		return ""
	}
	path := strings.Fields(cmd.CommandPath())[1:]
	for i := 0; i < len(a.args); i++ {
		arg := a.args[i]
		name, isFlag := strings.CutPrefix(arg, "--")
		switch {
		case arg == "--":
			return ""
		case isFlag:
			if f := cmd.Flag(name); f != nil && f.NoOptDefVal == "" {
				i++ // its value
			}
		case strings.HasPrefix(arg, "-"):
		case len(path) > 0 && arg == path[0]:
			path = path[1:]
		default:
			return arg
		}
	}
	return ""
}

// unknownFlag is the error of a flag that a command does not have.
func unknownFlag(cmd *cobra.Command, unknown *pflag.NotExistError) error {
	name := unknown.GetSpecifiedName()
	if short := unknown.GetSpecifiedShortnames(); short != "" {
		if cmd.Name() == "search" { // where -word leaves a word out
			return hinted(usageError{fmt.Errorf("unknown flag -%s", short)}, "to search without a word, put -- before the query: coppice search -- build -docker")
		}
		if strings.Contains("0123456789", name) {
			return hinted(usageError{fmt.Errorf("-%s is read as a flag", short)}, "if it is a number, put -- before the arguments: "+cmd.CommandPath()+" -- …")
		}
		return hinted(usageError{fmt.Errorf("unknown flag -%s", name)}, didYouMean(cmd, "flags", "", nil))
	}
	var known []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			known = append(known, f.Name)
		}
	})
	return hinted(usageError{fmt.Errorf("unknown flag --%s", name)}, didYouMean(cmd, "flags", "--", index.Nearest(name, known)))
}

// refuseUnknown checks the arguments of a command that has others below it.
func refuseUnknown(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return unknownCommand(cmd, args[0])
}

// unknownCommand is the error of a command that there is not.
func unknownCommand(cmd *cobra.Command, name string) error {
	var known, near []string
	for _, below := range cmd.Commands() {
		if below.IsAvailableCommand() {
			known = append(known, below.Name())
			if slices.Contains(below.SuggestFor, name) {
				near = append(near, below.Name())
			}
		}
	}
	near = append(near, index.Nearest(name, known)...)
	return hinted(usageError{fmt.Errorf("unknown command %q for %q", name, cmd.CommandPath())},
		didYouMean(cmd, "commands", cmd.CommandPath()+" ", near))
}

// didYouMean offers names that may have been meant, or the help that has all.
func didYouMean(cmd *cobra.Command, what, before string, near []string) string {
	if len(near) == 0 {
		return cmd.CommandPath() + " --help lists the " + what
	}
	return "did you mean: " + before + strings.Join(near, ", "+before)
}

// otherNames are what other programs call the things that a command does.
var otherNames = map[string][]string{
	"backup": {"snapshot", "dump"},
	"chat":   {"ask", "talk"},
	"demo":   {"example", "try"},
	"export": {"convert", "save"},
	"fork":   {"clone", "copy", "cp"},
	"fsck":   {"check", "doctor", "verify"},
	"ls":     {"dir", "sessions"},
	"new":    {"create", "init", "start"},
	"rename": {"mv", "name", "title"},
	"resume": {"continue", "run"},
	"rm":     {"delete", "remove", "del"},
	"search": {"find", "grep"},
	"show":   {"cat", "get", "open", "read", "view"},
	"stats":  {"cost", "usage"},
}

// plainGroup says which flags do not go together, or are missing. The parser's
// errors about that have no type.
func plainGroup(err error) error {
	const exclude, need = "if any flags in the group [", "at least one of the flags in the group ["
	const all, required = "they must all be set; missing [", "required flag(s) \""
	text := err.Error()
	switch {
	case strings.HasPrefix(text, exclude) && strings.Contains(text, "none of the others can be"):
		_, set, _ := strings.Cut(text, "none of the others can be; [")
		set, _, _ = strings.Cut(set, "]")
		return usageError{fmt.Errorf("%s exclude each other; give one of them", flagNames(set, "and"))}
	case strings.HasPrefix(text, exclude) && strings.Contains(text, all):
		names, _, _ := strings.Cut(strings.TrimPrefix(text, exclude), "]")
		return usageError{fmt.Errorf("%s need each other; give both or none", flagNames(names, "and"))}
	case strings.HasPrefix(text, required):
		name, _, _ := strings.Cut(strings.TrimPrefix(text, required), "\"")
		return usageError{fmt.Errorf("--%s is needed", name)}
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
