package session_test

import (
	"errors"
	"testing"

	"github.com/coppice-dev/coppice/session"
)

func TestCheckRoleTakesTheFourRolesOfAConversation(t *testing.T) {
	t.Parallel()
	for _, role := range []string{"user", "assistant", "system", "tool"} {
		if err := session.CheckRole(role); err != nil {
			t.Errorf("%q: %v", role, err)
		}
	}
	for _, role := range []string{"", "User", "function", "bashExecution", "custom"} {
		if err := session.CheckRole(role); !errors.Is(err, session.ErrInvalid) {
			t.Errorf("%q: %v, want ErrInvalid", role, err)
		}
	}
}
