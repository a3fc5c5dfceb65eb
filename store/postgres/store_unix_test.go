//go:build unix

package postgres_test

import (
	"testing"

	"github.com/coppice-dev/coppice/internal/postgrestest"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/postgres"
	"github.com/coppice-dev/coppice/store/storetest"
)

func mustOpen(t testing.TB, where string, o *postgres.Options) *postgres.Store {
	t.Helper()
	s, err := postgres.Open(t.Context(), where, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// longest is the maximum length of a line in the suites, zero for the default: see race_test.go.
var longest int64

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store {
		return mustOpen(t, postgrestest.URL(t), &postgres.Options{MaxLine: longest})
	})
}
