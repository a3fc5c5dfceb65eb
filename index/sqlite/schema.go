package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/coppice-dev/coppice/index/room"
	"github.com/coppice-dev/coppice/store/vfs"
)

const (
	// schemaVersion is in the file's user_version.
	schemaVersion = room.Version

	// minSQLite is the first version without the bug that could corrupt a
	// database when its WAL was reset.
	minSQLite = "3.51.3"

	busyMillis = 30_000
)

// schema is all but the indexes that each order of sessions has. Times are in milliseconds since 1970.
//
// A session's entries are numbered in the order of its log. Most entries follow the one
// before; those that do not are the breaks, and they alone determine which entries are on the
// live path (see index/breaks.go).
//
// A document is a searchable piece of text. Its id begins with its time, so that
// the newest documents have the greatest ids: a range of time is a range of ids,
// and reading backwards gives the newest first. The full-text table holds no
// text, only tokens.
const schema = `
CREATE TABLE sessions (
	id           INTEGER PRIMARY KEY, -- never used again: see counters
	name         TEXT UNIQUE, -- NULL: being removed, or a chain
	part         INTEGER NOT NULL DEFAULT 0, -- see index/chains.go
	chain        INTEGER NOT NULL DEFAULT 0, -- the chain that it is part of
	nth          INTEGER NOT NULL DEFAULT 0, -- its place there
	ord          INTEGER NOT NULL DEFAULT 0, -- the id: SQLite does not begin at a pair whose second is the key itself
	sid          TEXT NOT NULL DEFAULT '',
	row          BLOB NOT NULL DEFAULT x'', -- what a list shows of it: see index/row.go
	dir          INTEGER NOT NULL DEFAULT 0, -- a name: cwd
	folded       INTEGER NOT NULL DEFAULT 0, -- 1: a subagent whose parent is here
	tail         TEXT NOT NULL DEFAULT '', -- of sid, what it is called by for short if that is not its beginning: see session.RandomPart
	key          TEXT NOT NULL DEFAULT '',
	native       TEXT NOT NULL DEFAULT '', -- of an import: the id in the program that it comes from
	title        TEXT NOT NULL DEFAULT '',
	given        TEXT NOT NULL DEFAULT '', -- the name; the title, if there is one
	first        TEXT NOT NULL DEFAULT '', -- the title otherwise
	worth        INTEGER NOT NULL DEFAULT 0, -- of first: see index/title.go
	sort_title   TEXT NOT NULL DEFAULT '',
	tags         TEXT NOT NULL DEFAULT '[]',
	cwd          TEXT NOT NULL DEFAULT '',
	agent        TEXT NOT NULL DEFAULT '',
	maker        INTEGER NOT NULL DEFAULT 0, -- a name: agent
	created      INTEGER NOT NULL DEFAULT 0,
	updated      INTEGER NOT NULL DEFAULT 0, -- said or, if nothing was, created
	said         INTEGER NOT NULL DEFAULT 0, -- when something was said last
	entries      INTEGER NOT NULL DEFAULT 0,
	messages     INTEGER NOT NULL DEFAULT 0,
	branches     INTEGER NOT NULL DEFAULT 0,
	billed       INTEGER NOT NULL DEFAULT 0, -- tokens, as reported
	recorded     INTEGER NOT NULL DEFAULT 0, -- tokens of messages without a report
	tokens       INTEGER NOT NULL DEFAULT 0, -- what a list shows: billed, or else recorded
	context      INTEGER NOT NULL DEFAULT 0,
	models       TEXT NOT NULL DEFAULT '{}',
	tools        TEXT NOT NULL DEFAULT '{}',
	parent       TEXT NOT NULL DEFAULT '',
	relation     TEXT NOT NULL DEFAULT '',
	continuation INTEGER NOT NULL DEFAULT 0,
	continued_to TEXT NOT NULL DEFAULT '',
	replaced     TEXT NOT NULL DEFAULT '[]', -- what was continued_to before
	names        TEXT NOT NULL DEFAULT '[]', -- the names that its entries gave it: see givenName in index/state.go
	original     TEXT NOT NULL DEFAULT '', -- the first session of its chain, as its marker says
	begins       INTEGER NOT NULL DEFAULT 0, -- 1: it continues another, and its marker has not come yet
	elsewhere    TEXT NOT NULL DEFAULT '{}', -- its entries that count in another session of its chain
	pinned       INTEGER NOT NULL DEFAULT 0,
	problems     INTEGER NOT NULL DEFAULT 0,
	docs         INTEGER NOT NULL DEFAULT 0,
	-- as the store described the log when it was last read
	size         INTEGER NOT NULL DEFAULT 0,
	modified     INTEGER NOT NULL DEFAULT 0,
	archived     INTEGER NOT NULL DEFAULT 0,
	-- how far the log was read, and how to tell that it is still the same
	pos          INTEGER NOT NULL DEFAULT 0,
	head_hash    INTEGER NOT NULL DEFAULT 0,
	tail_pos     INTEGER NOT NULL DEFAULT 0,
	tail_hash    INTEGER NOT NULL DEFAULT 0,
	-- the tree: the number of the next entry, of the last and of the leaf
	next         INTEGER NOT NULL DEFAULT 0,
	leaf         INTEGER NOT NULL DEFAULT -1,
	leaf_id      TEXT NOT NULL DEFAULT '',
	calls        TEXT NOT NULL DEFAULT '[]', -- the latest tool calls, to know whose output comes
	breaks       INTEGER NOT NULL DEFAULT 0
) STRICT;
-- stats is all that a catch-up needs of most.
CREATE INDEX stats       ON sessions (name, size, modified, archived, part);
CREATE INDEX by_sid      ON sessions (sid);
CREATE INDEX by_tail     ON sessions (tail, name) WHERE tail <> '';
CREATE INDEX by_key      ON sessions (key) WHERE key <> '';
CREATE INDEX by_native   ON sessions (native, name) WHERE native <> '';
CREATE INDEX by_parent   ON sessions (parent, updated, ord) WHERE parent <> '';
CREATE INDEX by_relation ON sessions (relation, updated, ord) WHERE relation <> '';
CREATE INDEX folds       ON sessions (parent) WHERE folded = 1 AND part <> 1;
CREATE INDEX by_maker    ON sessions (maker);
CREATE INDEX by_chain    ON sessions (chain, nth) WHERE chain <> 0;
CREATE INDEX by_next     ON sessions (continued_to) WHERE continued_to <> '';
CREATE INDEX by_original ON sessions (original) WHERE original <> '';

-- What sessions are sorted by is repeated here, so that a list of one tag can be
-- read in any order.
CREATE TABLE tags (
	tag        TEXT NOT NULL,
	session    INTEGER NOT NULL,
	updated    INTEGER NOT NULL DEFAULT 0,
	created    INTEGER NOT NULL DEFAULT 0,
	sort_title TEXT NOT NULL DEFAULT '',
	messages   INTEGER NOT NULL DEFAULT 0,
	tokens     INTEGER NOT NULL DEFAULT 0,
	size       INTEGER NOT NULL DEFAULT 0,
	PRIMARY KEY (tag, session)
) STRICT, WITHOUT ROWID;
CREATE INDEX tags_of ON tags (session);

-- The files that tools touched: see index/touched.go.
CREATE TABLE files (
	name    TEXT NOT NULL, -- the last element of the path, in lower case
	path    TEXT NOT NULL,
	session INTEGER NOT NULL,
	PRIMARY KEY (name, path, session)
) STRICT, WITHOUT ROWID;
CREATE INDEX files_of ON files (session);

CREATE TABLE entries (
	session INTEGER NOT NULL,
	n       INTEGER NOT NULL,
	id      BLOB,             -- NULL: a damaged line whose id is not known
	parent  INTEGER NOT NULL, -- -1: none
	pos     INTEGER NOT NULL, -- -1: not in the log
	time    INTEGER NOT NULL, -- see lostTime
	class   INTEGER NOT NULL,
	context INTEGER,          -- tokens after this response; 0 after a compaction
	PRIMARY KEY (session, n)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX entry_ids ON entries (session, id);
CREATE INDEX entry_breaks ON entries (session, n, parent, class) WHERE parent <> n - 1 OR class NOT IN (0, 5, 7);
CREATE INDEX entry_remarks ON entries (session, n) WHERE class = 5;

-- What looks like ids in damaged lines: an entry that is missing was probably lost
-- in the line that has its id. And entries under their own numbers, if a later line may
-- change what they are.
CREATE TABLE damage (
	session INTEGER NOT NULL,
	id      BLOB NOT NULL,
	n       INTEGER NOT NULL,
	PRIMARY KEY (session, id, n)
) STRICT, WITHOUT ROWID;

CREATE TABLE docs (
	id      INTEGER PRIMARY KEY,
	session INTEGER NOT NULL,
	entry   INTEGER NOT NULL,
	part    INTEGER NOT NULL, -- which text of the entry
	kind    INTEGER NOT NULL,
	role    INTEGER NOT NULL, -- names; 0 is none
	tool    INTEGER NOT NULL,
	model   INTEGER NOT NULL,
	elsewhere INTEGER NOT NULL DEFAULT 0, -- 1: the entry counts in another session of the chain
	len     INTEGER NOT NULL, -- in tokens
	tf      BLOB,             -- the tokens that occur more than once: see index/rank.go
	late    INTEGER NOT NULL DEFAULT 0, -- by how many seconds the id is after the time: see insertLate
	failed  INTEGER NOT NULL DEFAULT 0 -- 1: the output of a tool that is an error
) STRICT;

-- Messages that have no first document, because there is nothing in them to search
-- for: an answer that was cut off, a picture. They are counted all the same.
CREATE TABLE silent (
	session INTEGER NOT NULL,
	entry   INTEGER NOT NULL,
	time    INTEGER NOT NULL,
	role    INTEGER NOT NULL, -- names; 0 is none
	model   INTEGER NOT NULL,
	elsewhere INTEGER NOT NULL DEFAULT 0, -- as in docs
	PRIMARY KEY (session, entry)
) STRICT, WITHOUT ROWID;

-- Every token, and in about how many documents it is: removing documents does
-- not lower the number.
CREATE TABLE terms (
	term TEXT PRIMARY KEY,
	df   INTEGER NOT NULL,
	stem TEXT NOT NULL -- '': it is its own, or has none; see index/forms.go
) STRICT, WITHOUT ROWID;
CREATE INDEX term_stems ON terms (stem, df) WHERE stem <> '';

CREATE TABLE names (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;
CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;
INSERT INTO counters VALUES ('docs', 0), ('tokens', 0), ('sessions', 0), ('changes', 0); -- sessions: the greatest id; changes: see files.go
-- How far the marks of the store can be trusted: see index/sweep.go. One row at most.
CREATE TABLE swept (id INTEGER PRIMARY KEY, epoch TEXT NOT NULL, listing TEXT NOT NULL, time INTEGER NOT NULL, sessions INTEGER NOT NULL) STRICT;

CREATE TABLE usage (
	id          INTEGER PRIMARY KEY, -- the session's id and, in the lower 32 bits, the entry's number
	response    TEXT NOT NULL, -- what identifies the response, whatever log it is in
	counted     INTEGER NOT NULL, -- 1 in one session for each response
	time        INTEGER NOT NULL,
	provider    INTEGER NOT NULL,
	model       INTEGER NOT NULL,
	tool        INTEGER NOT NULL, -- the first that the response called
	input       INTEGER NOT NULL,
	cache_read  INTEGER NOT NULL,
	cache_write INTEGER NOT NULL,
	output      INTEGER NOT NULL,
	reasoning   INTEGER NOT NULL,
	cache_hour  INTEGER NOT NULL, -- of cache_write, what is kept for an hour
	cost        INTEGER NOT NULL, -- micro-dollars as recorded; 0: not recorded
	recorded    INTEGER NOT NULL  -- tokens of a message that has a count and no report; then it is no response
) STRICT;
CREATE INDEX usage_responses ON usage (response);
-- What is counted of each session, in sums, and whose sums have to be made again.
CREATE TABLE ledgers (session INTEGER PRIMARY KEY, data BLOB NOT NULL) STRICT;
CREATE TABLE stale (session INTEGER PRIMARY KEY) STRICT;
`

// fullText is the full-text table. FTS5 merges minMerged segments at a time.
const fullText = `
CREATE VIRTUAL TABLE fts USING fts5 (body, whole, facet,
	content='', contentless_delete=1, tokenize="ascii tokenchars '_'");
INSERT INTO fts (fts, rank) VALUES ('usermerge', 8);
`

// sorts are the columns that sessions are sorted by.
var sorts = []string{"created", "messages", "size", "sort_title", "tokens", "updated"}

// sortIndexes are the indexes of one order of sessions: of all, of those of a
// directory or a tag, and of the few that are pinned or archived. The columns
// after ord are there for filters, so that a row is fetched only if it is listed.
const sortIndexes = `
CREATE INDEX by_COLUMN       ON sessions (COLUMN, ord, archived, pinned, folded, updated, dir, part, maker);
CREATE INDEX dir_COLUMN      ON sessions (dir, COLUMN, ord, archived, pinned, folded, updated, part);
CREATE INDEX pinned_COLUMN   ON sessions (COLUMN, ord, archived, folded, updated, part) WHERE pinned = 1;
CREATE INDEX archived_COLUMN ON sessions (COLUMN, ord, pinned, folded, updated, part) WHERE archived = 1;
CREATE INDEX tag_COLUMN      ON tags (tag, COLUMN, session);
`

// allTables returns the whole schema.
func allTables() string {
	all := schema + fullText
	for _, column := range sorts {
		all += strings.ReplaceAll(sortIndexes, "COLUMN", column)
	}
	return all
}

func dsn(path string, alone bool) string {
	pragmas := url.Values{
		"_txlock": {"immediate"},
		"mode":    {"rw"}, // only we create the file
		"vfs":     {checkedVFS},
		"_pragma": {
			"busy_timeout(" + strconv.Itoa(busyMillis) + ")",
			"synchronous(NORMAL)",
			"cache_size(-16000)",
			"temp_store(MEMORY)",
			"trusted_schema(0)", // another program may have created the file
			"cell_size_check(1)",
			// A large write changes some pages again and again. Moving them into the database
			// after each transaction, and waiting for the disk, took a tenth of the time.
			"wal_autocheckpoint(8000)",
			"journal_size_limit(67108864)",
		},
	}
	if alone {
		pragmas.Set("mode", "ro")
		pragmas.Set("immutable", "1") // otherwise SQLite would create the other files
	}
	u := url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: pragmas.Encode()}
	return u.String()
}

// patiently tries again while another process holds a lock that SQLite does not
// wait for: that of changing to WAL mode, or of recovering it.
func patiently(ctx context.Context, f func() error) error {
	for deadline := time.Now().Add(busyMillis * time.Millisecond); ; {
		err := f()
		var e *sqlite.Error
		if !errors.As(err, &e) || e.Code()&0xff != sqlite3.SQLITE_BUSY || time.Now().After(deadline) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}

var errOtherVersion = errors.New("the index is of another version")

// prepare makes sure that the database has our tables, and nothing else. It calls mark before
// it creates them.
func prepare(ctx context.Context, db *sql.DB, mark func() error) error {
	var lib string
	var version int
	if err := db.QueryRowContext(ctx, `SELECT sqlite_version()`).Scan(&lib); err != nil {
		return err
	}
	if olderThan(lib, minSQLite) {
		return fmt.Errorf("SQLite %s can corrupt a database that several processes use; at least %s is needed", lib, minSQLite)
	}
	var mode string
	if err := db.QueryRowContext(ctx, `PRAGMA journal_mode = WAL`).Scan(&mode); err != nil {
		return err
	}
	if err := db.QueryRowContext(ctx, `PRAGMA user_version`).Scan(&version); err != nil {
		return err
	}
	if version == 0 {
		if err := mark(); err != nil {
			return err
		}
		if err := createSchema(ctx, db); err != nil {
			return err
		}
	} else if version != schemaVersion {
		return fmt.Errorf("%w: it is version %d, this program uses version %d", errOtherVersion, version, schemaVersion)
	}
	if err := checkSchema(ctx, db); err != nil {
		return err
	}
	var n int
	return db.QueryRowContext(ctx, `SELECT count(*) FROM (SELECT 1 FROM sessions LIMIT 1)`).Scan(&n)
}

// createSchema creates the tables, unless another process did so while we waited for the
// lock.
func createSchema(ctx context.Context, db *sql.DB) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	var version int
	if err := tx.QueryRowContext(ctx, `PRAGMA user_version`).Scan(&version); err != nil {
		return err
	}
	if version != 0 {
		return nil
	}
	if _, err := tx.ExecContext(ctx, allTables()); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, `PRAGMA user_version = `+strconv.Itoa(schemaVersion)); err != nil {
		return err
	}
	return tx.Commit()
}

// checkSchema makes sure that we created the database: a view, a trigger or a computed column
// under one of our names could make a query do anything.
func checkSchema(ctx context.Context, db *sql.DB) error {
	ours := make(map[string]bool)
	for _, statement := range strings.SplitAfter(allTables(), ";\n") { // nothing else ends a line like that
		if at := strings.Index(statement, "CREATE "); at >= 0 {
			ours[strings.TrimSuffix(statement[at:], ";\n")] = true
		}
	}
	rows, err := db.QueryContext(ctx, `SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL`)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var kind, name, text string
		if err := rows.Scan(&kind, &name, &text); err != nil {
			return err
		}
		// SQLite creates some tables for itself.
		inner := kind == "table" && !strings.Contains(strings.ToUpper(text), " AS") &&
			(strings.HasPrefix(name, "fts_") || strings.HasPrefix(name, "sqlite_"))
		if !ours[text] && !inner {
			return fmt.Errorf("%w: it has a %s %q that Coppice did not make", errOtherVersion, kind, name)
		}
		delete(ours, text)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	if len(ours) > 0 {
		return fmt.Errorf("%w: %d of its tables are missing", errOtherVersion, len(ours))
	}
	return nil
}

// isDamage reports whether an error means that the database cannot be used as it
// is: its bytes are damaged, or its tables are not ours.
func isDamage(err error) bool {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return errors.Is(err, room.ErrDamaged) || errors.Is(err, errStructure) || errors.Is(err, errOlder) || errors.Is(err, errFaults)
	}
	if code := e.Code(); code == sqlite3.SQLITE_IOERR_SHORT_READ || code == sqlite3.SQLITE_IOERR_DATA {
		return true // the file was cut short, or a page is not what we wrote
	}
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return true
	case sqlite3.SQLITE_CONSTRAINT:
		// We only insert rows that cannot exist. If one does, the tables contradict each
		// other, and would do so again.
		return true
	case sqlite3.SQLITE_ERROR:
		return strings.Contains(e.Error(), "no such table") || strings.Contains(e.Error(), "no such column")
	}
	return false
}

// isFull reports whether the disk was full. For the shared memory beside the file, SQLite
// only says that it could not enlarge it or get a page of it.
func isFull(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && (e.Code()&0xff == sqlite3.SQLITE_FULL ||
		e.Code() == sqlite3.SQLITE_IOERR_SHMSIZE || e.Code() == sqlite3.SQLITE_IOERR_IN_PAGE)
}

// isForbidden reports whether the database cannot be written where it is. SQLite
// needs files beside it even to read it.
func isForbidden(err error) bool {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return false
	}
	code := e.Code() & 0xff
	return code == sqlite3.SQLITE_CANTOPEN || code == sqlite3.SQLITE_READONLY || code == sqlite3.SQLITE_PERM
}

// whyForbidden returns the cause of what isForbidden reports: SQLite does not say whether it
// may not open files here, in which case the caller tries another place, or cannot open any
// file at all.
func whyForbidden(path string) error {
	for range fileSuffixes {
		dir, err := os.OpenRoot(filepath.Dir(path))
		if vfs.NoDescriptors(err) {
			return err
		}
		if err == nil {
			defer dir.Close()
		}
	}
	return fs.ErrPermission
}

// olderThan compares dotted version numbers.
func olderThan(a, b string) bool {
	x, y := strings.Split(a, "."), strings.Split(b, ".")
	for i := range max(len(x), len(y)) {
		m, n := 0, 0
		if i < len(x) {
			m, _ = strconv.Atoi(x[i])
		}
		if i < len(y) {
			n, _ = strconv.Atoi(y[i])
		}
		if m != n {
			return m < n
		}
	}
	return false
}
