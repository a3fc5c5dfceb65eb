package cli

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coppice-dev/coppice/session/clean"
)

func (a *app) printSecrets(secrets []clean.Secret) error {
	t := a.newTable(2, "SESSION", "ENTRY", "PLACE", "KIND", "SECRET")
	for _, s := range secrets {
		if a.flags.json {
			if err := a.printJSON(s); err != nil {
				return err
			}
			continue
		}
		t.add(s.Session, s.Entry, placeOf(s), s.Kind, oneLine(s.Preview, 0))
	}
	if a.flags.json || len(secrets) == 0 {
		return nil
	}
	return t.print()
}

// placeOf tells where in an entry a secret is, and whether in a blob or a copy.
func placeOf(s clean.Secret) string {
	place := oneLine(s.Path, 0)
	switch {
	case s.Session == "":
		place = "nothing"
	case place == "":
		place = "a damaged line"
	}
	if s.Blob != "" {
		place += " → " + string(s.Blob)
	}
	if s.File != "" {
		room, name := filepath.Split(s.File)
		place += " in " + filepath.Join(filepath.Base(room), name)
	}
	return place
}

// receiptJSON is what redact --apply --json prints last.
type receiptJSON struct {
	Receipt *clean.Receipt `json:"receipt"`
	Index   string         `json:"index,omitempty"` // it was made anew
}

// printReceipt prints what was done.
func (a *app) printReceipt(r *clean.Receipt, index string) error {
	if r == nil {
		return nil
	}
	if a.flags.json {
		return a.printJSON(receiptJSON{r, index})
	}
	for _, line := range receiptLines(r, index) {
		if err := a.print("%s", line); err != nil {
			return err
		}
	}
	return nil
}

func receiptLines(r *clean.Receipt, index string) []string {
	total := 0
	var kinds []string
	for _, kind := range slices.Sorted(maps.Keys(r.Kinds)) {
		total += r.Kinds[kind]
		kinds = append(kinds, fmt.Sprintf("%s %d", kind, r.Kinds[kind]))
	}
	lines := []string{fmt.Sprintf("receipt of %s: %s", rfc3339(r.Time), counted(total, "secret", "secrets"))}
	add := func(format string, args ...any) { lines = append(lines, "  "+fmt.Sprintf(format, args...)) }
	if total > 0 {
		add("replaced: %s", strings.Join(kinds, ", "))
	}
	for _, name := range r.Sessions {
		add("session written anew: %s", name)
	}
	for _, path := range r.Copies {
		add("file written anew: %s", path)
	}
	for _, old := range slices.Sorted(maps.Keys(r.Blobs)) {
		add("blob replaced: %s by %s", old, r.Blobs[old])
	}
	for _, path := range r.Removed {
		add("deleted: %s", path)
	}
	if index != "" {
		add("index made anew: %s", index)
	}
	for _, l := range r.Left {
		who := ""
		if l.Session != "" {
			who = fmt.Sprintf(" (session %s)", l.Session)
		}
		add("LEFT: %s%s: %s", l.Path, who, oneLine(l.Why, 0))
	}
	return lines
}
