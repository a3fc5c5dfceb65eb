package index

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/coppice-dev/coppice/index/room"
)

// Unknown is the value of a filter that no session has. It may be a slip, so a face
// reports it instead of only finding nothing.
type Unknown struct {
	Filter     string   `json:"filter"` // as a query has it: "tool", "tag", …
	Value      string   `json:"value"`
	DidYouMean []string `json:"did_you_mean,omitempty"` // existing values that the user may have meant
	Known      []string `json:"known,omitempty"`        // if none is near: some existing values, the most frequent first
}

// Text says that no session has the value, and which ones there are or may have been meant. quote
// writes a filter as the reader would type it; nil writes it as in a query, without the values that
// a query cannot have.
func (u Unknown) Text(quote func(filter string) string) string {
	filter := func(value string) string {
		switch {
		case quote != nil:
			return quote(u.Filter + ":" + value)
		case strings.ContainsFunc(value, endsWord) && !strings.Contains(value, `"`):
			return u.Filter + `:"` + value + `"`
		}
		return u.Filter + ":" + value
	}
	filters := func(values []string) string {
		var list []string
		for _, value := range values {
			if quote != nil || !strings.Contains(value, `"`) {
				list = append(list, filter(value))
			}
		}
		return strings.Join(list, ", ")
	}
	text := "no session has " + filter(u.Value)
	if near := filters(u.DidYouMean); near != "" {
		text += "; did you mean: " + near
	} else if known := filters(u.Known); known != "" {
		text += "; there are: " + known
	}
	return text
}

// maxKnown is how many values are listed if none is near.
const maxKnown = 8

// UnknownFilters returns the filters of a list that no session passes, for a list that turned
// out to be empty.
func (ix *Index) UnknownFilters(ctx context.Context, o ListOptions) (unknown []Unknown, err error) {
	given := func(value string) []string {
		if value == "" {
			return nil
		}
		return []string{value}
	}
	f := filters{tags: o.Tags, agents: given(o.Agent), projects: given(o.Project), files: given(o.File), cwd: given(o.CWD)}
	err = ix.read(ctx, "list", func(db room.Tables) error {
		unknown, err = f.unknown(ctx, db)
		return err
	})
	return unknown, err
}

// allValues are the queries for the values of filters, with how often each occurs.
var allValues = map[string]string{
	"tool":    `SELECT j.key, sum(j.value) FROM sessions s, json_each(s.tools) j GROUP BY j.key`,
	"model":   `SELECT j.key, sum(j.value) FROM sessions s, json_each(s.models) j GROUP BY j.key`,
	"tag":     `SELECT tag, count(*) FROM tags GROUP BY tag`,
	"agent":   `SELECT n.name, count(*) FROM sessions s JOIN names n ON n.id = s.maker GROUP BY n.name`,
	"project": allDirs,
	"cwd":     allDirs,
	"file":    `SELECT path, count(*) FROM files GROUP BY path`,
}

// knownValues returns the values of a filter, the most frequent first.
func knownValues(ctx context.Context, db room.Tables, filter string) ([]string, error) {
	counts := make(map[string]int64)
	if err := scanCounts(ctx, db, counts, allValues[filter]); err != nil {
		return nil, err
	}
	return namesOf(sortCounts(counts)), nil
}

// FilterValues returns the values of a filter that sessions have, written as in a query, the
// most frequent first. It returns none for an unknown filter, or one whose values are free
// text.
func (ix *Index) FilterValues(ctx context.Context, filter string) (values []string, err error) {
	if allValues[filter] == "" {
		return nil, nil
	}
	err = ix.read(ctx, "list", func(db room.Tables) error {
		known, err := knownValues(ctx, db, filter)
		values = someOf(filter, known, len(known))
		return err
	})
	return values, err
}

// unknown returns the values that no session has.
func (f *filters) unknown(ctx context.Context, db room.Tables) (unknown []Unknown, err error) {
	for _, check := range []struct {
		filter string
		values []string
		is     func(known, value string) bool
	}{
		{"tool", f.tools, strings.EqualFold},
		{"model", f.models, isModel},
		{"tag", f.tags, func(known, value string) bool { return known == value || strings.HasPrefix(known, value+"/") }},
		{"agent", f.agents, strings.EqualFold},
		{"project", f.projects, isCalled},
		{"file", f.files, isCalled},
		{"cwd", f.cwd, isUnder},
	} {
		if len(check.values) == 0 {
			continue
		}
		known, err := knownValues(ctx, db, check.filter)
		if err != nil {
			return nil, err
		}
		for _, value := range check.values {
			if slices.ContainsFunc(known, func(k string) bool { return check.is(k, value) }) {
				continue
			}
			u := Unknown{Filter: check.filter, Value: value, DidYouMean: nearValues(check.filter, value, known)}
			if len(u.DidYouMean) == 0 {
				u.Known = someOf(check.filter, known, maxKnown)
			}
			unknown = append(unknown, u)
		}
	}
	return unknown, nil
}

// someOf returns a limited number of the existing values, written as in a filter.
func someOf(filter string, known []string, most int) (some []string) {
	has := make(map[string]bool)
	for _, value := range known {
		if filter == "project" || filter == "file" {
			value = ProjectOf(value)
		}
		if value != "" && !has[value] && len(some) < most {
			has[value] = true
			some = append(some, value)
		}
	}
	return some
}

const allDirs = `SELECT n.name, count(*) FROM sessions s JOIN names n ON n.id = s.dir GROUP BY n.name`

// isModel reports whether a filter means a model: see facets.
func isModel(known, value string) bool {
	known, value = strings.ToLower(known), strings.ToLower(value)
	return strings.HasPrefix(known, value) || strings.Contains(known, "/"+value)
}

// isUnder reports whether a directory is another or below it: see underDir.
func isUnder(dir, value string) bool {
	value = strings.TrimRight(value, `/\`)
	rest, ok := strings.CutPrefix(dir, value)
	return ok && (rest == "" || strings.ContainsAny(rest[:1], `/\`))
}

// nearValues returns known values that the user may have meant. Directories are compared by
// their last element: paths are long, and people mistype the end.
func nearValues(filter, value string, known []string) []string {
	switch filter {
	case "project", "file":
		names := make([]string, len(known))
		for i, path := range known {
			names[i] = ProjectOf(path)
		}
		return Nearest(ProjectOf(value), names)
	case "cwd":
		near := Nearest(value, known)
		for _, dir := range known {
			if len(near) < maxSuggestions && !slices.Contains(near, dir) && len(Nearest(ProjectOf(value), []string{ProjectOf(dir)})) > 0 {
				near = append(near, dir)
			}
		}
		return near
	case "model": // people leave out its provider
		near := Nearest(value, known)
		for _, model := range known {
			bare := model[strings.LastIndexByte(model, '/')+1:]
			bare = bare[:min(len(bare), cmp.Or(len(value), len(bare)))] // and without its date
			if len(near) < maxSuggestions && !slices.Contains(near, model) && len(Nearest(value, []string{bare})) > 0 {
				near = append(near, model)
			}
		}
		return near
	}
	return Nearest(value, known)
}
