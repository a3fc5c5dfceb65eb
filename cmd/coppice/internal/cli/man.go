package cli

import (
	"strings"

	"github.com/spf13/cobra"
)

// manCommand makes the manual page from the help, so that the two cannot differ.
func manCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:    "man",
		Short:  "Print the manual page",
		Hidden: true, // it is for those who pack archives
		// It must work whatever is in the configuration.
		PersistentPreRunE: func(*cobra.Command, []string) error { return nil },
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.printText(manual(cmd.Root()))
		},
	}
}

// manual returns the manual page of the program, in the macros of man(7). It has no date: the
// version says more, and the same program always writes the same page.
func manual(root *cobra.Command) string {
	var b strings.Builder
	b.WriteString(`.TH COPPICE 1 "" "coppice ` + roff(root.Version) + `" "Coppice"` + "\n")
	b.WriteString(".SH NAME\ncoppice \\- " + roff(root.Short) + "\n")
	b.WriteString(".SH SYNOPSIS\n.B coppice\n[COMMAND] [flags]\n")
	b.WriteString(".SH DESCRIPTION\n")
	writeManual(&b, root)
	b.WriteString(".SH COMMANDS\n")
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		for _, below := range cmd.Commands() {
			if !below.IsAvailableCommand() {
				continue
			}
			if below.HasAvailableSubCommands() {
				visit(below)
				continue
			}
			b.WriteString(".SS " + roff(strings.TrimSuffix(below.UseLine(), " [flags]")) + "\n")
			writeManual(&b, below)
		}
	}
	visit(root)
	return strings.TrimSuffix(b.String(), "\n")
}

// writeManual writes what a command does, its flags and its examples.
func writeManual(b *strings.Builder, cmd *cobra.Command) {
	for _, part := range paragraphs(aboutOf(cmd)) {
		switch {
		case part == "":
			b.WriteString(".PP\n")
		case isIndented(part):
			b.WriteString(".br\n" + roff(part) + "\n.br\n")
		default:
			b.WriteString(roff(part) + "\n")
		}
	}
	for _, row := range flagRows(cmd.LocalFlags()) {
		if row.name != "-h --help" { // every command has it
			b.WriteString(".TP\n\\fB" + roff(row.name) + "\\fR" + roff(row.takes) + "\n" + roff(row.about) + "\n")
		}
	}
	if cmd.HasExample() {
		b.WriteString(".PP\n.nf\n" + indented(roff(examplesOf(cmd)), "    ") + ".fi\n")
	}
}

// roff writes text so that nothing in it is a macro or an escape.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
