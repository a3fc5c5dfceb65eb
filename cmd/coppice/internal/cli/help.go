package cli

import (
	"cmp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/coppice-dev/coppice/render/terminal"
)

// maxHelp is how wide help gets. Longer lines are hard to read.
const maxHelp = 100

// printHelp prints what a command does, its arguments and its flags. It paints with the few
// colours that suit every terminal, so it never has to ask one for its background, and wait.
func (a *app) printHelp(cmd *cobra.Command) error {
	_ = a.settle() // for the colours; help must work whatever is in the configuration
	width := a.width()
	if width == 0 || width > maxHelp {
		width = maxHelp
	}
	var b strings.Builder
	b.WriteString("\n" + indented(flowing(aboutOf(cmd), width-2), "  "))
	a.helpSection(&b, "Usage", indented(usageOf(cmd), "    "))
	if cmd.HasExample() {
		a.helpSection(&b, "Examples", indented(examplesOf(cmd), "    "))
	}
	lists := helpLists(cmd)
	column := 0
	for _, list := range lists {
		for _, row := range list.rows {
			column = max(column, ansi.StringWidth(row.String()))
		}
	}
	for _, list := range lists {
		var rows strings.Builder
		for _, row := range list.rows {
			name := "    " + a.paint(cyan, row.name) + row.takes
			about := betweenWords(row.about, max(width-column-6, 20))
			about = strings.ReplaceAll(about, "\n", "\n"+strings.Repeat(" ", column+6))
			rows.WriteString(terminal.Pad(name, column+6) + about + "\n")
		}
		a.helpSection(&b, list.title, rows.String())
	}
	return a.printText(strings.TrimSuffix(b.String(), "\n"))
}

// helpSection writes a part of a help text under its title.
func (a *app) helpSection(b *strings.Builder, title, text string) {
	b.WriteString("\n  " + a.paint(bold, strings.ToUpper(title)) + "\n\n" + text)
}

// aboutOf returns what a command does, and what else it is called.
func aboutOf(cmd *cobra.Command) string {
	about := cmp.Or(strings.TrimSpace(cmd.Long), cmd.Short)
	if len(cmd.Aliases) > 0 {
		about += "\n\nOther names: " + strings.Join(cmd.Aliases, ", ")
	}
	return about
}

// usageOf returns how a command is typed.
func usageOf(cmd *cobra.Command) string {
	if cmd.HasAvailableSubCommands() {
		return cmd.CommandPath() + " [COMMAND] [flags]"
	}
	return cmd.UseLine()
}

// examplesOf returns the examples of a command, from the first column on.
func examplesOf(cmd *cobra.Command) string {
	return strings.TrimPrefix(strings.ReplaceAll(cmd.Example, "\n  ", "\n"), "  ")
}

// helpList is a list of commands or flags in help and in the manual.
type helpList struct {
	title string
	rows  []helpRow
}

// helpRow is a command or a flag: what it is called, what it takes, and what it does.
type helpRow struct{ name, takes, about string }

func (r helpRow) String() string { return r.name + r.takes }

// helpLists returns the commands below a command by their groups, and its flags.
func helpLists(cmd *cobra.Command) (lists []helpList) {
	add := func(title string, rows []helpRow) {
		if len(rows) > 0 {
			lists = append(lists, helpList{title, rows})
		}
	}
	for _, group := range cmd.Groups() {
		add(group.Title, commandRows(cmd, group.ID))
	}
	add("Commands", commandRows(cmd, ""))
	cmd.InitDefaultHelpFlag()
	cmd.InitDefaultVersionFlag()
	add("Flags", flagRows(cmd.LocalFlags()))
	add("Flags of every command", flagRows(cmd.InheritedFlags()))
	return lists
}

// commandRows returns the commands of a group, in the order of their names.
func commandRows(cmd *cobra.Command, group string) (rows []helpRow) {
	for _, below := range cmd.Commands() {
		isHelp := below.Name() == "help" // which cobra counts as not available
		if below.GroupID == group && (below.IsAvailableCommand() || isHelp) {
			rows = append(rows, helpRow{below.Name(), strings.TrimPrefix(below.Use, below.Name()), below.Short})
		}
	}
	return rows
}

// flagRows returns the flags in the order of their names. A description begins with a capital
// letter here and nowhere else, because errors quote it in the middle of a sentence.
func flagRows(flags *pflag.FlagSet) (rows []helpRow) {
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		row := helpRow{name: "--" + f.Name}
		if f.Shorthand != "" {
			row.name = "-" + f.Shorthand + " " + row.name
		}
		if takes := argumentOf(f); f.NoOptDefVal != "" && takes != "" { // it may be left out
			row.takes = "[=" + takes + "]"
		} else if takes != "" {
			row.takes = " " + takes
		}
		_, about := pflag.UnquoteUsage(f)
		first, n := utf8.DecodeRuneInString(about)
		row.about = string(unicode.ToUpper(first)) + about[n:]
		rows = append(rows, row)
	})
	return rows
}

// flowing joins the lines of each paragraph and breaks them again to fit. Indented lines stay.
func flowing(text string, width int) string {
	var b strings.Builder
	for _, part := range paragraphs(text) {
		if !isIndented(part) {
			part = betweenWords(part, width)
		}
		b.WriteString(part + "\n")
	}
	return b.String()
}

// paragraphs returns the paragraphs of a help text, each on one line, and the indented and the
// empty lines between them as they are.
func paragraphs(text string) (parts []string) {
	for line := range strings.SplitSeq(text, "\n") {
		if last := len(parts) - 1; last >= 0 && line != "" && parts[last] != "" && !isIndented(line) && !isIndented(parts[last]) {
			parts[last] += " " + line
		} else {
			parts = append(parts, line)
		}
	}
	return parts
}

// isIndented recognises lines whose breaks matter, such as examples and lists.
func isIndented(line string) bool {
	return strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t")
}

// indented puts something before each line that is not empty.
func indented(text, before string) string {
	var b strings.Builder
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		if line != "" {
			line = before + strings.ReplaceAll(line, "\t", "    ")
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}

// betweenWords breaks a line between words.
func betweenWords(line string, width int) string {
	var b strings.Builder
	used := 0
	for i, word := range strings.Fields(line) {
		n := ansi.StringWidth(word)
		switch {
		case i > 0 && used+1+n > width:
			b.WriteByte('\n')
			used = n
		case i > 0:
			b.WriteByte(' ')
			used += 1 + n
		default:
			used = n
		}
		b.WriteString(word)
	}
	return b.String()
}

// helpCommand is the command help. Unlike cobra's own it refuses what there is no
// help for.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "help [COMMAND]",
		Short:   "Explain a command",
		Long:    "Prints what a command does, its arguments and its flags.",
		GroupID: settingsAndHelp,
		// It must work whatever is in the configuration.
		PersistentPreRunE: func(*cobra.Command, []string) error { return nil },
		RunE: func(help *cobra.Command, args []string) error {
			cmd, rest, err := help.Root().Find(args)
			if err != nil {
				return err
			}
			if cmd.HasSubCommands() && len(rest) > 0 {
				return unknownCommand(cmd, rest[0])
			}
			return cmd.Help()
		},
		ValidArgsFunction: func(help *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			cmd, rest, err := help.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			var offers []cobra.Completion
			for _, below := range cmd.Commands() {
				if below.IsAvailableCommand() {
					offers = append(offers, cobra.CompletionWithDesc(below.Name(), below.Short))
				}
			}
			return offers, cobra.ShellCompDirectiveNoFileComp
		},
	}
}
