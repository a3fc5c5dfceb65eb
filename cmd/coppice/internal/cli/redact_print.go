package cli

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/session/clean"
	"github.com/coppice-dev/coppice/upkeep"
)

// maxPlaces is how many places of a secret a person is shown.
const maxPlaces = 5

// printSecrets prints what was found, one secret after the other: for a person
// with its first places, for a program with all of them.
func (a *app) printSecrets(ctx context.Context, h *home.Home, secrets []upkeep.Secret) error {
	if a.flags.json {
		return printObjects(a, secrets)
	}
	names := render.Names{}
	if a.width() > 0 {
		var err error
		if names, err = sessionNames(ctx, h, home.SessionNamesRequest{All: true}); err != nil {
			return err
		}
	}
	t := a.newTable("PLACE", "ID", "KIND", "SECRET", ">TIMES", "SESSION", "ENTRY", "PLACE")
	for _, s := range secrets {
		id, kind, preview := s.ID, s.Kind, render.OneLine(s.Preview, 0)
		if a.width() > 0 && s.Count > 1 {
			preview += fmt.Sprintf(" ×%d", s.Count)
		}
		for i, p := range s.Places {
			if a.width() > 0 && i == maxPlaces {
				t.add("", "", "", "", "", "", fmt.Sprintf("… and %d more; --json lists them all", len(s.Places)-i))
				break
			}
			t.add(id, kind, preview, strconv.Itoa(p.Count), names.Shown(p.Session), a.shownID(p.Entry), placeOf(p))
			if a.width() > 0 {
				id, kind, preview = "", "", "" // said once
			}
		}
	}
	if len(secrets) == 0 {
		return nil
	}
	return t.print()
}

// shownID shortens an id for a person.
func (a *app) shownID(id string) string {
	if a.width() > 0 {
		id = render.ShortID(id)
	}
	return render.OneLine(id, 0)
}

// placeOf tells where in an entry a secret is, and whether in a blob or a copy.
func placeOf(p upkeep.Place) string {
	place := render.OneLine(p.Path, 0)
	switch {
	case p.Session == "":
		place = "nothing"
	case place == "":
		place = "a damaged line"
	}
	if p.Kept {
		place = "the kept source: " + place
	}
	if p.Blob != "" {
		place += " → " + string(p.Blob)
	}
	if p.Also > 0 {
		place += fmt.Sprintf(" (and %s)", render.Counted(p.Also, "other place", "other places"))
	}
	if p.File != "" {
		room, name := filepath.Split(p.File)
		place += " in " + filepath.Join(filepath.Base(room), name)
	}
	return place
}

// receiptJSON is what redact --apply --json prints last.
type receiptJSON struct {
	Receipt *clean.Receipt `json:"receipt"`
	Index   string         `json:"index,omitempty"` // it was rebuilt
}

// printReceipt prints what was done.
func (a *app) printReceipt(r *upkeep.RedactResult) error {
	if r.Receipt == nil {
		return nil
	}
	if a.flags.json {
		return a.printJSON(receiptJSON{r.Receipt, r.Index})
	}
	return a.printLines(receiptLines(r.Receipt, r.Index))
}

// receiptLines words a receipt. What is left is in capital letters, because it is the line that
// asks for action.
func receiptLines(r *clean.Receipt, index string) []string {
	total := 0
	var kinds []string
	for _, kind := range slices.Sorted(maps.Keys(r.Kinds)) {
		total += r.Kinds[kind]
		kinds = append(kinds, fmt.Sprintf("%s %d", kind, r.Kinds[kind]))
	}
	lines := []string{fmt.Sprintf("receipt of %s: %s", rfc3339(r.Time.Truncate(time.Second)), render.Counted(total, "replacement", "replacements"))}
	add := func(format string, args ...any) { lines = append(lines, "  "+fmt.Sprintf(format, args...)) }
	if total > 0 {
		add("replaced: %s", strings.Join(kinds, ", "))
	}
	for _, name := range r.Sessions {
		add("session rewritten: %s", name)
	}
	for _, path := range r.Copies {
		add("file rewritten: %s", path)
	}
	for _, old := range slices.Sorted(maps.Keys(r.Blobs)) {
		add("blob replaced: %s by %s", old, r.Blobs[old])
	}
	for _, path := range r.Removed {
		add("deleted: %s", path)
	}
	if index != "" {
		add("index rebuilt: %s", index)
	}
	add("searched: %s", strings.Join(r.Searched, ", "))
	for _, l := range r.Left {
		who := ""
		if l.Session != "" {
			who = fmt.Sprintf(" (session %s)", render.ShortID(l.Session))
		}
		add("LEFT: %s%s: %s", l.Path, who, render.OneLine(l.Why, 0))
	}
	return lines
}
