package sqlitefile

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/coppice-dev/coppice/store/vfs"
)

// limits is what a table of a file can hold, and how long the next row may take. In an honest
// file a row takes at least a few bytes, and no byte belongs to two rows. In a malicious
// file, all branches of a table may lead to the same page.
type limits struct {
	rows  int64
	bytes int64
	time  time.Duration
}

const (
	// minRow is the least that a row takes in a page: its place, its length, its number, its
	// header.
	minRow = 4
	// slack allows for small files, and for text that is longer as UTF-8.
	slack = 1 << 20
	// openTime is how long it may take to read the schema.
	openTime = 10 * time.Second
	// leastTime is how long the next row may take: the first row comes only after all are
	// sorted. A large file gets more.
	leastTime = 30 * time.Second
	perMiB    = time.Second
	// passes is how often a table may be read. Readers go over one a few times, as
	// a whole or by parts; a thousand conversations of one name would read the
	// same messages a thousand times.
	passes = 16
	// maxColumns is how many columns all tables may have together.
	maxColumns = 100_000
)

var (
	errTooMuch = errors.New("the database claims to hold more than its file can")
	errTooLong = errors.New("reading the database takes far too long for its size")
)

// limitsOf returns the limits of the database at a path. It refuses anything but regular
// files beside it too: SQLite opens those, and would wait for a pipe.
func limitsOf(path string) (limits, error) {
	var size int64
	for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
		if err := vfs.CheckRegular(path + suffix); err != nil {
			return limits{}, err
		}
		if info, err := os.Stat(path + suffix); err == nil {
			size += info.Size()
		}
	}
	return limits{
		rows:  size/minRow + 1,
		bytes: 2*size + slack,
		time:  leastTime + time.Duration(size>>20)*perMiB,
	}, nil
}

// apply sets the limits that SQLite enforces itself: no value is longer than the file, and
// queries are simple.
func (l limits) apply(conn *sql.Conn) error {
	for id, limit := range map[int]int64{
		sqlite3.SQLITE_LIMIT_LENGTH:        l.bytes,
		sqlite3.SQLITE_LIMIT_ATTACHED:      0,
		sqlite3.SQLITE_LIMIT_VDBE_OP:       100_000,
		sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH: 1,
	} {
		if _, err := sqlite.Limit(conn, id, int(min(limit, 1<<30))); err != nil {
			return err
		}
	}
	return nil
}

// leftOf returns what may still be read of a table.
func (d *DB) leftOf(table string) *limits {
	if d.left[table] == nil {
		d.left[table] = &limits{rows: passes * d.limits.rows, bytes: passes * d.limits.bytes}
	}
	return d.left[table]
}

// countRow counts a row.
func (l *limits) countRow(values []any) error {
	l.rows--
	for _, v := range values {
		switch v := v.(type) {
		case string:
			l.bytes -= int64(len(v))
		case []byte:
			l.bytes -= int64(len(v))
		default:
			l.bytes--
		}
	}
	if l.rows < 0 || l.bytes < 0 {
		return errTooMuch
	}
	return nil
}

// watch ends a query that takes too long. It is paused while the caller works on a row.
type watch struct {
	timer *time.Timer
	limit time.Duration
	end   func()
}

func (l limits) watch(ctx context.Context) (context.Context, *watch) {
	ctx, cancel := context.WithCancelCause(ctx)
	w := &watch{limit: l.time, timer: time.AfterFunc(l.time, func() { cancel(errTooLong) })}
	w.end = func() { w.timer.Stop(); cancel(nil) }
	return ctx, w
}

func (w *watch) pause()  { w.timer.Stop() }
func (w *watch) resume() { w.timer.Reset(w.limit) }

// check inspects a table before it is read: how many rows it has, and how long they claim to
// be, without reading them. Sorting would collect all of them first.
func (d *DB) check(ctx context.Context, table string) error {
	if err, ok := d.checked[table]; ok {
		return err
	}
	var lengths []string
	for _, column := range d.columns[table] {
		lengths = append(lengths, "ifnull(octet_length("+quote(column)+"), 0)")
	}
	var rows int64
	var bytes float64
	err := d.conn.QueryRowContext(ctx, `SELECT count(*), total(n) FROM (SELECT `+strings.Join(lengths, " + ")+` AS n
		FROM `+quote(table)+` NOT INDEXED LIMIT ?)`, d.limits.rows+1).Scan(&rows, &bytes)
	if err == nil && (rows > d.limits.rows || bytes > float64(d.limits.bytes)) {
		err = fmt.Errorf("%w: %d rows of %.0f bytes", errTooMuch, rows, bytes)
	}
	if ctx.Err() == nil {
		d.checked[table] = err
	}
	return err
}
