//go:build unix

package postgres_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/internal/postgrestest"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/storetest"
)

// The whole contract holds behind PgBouncer in transaction mode, which gives each transaction
// another connection, and so knows no prepared statements and passes on no notifications.
func TestBehindPgBouncer(t *testing.T) {
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		program = "/usr/sbin/pgbouncer" // which is not in everybody's PATH
	}
	server := hostOf(t, postgrestest.URL(t))
	dir, err := os.MkdirTemp("/tmp", "pgb")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	config := fmt.Sprintf(`[databases]
postgres = host=%s user=coppice
[pgbouncer]
listen_addr =
unix_socket_dir = %s
listen_port = 5432
auth_type = any
pool_mode = transaction
default_pool_size = 20
max_client_conn = 500
ignore_startup_parameters = statement_timeout, lock_timeout, idle_in_transaction_session_timeout
logfile = %s/log
`, server, dir, dir)
	path := filepath.Join(dir, "pgbouncer.ini")
	if err := os.WriteFile(path, []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	args := []string{path}
	if os.Geteuid() == 0 {
		if err := os.Chmod(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		args = []string{"-u", "postgres", path} // as whom the server runs
	}
	bouncer := exec.Command(program, args...)
	if err := bouncer.Start(); err != nil {
		t.Fatalf("%v (scripts/deps.sh installs what is missing)", err)
	}
	t.Cleanup(func() {
		_ = bouncer.Process.Kill()
		_ = bouncer.Wait()
	})
	for range 200 {
		conn, err := net.Dial("unix", filepath.Join(dir, socket))
		if err == nil {
			conn.Close()
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	storetest.Run(t, func(t *testing.T) store.Store {
		where := with(t, postgrestest.URL(t), "host", dir, "default_query_exec_mode", "exec", "user", "coppice", "sslmode", "disable")
		return mustOpen(t, where, nil)
	})
}
