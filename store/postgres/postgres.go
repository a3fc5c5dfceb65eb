// Package postgres keeps a store in a PostgreSQL database, so that any number of programs
// on any number of machines share it. Begin with Migrate, which makes the tables, and Open:
//
//	postgres://user@host/database?schema=coppice&tenant=team
//
// The schema and the tenant may be left out. With appends=single, no append shares a statement with
// others, which tables that are spread over several servers need. All else is what libpq and pgx
// take, such as sslmode, several hosts, target_session_attrs and pool_max_conns.
//
// A line is a row, under its log, a number for the log's content (its life) and its place in
// bytes. What makes it a line of the log is that the log's row says so: that row has the life
// and the end. So an append is one statement, which moves the end and adds the rows if the
// end is where the caller thinks; a rewrite writes a new life and then moves the log to it; and
// what a program that died has left over is a life that no log has.
//
// Blobs are in the tables, too, or where KeepBlobs says: in a directory or in a bucket. See
// backend.go.
//
// Nothing here relies on clocks of several machines, on the order of commits, or on
// notifications: see watch.go and changes.go.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/coppice-dev/coppice/store"
)

// Options configures a Store. Nil and the zero value mean the defaults.
type Options struct {
	// MaxLine is the maximum length of a line in bytes. Zero means 64 MiB.
	MaxLine int64
	// MaxLog is the maximum size of a log in bytes. Zero means no limit.
	MaxLog int64
	// MaxLogs is how many logs there may be. Zero means no limit.
	MaxLogs int
	// MakeRoom, if it is not nil, is called when there are as many logs as there may be
	// and one is to be created: see the option of store/file.
	MakeRoom func(ctx context.Context, s store.Store, n int) error
}

// Store is a store.Store in a database. Use Open to open one.
type Store struct {
	target
	limits   store.Limits
	makeRoom func(ctx context.Context, s store.Store, n int) error
	patience time.Duration // how long a server may be away: see insist

	pool     *pgxpool.Pool
	locks    *locks
	holds    *holds
	backends *knownBackends
	hub      *hub
	together *together
	edits    *atomic.Int64 // how many logs this program has rewritten: see log.Current

	done    chan struct{} // closed by Close; logs watch it too
	closing *atomic.Bool
	trashed bool // it is the trash of a store, to read from: see trash.Read
}

var (
	_ store.Store   = (*Store)(nil)
	_ store.Log     = (*log)(nil)
	_ store.Watcher = (*Store)(nil)
	_ store.Blobs   = (*blobs)(nil)
)

// Open opens the store that a URL names.
func Open(ctx context.Context, where string, o *Options) (*Store, error) {
	t, config, err := parse(where)
	if err != nil {
		return nil, err
	}
	if o == nil {
		o = &Options{}
	}
	s := &Store{
		target:   t,
		limits:   store.Limits{Entry: store.DefaultMaxEntry, Log: o.MaxLog, Logs: o.MaxLogs},
		makeRoom: o.MakeRoom,
		patience: impatience,
		holds:    new(holds),
		backends: &knownBackends{opened: make(map[string]blobBackend)},
		edits:    new(atomic.Int64),
		done:     make(chan struct{}),
		closing:  new(atomic.Bool),
	}
	if o.MaxLine > 0 {
		s.limits.Entry = o.MaxLine
	}
	// Transactions that wait for something else than the server have connections of their
	// own. Else those they wait for might find none left.
	waiting := config.Copy()
	waiting.MaxConns, waiting.MinConns, waiting.MinIdleConns = max(8, config.MaxConns), 0, 0
	if s.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return nil, &store.Error{Op: "open", Path: t.where, Err: err}
	}
	if s.locks, err = newLocks(ctx, s, waiting); err != nil {
		s.pool.Close()
		return nil, &store.Error{Op: "open", Path: t.where, Err: err}
	}
	s.hub = newHub(s, config.ConnConfig)
	s.together = newTogether(s, config.MaxConns)
	if err := s.checkVersion(ctx); err != nil {
		s.Close()
		return nil, t.locate(err)
	}
	s.patience = 30 * time.Second
	return s, nil
}

// impatience is how long a server may be away when its address may be mistyped.
const impatience = 3 * time.Second

// target is what a URL names.
type target struct {
	where  string // for people: without a password
	role   string // that the URL names
	schema string
	tenant string
	single bool // each append is a statement of its own: see together.go
}

// Connections and statements end by themselves, so that a program that hangs keeps neither
// locks nor connections.
const (
	statementTimeout = 60 * time.Second
	lockTimeout      = 10 * time.Second
	idleTimeout      = 120 * time.Second // within a transaction
)

// parse takes a URL apart. No error repeats the URL, which may have a password.
func parse(where string) (target, *pgxpool.Config, error) {
	fail := func(why error) (target, *pgxpool.Config, error) {
		return target{}, nil, &store.Error{
			Op: "open", Kind: store.ErrInvalid, Err: why,
			Hint: "give a URL such as postgres://user@host/database?schema=coppice&tenant=team",
		}
	}
	u, err := url.Parse(where)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return fail(errors.New("the URL of the database cannot be read"))
	}
	params, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return fail(errors.New("the parameters of the URL cannot be read"))
	}
	t := target{schema: params.Get("schema"), tenant: params.Get("tenant")}
	if t.schema == "" {
		t.schema = defaultSchema
	}
	if !isPlain(t.schema) {
		return fail(fmt.Errorf("the schema %.80q has characters other than a-z, 0-9 and _, or begins with a digit", t.schema))
	}
	if err := store.CheckName(t.tenant); err != nil && t.tenant != "" {
		return fail(fmt.Errorf("the tenant: %w", err))
	}
	switch how := params.Get("appends"); how {
	case "":
	case "single":
		t.single = true
	default:
		return fail(fmt.Errorf("appends is %.80q; it can only be single", how))
	}
	for _, ours := range []string{"schema", "tenant", "appends"} {
		params.Del(ours)
	}
	u.RawQuery = params.Encode()
	config, err := pgxpool.ParseConfig(u.String())
	if err != nil {
		return fail(err) // which pgx has taken the password out of
	}
	defaults := timeouts()
	defaults["application_name"] = "coppice"
	for name, value := range defaults {
		if _, given := config.ConnConfig.RuntimeParams[name]; !given {
			config.ConnConfig.RuntimeParams[name] = value
		}
	}
	t.where, t.role = describe(config, t), config.ConnConfig.User
	return t, config, nil
}

// timeouts are what each connection asks of the server, unless the URL says something else.
func timeouts() map[string]string {
	return map[string]string{
		"statement_timeout":                   millis(statementTimeout),
		"lock_timeout":                        millis(lockTimeout),
		"idle_in_transaction_session_timeout": millis(idleTimeout),
	}
}

func millis(d time.Duration) string { return fmt.Sprint(d.Milliseconds()) }

// describe returns the URL that says which database, schema and tenant it is, and no more.
func describe(config *pgxpool.Config, t target) string {
	c := config.ConnConfig
	u := url.URL{Scheme: "postgres", Path: "/" + c.Database}
	params := url.Values{}
	if strings.HasPrefix(c.Host, "/") { // a socket
		params.Set("host", c.Host)
	} else {
		u.Host = c.Host
	}
	if c.Port != 5432 {
		if u.Host != "" {
			u.Host += fmt.Sprintf(":%d", c.Port)
		} else {
			params.Set("port", fmt.Sprint(c.Port))
		}
	}
	if t.schema != defaultSchema {
		params.Set("schema", t.schema)
	}
	if t.tenant != "" {
		params.Set("tenant", t.tenant)
	}
	u.RawQuery = params.Encode()
	return u.String()
}

const defaultSchema = "coppice"

// isPlain reports whether a name needs no quotes in SQL.
func isPlain(name string) bool {
	for i, c := range []byte(name) {
		if !('a' <= c && c <= 'z' || c == '_' || i > 0 && '0' <= c && c <= '9') {
			return false
		}
	}
	return len(name) <= 63
}

// sql returns a statement for the schema of the store. Statements are written for the default
// one. No connection has a search path: a pool between us and the server would lose it.
func (t target) sql(statement string) string {
	if t.schema == defaultSchema {
		return statement
	}
	return strings.ReplaceAll(statement, defaultSchema+".", t.schema+".")
}

// schemaSQL is sql for statements that also name the schema alone.
func (t target) schemaSQL(statements string) string {
	return t.sql(strings.ReplaceAll(statements, "SCHEMA "+defaultSchema, "SCHEMA "+t.schema))
}

// Where implements store.Store.
func (s *Store) Where() string { return s.where }

// Limits implements store.Store.
func (s *Store) Limits() store.Limits { return s.limits }

// Close implements store.Store.
func (s *Store) Close() error {
	if !s.closing.CompareAndSwap(false, true) {
		return nil
	}
	close(s.done)
	if s.trashed {
		return nil // the rest belongs to the store that it is the trash of
	}
	s.hub.close()
	s.backends.close()
	s.locks.close()
	s.pool.Close()
	return nil
}

// admit returns nil if an operation on a log of that name may proceed.
func (s *Store) admit(ctx context.Context, op, name string) error {
	if e, ok := errors.AsType[*store.Error](store.CheckName(name)); ok {
		e.Op = op // says more than CheckName can
		return e
	}
	return s.ready(ctx, op, name)
}

// admitWrite is admit for an operation that changes something.
func (s *Store) admitWrite(ctx context.Context, op, name string) error {
	if s.trashed {
		return &store.Error{Op: op, Name: name, Kind: store.ErrInvalid, Err: errors.New("it is in the trash"), Hint: "restore it first"}
	}
	return s.admit(ctx, op, name)
}

// ready returns nil if the store is open and ctx not done.
func (s *Store) ready(ctx context.Context, op, name string) error {
	if closed(s.done) {
		return &store.Error{Op: op, Name: name, Kind: store.ErrClosed}
	}
	if err := ctx.Err(); err != nil {
		return &store.Error{Op: op, Name: name, Err: err}
	}
	return nil
}

func (s *Store) checkLine(op, name string, line []byte) error {
	return store.CheckLine(op, name, line, s.limits.Entry)
}

func closed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}
