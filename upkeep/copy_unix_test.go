//go:build unix

package upkeep_test

import (
	"testing"

	"github.com/coppice-dev/coppice/internal/postgrestest"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/postgres"
)

var inDatabase opener = func(t *testing.T) store.Store {
	st, err := postgres.Open(t.Context(), postgrestest.URL(t), nil)
	must(t, err)
	t.Cleanup(func() { st.Close() })
	return st
}
