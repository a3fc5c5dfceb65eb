package postgres

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
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

// connector makes connections for database/sql.
type connector struct {
	base       postgres.Database
	translator *translator
	begin      func(ctx context.Context, tx pgx.Tx) (life, error) // locks the tables
}

func (c *connector) Connect(context.Context) (driver.Conn, error) { return &conn{connector: c}, nil }

func (c *connector) Driver() driver.Driver { return nil }

// conn is a connection: without a transaction, to any server that there is.
type conn struct {
	*connector
	tx   pgx.Tx // nil without one
	life life   // of the tables that the transaction has locked
}

var (
	_ driver.QueryerContext    = (*conn)(nil)
	_ driver.ExecerContext     = (*conn)(nil)
	_ driver.ConnBeginTx       = (*conn)(nil)
	_ driver.NamedValueChecker = (*conn)(nil)
)

// querier is a pool or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

const (
	opRead  = "read index"
	opWrite = "write index"
)

// ask calls f with what can be asked.
func (c *conn) ask(ctx context.Context, f func(ctx context.Context, q querier) error) error {
	if c.tx != nil {
		return c.base.Explain(opWrite, f(ctx, c.tx))
	}
	return c.base.Read(ctx, opRead, func(ctx context.Context, pool *pgxpool.Pool) error { return f(ctx, pool) })
}

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
	err = c.ask(ctx, func(ctx context.Context, q querier) error {
		rows, err := q.Query(ctx, text, args...)
		if err == nil {
			all, err = readAll(rows)
		}
		return err
	})
	return all, err
}

func (c *conn) ExecContext(ctx context.Context, query string, named []driver.NamedValue) (driver.Result, error) {
	text, args, _ := c.prepare(query, named)
	var tag pgconn.CommandTag
	err := c.ask(ctx, func(ctx context.Context, q querier) (err error) {
		tag, err = q.Exec(ctx, text, args...)
		return err
	})
	return driver.RowsAffected(tag.RowsAffected()), err
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
	tx, err := c.base.Begin(ctx, opWrite, func(ctx context.Context, tx pgx.Tx) (err error) {
		c.life, err = c.begin(ctx, tx)
		return err
	})
	if err != nil {
		return nil, err
	}
	c.tx = tx
	return c, nil
}

// Commit implements driver.Tx.
func (c *conn) Commit() error {
	tx := c.tx
	c.tx = nil
	return c.base.Explain(opWrite, tx.Commit(context.Background()))
}

// Rollback implements driver.Tx.
func (c *conn) Rollback() error {
	tx := c.tx
	c.tx = nil
	return c.base.Explain(opWrite, tx.Rollback(context.Background()))
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

func readAll(rows pgx.Rows) (*answer, error) {
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
