// Package sqlitefile reads the SQLite databases in which other programs keep
// their conversations, without ever writing to them.
//
// A row becomes a JSON object of its columns. A reader asks for the columns that it knows,
// and a column that an older database lacks is simply absent.
//
// A database may come from anywhere, and is a program: a view, a computed column or a virtual
// table can make eight kilobytes answer with gigabytes, or never end. So we read only what
// tables store, and never more than the file can hold: see limits.go.
package sqlitefile

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/vfs"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
)

// DB is an open database.
type DB struct {
	db      *sql.DB
	conn    *sql.Conn // the one connection, which has the limits
	limits  limits
	path    string
	scratch string // a directory with a copy, "" if there is none
	columns map[string][]string
	checked map[string]error // by table: whether what it claims to hold is possible
	left    map[string]*limits
}

// Is reports whether a file is an SQLite database.
func Is(f *transcript.File) bool { return bytes.HasPrefix(f.Head(), []byte("SQLite format 3\x00")) }

// Has reports whether a file is a database with a table that has some columns.
// Tables are given as "table" or "table.column".
func Has(f *transcript.File, names ...string) bool {
	tables := transcript.Seen(f, lookAtTables)
	return !slices.ContainsFunc(names, func(name string) bool {
		table, column, _ := strings.Cut(name, ".")
		columns := tables[table]
		return columns == nil || column != "" && !slices.Contains(columns, column)
	})
}

// tables are the columns of the tables of a database.
type tables map[string][]string

func lookAtTables(f *transcript.File) tables {
	if !Is(f) {
		return nil
	}
	db, err := Open(context.Background(), f)
	if err != nil {
		return nil
	}
	defer db.Close()
	return db.columns
}

// Open opens a database for reading. If it cannot be read in place without changing files
// beside it, Open reads a copy.
func Open(ctx context.Context, f *transcript.File) (*DB, error) {
	if !filepath.IsAbs(f.Path) {
		return nil, &session.Error{Op: "read", Path: f.Path, Kind: session.ErrInvalid, Err: errors.New("a database must be a file")}
	}
	d := &DB{path: f.Path}
	if mode, ok := inPlace(f); ok && d.open(ctx, f.Path, mode) == nil {
		return d, nil
	}
	var err error
	if d.scratch, err = copyAside(f.Path); err != nil {
		return nil, err
	}
	if err := d.open(ctx, filepath.Join(d.scratch, copied), ""); err != nil {
		return nil, errors.Join(&session.Error{Op: "read", Path: f.Path, Kind: session.ErrCorrupt, Err: err}, os.RemoveAll(d.scratch))
	}
	return d, nil
}

// Read opens a database for a function that reads it, and closes it after that.
func Read(ctx context.Context, f *transcript.File, read func(*DB) error) error {
	db, err := Open(ctx, f)
	if err != nil {
		return err
	}
	return errors.Join(read(db), db.Close())
}

// inPlace says how to read a database where it is, and whether that leaves everything beside
// it as it is. SQLite creates the -wal and -shm files of a database in WAL mode if they are
// missing, even for a reader. While a program has the database open, they exist. If the -wal
// file is empty, everything is in the database itself.
func inPlace(f *transcript.File) (mode string, ok bool) {
	const versionAt, isWAL = 19, 2 // in the header: which versions can read it
	if head := f.Head(); len(head) <= versionAt || head[versionAt] != isWAL {
		return "", true
	}
	log, err := os.Stat(f.Path + "-wal")
	if _, noShared := os.Stat(f.Path + "-shm"); err == nil && noShared == nil {
		return "&readonly_shm=1", true
	}
	return "&immutable=1", errors.Is(err, os.ErrNotExist) || err == nil && log.Size() == 0
}

func (d *DB) open(ctx context.Context, path, mode string) (err error) {
	if d.limits, err = limitsOf(path); err != nil {
		return err
	}
	pragmas := "&_pragma=busy_timeout(5000)&_pragma=query_only(1)&_pragma=trusted_schema(0)&_pragma=cell_size_check(1)"
	name := url.URL{Scheme: "file", Path: filepath.ToSlash(path), RawQuery: "mode=ro" + mode + pragmas}
	if d.db, err = sql.Open("sqlite", name.String()); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, openTime)
	defer cancel()
	if d.conn, err = d.db.Conn(ctx); err == nil {
		if err = d.limits.apply(d.conn); err == nil {
			err = d.readTables(ctx)
		}
		if err != nil {
			d.conn.Close()
		}
	}
	if err != nil {
		return errors.Join(err, d.db.Close())
	}
	return nil
}

// readTables finds the tables and their columns. It skips views, and virtual tables, which have no
// page of their own; table_info leaves out computed columns.
func (d *DB) readTables(ctx context.Context) error {
	d.columns, d.checked, d.left = make(map[string][]string), make(map[string]error), make(map[string]*limits)
	rows, err := d.conn.QueryContext(ctx, `SELECT m.name, c.name FROM sqlite_schema m, pragma_table_info(m.name) c
		WHERE m.type = 'table' AND m.rootpage > 0 LIMIT ?`, maxColumns+1)
	if err != nil {
		return err
	}
	defer rows.Close()
	n := 0
	for ; rows.Next(); n++ {
		var table, column string
		if err := rows.Scan(&table, &column); err != nil {
			return err
		}
		d.columns[table] = append(d.columns[table], column)
	}
	if n > maxColumns {
		return fmt.Errorf("its tables have more than %d columns", maxColumns)
	}
	return rows.Err()
}

const copied = "copy.db"

// copyAside copies a database, with its write-ahead log, into a directory of its own.
func copyAside(path string) (dir string, err error) {
	if dir, err = os.MkdirTemp("", "coppice-sqlite-"); err != nil {
		return "", err
	}
	for _, suffix := range []string{"", "-wal"} {
		err := copyFile(path+suffix, filepath.Join(dir, copied+suffix))
		if err != nil && (suffix == "" || !errors.Is(err, os.ErrNotExist)) {
			return "", errors.Join(err, os.RemoveAll(dir))
		}
	}
	return dir, nil
}

func copyFile(from, to string) error {
	in, err := vfs.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// HasTable reports whether there is a table of a name.
func (d *DB) HasTable(name string) bool { return d.columns[name] != nil }

// Close releases the database, and the copy if one was made.
func (d *DB) Close() error {
	err := errors.Join(d.conn.Close(), d.db.Close())
	if d.scratch != "" {
		err = errors.Join(err, os.RemoveAll(d.scratch))
	}
	return err
}

// Rows yields the rows of a table as JSON objects, in the order of some columns
// and then of insertion. Columns that the table lacks are left out of the order.
// where, if it is not "", is a column whose value must be the given one. A table
// that is missing has no rows.
func (d *DB) Rows(ctx context.Context, table, where, value string, order ...string) iter.Seq2[loose.Value, error] {
	return func(yield func(loose.Value, error) bool) {
		if !d.HasTable(table) || where != "" && !slices.Contains(d.columns[table], where) {
			return
		}
		ctx, watch := d.limits.watch(ctx)
		defer watch.end()
		if err := d.check(ctx, table); err != nil {
			yield(nil, d.damaged(ctx, table, err))
			return
		}
		query, args := d.query(table, where, value, order)
		rows, err := d.conn.QueryContext(ctx, query, args...)
		if err != nil {
			yield(nil, d.damaged(ctx, table, err))
			return
		}
		defer rows.Close()
		left := d.leftOf(table)
		for rows.Next() {
			row, err := object(rows, left)
			if err != nil {
				err = d.damaged(ctx, table, err)
			}
			watch.pause()
			if !yield(row, err) || err != nil {
				return
			}
			watch.resume()
		}
		if err := rows.Err(); err != nil {
			yield(nil, d.damaged(ctx, table, err))
		}
	}
}

// query asks for the stored columns. The rows are counted before they are sorted:
// an index can lead to the same rows without end.
func (d *DB) query(table, where, value string, order []string) (string, []any) {
	columns := quoteAll(d.columns[table])
	from := " FROM " + quote(table)
	var args []any
	if where != "" {
		from += " WHERE " + quote(where) + " = ?"
		args = append(args, value)
	}
	args = append(args, d.limits.rows+1)
	var by []string
	for _, column := range order {
		if slices.Contains(d.columns[table], column) {
			by = append(by, quote(column))
		}
	}
	if len(by) == 0 {
		return "SELECT " + columns + from + " ORDER BY rowid LIMIT ?", args // nothing to sort
	}
	return "SELECT " + columns + " FROM (SELECT " + columns + ", rowid AS " + rowNumber + from + " LIMIT ?) ORDER BY " +
		strings.Join(append(by, rowNumber), ", "), args
}

// rowNumber is a name that no column has.
const rowNumber = `"coppice row number"`

func quoteAll(names []string) string {
	var quoted []string
	for _, name := range names {
		quoted = append(quoted, quote(name))
	}
	return strings.Join(quoted, ", ")
}

func quote(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

func (d *DB) damaged(ctx context.Context, table string, err error) error {
	kind := session.ErrCorrupt
	switch {
	case errors.Is(context.Cause(ctx), errTooLong):
		kind, err = session.ErrTooLarge, errTooLong
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, errTooMuch):
		kind = session.ErrTooLarge
	}
	return &session.Error{Op: "read", Path: d.path, Kind: kind, Err: fmt.Errorf("table %s: %w", table, err)}
}

// object turns a row into a JSON object: bytes become base64, times text. It subtracts the
// row from what is left.
func object(rows *sql.Rows, left *limits) (loose.Value, error) {
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	values, into := make([]any, len(columns)), make([]any, len(columns))
	for i := range values {
		into[i] = &values[i]
	}
	if err := rows.Scan(into...); err != nil {
		return nil, err
	}
	if err := left.countRow(values); err != nil {
		return nil, err
	}
	text := []byte{'{'}
	for i, column := range columns {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(rawjson.AppendString(text, column), ':')
		if text, err = rawjson.AppendAny(text, plain(values[i])); err != nil {
			return nil, err
		}
	}
	return append(text, '}'), nil
}

func plain(v any) any {
	switch v := v.(type) {
	case []byte:
		return base64.StdEncoding.EncodeToString(v)
	case time.Time:
		return v.UTC().Format(time.RFC3339Nano)
	}
	return v
}

// JSON returns the JSON that a column holds as text, or nil if there is none.
func JSON(v loose.Value) loose.Value {
	inner, err := loose.Parse([]byte(v.Text()))
	if err != nil {
		return nil
	}
	return inner
}
