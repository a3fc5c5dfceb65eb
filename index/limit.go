package index

import (
	"context"

	"github.com/coppice-dev/coppice/index/room"
	"github.com/coppice-dev/coppice/session"
)

// Limit selects a part of the sessions: those with a tag or one below it, those about a
// project, or those whose keys have a prefix. One field is set.
type Limit struct {
	Tag     string
	Project string
	Key     string
}

// has is the condition that a session itself is in the limit: its own log says so, regardless
// of other sessions.
func (l Limit) has() (string, []any) {
	switch {
	case l.Tag != "":
		cond, args := withBelow("o.tag", l.Tag)
		return "EXISTS (SELECT 1 FROM tags o WHERE " + cond + " AND o.session = s.id)", args
	case l.Project != "":
		cond, args := isProject(l.Project)
		return "s.dir IN (SELECT s.id FROM (SELECT id, name AS cwd FROM names) s WHERE " + cond + ")", args
	case l.Key != "":
		return "s.key <> '' AND substr(s.key, 1, length(?)) = ?", []any{l.Key, l.Key}
	}
	return "1 = 0", nil
}

// joined is the condition that n continues s or s continues n. Both logs say so: session.JoinLinks
// puts a session into one chain with the one that it continues only if that one's log names it.
// A chain alone is not enough, because across a gap a log can claim to belong to it. So one log
// alone cannot bring another session into a limit.
const joined = `n.chain = s.chain AND n.chain <> 0 AND n.name IS NOT NULL AND (
	n.relation = '` + session.RelationContinuation + `' AND n.parent = s.sid OR
	s.relation = '` + session.RelationContinuation + `' AND s.parent = n.sid)`

// together adds to the rows of a first query those that are one conversation with them.
const together = ` UNION SELECT n.id FROM together t CROSS JOIN sessions s ON s.id = t.id CROSS JOIN sessions n ON ` + joined + `)`

// Within reports whether a session is in a limit: itself, or through a session that it
// continues or that continues it. A log that cannot be read is in no limit.
func (ix *Index) Within(ctx context.Context, l Limit, name string) (in bool, err error) {
	cond, args := l.has()
	err = ix.read(ctx, "find", func(db room.Tables) error {
		return db.QueryRowContext(ctx, `WITH together (id) AS (SELECT id FROM sessions WHERE name = ?`+together+`
			SELECT EXISTS (SELECT 1 FROM together t CROSS JOIN sessions s ON s.id = t.id WHERE `+cond+`)`,
			append([]any{name}, args...)...).Scan(&in)
	})
	return in, err
}

// AllWithin returns the names of the logs in a limit: see Within.
func (ix *Index) AllWithin(ctx context.Context, l Limit) ([]string, error) {
	cond, args := l.has()
	return ix.names(ctx, `WITH together (id) AS (SELECT s.id FROM sessions s WHERE s.name IS NOT NULL AND `+cond+together+`
		SELECT s.name FROM together t CROSS JOIN sessions s ON s.id = t.id WHERE s.name IS NOT NULL`, args...)
}

// IsProject reports whether a name means a directory: see ListOptions.Project.
func IsProject(dir, name string) bool { return dir != "" && isCalled(dir, name) }
