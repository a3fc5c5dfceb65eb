//go:build unix

package postgres_test

import (
	"testing"

	"github.com/coppice-dev/coppice/internal/postgrestest"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/postgres"
	"github.com/coppice-dev/coppice/store/storetest"
)

// The whole contract holds behind PgBouncer in transaction mode, which gives each transaction
// another connection, and so knows no prepared statements and passes on no notifications.
func TestBehindPgBouncer(t *testing.T) {
	dir := postgrestest.Bouncer(t)
	storetest.Run(t, func(t *testing.T) store.Store {
		where := postgrestest.With(t, postgrestest.URL(t), "host", dir, "default_query_exec_mode", "exec", "user", "coppice", "sslmode", "disable")
		return mustOpen(t, where, &postgres.Options{MaxLine: longest})
	})
}
