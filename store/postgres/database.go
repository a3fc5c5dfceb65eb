package postgres

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Database is the database of a store, for an index that has its tables beside the store's.
type Database struct{ store *Store }

// Database returns the database of the store. It is closed with the store.
func (s *Store) Database() Database { return Database{s} }

// Tenant returns whose rows the store has.
func (d Database) Tenant() string { return d.store.tenant }

// SQL returns a statement for the schema of the store: it is written for the schema coppice.
func (d Database) SQL(statement string) string { return d.store.sql(statement) }

// Read calls ask, again and again while the server is away, until the caller or the store
// loses patience. It returns errors of the store.
func (d Database) Read(ctx context.Context, op string, ask func(ctx context.Context, pool *pgxpool.Pool) error) error {
	return d.store.read(ctx, op, "", func(ctx context.Context) error { return ask(ctx, d.store.pool) })
}

// Begin calls take, as Read calls ask, to begin a transaction on a connection that is then the
// caller's until End. The connection comes from the pool of the locks: transactions that wait must
// not use up the connections that those they wait for need.
func (d Database) Begin(ctx context.Context, op string, take func(ctx context.Context, conn *pgxpool.Conn) error) (conn *pgxpool.Conn, err error) {
	err = d.store.read(ctx, op, "", func(ctx context.Context) (err error) {
		if conn, err = d.store.locks.pool.Acquire(ctx); err != nil {
			return err
		}
		if err = take(ctx, conn); err != nil {
			_ = d.End(conn) // which closes a connection that does not answer
		}
		return err
	})
	return conn, err
}

// End gives a connection of Begin back. A transaction that it is still in is undone.
func (d Database) End(conn *pgxpool.Conn) (err error) {
	defer conn.Release()
	if conn.Conn().PgConn().TxStatus() != 'I' {
		_, err = conn.Exec(context.Background(), `ROLLBACK`)
	}
	return err
}

// Explain makes an error of the driver one of the store.
func (d Database) Explain(op string, err error) error { return d.store.fail(op, "", err) }
