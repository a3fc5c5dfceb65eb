package index

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/coppice-dev/coppice/index/room"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
)

// ProjectOf returns the project of a directory: its last element, on whatever system the path
// was written.
func ProjectOf(cwd string) string {
	cwd = strings.TrimRight(cwd, `/\`)
	return cwd[strings.LastIndexAny(cwd, `/\`)+1:]
}

// isProject is the condition that a name means the directory s.cwd: see isCalledIn.
func isProject(name string) (string, []any) {
	cond, args := isCalledIn("s.cwd", projectName(name))
	return cond + " AND s.cwd <> ''", args
}

// isCalledIn is the condition that a name means the path in a column: it is its last element,
// its last few, or all of it.
func isCalledIn(column, name string) (string, []any) {
	return `(lower(` + column + `) = lower(?) OR lower(substr(` + column + `, length(` + column + `) - length(?))) IN ('/' || lower(?), '\' || lower(?)))`,
		[]any{name, name, name, name}
}

// isCalled is isCalledIn for a given path.
func isCalled(path, name string) bool {
	path, name = strings.ToLower(path), strings.ToLower(projectName(name))
	rest, ok := strings.CutSuffix(path, name)
	return ok && (rest == "" || strings.HasSuffix(rest, "/") || strings.HasSuffix(rest, `\`))
}

// projectName removes the slash that shells add to a path that they complete.
func projectName(name string) string {
	if short := strings.TrimRight(name, `/\`); short != "" {
		return short
	}
	return name
}

// knownRoles are the roles that any message may have. Imported messages may have others.
var knownRoles = session.Roles()

// errUnknown is the error of a filter by a value that cannot exist.
func errUnknown(op string, kind error, what, value string, known []string) error {
	return &store.Error{
		Op: op, Kind: kind, Err: fmt.Errorf("there is no %s %q", what, value),
		Hint: "known names: " + strings.Join(known, ", "),
	}
}

// noMaker is the number of an agent without sessions.
const noMaker = -1

// makerID returns the number of an agent, or noMaker.
func makerID(ctx context.Context, db room.Tables, agent string) (int64, error) {
	rows, err := db.QueryContext(ctx, `SELECT id FROM names n WHERE lower(name) = lower(?)
		AND EXISTS (SELECT 1 FROM sessions s INDEXED BY by_maker WHERE s.maker = n.id)`, agent)
	if err != nil {
		return noMaker, err
	}
	ids, err := scanColumn[int64](rows)
	return slices.Max(append(ids, noMaker)), err
}

func namesOf(counts []Count) []string {
	names := make([]string, len(counts))
	for i, c := range counts {
		names[i] = c.Name
	}
	return names
}

// checkRoles returns an error for a role that no message has, or may have.
func (s *search) checkRoles() error {
	for _, role := range slices.Concat(s.f.roles, s.o.Roles, s.f.notRoles) {
		if slices.ContainsFunc(knownRoles, func(known string) bool { return strings.EqualFold(known, role) }) {
			continue
		}
		facets, err := s.facets('r', []string{role})
		if err != nil {
			return err
		}
		said := 0
		if len(facets) > 0 {
			err = s.db.QueryRowContext(s.ctx, `SELECT count(*) FROM (SELECT 1 FROM fts WHERE fts MATCH ? LIMIT 1) few`, anyFacet(facets)).Scan(&said)
		}
		if err == nil && said == 0 {
			err = errUnknown("search", store.ErrInvalid, "role", role, knownRoles)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// errNoSession is the error of a search in sessions that do not exist.
func errNoSession(names []string) error {
	return &store.Error{
		Op: "search", Name: strings.Join(names, ", "), Kind: store.ErrNotExist,
		Err: errors.New("no session has this id, beginning of an id, or key"),
	}
}
