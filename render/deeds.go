package render

import (
	"strings"

	"github.com/coppice-dev/coppice/session"
)

// Deed is what a call does, in words that can be counted over several calls: "edited 3 files".
type Deed struct {
	Verb string `json:"verb"` // what was done, such as "edited"
	One  string `json:"one"`  // to what, if it is one
	Many string `json:"many"` // and if there are several
	// What is the thing itself. Deeds of a kind that are about the same thing count as one; ""
	// counts each time.
	What string `json:"what,omitempty"`
}

// The kinds of deeds that are no changes to files.
var (
	ran      = Deed{Verb: "ran", One: "command", Many: "commands"}
	read     = Deed{Verb: "read", One: "file", Many: "files"}
	searched = Deed{Verb: "made", One: "search", Many: "searches"}
	fetched  = Deed{Verb: "fetched", One: "page", Many: "pages"}
	planned  = Deed{Verb: "made", One: "plan", Many: "plans"}
	other    = Deed{Verb: "made", One: "other call", Many: "other calls"}
)

// Deeds says what a call does.
func Deeds(t *session.ToolUseContent) []Deed {
	if edits := Edits(t); len(edits) > 0 {
		deeds := make([]Deed, len(edits))
		for i := range edits {
			deeds[i] = Deed{Verb: "edited", One: "file", Many: "files", What: edits[i].Path}
			if edits[i].Op == Delete {
				deeds[i].Verb = "deleted"
			}
		}
		return deeds
	}
	if len(Todos(t)) > 0 {
		return []Deed{planned}
	}
	key, what := MainArgument(t)
	name := strings.ToLower(t.Name)
	switch key {
	case "command", "cmd":
		return []Deed{ran}
	case "pattern", "query":
		return []Deed{searched}
	case "url":
		return []Deed{fetched}
	case "file_path", "filePath", "absolute_path", "notebook_path", "path":
		if strings.Contains(name, "read") || strings.Contains(name, "view") || strings.Contains(name, "open") {
			d := read
			d.What = what
			return []Deed{d}
		}
	}
	return []Deed{other}
}
