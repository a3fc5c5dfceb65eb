package postgres

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/jackc/pgx/v5"

	"github.com/coppice-dev/coppice/store"
)

//go:embed schema.sql
var schema string

// migration leads from one version of the tables to the next. There is no way back.
type migration struct {
	statements string
	// reads is the oldest program, by the version of its tables, that can still work with
	// them.
	reads int
}

// migrations in their order; the first makes version 1. What a released program has run must
// never change.
func migrations() []migration { return []migration{{schema, 1}} }

// Migrated is what Migrate has found and done.
type Migrated struct {
	Where    string // the database, without a password
	From, To int    // the versions of its tables; From is 0 if there were none
}

// Also is called in the transaction of a migration, for example to create the tables of an index.
// sql returns a statement for the schema: it is written for the schema coppice.
type Also func(ctx context.Context, tx pgx.Tx, sql func(statement string) string) error

// Migrate makes the tables of a store, or brings them to the version of this program. Several
// programs may do it at once. It needs a role that may create a schema, or owns the one that
// is there.
func Migrate(ctx context.Context, where string, also ...Also) (Migrated, error) {
	const op = "migrate"
	t, config, err := parse(where)
	if err != nil {
		return Migrated{}, err
	}
	did := Migrated{Where: t.where}
	fail := func(err error) (Migrated, error) {
		err = t.locate((&Store{target: t}).fail(op, "", err))
		if e, ok := errors.AsType[*store.Error](err); ok && errors.Is(err, fs.ErrPermission) {
			e.Hint = "use a role that owns the tables, or that may create a schema"
		}
		return did, err
	}
	delete(config.ConnConfig.RuntimeParams, "statement_timeout") // tables may be large
	conn, err := pgx.ConnectConfig(ctx, config.ConnConfig)
	if err != nil && classify(err) != final {
		err = errUnavailable(op, "", err)
	}
	if err != nil {
		return fail(err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	tx, err := conn.Begin(ctx)
	if err != nil {
		return fail(err)
	}
	defer tx.Rollback(context.WithoutCancel(ctx))
	if did.From, did.To, err = t.migrate(ctx, tx); err != nil {
		return fail(err)
	}
	for _, do := range also {
		if err := do(ctx, tx, t.sql); err != nil {
			return fail(err)
		}
	}
	if err := tx.Commit(ctx); err != nil {
		return fail(err)
	}
	return did, nil
}

// migrate makes the tables, or brings them up to date, in a transaction. It returns their versions
// before and after.
func (t target) migrate(ctx context.Context, tx pgx.Tx) (from, to int, err error) {
	for _, statement := range []string{
		`SELECT pg_advisory_xact_lock(hashtext('coppice.'))`, // a second program waits here for the first
		`CREATE SCHEMA IF NOT EXISTS ` + t.schema,
		`CREATE TABLE IF NOT EXISTS coppice.versions (version int PRIMARY KEY, reads int NOT NULL, made timestamptz NOT NULL DEFAULT now())`,
		`GRANT SELECT ON coppice.versions TO PUBLIC`,
	} {
		if _, err := tx.Exec(ctx, t.sql(statement)); err != nil {
			return 0, 0, err
		}
	}
	from, _, err = t.version(ctx, tx)
	if err != nil {
		return 0, 0, err
	}
	to = from
	for i, m := range migrations() {
		if i < from {
			continue
		}
		to = i + 1
		if _, err := tx.Conn().PgConn().Exec(ctx, t.schemaSQL(m.statements)).ReadAll(); err != nil {
			return from, to, err
		}
		if _, err := tx.Exec(ctx, t.sql(`INSERT INTO coppice.versions (version, reads) VALUES ($1, $2)`), to, m.reads); err != nil {
			return from, to, err
		}
	}
	return from, to, nil
}

// version returns the version of the tables, 0 if there are none, and the oldest program, by the
// version of its tables, that can work with them. Before the first release, version 1 had another
// table for the places of blobs; nothing leads from it to what came later.
func (t target) version(ctx context.Context, q querier) (version, reads int, err error) {
	var isReleased bool
	err = q.QueryRow(ctx, t.sql(`SELECT coalesce(max(version), 0), coalesce(max(reads), 0), to_regclass('coppice.blob_backends') IS NOT NULL
		FROM coppice.versions`)).Scan(&version, &reads, &isReleased)
	if err == nil && version > 0 && !isReleased {
		err = &store.Error{
			Op: "open", Path: t.where, Kind: store.ErrInvalid,
			Err:  errors.New("its tables were made by a program from before the first release"),
			Hint: "copy the sessions out with that program, drop the schema, and make the tables with coppice migrate",
		}
	}
	return version, reads, err
}

// checkVersion returns an error if this program cannot work with the tables.
func (s *Store) checkVersion(ctx context.Context) error {
	const op = "open"
	var version, reads int
	err := s.read(ctx, op, "", func(ctx context.Context) (err error) {
		version, reads, err = s.version(ctx, s.pool)
		return err
	})
	ours := len(migrations())
	switch {
	case err != nil:
		return err
	case version < ours:
		return &store.Error{
			Op: op, Path: s.where, Kind: store.ErrInvalid,
			Err: fmt.Errorf("its tables have version %d, this program needs %d", version, ours), Hint: "coppice migrate brings them up to date",
		}
	case reads > ours:
		return &store.Error{
			Op: op, Path: s.where, Kind: store.ErrInvalid,
			Err: fmt.Errorf("its tables have version %d, this program understands %d", version, ours), Hint: "install a newer version of this program",
		}
	}
	return nil
}
