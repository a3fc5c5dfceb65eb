package cli

import (
	"bytes"
	"context"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// documented are the commands that docs/cli.md must have, without those below
// them and without help, which explains itself.
func documented(root *cobra.Command) []*cobra.Command {
	return slices.DeleteFunc(root.Commands(), func(cmd *cobra.Command) bool { return cmd.Name() == "help" })
}

// everywhere are the flags that every command or every reading command has;
// the beginning of docs/cli.md tells of them.
var everywhere = []string{"dir", "color", "help", "json", "no-descriptions"}

// TestDocs holds docs/cli.md against the commands and their flags.
func TestDocs(t *testing.T) {
	text, err := os.ReadFile("../../../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	sections := make(map[string]string)
	for _, part := range strings.Split(string(text), "\n## ")[1:] {
		name, body, _ := strings.Cut(part, "\n")
		sections[name] = body
	}
	for _, cmd := range documented((&app{}).rootCommand()) {
		section, ok := sections[cmd.Name()]
		delete(sections, cmd.Name())
		if !ok {
			t.Errorf("docs/cli.md does not have %s", cmd.Name())
			continue
		}
		for _, one := range append(cmd.Commands(), cmd) {
			if one != cmd && !strings.Contains(section, one.Name()) {
				t.Errorf("docs/cli.md: %s does not have %s", cmd.Name(), one.Name())
			}
			one.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
				said := regexp.MustCompile(`--`+f.Name+`\b`).MatchString(section) ||
					f.Shorthand != "" && regexp.MustCompile(`-`+f.Shorthand+`\b`).MatchString(section)
				if !said && !slices.Contains(everywhere, f.Name) {
					t.Errorf("docs/cli.md: %s does not have --%s", one.CommandPath(), f.Name)
				}
				if f.Name == "json" && !strings.Contains(section, "--json") {
					t.Errorf("docs/cli.md does not tell what %s --json prints", one.CommandPath())
				}
			})
		}
	}
	for name := range sections {
		t.Errorf("docs/cli.md has %s, and the program has not", name)
	}
}

// TestHelpFits looks at the lists of commands and flags in the help of every
// command: they are not wrapped, and have to fit a terminal of 80 columns.
func TestHelpFits(t *testing.T) {
	row := regexp.MustCompile(`^    \S.*\S {2,}\S`)
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		t.Run(cmd.CommandPath(), func(t *testing.T) {
			var out, talk bytes.Buffer
			none := func(string) string { return "" }
			a := &app{talk: newTalk(&out, &talk, none), stdin: strings.NewReader(""), getenv: none}
			args := append(strings.Fields(cmd.CommandPath())[1:], "--help")
			if code := a.run(context.Background(), args); code != 0 {
				t.Fatalf("exit code %d: %s", code, talk.String())
			}
			_, lists, _ := strings.Cut(out.String(), "USAGE")
			rows := 0
			for line := range strings.Lines(lists) {
				line = strings.TrimRight(line, " \n")
				if row.MatchString(line) {
					rows++
				}
				if n := utf8.RuneCountInString(line); n > 80 && row.MatchString(line) {
					t.Errorf("%d columns: %s", n, line)
				}
			}
			if rows == 0 {
				t.Errorf("there are no flags in:\n%s", out.String())
			}
		})
		for _, below := range cmd.Commands() {
			visit(below)
		}
	}
	visit((&app{}).rootCommand())
}

// The help says what a flag takes, and shows values as they are typed.
func TestHelpShowsWhatFlagsTake(t *testing.T) {
	t.Parallel()
	for command, want := range map[string][]string{
		"append":  {"--at ENTRY ", "--tokens N ", "--role ROLE ", "--force  "},
		"context": {"--leaf ENTRY ", "--window N ", "entries (a line each)"},
		"fork":    {"--at ENTRY ", "--dir DIR ", "--link  "},
		"ls":      {"--sort BY ", " updated, created", "-n --limit N "},
		"export":  {"-o --output FILE "},
	} {
		var out bytes.Buffer
		none := func(string) string { return "" }
		a := &app{talk: newTalk(&out, &out, none), stdin: strings.NewReader(""), getenv: none}
		if code := a.run(t.Context(), []string{command, "--help"}); code != exitOK {
			t.Fatalf("%s: exit code %d", command, code)
		}
		for _, w := range want {
			if !strings.Contains(out.String(), w) {
				t.Errorf("the help of %s does not have %q:\n%s", command, w, out.String())
			}
		}
	}
}

// A flag that is named in a text is not broken after its hyphens, at any width.
func TestHelpBreaksBetweenWords(t *testing.T) {
	t.Parallel()
	var visit func(cmd *cobra.Command, width int)
	visit = func(cmd *cobra.Command, width int) {
		text := flowing(cmd.Long, width)
		for line := range strings.SplitSeq(text, "\n") {
			if n := utf8.RuneCountInString(line); n > width && strings.Contains(strings.TrimSpace(line), " ") && !isIndented(line) {
				t.Errorf("%s at %d: %q", cmd.CommandPath(), width, line)
			}
		}
		if !slices.Equal(strings.Fields(cmd.Long), strings.Fields(text)) {
			t.Errorf("%s at %d has other words: %q", cmd.CommandPath(), width, text)
		}
		for _, below := range cmd.Commands() {
			visit(below, width)
		}
	}
	for _, width := range []int{38, 78, 118} {
		visit((&app{}).rootCommand(), width)
	}
	if got := flowing("One\ntwo.\n\n  kept  as\n  it is\nThree.", 20); got != "One two.\n\n  kept  as\n  it is\nThree.\n" {
		t.Errorf("%q", got)
	}
	if got := betweenWords("use --allow here", 12); got != "use --allow\nhere" {
		t.Errorf("%q", got)
	}
	if got := betweenWords("use it --allow", 10); got != "use it\n--allow" {
		t.Errorf("%q", got)
	}
}

// Whatever is wrong with the value of a flag, the parser's words are not shown, and the exit code is
// that of a wrong command line.
func TestWrongFlagsAreSaidInPlainWords(t *testing.T) {
	t.Parallel()
	none := func(string) string { return "" }
	run := func(args ...string) string {
		var out bytes.Buffer
		a := &app{talk: newTalk(&out, &out, none), stdin: strings.NewReader(""), getenv: none}
		if code := a.run(t.Context(), args); code != exitUsage {
			t.Errorf("%q: exit code %d: %s", args, code, out.String())
		}
		return out.String()
	}
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		path := strings.Fields(cmd.CommandPath())[1:]
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Name == "help" || cmd.Name() == "completion" || f.Hidden {
				return
			}
			name := "--" + f.Name
			if f.NoOptDefVal == "" {
				want := "coppice: " + name + " has no value; give it as " + name + " " + argumentOf(f) + "\n"
				if got := run(append(path, name)...); got != want {
					t.Errorf("%q has no value: %s", append(path, name), got)
				}
			}
			switch f.Value.Type() {
			case "bool", "int", "int64", "duration":
				want := "coppice: " + name + ` is "x y"; it must be `
				if got := run(append(path, name+"=x y")...); !strings.HasPrefix(got, want) {
					t.Errorf("%q has a wrong value: %s", append(path, name), got)
				}
			}
		})
		for _, below := range cmd.Commands() {
			visit(below)
		}
	}
	visit((&app{}).rootCommand())
}
