//go:build unix

package postgres_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/coppice-dev/coppice/internal/postgrestest"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/postgres"
	"github.com/coppice-dev/coppice/store/storetest"
)

// The whole contract holds if an owner has partitioned the tables, as docs/scale.md says.
func TestPartitioned(t *testing.T) {
	where := postgrestest.Empty(t)
	if _, err := postgres.Migrate(t.Context(), where); err != nil {
		t.Fatal(err)
	}
	for table, by := range map[string]string{"logs": "log", "lines": "log", "refs": "log", "blobs": "ref"} {
		partition(t, postgrestest.Param(t, where, "schema"), table, by, 4)
	}
	var tenants atomic.Int64
	storetest.Run(t, func(t *testing.T) store.Store {
		return mustOpen(t, postgrestest.With(t, where, "tenant", fmt.Sprint("tenant-", tenants.Add(1))), &postgres.Options{MaxLine: longest})
	})
}

// partition gives an empty table n partitions.
func partition(t *testing.T, schema, table, by string, n int) {
	t.Helper()
	name := schema + "." + table
	statements := fmt.Sprintf(`ALTER TABLE %[1]s RENAME TO %[2]s_whole;
		CREATE TABLE %[1]s (LIKE %[1]s_whole INCLUDING ALL) PARTITION BY HASH (%[3]s);
		DROP TABLE %[1]s_whole;
		ALTER TABLE %[1]s ENABLE ROW LEVEL SECURITY;
		CREATE POLICY tenant ON %[1]s USING (tenant = ANY ((SELECT %[4]s.tenants())::text[]));`, name, table, by, schema)
	for i := range n {
		statements += fmt.Sprintf(`CREATE TABLE %s_%d PARTITION OF %s FOR VALUES WITH (MODULUS %d, REMAINDER %d);`, name, i, name, n, i)
	}
	postgrestest.Exec(t, postgrestest.Owner(t), statements)
}
