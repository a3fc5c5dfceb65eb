package cli

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// showArguments makes the help of a command, and of those below it, show what each
// flag takes: --at ENTRY. It changes how flags are called in lists, not how they are
// parsed, so it must only be used on commands that print help.
func showArguments(cmd *cobra.Command) {
	done := make(map[*pflag.Flag]bool) // some flags belong to several commands
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		for _, flags := range []*pflag.FlagSet{cmd.Flags(), cmd.PersistentFlags()} {
			flags.VisitAll(func(f *pflag.Flag) {
				if !done[f] {
					done[f] = true
					showArgument(f)
				}
			})
		}
		// Flags are kept by their names. Under the older ones, cobra would not find them and add
		// them again.
		for _, flags := range []*pflag.FlagSet{cmd.Flags(), cmd.PersistentFlags()} {
			flags.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName { return pflag.NormalizedName(name) })
		}
		for _, below := range cmd.Commands() {
			visit(below)
		}
	}
	visit(cmd)
}

func showArgument(f *pflag.Flag) {
	takes := argumentOf(f)
	_, f.Usage = pflag.UnquoteUsage(f)
	switch {
	case takes == "":
	case f.NoOptDefVal != "": // it may be left out
		f.Name += "[=" + takes + "]"
	default:
		f.Name += " " + takes
	}
}

// argumentOf is the word for what a flag takes, or "" if it takes nothing: what its
// help has in backquotes, or else what flags of that name or type take.
func argumentOf(f *pflag.Flag) string {
	kind := f.Value.Type()
	if kind == "bool" {
		return ""
	}
	if strings.Count(f.Usage, "`") >= 2 {
		name, _ := pflag.UnquoteUsage(f)
		return strings.ToUpper(name)
	}
	switch f.Name {
	case "at", "leaf", "pick", "first-kept", "raw":
		return "ENTRY"
	case "server":
		return "URL"
	case "dir", "cwd":
		return "DIR"
	case "output":
		return "FILE"
	case "since", "until":
		return "TIME"
	case "session", "parent":
		return "ID"
	case "summary", "title", "instructions":
		return "TEXT"
	case "agent", "counter", "file", "project":
		return "NAME"
	case "to":
		return "FORMAT"
	case "relation":
		return "REL"
	case "after":
		return "CURSOR"
	case "sort":
		return "BY"
	case "redact":
		return "BOOL"
	case "color":
		return "WHEN"
	}
	switch kind {
	case "int", "int64", "count":
		return "N"
	case "duration":
		return "TIME"
	}
	return strings.ToUpper(f.Name[strings.LastIndexByte(f.Name, '-')+1:])
}

// namesInHelp lists names in lines of their own, which help does not wrap: it would break
// openai-responses at its hyphen.
func namesInHelp(names []string) string {
	const width = 70
	var b strings.Builder
	used := width
	for _, name := range names {
		if used += len(name) + 1; used > width {
			b.WriteString("\n ")
			used = len(name) + 2
		}
		b.WriteString(" " + name)
	}
	return strings.TrimPrefix(b.String(), "\n")
}
