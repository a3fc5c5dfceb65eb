package index

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/index/room"
	"github.com/coppice-dev/coppice/index/sqlite"
	"github.com/coppice-dev/coppice/store"
)

// Tokens returns the tokens of a text: its parts, and its whole identifiers.
func Tokens(text string) (parts, wholes []string) {
	text = canonical(text)
	scan(text, func(t token) {
		if t.start < 0 || t.end > len(text) || t.start > t.end {
			panic(fmt.Sprintf("token %+v is not in the text", t))
		}
		if t.whole {
			wholes = append(wholes, t.text)
		} else {
			parts = append(parts, t.text)
		}
	})
	return parts, wholes
}

// DecodeRow reads what a list shows of a session.
func DecodeRow(row []byte) (Session, error) { return decodeRow(row) }

// EncodeRow writes what decodeRow reads.
func EncodeRow(s Session) []byte {
	row := state{
		sid: s.ID, name: s.Name, key: s.Key, title: s.Title, cwd: s.CWD, parent: s.Parent, relation: s.Relation,
		continuedTo: s.ContinuedTo, leafID: s.Leaf, agent: s.Agent, created: millis(s.Created), updated: millis(s.Updated),
		entries: int64(s.Entries), messages: int64(s.Messages), branches: int64(s.Branches), tokens: s.Tokens,
		context: s.Context, size: s.Size, continuation: int64(s.Continuation), problems: int64(s.Problems),
		links: int64(s.Links), missing: s.Missing,
		pinned: s.Pinned, archived: s.Archived, tags: s.Tags, models: map[string]int64{}, tools: map[string]int64{},
	}
	if s.Named {
		row.given = s.Title
	}
	if s.Reported {
		row.billed = s.Tokens
	}
	for _, c := range s.Models {
		row.models[c.Name] = c.Count
	}
	for _, c := range s.Tools {
		row.tools[c.Name] = c.Count
	}
	return row.encodeRow()
}

// Cost returns what usage of a model costs in micro-dollars, and
// whether the price is known.
func (p *Prices) Cost(provider, model string, u Usage) (int64, bool) {
	price, ok := p.Price(provider, model)
	if !ok {
		return 0, false
	}
	return price.cost(u), true
}

// Panic lets a read of the index panic.
func (ix *Index) Panic() {
	_ = ix.room.View(context.Background(), false, func(room.Tables) error { panic("a fault") })
}

// IsLocked reports whether a reader has not let go of the tables. It closes the index.
func (ix *Index) IsLocked() bool {
	closed := make(chan error, 1)
	go func() { closed <- ix.Close() }()
	select {
	case <-closed:
		return false
	case <-time.After(time.Minute):
		return true
	}
}

// SetBatch sets how many documents are written in one transaction.
func (ix *Index) SetBatch(docs int) { ix.batch = docs }

// Match returns a query in SQLite's language. db must be that of an index.
func (ix *Index) Match(query string) (string, error) {
	q, err := parseQuery(query, time.Now(), false)
	if err != nil {
		return "", err
	}
	var match string
	err = ix.room.View(context.Background(), false, func(db room.Tables) error {
		m, err := newMatcher(context.Background(), db)
		if err != nil {
			return err
		}
		words, err := m.node(q.expr, true)
		match = words.match
		return err
	})
	return match, err
}

// Dump returns what an index knows, without the numbers that depend on the order
// in which it came to know it.
func (ix *Index) Dump() (string, error) {
	var b strings.Builder
	err := ix.room.View(context.Background(), false, func(db room.Tables) error {
		for _, query := range []string{
			`SELECT name, sid, key, title, sort_title, tags, cwd, created, updated, entries, messages, branches, tokens,
				context, models, tools, parent, relation, continuation, continued_to, pinned, problems, docs, size, folded, row, part, nth, begins, elsewhere, original,
				modified, archived, pos, head_hash, tail_pos, tail_hash, next, leaf, leaf_id, breaks FROM sessions ORDER BY name, sid`,
			`SELECT s.name, tag FROM tags t JOIN sessions s ON s.id = t.session ORDER BY 1, 2`,
			`SELECT s.name, f.name, f.path FROM files f LEFT JOIN sessions s ON s.id = f.session ORDER BY 1, 2, 3`,
			`SELECT s.name, n, e.id, e.parent, e.pos, e.time, e.class, e.context FROM entries e JOIN sessions s ON s.id = e.session ORDER BY 1, 2`,
			`SELECT s.name, d.entry, d.part, d.kind, r.name, t.name, m.name, d.elsewhere, d.len, d.tf, d.id >> 8,
				CASE WHEN d.id IN (SELECT rowid FROM fts WHERE fts MATCH ?) THEN 1 ELSE 0 END
				FROM docs d JOIN sessions s ON s.id = d.session LEFT JOIN names r ON r.id = d.role
				LEFT JOIN names t ON t.id = d.tool LEFT JOIN names m ON m.id = d.model ORDER BY 1, 2, 3`,
			`SELECT s.name, q.entry, q.time, r.name, m.name, q.elsewhere FROM silent q JOIN sessions s ON s.id = q.session
				LEFT JOIN names r ON r.id = q.role LEFT JOIN names m ON m.id = q.model ORDER BY 1, 2`,
			`SELECT (SELECT count(*) FROM silent), (SELECT count(*) FROM docs), (SELECT count(*) FROM fts WHERE fts MATCH ?), (SELECT count(*) FROM usage), (SELECT count(*) FROM entries)`,
			`SELECT u.response, s.name, counted, u.id & 4294967295, time, p.name, m.name, t.name, input, cache_read, cache_write, output, reasoning, cache_hour, cost
				FROM usage u JOIN sessions s ON s.id = u.id >> 32 LEFT JOIN names p ON p.id = u.provider
				LEFT JOIN names m ON m.id = u.model LEFT JOIN names t ON t.id = u.tool ORDER BY 1, 2`,
		} {
			var args []any
			if strings.Contains(query, "MATCH") {
				args = append(args, room.Match{Query: anything()})
			}
			if err := dump(db, &b, query, args...); err != nil {
				return fmt.Errorf("%s: %w", query, err)
			}
		}
		return nil
	})
	return b.String(), err
}

func dump(db room.Tables, b *strings.Builder, query string, args ...any) error {
	rows, err := db.QueryContext(context.Background(), query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	values, dest := make([]any, len(columns)), make([]any, len(columns))
	for i := range values {
		dest[i] = &values[i]
	}
	var lines []string // sorted here, because databases do not agree where NULL comes
	for rows.Next() {
		if err := rows.Scan(dest...); err != nil {
			return err
		}
		var line strings.Builder
		for i, v := range values {
			if bytes, ok := v.([]byte); ok {
				v = hex.EncodeToString(bytes)
			}
			fmt.Fprintf(&line, "%d=%v ", i, v)
		}
		lines = append(lines, line.String())
	}
	slices.Sort(lines)
	b.WriteString(strings.Join(lines, "\n"))
	b.WriteByte('\n')
	return rows.Err()
}

// Integrity returns what SQLite finds wrong with the file, or "ok".
func (ix *Index) Integrity() (string, error) {
	result := "ok"
	if _, isFile := ix.room.(*sqlite.Room); !isFile {
		return result, nil
	}
	err := ix.room.View(context.Background(), false, func(db room.Tables) error {
		if err := db.QueryRowContext(context.Background(), `PRAGMA integrity_check`).Scan(&result); err != nil {
			return err
		}
		return ix.room.Update(context.Background(), db, func(tx room.Tx) error {
			_, err := tx.ExecContext(context.Background(), `INSERT INTO fts (fts) VALUES ('integrity-check')`)
			return err
		})
	})
	return result, err
}

// TreeNode is an entry as the index has it: its parent is "" for a root.
type TreeNode struct{ ID, Parent string }

// Tree returns the entries of a session that have an id, its leaf, and the path to
// that.
func (ix *Index) Tree(name string) (nodes []TreeNode, leaf string, path []string, err error) {
	err = ix.room.View(context.Background(), false, func(db room.Tables) error {
		var session, next, at int64
		if err := db.QueryRowContext(context.Background(), `SELECT id, next, leaf, leaf_id FROM sessions WHERE name = ?`, name).Scan(&session, &next, &at, &leaf); err != nil {
			return err
		}
		rows, err := db.QueryContext(context.Background(), `SELECT e.id, p.id FROM entries e LEFT JOIN entries p ON p.session = e.session AND p.n = e.parent
			WHERE e.session = ? AND e.id IS NOT NULL ORDER BY e.n`, session)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var id, parent any
			if err := rows.Scan(&id, &parent); err != nil {
				return err
			}
			nodes = append(nodes, TreeNode{idOf(id), idOf(parent)})
		}
		if err := rows.Err(); err != nil {
			return err
		}
		shape, err := loadShape(context.Background(), db, session, next, at)
		if err != nil {
			return err
		}
		for _, part := range shape.live {
			for n := part.last; n >= part.first; n-- {
				var id any
				if err := db.QueryRowContext(context.Background(), `SELECT id FROM entries WHERE session = ? AND n = ?`, session, n).Scan(&id); err != nil {
					return err
				}
				path = append(path, idOf(id))
			}
		}
		slices.Reverse(path)
		return nil
	})
	return nodes, leaf, path, err
}

// SetSweepAlways sets up to how many sessions every CatchUp looks at all of them.
func (ix *Index) SetSweepAlways(sessions int) { ix.sweepAlways = sessions }

// Closing is closed once somebody closes the index.
func (ix *Index) Closing() <-chan struct{} { return ix.closing.Done() }

// Turns runs several turns at once, for tests.
type Turns struct{ turns }

// Do is turns.do.
func (t *Turns) Do(ctx context.Context, sweep bool, run func() (Report, error)) (Report, error) {
	return t.do(ctx, sweep, run)
}

// NamePlans returns the steps in which SQLite looks up names, and adds up what was spent.
func (ix *Index) NamePlans() (steps []string, err error) {
	for query, args := range map[string][]any{namesLike: {"a", "b", 10}, nativesExact: {"a", 10}, nativesLike: {"a", "b", 10}, rivalsOf: {"a", "b"}, spentOfStale: {1}} {
		err := ix.room.View(context.Background(), false, func(db room.Tables) error {
			rows, err := db.QueryContext(context.Background(), `EXPLAIN QUERY PLAN `+query, args...)
			if err != nil {
				return err
			}
			defer rows.Close()
			for rows.Next() {
				var id, parent, unused int
				var step string
				if err := rows.Scan(&id, &parent, &unused, &step); err != nil {
					return err
				}
				steps = append(steps, step)
			}
			return rows.Err()
		})
		if err != nil {
			return nil, err
		}
	}
	return steps, nil
}

// Open returns the index in the file at path.
func Open(ctx context.Context, st store.Store, path string, o *Options) (*Index, error) {
	return open(ctx, st, path, o, nil)
}

// OpenNow is Open, but does not wait for the lock of the index.
func OpenNow(ctx context.Context, st store.Store, path string) (*Index, error) {
	return open(ctx, st, path, nil, &sqlite.Options{Patience: time.Nanosecond})
}

func open(ctx context.Context, st store.Store, path string, o *Options, so *sqlite.Options) (*Index, error) {
	if so == nil {
		so = &sqlite.Options{Logger: o.withDefaults().Logger}
	}
	r, err := sqlite.Open(ctx, path, so)
	if err != nil {
		return nil, err
	}
	return New(st, r, o), nil
}

// Path returns the file of the index.
func (ix *Index) Path() string { return ix.Where() }

var (
	Delete = sqlite.Delete
	Verify = sqlite.Verify
)

// Get returns the session of an id or a log's name, or store.ErrNotExist. Of a
// session of a chain it is that one alone: see Conversation.
func (ix *Index) Get(ctx context.Context, id string) (Session, error) {
	var found []Session
	err := ix.read(ctx, "get", func(db room.Tables) (err error) {
		found, err = findSessions(ctx, db, "sessions s", `s.name = ?1 OR s.sid = ?1 AND ?2 <> ''`, id)
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

const MaxTouched = maxTouched

const MaxAcross = maxAcross
