//go:build unix

package postgrestest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
)

// With returns a URL with other parameters, which are given as names and values; "" removes one.
func With(t testing.TB, where string, params ...string) string {
	t.Helper()
	u, err := url.Parse(where)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	for i := 0; i < len(params); i += 2 {
		if q.Set(params[i], params[i+1]); params[i+1] == "" {
			q.Del(params[i])
		}
	}
	u.RawQuery = q.Encode()
	return u.String()
}

// Param returns a parameter of a URL.
func Param(t testing.TB, where, name string) string {
	t.Helper()
	u, err := url.Parse(where)
	if err != nil {
		t.Fatal(err)
	}
	return u.Query().Get(name)
}

// Exec runs a statement on the server at a URL, or several if there are no arguments.
func Exec(t testing.TB, where, statement string, args ...any) {
	t.Helper()
	if err := tell(where, statement, args...); err != nil {
		t.Fatal(err)
	}
}

func tell(where, statement string, args ...any) error {
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, where)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, statement, args...)
	return errors.Join(err, conn.Close(ctx))
}

var roles atomic.Int64

// Role makes a role that may read a tenant of the store at a URL, and write it if writes is
// true. It is dropped after the test.
func Role(t testing.TB, where, tenant string, writes bool) string {
	t.Helper()
	role, owner := fmt.Sprintf("role_%d", roles.Add(1)), Owner(t)
	Exec(t, owner, fmt.Sprintf(`CREATE ROLE %s LOGIN; SELECT %s.admit('%s', '%s', %t)`, role, Param(t, where, "schema"), role, tenant, writes))
	t.Cleanup(func() {
		if err := tell(owner, fmt.Sprintf(`DROP OWNED BY %s; DROP ROLE %s`, role, role)); err != nil {
			t.Error(err)
		}
	})
	return role
}
