package cli

import (
	"strings"

	"github.com/spf13/pflag"
)

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
