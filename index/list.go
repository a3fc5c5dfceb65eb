package index

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/coppice-dev/coppice/index/room"
	"github.com/coppice-dev/coppice/store"
)

const (
	defaultLimit = 50
	// maxRows is more than any index has. Limits and offsets come from outside; up to this
	// number they can be added without an overflow.
	maxRows = 1 << 29
	// maxDirs is the number of directories up to which they are read one after the other,
	// each in the wanted order. For more, all sessions are read in that order.
	maxDirs = 16
)

// List returns a page of the catalogue and the cursor of the next page, or "" if there is
// none. Only a session that changes its place between two pages may be missed or listed
// twice.
func (ix *Index) List(ctx context.Context, o ListOptions) (page []Session, next string, err error) {
	o.Sort = cmp.Or(o.Sort, ByUpdated)
	o.Limit, o.Offset = min(cmp.Or(o.Limit, defaultLimit), maxRows), min(o.Offset, maxRows)
	c, err := o.check()
	if err != nil {
		return nil, "", &store.Error{Op: "list", Kind: store.ErrInvalid, Err: err}
	}
	err = ix.read(ctx, "list", func(db room.Tables) error {
		q := &listQuery{ListOptions: o, column: sorts[o.Sort]}
		if err := q.build(ctx, db, c); err != nil {
			return err
		}
		page, next, err = q.run(ctx, db)
		return err
	})
	return page, next, err
}

// Count returns how many sessions a list has on all of its pages.
func (ix *Index) Count(ctx context.Context, o ListOptions) (n int, err error) {
	o.Sort, o.After = cmp.Or(o.Sort, ByUpdated), ""
	err = ix.read(ctx, "count", func(db room.Tables) error {
		q := &listQuery{ListOptions: o, column: sorts[o.Sort]}
		if err := q.build(ctx, db, cursor{}); err != nil {
			return err
		}
		if len(q.dirs) > 0 {
			q.add("s.dir IN (?"+strings.Repeat(", ?", len(q.dirs)-1)+")", q.dirs...)
		}
		return db.QueryRowContext(ctx, `SELECT count(*) FROM `+q.from+` WHERE `+strings.Join(q.where, " AND "), q.args...).Scan(&n)
	})
	return n, err
}

// check reads the cursor, if there is one.
func (o *ListOptions) check() (c cursor, err error) {
	if _, ok := sorts[o.Sort]; !ok {
		return c, fmt.Errorf("cannot sort sessions by %q", o.Sort)
	}
	if o.Offset < 0 {
		return c, fmt.Errorf("the offset is -%d; it must not be negative", -o.Offset)
	}
	if o.After == "" {
		return c, nil
	}
	return o.cursor()
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

var errCursor = errors.New("the cursor does not belong to this list")

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

// listQuery is a List that becomes SQL. There is an SQL index for each order of all sessions,
// of those of a directory or a tag, and of the pinned and the archived ones. One of them
// yields the page in its order; the other conditions are checked for each session that it
// yields.
type listQuery struct {
	ListOptions
	column string
	from   string // the table to read, with its index
	order  string // the columns to sort by
	where  []string
	args   []any
	dirs   []any // the directories to read instead, one after the other
}

func (q *listQuery) add(cond string, args ...any) {
	q.where = append(q.where, cond)
	q.args = append(q.args, args...)
}

// build chooses an index and adds the filters.
func (q *listQuery) build(ctx context.Context, db room.Tables, c cursor) error {
	tags := q.Tags
	alone := false
	if len(tags) > 0 {
		below, err := hasBelow(ctx, db, tags[0])
		if err != nil {
			return err
		}
		alone = !below
	}
	q.from, q.order = "sessions s INDEXED BY by_"+q.column, "s."+q.column+", s.ord"
	switch {
	case q.Key != "":
		q.from = "sessions s INDEXED BY by_key"
	case q.Parent != "":
		q.from = "sessions s INDEXED BY by_parent"
	case alone:
		q.from = "tags t INDEXED BY tag_" + q.column + " CROSS JOIN sessions s ON s.id = t.session"
		q.order = "t." + q.column + ", t.session"
		q.add("t.tag = ?", bounded(strings.TrimSuffix(tags[0], "/")))
		tags = tags[1:]
	case q.CWD != "", q.Project != "":
		if err := q.findDirs(ctx, db); err != nil {
			return err
		}
	case q.File != "":
		rarely, err := isRarelyTouched(ctx, db, q.File)
		if err != nil {
			return err
		}
		if rarely {
			q.from = "sessions s NOT INDEXED" // by the numbers of the sessions
		}
	case q.Relation != "":
		q.from = "sessions s INDEXED BY by_relation"
	case q.Pinned != nil && *q.Pinned:
		q.from = "sessions s INDEXED BY pinned_" + q.column
	case q.Archived != nil && *q.Archived:
		q.from = "sessions s INDEXED BY archived_" + q.column
	}
	for _, tag := range tags {
		cond, args := withBelow("o.tag", tag)
		q.add("EXISTS (SELECT 1 FROM tags o WHERE "+cond+" AND o.session = s.id)", args...)
	}
	q.after(c)
	q.filter()
	if q.Agent != "" {
		maker, err := makerID(ctx, db, q.Agent)
		if err != nil {
			return err
		}
		q.add("s.maker = ?", maker)
	}
	return nil
}

// inDirs is the condition for the requested directories.
func (o *ListOptions) inDirs() (string, []any) {
	var conds []string
	var args []any
	if o.CWD != "" {
		cond, more := underDir(o.CWD)
		conds, args = append(conds, "("+cond+")"), append(args, more...)
	}
	if o.Project != "" {
		cond, more := isProject(o.Project)
		conds, args = append(conds, "("+cond+")"), append(args, more...)
	}
	return strings.Join(conds, " AND "), args
}

// after begins where a page ended, with one comparison of pairs, so that SQLite starts
// reading right there.
func (q *listQuery) after(c cursor) {
	if q.After == "" {
		return
	}
	op := ">"
	if q.Desc {
		op = "<"
	}
	q.add("("+q.order+") "+op+" (?, ?)", c.Value, c.ID)
}

// findDirs looks up the requested directories. If there are few, they are read one after the
// other.
func (q *listQuery) findDirs(ctx context.Context, db room.Tables) error {
	cond, args := q.inDirs()
	rows, err := db.QueryContext(ctx, `SELECT s.id FROM (SELECT id, name AS cwd FROM names) s WHERE `+cond+` LIMIT ?`, append(args, maxDirs+1)...)
	if err != nil {
		return err
	}
	ids, err := scanColumn[int64](rows)
	if err != nil || len(ids) > maxDirs {
		return err
	}
	q.from = "sessions s INDEXED BY dir_" + q.column
	for _, id := range ids {
		q.dirs = append(q.dirs, id)
	}
	// Round the number up to 1, 2, 4, … with directories that do not exist: so only a few
	// different queries have to be prepared.
	for n := len(q.dirs); n == 0 || n&(n-1) != 0; n = len(q.dirs) {
		q.dirs = append(q.dirs, -1)
	}
	return nil
}

func (q *listQuery) filter() {
	if q.Links {
		q.add("s.part < 2")
	} else {
		q.add("s.part IN (0, 2)")
	}
	if (q.CWD != "" || q.Project != "") && len(q.dirs) == 0 {
		cond, args := q.inDirs()
		q.add("s.dir IN (SELECT s.id FROM (SELECT id, name AS cwd FROM names) s WHERE "+cond+")", args...)
	}
	if q.Key != "" {
		q.add("s.key = ? AND s.key <> ''", bounded(q.Key))
	}
	if q.Parent != "" {
		q.add(`s.parent IN (SELECT ? UNION SELECT l.sid FROM sessions l WHERE l.chain <> 0
			AND l.chain = (SELECT CASE x.part WHEN 2 THEN x.id ELSE x.chain END FROM sessions x
				WHERE x.sid = ? AND (x.chain <> 0 OR x.part = 2) LIMIT 1)) AND s.parent <> ''`, q.Parent, q.Parent)
	}
	if q.File != "" {
		query, args := touched(q.File)
		q.add("s.id IN ("+query+")", args...)
	}
	if q.Relation != "" {
		q.add("s.relation = ? AND s.relation <> ''", q.Relation)
	}
	if q.Fold {
		q.add("s.folded = 0")
	}
	if q.Roots {
		q.add("NOT EXISTS (SELECT 1 FROM sessions p CROSS JOIN (SELECT s.sid, s.parent, s.relation, s.created) f WHERE p.sid = s.parent AND p.name IS NOT NULL AND " + isFork + ")")
	}
	if q.Nonempty {
		q.add("s.messages > 0")
	}
	q.filterFlag("s.pinned", q.Pinned)
	q.filterFlag("s.archived", q.Archived)
	if !q.Since.IsZero() {
		q.add("s.updated >= ?", q.Since.UnixMilli())
	}
	if !q.Until.IsZero() {
		q.add("s.updated < ?", q.Until.UnixMilli())
	}
}

// filterFlag adds a condition in the exact words of the indexes of pinned and archived
// sessions, because SQLite uses them only then.
func (q *listQuery) filterFlag(column string, want *bool) {
	switch {
	case want == nil:
	case *want:
		q.add(column + " = 1")
	default:
		q.add(column + " = 0")
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

// sql returns the query and its parameters.
func (q *listQuery) sql() (string, []any) {
	columns := sessionColumns + `, ` + strings.Replace(q.order, ", ", ` AS v, `, 1) + ` AS o`
	if len(q.dirs) == 0 {
		query, args := q.page(columns, q.where, q.args)
		return q.skipping(query, args)
	}
	// Take a page of each directory, without the shown columns, and then the first of them
	// all.
	var parts []string
	var args []any
	for _, dir := range q.dirs {
		part, partArgs := q.part("s."+q.column+" AS v, s.ord AS o", append([]string{"s.dir = ?"}, q.where...), append([]any{dir}, q.args...))
		parts, args = append(parts, "SELECT * FROM ("+part+") part"), append(args, partArgs...)
	}
	all, args := q.skipping(q.limited(`SELECT v, o FROM (`+strings.Join(parts, " UNION ALL ")+`) parts ORDER BY `+q.sorted("v, o"), 0, args))
	return `SELECT ` + sessionColumns + `, p.v, p.o FROM (` + all + `) p CROSS JOIN sessions s ON s.id = p.o ORDER BY ` + q.sorted("p.v, p.o"), args
}

func (q *listQuery) page(columns string, where []string, args []any) (string, []any) {
	return q.limited(q.ordered(columns, where), 0, args)
}

// part is the page of one directory, including the rows that the offset skips.
func (q *listQuery) part(columns string, where []string, args []any) (string, []any) {
	return q.limited(q.ordered(columns, where), q.Offset, args)
}

func (q *listQuery) ordered(columns string, where []string) string {
	return `SELECT ` + columns + ` FROM ` + q.from + ` WHERE ` + strings.Join(where, " AND ") + ` ORDER BY ` + q.sorted(q.order)
}

// sorted is an ORDER BY of two columns.
func (q *listQuery) sorted(columns string) string {
	if !q.Desc {
		return columns
	}
	return strings.Replace(columns, ", ", " DESC, ", 1) + " DESC"
}

// limited adds the limit: one more than wanted, to know whether there is a next page, plus
// more. It is no parameter, because PostgreSQL keeps a plan only if that is as good without them.
func (q *listQuery) limited(query string, more int, args []any) (string, []any) {
	limit := math.MaxInt64
	if q.Limit > 0 {
		limit = q.Limit + 1 + more
	}
	return query + ` LIMIT ` + strconv.Itoa(limit), slices.Clone(args)
}

// skipping adds the offset.
func (q *listQuery) skipping(query string, args []any) (string, []any) {
	if q.Offset == 0 {
		return query, args
	}
	return query + ` OFFSET ?`, append(args, q.Offset)
}

func (q *listQuery) run(ctx context.Context, db room.Tables) (page []Session, next string, err error) {
	query, args := q.sql()
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, "", err
	}
	defer rows.Close()
	last := cursor{Sort: q.Sort, Desc: q.Desc}
	page = []Session{}
	for rows.Next() {
		if q.Limit > 0 && len(page) == q.Limit {
			return page, last.String(), nil
		}
		s, err := scanSession(rows, &last.Value, &last.ID)
		if err != nil {
			return nil, "", err
		}
		page = append(page, s)
	}
	return page, "", rows.Err()
}
