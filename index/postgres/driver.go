package postgres

import (
	"cmp"
	"context"
	"database/sql/driver"
	"errors"
	"io"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/coppice-dev/coppice/index/room"
	"github.com/coppice-dev/coppice/store/postgres"
)

// # The driver
//
// An index asks as if it had connections to itself: it asks again while it goes through an
// answer, also in a transaction. A connection to the server cannot do that, and many who hold one
// and wait for another would wait for each other. So this is a driver whose connections are none.
// A question takes one of the store's, reads the whole answer and gives it back; a transaction
// has one of its own. What is asked has its limits, so an answer fits in memory.
//
// What a transaction writes waits, and travels with its next question or with its end: a
// statement mostly takes less time than the way to the server and back. If it fails, so does what
// it travelled with.

// connector makes connections for database/sql.
type connector struct {
	base       postgres.Database
	translator *translator
	begin      func(ctx context.Context, tx *pgxpool.Conn) (life, error) // begins a transaction, and locks the tables
	lookedInto int                                                       // see inSteps
}

func (c *connector) Connect(context.Context) (driver.Conn, error) { return &conn{connector: c}, nil }

func (c *connector) Driver() driver.Driver { return nil }

// conn is a connection: without a transaction, to any server that there is.
type conn struct {
	*connector
	tx      *pgxpool.Conn // nil without one
	life    life          // of the tables that the transaction has locked
	waiting *pgx.Batch    // what the transaction writes
	results []*result     // of what waits
}

var (
	_ driver.QueryerContext    = (*conn)(nil)
	_ driver.ExecerContext     = (*conn)(nil)
	_ driver.ConnBeginTx       = (*conn)(nil)
	_ driver.NamedValueChecker = (*conn)(nil)
)

const (
	opRead  = "read index"
	opWrite = "write index"
)

// prepare returns a statement and its arguments as the server wants them, and the full-text
// query among them, if there is one: the last three arguments are its bounds.
func (c *conn) prepare(query string, named []driver.NamedValue) (text string, args []any, m room.Match) {
	s := c.translator.translate(query)
	args = make([]any, len(named), len(named)+3)
	for i, v := range named {
		args[i] = v.Value
	}
	if s.match > 0 && s.match <= len(args) {
		m, _ = args[s.match-1].(room.Match)
		args[s.match-1] = tsquery(m.Query)
		args = append(args, bounds(m)...)
	}
	return s.text, args, m
}

func (c *conn) QueryContext(ctx context.Context, query string, named []driver.NamedValue) (driver.Rows, error) {
	text, args, m := c.prepare(query, named)
	ask := c.read
	if m.Newest > 0 && !m.Few {
		ask = func(ctx context.Context, text string, args []any) (*answer, error) {
			return c.inSteps(ctx, text, args, m)
		}
	}
	all, err := ask(ctx, text, args)
	if err != nil {
		return nil, err
	}
	return all, nil
}

// read returns the whole answer to a question.
func (c *conn) read(ctx context.Context, text string, args []any) (all *answer, err error) {
	if c.tx != nil {
		c.waiting.Queue(text, args...)
		err := c.send(ctx, func(answers pgx.BatchResults) (err error) {
			all, err = readAll(answers)
			return err
		})
		return all, err
	}
	err = c.base.Read(ctx, opRead, func(ctx context.Context, pool *pgxpool.Pool) (err error) {
		b := new(pgx.Batch)
		b.Queue(uncompiled)
		b.Queue(text, args...)
		answers := pool.SendBatch(ctx, b)
		defer answers.Close()
		if _, err := answers.Exec(); err != nil {
			return err
		}
		all, err = readAll(answers)
		return err
	})
	return all, err
}

// uncompiled makes the server interpret a question with this: to compile a question can take
// it seconds, and hardly any takes that long to answer.
const uncompiled = `SELECT set_config('jit', 'off', true)`

// maxWaiting is how many statements wait at most.
const maxWaiting = 64

// write lets a statement of the transaction wait.
func (c *conn) write(ctx context.Context, text string, args []any) (*result, error) {
	r := &result{conn: c, rows: -1}
	c.waiting.Queue(text, args...)
	c.results = append(c.results, r)
	if len(c.results) < maxWaiting {
		return r, nil
	}
	return r, c.send(ctx, nil)
}

// send sends the statements that wait. last, if it is not nil, reads the answers to those that were
// queued after them.
func (c *conn) send(ctx context.Context, last func(pgx.BatchResults) error) (err error) {
	if c.waiting.Len() == 0 {
		return nil
	}
	answers, results := c.tx.SendBatch(ctx, c.waiting), c.results
	c.waiting, c.results = new(pgx.Batch), nil
	for _, r := range results {
		tag, err := answers.Exec()
		if err != nil {
			_ = answers.Close() // with the same error
			return c.base.Explain(opWrite, err)
		}
		r.rows = tag.RowsAffected()
	}
	if last != nil {
		err = last(answers)
	}
	return c.base.Explain(opWrite, cmp.Or(err, answers.Close()))
}

// result is what a statement did. Who wants to know sends it.
type result struct {
	conn *conn
	rows int64 // -1: it waits
}

// LastInsertId implements driver.Result.
func (r *result) LastInsertId() (int64, error) { return 0, errors.ErrUnsupported }

// RowsAffected implements driver.Result.
func (r *result) RowsAffected() (int64, error) {
	if r.rows >= 0 {
		return r.rows, nil
	}
	err := r.conn.send(context.Background(), nil)
	return r.rows, err
}

func (c *conn) ExecContext(ctx context.Context, query string, named []driver.NamedValue) (driver.Result, error) {
	if c.tx == nil {
		return nil, errors.ErrUnsupported // an index writes in transactions
	}
	text, args, _ := c.prepare(query, named)
	return c.write(ctx, text, args)
}

// CheckNamedValue implements driver.NamedValueChecker.
func (c *conn) CheckNamedValue(v *driver.NamedValue) (err error) {
	if _, ok := v.Value.(room.Match); !ok {
		v.Value, err = value(v.Value)
	}
	return err
}

// value returns an argument as the tables have it.
func value(arg any) (any, error) {
	v, err := driver.DefaultParameterConverter.ConvertValue(arg)
	switch v := v.(type) {
	case bool:
		if v {
			return int64(1), err
		}
		return int64(0), err
	case string:
		return clean(v), err
	}
	return v, err
}

func (c *conn) BeginTx(ctx context.Context, _ driver.TxOptions) (driver.Tx, error) {
	tx, err := c.base.Begin(ctx, opWrite, func(ctx context.Context, tx *pgxpool.Conn) (err error) {
		c.life, err = c.begin(ctx, tx)
		return err
	})
	if err != nil {
		return nil, err
	}
	c.tx, c.waiting, c.results = tx, new(pgx.Batch), nil
	return c, nil
}

// Commit implements driver.Tx.
func (c *conn) Commit() error {
	c.waiting.Queue(`COMMIT`)
	return c.end(c.send(context.Background(), func(answers pgx.BatchResults) error {
		tag, err := answers.Exec()
		if err == nil && tag.String() != "COMMIT" {
			err = pgx.ErrTxCommitRollback
		}
		return err
	}))
}

// Rollback implements driver.Tx.
func (c *conn) Rollback() error { return c.end(nil) }

// end gives the connection back, and undoes changes that were not committed.
func (c *conn) end(err error) error {
	tx := c.tx
	c.tx = nil
	return cmp.Or(err, c.base.Explain(opWrite, c.base.End(tx)))
}

func (c *conn) Close() error {
	if c.tx != nil {
		return c.Rollback()
	}
	return nil
}

// Begin implements driver.Conn.
func (c *conn) Begin() (driver.Tx, error) { return c.BeginTx(context.Background(), driver.TxOptions{}) }

// Prepare implements driver.Conn. The pool prepares statements, if it may.
func (c *conn) Prepare(string) (driver.Stmt, error) { return nil, errors.ErrUnsupported }

// answer is all rows of an answer.
type answer struct {
	columns []string
	rows    [][]any
}

// readAll returns the next answer.
func readAll(answers pgx.BatchResults) (*answer, error) {
	rows, err := answers.Query()
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	a := &answer{}
	for _, f := range rows.FieldDescriptions() {
		a.columns = append(a.columns, f.Name)
	}
	for rows.Next() {
		row, err := rows.Values()
		if err != nil {
			return nil, err
		}
		a.rows = append(a.rows, row)
	}
	return a, rows.Err()
}

// Columns implements driver.Rows.
func (a *answer) Columns() []string { return a.columns }

// Close implements driver.Rows.
func (a *answer) Close() error { return nil }

// Next implements driver.Rows.
func (a *answer) Next(dest []driver.Value) error {
	if len(a.rows) == 0 {
		return io.EOF
	}
	for i, v := range a.rows[0] {
		switch v := v.(type) {
		case int32:
			dest[i] = int64(v)
		case pgtype.Numeric: // a sum
			n, err := v.Int64Value()
			if err != nil {
				return err
			}
			dest[i] = n.Int64
		default:
			dest[i] = v
		}
	}
	a.rows = a.rows[1:]
	return nil
}
