package postgres

import (
	"context"
	_ "embed"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/coppice-dev/coppice/index/room"
)

//go:embed schema.sql
var schema string

// Migrate makes the tables of indexes beside those of a store: see Migrate of store/postgres,
// whose transaction it runs in. It replaces those of older versions; those of newer ones stay.
func Migrate(ctx context.Context, tx pgx.Tx, sql func(statement string) string) error {
	var there bool
	if err := tx.QueryRow(ctx, sql(`SELECT to_regclass('coppice.index_version') IS NOT NULL`)).Scan(&there); err != nil {
		return err
	}
	if there {
		var version int
		err := tx.QueryRow(ctx, sql(`SELECT version FROM coppice.index_version`)).Scan(&version)
		if err != nil || version >= room.Version {
			return err
		}
		if _, err := tx.Exec(ctx, sql(dropTables)); err != nil {
			return err
		}
	}
	// The schema is also named alone.
	statements := strings.ReplaceAll(schema, "SCHEMA coppice ", strings.ReplaceAll(sql("SCHEMA coppice."), ".", " "))
	if _, err := tx.Conn().PgConn().Exec(ctx, sql(statements)).ReadAll(); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, sql(`INSERT INTO coppice.index_version VALUES ($1)`), room.Version)
	return err
}

// dropTables drops all tables of indexes, and the function that reads them.
const dropTables = `DO $$
DECLARE t regclass;
BEGIN
	DROP FUNCTION coppice.index_found(text, tsquery, bigint, bigint, bigint);
	FOR t IN SELECT oid FROM pg_class WHERE relkind = 'r' AND relname LIKE 'index\_%'
		AND relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'coppice.index_version'::regclass)
	LOOP
		EXECUTE format('DROP TABLE %s', t);
	END LOOP;
END $$`
