//go:build unix

package agent_test

import (
	"testing"

	"github.com/coppice-dev/coppice/internal/postgrestest"
	"github.com/coppice-dev/coppice/internal/soak"
)

// TestKillInDatabase is TestKill with the sessions in a database.
func TestKillInDatabase(t *testing.T) {
	t.Parallel()
	killAgents(t, postgrestest.URL(t), soak.N(20))
}
