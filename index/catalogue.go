package index

import (
	"cmp"
	"context"
	"database/sql"
	"slices"
	"strings"

	"github.com/coppice-dev/coppice/index/room"
	"github.com/coppice-dev/coppice/session"
)

// sessionColumns are the columns that scanSession reads.
const sessionColumns = `s.row, CASE s.part
	WHEN 2 THEN (SELECT count(*) FROM sessions l CROSS JOIN sessions f ON f.parent = l.sid AND f.parent <> '' AND f.folded = 1 AND f.part <> 1 WHERE l.chain = s.id AND l.chain <> 0)
	ELSE (SELECT count(*) FROM sessions f WHERE f.parent = s.sid AND f.parent <> '' AND f.folded = 1 AND f.part <> 1) END,
	CASE s.part
	WHEN 2 THEN (SELECT count(*) FROM sessions p CROSS JOIN sessions f ON ` + isFork + ` AND f.part <> 1 WHERE p.chain = s.id AND p.chain <> 0)
	ELSE (SELECT count(*) FROM (SELECT s.sid, s.created) p CROSS JOIN sessions f ON ` + isFork + ` AND f.part <> 1) END,
	CASE s.chain WHEN 0 THEN '' ELSE (SELECT c.sid FROM sessions c WHERE c.id = s.chain) END`

// isFork is the condition that a session f is a fork or a recovery of p. It must be the younger
// of the two: logs may claim anything, and sessions that claim each other must not both be left
// out of a list.
const isFork = `f.parent = p.sid AND f.parent <> '' AND f.relation IN ('` + session.RelationFork + `', '` + session.RelationRecovery + `')
	AND (p.created, p.sid) < (f.created, f.sid)`

func scanSession(rows *sql.Rows, more ...any) (Session, error) {
	var row, chain sql.RawBytes
	var subagents, forks int
	if err := rows.Scan(append([]any{&row, &subagents, &forks, &chain}, more...)...); err != nil {
		return Session{}, err
	}
	s, err := decodeRow(row)
	s.Subagents, s.Forks, s.Conversation = subagents, forks, string(chain)
	return s, err
}

// scanSessions returns the sessions for which a condition holds.
func scanSessions(ctx context.Context, db room.Tables, cond string, args ...any) ([]Session, error) {
	return scanSessionsFrom(ctx, db, "sessions s", cond, args...)
}

// scanSessionsFrom is scanSessions with a choice of the SQL index.
func scanSessionsFrom(ctx context.Context, db room.Tables, from, cond string, args ...any) ([]Session, error) {
	rows, err := db.QueryContext(ctx, `SELECT `+sessionColumns+` FROM `+from+` WHERE `+cond, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var found []Session
	for rows.Next() {
		s, err := scanSession(rows)
		if err != nil {
			return nil, err
		}
		found = append(found, s)
	}
	return found, rows.Err()
}

func sortCounts(byName map[string]int64) []Count {
	var counts []Count
	for name, n := range byName {
		counts = append(counts, Count{name, n})
	}
	slices.SortFunc(counts, func(a, b Count) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Name, b.Name))
	})
	return counts
}

// maxFound is the maximum number of candidates that Find returns.
const maxFound = 20

// Find returns the sessions that an id, a log's name, the beginning of one or of its short
// name, or a key may mean. An exact match comes alone; a single result means that the prefix
// is unambiguous. It returns at most 20, the latest first; finding none is not an error. It
// finds the sessions of a chain one by one: Conversation returns the whole.
func (ix *Index) Find(ctx context.Context, prefix string) ([]Session, error) {
	if prefix == "" {
		return nil, nil
	}
	var found []Session
	err := ix.read(ctx, "find", func(db room.Tables) (err error) {
		for _, exact := range []struct{ cond, value string }{
			{`s.name = ?1 OR s.sid = ?1 AND ?2 <> ''`, prefix},
			{`s.key = ?1 AND s.key <> '' AND ?2 <> ''`, bounded(prefix)},
		} {
			if found, err = findSessions(ctx, db, "sessions s", exact.cond, exact.value); err != nil || len(found) > 0 {
				return err
			}
		}
		from := "sessions s"
		if n, err := countPrefix(ctx, db, prefix); err != nil {
			return err
		} else if n > maxSorted {
			from = "sessions s INDEXED BY by_updated" // with this many matches, 20 turn up soon
		}
		found, err = findSessions(ctx, db, from, `s.name >= ?1 AND s.name < ?2 OR s.sid >= ?1 AND s.sid < ?2 OR s.tail >= ?1 AND s.tail < ?2 AND s.tail <> ''`, prefix)
		return err
	})
	return found, err
}

func findSessions(ctx context.Context, db room.Tables, from, cond, prefix string) ([]Session, error) {
	return scanSessionsFrom(ctx, db, from, `s.name IS NOT NULL AND (`+cond+`) ORDER BY s.updated DESC, s.ord DESC LIMIT ?3`, prefix, afterPrefix(prefix), maxFound)
}

// maxSorted is how many sessions Find sorts. If more of them have a prefix, all are
// read in order until there are enough.
const maxSorted = 2_000

// countPrefix counts the sessions whose names have a prefix, up to maxSorted and one.
func countPrefix(ctx context.Context, db room.Tables, prefix string) (n int, err error) {
	err = db.QueryRowContext(ctx, `SELECT count(*) FROM (SELECT 1 FROM sessions WHERE name >= ? AND name < ? LIMIT ?) few`,
		prefix, afterPrefix(prefix), maxSorted+1).Scan(&n)
	return n, err
}

// Lookups of names: up to ?3 names that begin with ?1 and come before ?2; the names imported
// from another program's id ?1; and the neighbours of the name ?2 with the prefix ?1.
const (
	namesLike = `SELECT * FROM (SELECT name FROM sessions WHERE name >= ?1 AND name < ?2 ORDER BY name LIMIT ?3) a
		UNION SELECT * FROM (SELECT name FROM sessions WHERE tail >= ?1 AND tail < ?2 AND tail <> '' AND name IS NOT NULL ORDER BY tail LIMIT ?3) b
		ORDER BY 1 LIMIT ?3`
	nativesExact = `SELECT name FROM sessions WHERE native = ?1 AND native <> '' AND name IS NOT NULL ORDER BY name LIMIT ?2`
	nativesLike  = `SELECT name FROM sessions WHERE native >= ?1 AND native < ?2 AND native <> '' AND name IS NOT NULL AND folded = 0 ORDER BY native LIMIT ?3`
	rivalsOf     = `SELECT * FROM (SELECT name FROM sessions WHERE name < ?1 AND name <> ?2 ORDER BY name DESC LIMIT 1) a
		UNION ALL SELECT * FROM (SELECT name FROM sessions WHERE name >= ?1 AND name <> ?2 ORDER BY name LIMIT 1) b
		UNION ALL SELECT * FROM (SELECT name FROM sessions WHERE tail < ?1 AND tail <> '' AND name <> ?2 ORDER BY tail DESC LIMIT 1) c
		UNION ALL SELECT * FROM (SELECT name FROM sessions WHERE tail >= ?1 AND tail <> '' AND name <> ?2 ORDER BY tail LIMIT 1) d`
)

// Names returns, in order, at most limit names of logs that begin with a prefix, or whose
// short names do (see session.RandomPart). It includes logs that could not be read.
func (ix *Index) Names(ctx context.Context, prefix string, limit int) ([]string, error) {
	return ix.names(ctx, namesLike, prefix, afterPrefix(prefix), limit)
}

// Natives returns, in order, at most limit names of logs that were imported from a
// conversation with this id in another program, or else from one whose id begins like this. A
// subagent is found only by its whole id.
func (ix *Index) Natives(ctx context.Context, id string, limit int) ([]string, error) {
	names, err := ix.names(ctx, nativesExact, bounded(id), limit)
	if err != nil || len(names) > 0 {
		return names, err
	}
	return ix.names(ctx, nativesLike, id, afterPrefix(id), limit)
}

// maxRivals is the number of names up to which Rivals looks them up one by one. For more,
// reading all names is faster.
const maxRivals = 500

// Rivals returns the names of the logs right before and after the given names, in the order
// of names and in that of short names, and perhaps others: everything that the short names
// depend on.
func (ix *Index) Rivals(ctx context.Context, names ...string) ([]string, error) {
	if len(names) > maxRivals {
		return ix.names(ctx, `SELECT name FROM sessions WHERE name IS NOT NULL`)
	}
	var rivals []string
	for _, name := range names {
		found, err := ix.names(ctx, rivalsOf, session.RandomPart(name), name)
		if err != nil {
			return nil, err
		}
		rivals = append(rivals, found...)
	}
	return rivals, nil
}

func (ix *Index) names(ctx context.Context, query string, args ...any) (names []string, err error) {
	err = ix.read(ctx, "names", func(db room.Tables) error {
		rows, err := db.QueryContext(ctx, query, args...)
		if err != nil {
			return err
		}
		names, err = scanColumn[string](rows)
		return err
	})
	return names, err
}

// SameTitle reports whether two titles are the same apart from case and accents. An empty
// title equals no other.
func SameTitle(a, b string) bool { return a != "" && foldTitle(a) == foldTitle(b) }

// FindTitle returns at most 20 conversations with a title, ignoring case and accents, the
// latest first.
func (ix *Index) FindTitle(ctx context.Context, title string) ([]Session, error) {
	var found []Session
	err := ix.read(ctx, "find", func(db room.Tables) (err error) {
		found, err = scanSessionsFrom(ctx, db, "sessions s INDEXED BY by_sort_title",
			`s.sort_title = ? AND s.sort_title <> '' AND s.part IN (0, 2) ORDER BY s.updated DESC, s.ord DESC LIMIT ?`,
			foldTitle(title), maxFound)
		return err
	})
	found = slices.DeleteFunc(found, func(s Session) bool { // long titles may differ after the part that is sorted by
		return len(title) > maxSortTitle && !strings.EqualFold(s.Title, title)
	})
	return found, err
}

// afterPrefix returns a string that comes after all strings with a prefix and
// before all others that come after it, in the order of their bytes.
func afterPrefix(prefix string) string { return prefix + "\U0010FFFF" }

// Tags returns all tags, with the number of conversations that have each, the most
// frequent first.
func (ix *Index) Tags(ctx context.Context) ([]Count, error) {
	counts := make(map[string]int64)
	err := ix.read(ctx, "tags", func(db room.Tables) error {
		clear(counts) // this may run twice
		return scanCounts(ctx, db, counts, `SELECT tag, count(*) FROM tags t WHERE
			(SELECT part FROM sessions s WHERE s.id = t.session) <> 1 GROUP BY tag`)
	})
	return sortCounts(counts), err
}

// TaggedBelow returns, for each of the tags, how many conversations have it or one below it,
// as forge/parser is below forge.
func (ix *Index) TaggedBelow(ctx context.Context, tags ...string) (map[string]int64, error) {
	counts := make(map[string]int64)
	err := ix.read(ctx, "tags", func(db room.Tables) error {
		for _, tag := range tags {
			var n int64
			if err := db.QueryRowContext(ctx, `SELECT count(DISTINCT session) FROM tags t WHERE
				(tag = ?2 OR tag > ?1 || '/' AND tag < ?1 || '0') AND (SELECT part FROM sessions s WHERE s.id = t.session) <> 1`, tag, bounded(tag)).Scan(&n); err != nil {
				return err
			}
			counts[tag] = n
		}
		return nil
	})
	return counts, err
}

func scanCounts(ctx context.Context, db room.Tables, counts map[string]int64, query string, args ...any) error {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		var n int64
		if err := rows.Scan(&name, &n); err != nil {
			return err
		}
		counts[name] = n
	}
	return rows.Err()
}
