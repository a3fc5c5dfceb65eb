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
	if takes := flagTakes[f.Name]; takes != "" {
		return takes
	}
	switch kind {
	case "int", "int64", "count":
		return "N"
	case "duration":
		return "TIME"
	}
	return strings.ToUpper(f.Name[strings.LastIndexByte(f.Name, '-')+1:])
}

// flagTakes is what flags of a name take wherever they are.
var flagTakes = map[string]string{
	"at": "ENTRY", "leaf": "ENTRY", "pick": "ENTRY", "first-kept": "ENTRY", "raw": "ENTRY",
	"server": "URL", "dir": "DIR", "cwd": "DIR", "output": "FILE", "session": "ID", "parent": "ID",
	"since": "TIME", "until": "TIME", "summary": "TEXT", "title": "TEXT", "instructions": "TEXT",
	"agent": "NAME", "counter": "NAME", "file": "NAME", "project": "NAME", "to": "FORMAT",
	"relation": "REL", "after": "CURSOR", "sort": "BY", "redact": "BOOL", "color": "WHEN",
}
