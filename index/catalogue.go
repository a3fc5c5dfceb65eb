package index

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coppice-dev/coppice/store"
)

const defaultLimit = 50

// sessionColumns are what scanSession reads.
const sessionColumns = `s.sid, s.name, s.key, s.title, s.given <> '', s.tags, s.cwd, s.created, s.updated,
	s.entries, s.messages, s.branches, s.tokens, s.context, s.size, s.models, s.tools, s.parent, s.relation,
	s.continuation, s.continued_to, s.pinned, s.archived, s.leaf_id, s.problems`

func scanSession(rows *sql.Rows, more ...any) (Session, error) {
	var s Session
	var tags, models, tools string
	var created, updated int64
	dest := []any{
		&s.ID, &s.Name, &s.Key, &s.Title, &s.Named, &tags, &s.CWD, &created, &updated,
		&s.Entries, &s.Messages, &s.Branches, &s.Tokens, &s.Context, &s.Size, &models, &tools, &s.Parent, &s.Relation,
		&s.Continuation, &s.ContinuedTo, &s.Pinned, &s.Archived, &s.Leaf, &s.Problems,
	}
	if err := rows.Scan(append(dest, more...)...); err != nil {
		return s, err
	}
	s.Created, s.Updated = timeOf(created), timeOf(updated)
	var err error
	if tags != "[]" {
		err = json.Unmarshal([]byte(tags), &s.Tags)
	}
	var errs [2]error
	s.Models, errs[0] = countsOf(models)
	s.Tools, errs[1] = countsOf(tools)
	return s, errors.Join(err, errs[0], errs[1])
}

// countsOf reads an object of counts, the greatest first.
func countsOf(object string) ([]Count, error) {
	if object == "{}" {
		return nil, nil
	}
	var byName map[string]int64
	if err := json.Unmarshal([]byte(object), &byName); err != nil {
		return nil, err
	}
	return sortCounts(byName), nil
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

// List returns a page of the catalogue and the cursor with which the next page
// begins, which is "" when there is none. A session that changes its place
// between two pages may be missed or listed twice; others are not.
func (ix *Index) List(ctx context.Context, o ListOptions) (page []Session, next string, err error) {
	o.Sort = cmp.Or(o.Sort, ByUpdated)
	o.Limit = cmp.Or(o.Limit, defaultLimit)
	q := &listQuery{ListOptions: o}
	if err := q.build(); err != nil {
		return nil, "", &store.Error{Op: "list", Kind: store.ErrInvalid, Err: err}
	}
	err = ix.read(ctx, "list", func(db *database) error {
		page, next, err = q.run(ctx, db)
		return err
	})
	return page, next, err
}

// cursor is the place of a session in an order.
type cursor struct {
	Sort  Sort  `json:"s"`
	Desc  bool  `json:"d,omitempty"`
	Value any   `json:"v"`
	ID    int64 `json:"i"`
}

func (c cursor) String() string {
	data, err := json.Marshal(c)
	if err != nil {
		panic(err) // strings and numbers
	}
	return base64.RawURLEncoding.EncodeToString(data)
}

var errCursor = errors.New("the cursor is not one of this list")

func (o *ListOptions) cursor() (c cursor, err error) {
	data, err := base64.RawURLEncoding.DecodeString(o.After)
	if err != nil {
		return c, errCursor
	}
	dec := json.NewDecoder(strings.NewReader(string(data)))
	dec.UseNumber()
	if dec.Decode(&c) != nil || c.Sort != o.Sort || c.Desc != o.Desc {
		return c, errCursor
	}
	if n, ok := c.Value.(json.Number); ok {
		if c.Value, err = n.Int64(); err != nil {
			return c, errCursor
		}
	}
	if _, isText := c.Value.(string); isText != (c.Sort == ByTitle) {
		return c, errCursor
	}
	return c, nil
}

// listQuery is a List on its way to SQL.
type listQuery struct {
	ListOptions
	column string
	where  []string
	args   []any
}

func (q *listQuery) add(cond string, args ...any) {
	q.where = append(q.where, cond)
	q.args = append(q.args, args...)
}

func (q *listQuery) build() error {
	var ok bool
	if q.column, ok = sorts[q.Sort]; !ok {
		return fmt.Errorf("sessions cannot be sorted by %q", q.Sort)
	}
	q.add("s.name IS NOT NULL")
	if q.After != "" {
		c, err := q.cursor()
		if err != nil {
			return err
		}
		op := ">"
		if q.Desc {
			op = "<"
		}
		// One comparison of pairs, so that SQLite begins to read right there.
		q.add("(s."+q.column+", s.ord) "+op+" (?, ?)", c.Value, c.ID)
	}
	q.filter()
	return nil
}

func (q *listQuery) filter() {
	for _, tag := range q.Tags {
		q.add("s.id IN (SELECT session FROM tags WHERE tag = ?)", tag)
	}
	if q.CWD != "" {
		cond, args := underDir(q.CWD)
		q.add(cond, args...)
	}
	if q.Key != "" {
		q.add("s.key = ?", q.Key)
	}
	if q.Parent != "" {
		q.add("s.parent = ?", q.Parent)
	}
	if q.Pinned != nil && *q.Pinned {
		q.add("s.pinned = 1") // spelled out, so that the index of pinned sessions fits
	} else if q.Pinned != nil {
		q.add("s.pinned = 0")
	}
	if q.Archived != nil {
		q.add("s.archived = ?", *q.Archived)
	}
	if !q.Since.IsZero() {
		q.add("s.updated >= ?", q.Since.UnixMilli())
	}
	if !q.Until.IsZero() {
		q.add("s.updated < ?", q.Until.UnixMilli())
	}
}

// underDir is the condition that a session is about a directory or one below it.
func underDir(dir string) (string, []any) {
	dir = filepath.Clean(dir)
	below := strings.TrimRight(dir, `/\`)
	// '0' is the character after '/', and ']' the one after '\'.
	return `(s.cwd = ? OR s.cwd > ? AND s.cwd < ? OR s.cwd > ? AND s.cwd < ?) AND s.cwd <> ''`,
		[]any{dir, below + "/", below + "0", below + `\`, below + "]"}
}

func (q *listQuery) run(ctx context.Context, db *database) (page []Session, next string, err error) {
	dir := ""
	if q.Desc {
		dir = " DESC"
	}
	query := `SELECT ` + sessionColumns + `, s.ord, s.` + q.column + ` FROM sessions s WHERE ` +
		strings.Join(q.where, " AND ") + ` ORDER BY s.` + q.column + dir + `, s.ord` + dir
	args := q.args
	if q.Limit > 0 {
		query += ` LIMIT ?`
		args = append(args, q.Limit+1) // one more, to know whether there is a next page
	}
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, "", err
	}
	defer rows.Close()
	last := cursor{Sort: q.Sort, Desc: q.Desc}
	for rows.Next() {
		if q.Limit > 0 && len(page) == q.Limit {
			return page, last.String(), nil
		}
		s, err := scanSession(rows, &last.ID, &last.Value)
		if err != nil {
			return nil, "", err
		}
		page = append(page, s)
	}
	return page, "", rows.Err()
}

// maxFound is how many candidates Find returns at most.
const maxFound = 20

// Find returns the sessions that are meant by an id, a log's name, the beginning
// of one, or a key. An exact match comes alone; one result means that the prefix
// is unambiguous. There are 20 at most, the latest first; none is not an error.
func (ix *Index) Find(ctx context.Context, prefix string) ([]Session, error) {
	if prefix == "" {
		return nil, nil
	}
	var found []Session
	err := ix.read(ctx, "find", func(db *database) (err error) {
		for _, cond := range []string{
			`s.name = ?1 OR s.sid = ?1`,
			`s.key = ?1 AND s.key <> ''`,
			`s.name >= ?1 AND s.name < ?2 OR s.sid >= ?1 AND s.sid < ?2`,
		} {
			if found, err = findSessions(ctx, db, cond, prefix); err != nil || len(found) > 0 {
				return err
			}
		}
		return nil
	})
	return found, err
}

func findSessions(ctx context.Context, db *database, cond, prefix string) ([]Session, error) {
	rows, err := db.QueryContext(ctx, `SELECT `+sessionColumns+` FROM sessions s
		WHERE s.name IS NOT NULL AND (`+cond+`) ORDER BY s.updated DESC, s.id DESC LIMIT ?3`, prefix, afterPrefix(prefix), maxFound)
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

// afterPrefix returns a string that comes after all strings with a prefix and
// before all others that come after it, in the order of their bytes.
func afterPrefix(prefix string) string { return prefix + "\U0010FFFF" }

// Get returns the session of an id or a log's name, or store.ErrNotExist.
func (ix *Index) Get(ctx context.Context, id string) (Session, error) {
	var found []Session
	err := ix.read(ctx, "get", func(db *database) (err error) {
		found, err = findSessions(ctx, db, `s.name = ?1 OR s.sid = ?1 AND ?2 <> ''`, id)
		return err
	})
	if err == nil && len(found) == 0 {
		err = &store.Error{Op: "get", Name: id, Kind: store.ErrNotExist, Err: errors.New("the index does not have it")}
	}
	if err != nil {
		return Session{}, err
	}
	return found[0], nil
}

// Tags returns all tags, with the number of sessions that have each, the most
// frequent first.
func (ix *Index) Tags(ctx context.Context) ([]Count, error) {
	counts := make(map[string]int64)
	err := ix.read(ctx, "tags", func(db *database) error {
		return scanCounts(ctx, db, counts, `SELECT tag, count(*) FROM tags GROUP BY tag`)
	})
	return sortCounts(counts), err
}

func scanCounts(ctx context.Context, db *database, counts map[string]int64, query string, args ...any) error {
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
