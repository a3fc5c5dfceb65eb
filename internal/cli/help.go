package cli

import (
	"context"
	"io"
	"os"
	"strings"

	"charm.land/fang/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/coppice-dev/coppice/render/plain"
)

// styled has fang print help or the manual page. Nothing else goes through fang:
// it asks the terminal for its colours whenever an error is reported, and waits
// for an answer on standard input.
func (a *app) styled(ctx context.Context, args ...string) {
	out := plain.NewStyledWriter(a.data) // nothing in a help text is a stranger's
	// Help does not settle anything. Where no colours are wanted, fang must take
	// the terminal for a file: NO_COLOR alone would leave bold and underlined text.
	terminal := a.screen
	if a.settle() == nil && !a.color {
		terminal = nil
	}
	root := a.rootCommand()
	showArguments(root)
	breakHelp(root, helpWidth(os.Stdout)-helpIndent)
	root.SetArgs(args)
	root.SetOut(screen{out, terminal})
	root.SetErr(screen{a.err, a.talkScreen})
	err := fang.Execute(ctx, root, fang.WithVersion(thisBuild().Version),
		fang.WithErrorHandler(func(_ io.Writer, _ fang.Styles, err error) { a.sayError(err) }))
	if err == nil {
		_ = out.Flush()
	}
}

// helpIndent is what fang puts before a line of text.
const helpIndent = 2

// helpWidth returns how wide fang makes a page.
func helpWidth(out *os.File) int {
	const widest = 120
	if columns, _, err := term.GetSize(int(out.Fd())); err == nil {
		return min(columns, widest)
	}
	return widest
}

// breakHelp breaks the lines of a command's help, and of the commands below it, between words.
// What is left to fang breaks after the hyphens of a flag.
func breakHelp(cmd *cobra.Command, width int) {
	lines := strings.Split(cmd.Long, "\n")
	for i, line := range lines {
		if !strings.HasPrefix(line, " ") {
			lines[i] = betweenWords(line, width)
		}
	}
	cmd.Long = strings.Join(lines, "\n")
	for _, below := range cmd.Commands() {
		breakHelp(below, width)
	}
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

// screen shows fang which terminal a writer belongs to, so that it knows its
// colours. Without one it has a number that no file has.
type screen struct {
	*plain.Writer
	file *os.File
}

func (s screen) Fd() uintptr {
	if s.file == nil {
		return ^uintptr(0)
	}
	return s.file.Fd()
}

func (screen) Read([]byte) (int, error) { return 0, io.EOF }

func (screen) Close() error { return nil }

// helpCommand is the command help. Unlike cobra's own it refuses what there is no
// help for.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "help [COMMAND]",
		Short:   "Explain a command",
		Long:    "Prints what a command does, its arguments and its flags.",
		GroupID: "about",
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
