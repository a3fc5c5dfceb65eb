package cli

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/index"
)

// What the flag parser complains of, it says in the words of its code. Here it
// gets ours.

// plainUsage reads the usage lines of a command and of those below it, and sets what follows from
// them: how many arguments a command takes, and what a shell completes them with. A command that
// sets its own rule keeps it. An error about arguments quotes the usage line.
func (a *app) plainUsage(cmd *cobra.Command) {
	cmd.InitDefaultHelpFlag()
	cmd.Flags().Lookup("help").Usage = "show this help"
	cmd.SuggestFor = otherNames[cmd.Name()]
	for _, below := range cmd.Commands() {
		a.plainUsage(below)
	}
	if cmd.HasSubCommands() {
		cmd.Args = refuseUnknown
		return
	}
	if cmd.ValidArgsFunction == nil {
		cmd.ValidArgsFunction = a.completionFor(takes(cmd))
	}
	check := cmd.Args
	if check == nil {
		check = fits
	}
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if check(cmd, args) == nil {
			return checkEntries(takes(cmd), args)
		}
		given := fmt.Sprintf("%d arguments were given", len(args))
		switch len(args) {
		case 0:
			given = "no argument was given"
		case 1:
			given = "one argument was given"
		}
		return hinted(misuse("%s; the command is: %s", given, useLine(cmd)), a.helpWith(cmd, args))
	}
}

// useLine is the usage line of a command, as a person types it.
func useLine(cmd *cobra.Command) string { return strings.TrimSuffix(cmd.UseLine(), " [flags]") }

// helpWith says where to find the first argument that is missing.
func (a *app) helpWith(cmd *cobra.Command, args []string) string {
	if names := takes(cmd); len(args) < len(names) {
		switch next := strings.Trim(names[len(args)], "[]…"); {
		case next == "ID" && len(args) == 0:
			return a.command("ls", nil) + " lists the sessions; last is the latest"
		case namesEntry(next) && len(args) == 1:
			return a.command("tree", args) + " lists the entries"
		}
	}
	return cmd.CommandPath() + " --help says more"
}

// takes returns what a command calls its arguments. Those that may be left out come last, in
// brackets, and one with an ellipsis can be repeated.
func takes(cmd *cobra.Command) []string { return strings.Fields(cmd.Use)[1:] }

// fits checks the number of arguments.
func fits(cmd *cobra.Command, args []string) error {
	names := takes(cmd)
	least := slices.IndexFunc(names, func(name string) bool { return strings.HasPrefix(name, "[") })
	if least < 0 {
		least = len(names)
	}
	if strings.Contains(cmd.Use, "…") {
		return cobra.MinimumNArgs(least)(cmd, args)
	}
	return cobra.RangeArgs(least, len(names))(cmd, args)
}

// namesEntry reports whether an argument of this name is an entry of the session before it.
func namesEntry(name string) bool {
	return slices.Contains([]string{"ENTRY", "LEAF", "A", "B"}, strings.Trim(name, "[]"))
}

// checkEntries refuses an entry whose name is empty. Probably a shell variable is not
// set, and using the default would be wrong.
func checkEntries(names, args []string) error {
	for i, arg := range args[:min(len(args), len(names))] {
		if arg == "" && namesEntry(names[i]) {
			return misuse("the name of an entry is empty; give an id, a label, or %s", home.Leaf)
		}
	}
	return nil
}

// plainFlag says what is wrong with a flag or its value.
func (a *app) plainFlag(cmd *cobra.Command, err error) error {
	// Nothing after the flag was parsed, but a caller that wants JSON wants it for this
	// error too.
	a.flags.json = a.flags.json || a.asksFor("--json", "--json=true")
	if name := commandTyped(cmd); name != "" {
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
		return misuse("%s has no value; give it as %s %s", name, name, argumentOf(missing.GetFlag()))
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
	return misuse("--%s is %q; %s", flag.Name, value.GetValue(), must)
}

// asksFor looks for a flag in a command line that could not be parsed.
func (a *app) asksFor(names ...string) bool {
	before := a.args
	if end := slices.Index(before, "--"); end >= 0 {
		before = before[:end]
	}
	return slices.ContainsFunc(before, func(arg string) bool { return slices.Contains(names, arg) })
}

// commandTyped returns what was typed where cmd expects one of its commands, or
// "" if there is nothing, or if cmd has no commands.
func commandTyped(cmd *cobra.Command) string {
	if !cmd.HasSubCommands() {
		return ""
	}
	return cmd.Flags().Arg(0) // as far as they were parsed
}

// unknownFlag is the error of a flag that a command does not have.
func unknownFlag(cmd *cobra.Command, unknown *pflag.NotExistError) error {
	name := unknown.GetSpecifiedName()
	if short := unknown.GetSpecifiedShortnames(); short != "" {
		if cmd.Name() == "search" { // where -word leaves a word out
			return hinted(misuse("unknown flag -%s", short), "to search without a word, put -- before the query: coppice search -- build -docker")
		}
		if strings.Contains("0123456789", name) {
			return hinted(misuse("-%s is read as a flag", short), "if it is a number, put -- before the arguments: "+cmd.CommandPath()+" -- …")
		}
		return hinted(misuse("unknown flag -%s", name), didYouMean(cmd, "flags", "", nil))
	}
	var known []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			known = append(known, f.Name)
		}
	})
	return hinted(misuse("unknown flag --%s", name), didYouMean(cmd, "flags", "--", index.Nearest(name, known)))
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
	return hinted(misuse("unknown command %q for %q", name, cmd.CommandPath()),
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
	"append":  {"add", "say", "write"},
	"backup":  {"snapshot", "dump"},
	"chat":    {"ask", "talk", "prompt"},
	"compact": {"summarise", "summarize", "shorten"},
	"config":  {"settings", "set", "options"},
	"demo":    {"example", "try"},
	"export":  {"convert", "save", "share"},
	"follow":  {"tail", "watch"},
	"fork":    {"clone", "copy", "cp"},
	"fsck":    {"check", "doctor", "verify"},
	"import":  {"load", "sync"},
	"ls":      {"dir", "sessions"},
	"new":     {"create", "init", "start"},
	"redact":  {"secrets", "scrub"},
	"rename":  {"mv", "name", "title"},
	"resume":  {"continue", "run"},
	"revoke":  {"rm", "remove", "delete"},
	"rm":      {"delete", "remove", "del"},
	"search":  {"find", "grep"},
	"show":    {"cat", "get", "open", "read", "view"},
	"stats":   {"cost", "usage"},
	"web":     {"browser", "gui", "page", "ui"},
}

// checkGroups says which flags do not go together, or are missing. The parser's errors about
// that have no type, so they are told apart by their words.
func checkGroups(cmd *cobra.Command) error {
	err := cmp.Or(cmd.ValidateRequiredFlags(), cmd.ValidateFlagGroups())
	if err == nil {
		return nil
	}
	for _, e := range []struct{ before, after, last, wrong string }{
		{"none of the others can be; [", "]", "and", "exclude each other; give one of them"},
		{"if any flags in the group [", "]", "and", "need each other; give both or none"},
		{"at least one of the flags in the group [", "]", "or", "is needed"},
		{"required flag(s) \"", "\"", "or", "is needed"},
	} {
		if _, rest, ok := strings.Cut(err.Error(), e.before); ok {
			names, _, _ := strings.Cut(rest, e.after)
			return hinted(misuse("%s %s", flagNames(names, e.last), e.wrong), cmd.CommandPath()+" --help says more")
		}
	}
	return usageError{err}
}

// flagNames writes names of flags as a list in a sentence.
func flagNames(names, last string) string {
	list := "--" + strings.Join(strings.Fields(names), ", --")
	if at := strings.LastIndex(list, ", "); at >= 0 {
		return list[:at] + " " + last + list[at+1:]
	}
	return list
}
