//go:build unix

package postgrestest

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/internal/needs"
)

// Bouncer starts a PgBouncer in transaction mode before the shared server, until the test ends,
// and returns the host that it listens on. A URL for it needs the parameters
// default_query_exec_mode=exec and sslmode=disable.
func Bouncer(t testing.TB) (host string) {
	t.Helper()
	needs.This(t, needs.PgBouncer)
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		program = "/usr/sbin/pgbouncer" // which is not in everybody's PATH
	}
	server, err := shared()
	if err != nil {
		t.Fatal(err)
	}
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
`, server.Dir, dir, dir)
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
		conn, err := net.Dial("unix", filepath.Join(dir, ".s.PGSQL.5432"))
		if err == nil {
			conn.Close()
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	return dir
}
