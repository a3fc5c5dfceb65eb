//go:build unix

package postgrestest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5"
)

// Standby makes a server in a directory that follows this one, and starts it. It begins with a
// copy of the files, taken as pg_basebackup does; not every package of PostgreSQL has that. Give
// the server that is followed a wal_keep_size.
func (s *Server) Standby(dir string) (*Server, error) {
	if err := own(dir); err != nil {
		return nil, err
	}
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, s.URL(nil))
	if err != nil {
		return nil, err
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, `SELECT pg_backup_start('standby', true)`); err != nil {
		return nil, err
	}
	// What vanishes meanwhile is not needed: the log of the server has it.
	const copied = `rm -rf "$2"/data; cp -a "$1"/data "$2"/data 2>/dev/null || true
rm -rf "$2"/data/postmaster.pid "$2"/data/pg_wal/* "$2"/data/postgresql.auto.conf`
	if err := s.shell(copied, "", s.Dir, dir); err != nil {
		return nil, err
	}
	var label string
	if err := conn.QueryRow(ctx, `SELECT labelfile FROM pg_backup_stop(false)`).Scan(&label); err != nil {
		return nil, err
	}
	const follows = `cd "$2"/data; mkdir -p pg_wal/archive_status; cat >backup_label; : >standby.signal
echo "primary_conninfo = 'host=$1 user=coppice'" >postgresql.auto.conf`
	if err := s.shell(follows, label, s.Dir, dir); err != nil {
		return nil, err
	}
	standby := &Server{Dir: dir, bin: s.bin, settings: s.settings}
	return standby, standby.Run()
}

// shell runs a script as who runs the server.
func (s *Server) shell(script, input string, args ...string) error {
	who, err := account()
	if err != nil {
		return err
	}
	cmd := exec.Command("/bin/sh", append([]string{"-ec", script, "sh"}, args...)...)
	cmd.Dir, cmd.Stdin, cmd.SysProcAttr = filepath.Dir(s.Dir), strings.NewReader(input), &syscall.SysProcAttr{Credential: who}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// own gives a directory to who runs the server.
func own(dir string) error {
	who, err := account()
	if who == nil || err != nil {
		return err
	}
	return os.Chown(dir, int(who.Uid), int(who.Gid))
}
