package postgres_test

import (
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/postgres"
)

// A pooler that does not take the settings of a connection says so, and the error says what to set
// there: trying again would not help, and the server does run.
func TestSettingsThatAPoolerRefuses(t *testing.T) {
	t.Parallel()
	pooler, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer pooler.Close()
	var asked atomic.Int32
	go func() {
		for {
			conn, err := pooler.Accept()
			if err != nil {
				return
			}
			asked.Add(1)
			server := pgproto3.NewBackend(conn, conn)
			_, err = server.ReceiveStartupMessage()
			server.Send(&pgproto3.ErrorResponse{Severity: "FATAL", Code: "08P01", Message: "unsupported startup parameter: statement_timeout"})
			_ = errors.Join(err, server.Flush())
			_, _ = io.Copy(io.Discard, conn)
			conn.Close()
		}
	}()
	_, err = postgres.Open(t.Context(), "postgres://u@"+pooler.Addr().String()+"/db?sslmode=disable", nil)
	e, ok := errors.AsType[*store.Error](err)
	if !ok || errors.Is(err, store.ErrUnavailable) || !strings.Contains(e.Hint, "ignore_startup_parameters") || !strings.Contains(e.Hint, "lock_timeout") {
		t.Errorf("%v, want an error that says what to set", err)
	}
	if n := asked.Load(); n > 2 {
		t.Errorf("it was asked %d times", n)
	}
}
