//go:build unix

// Package postgrestest runs a real PostgreSQL server for tests: one for each test program, with
// a temporary directory, a socket in it, and no network.
package postgrestest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	index "github.com/coppice-dev/coppice/index/postgres"
	"github.com/coppice-dev/coppice/internal/needs"
	"github.com/coppice-dev/coppice/store/postgres"
	"github.com/coppice-dev/coppice/store/vfs"
)

// URL returns the URL of a store without logs. It is a tenant of a schema that the tests of
// this program share: making tables takes much longer than most tests.
func URL(t testing.TB) string {
	t.Helper()
	needs.This(t, needs.PostgreSQL)
	where, err := tables()
	if err != nil {
		t.Fatalf("a PostgreSQL server for the tests: %v (scripts/deps.sh installs what is missing)", err)
	}
	return where + fmt.Sprintf("&tenant=tenant-%d", tenants.Add(1))
}

// Home returns where a new home is, for tests of what every kind of home can do: in a
// directory, or in what COPPICE_TEST_HOME says: mem: for memory, postgres: for a database.
func Home(t testing.TB) string {
	t.Helper()
	switch where := os.Getenv("COPPICE_TEST_HOME"); where {
	case "":
		return filepath.Join(t.TempDir(), "sessions")
	case "postgres:":
		return URL(t)
	default:
		return where
	}
}

var tables = sync.OnceValues(func() (string, error) {
	server, err := shared()
	if err != nil {
		return "", err
	}
	where := server.URL(url.Values{"schema": {"shared"}})
	_, err = postgres.Migrate(context.Background(), where, index.Migrate)
	return where, err
})

var tenants atomic.Int64

// Owner returns the URL of the server for its owner, who may see and change everything.
func Owner(t testing.TB) string {
	t.Helper()
	needs.This(t, needs.PostgreSQL)
	server, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	return server.URL(nil)
}

var schemas atomic.Int64

// Empty returns the URL of a schema that does not exist yet. It is dropped after the test.
func Empty(t testing.TB) string {
	t.Helper()
	needs.This(t, needs.PostgreSQL)
	server, err := shared()
	if err != nil {
		t.Fatalf("a PostgreSQL server for the tests: %v (scripts/deps.sh installs what is missing)", err)
	}
	schema := fmt.Sprintf("test_%d", schemas.Add(1))
	t.Cleanup(func() {
		if err := tell(server.URL(nil), `DROP SCHEMA IF EXISTS `+schema+` CASCADE`); err != nil {
			t.Errorf("drop the schema of the test: %v", err)
		}
	})
	return server.URL(url.Values{"schema": {schema}})
}

// shared starts the server that the tests of this program share, once.
var shared = sync.OnceValues(func() (*Server, error) {
	bin, err := Find()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("/tmp", "pg") // the path of a socket must be short
	if err != nil {
		return nil, err
	}
	return Start(bin, dir, "fsync=off", "full_page_writes=off", "max_connections=300")
})

// Find returns the directory with the programs of a server: COPPICE_TEST_POSTGRES, or the newest
// that is installed.
func Find() (string, error) {
	if bin := os.Getenv("COPPICE_TEST_POSTGRES"); bin != "" {
		return bin, nil
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if path, err := exec.LookPath("postgres"); err == nil {
		found = append(found, path)
	}
	if len(found) == 0 {
		return "", errors.New("no PostgreSQL is installed")
	}
	slices.Sort(found)
	return filepath.Dir(found[len(found)-1]), nil
}

// Server is a running server.
type Server struct {
	Dir      string   // has its data and its socket
	Env      []string // more of its environment when it is run again
	bin      string
	settings []string
	keep     *os.File // while it is open, the server runs
	pid      int
}

// Start makes a database in a directory and starts a server on it. The server ends, and the
// directory goes, with this program, however that ends.
func Start(bin, dir string, settings ...string) (*Server, error) {
	s := &Server{Dir: dir, bin: bin}
	who, err := account()
	if err == nil {
		err = own(dir)
	}
	if err != nil {
		return nil, err
	}
	data := filepath.Join(dir, "data")
	initdb := exec.Command(filepath.Join(bin, "initdb"), "-D", data, "-U", "coppice", "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C.UTF-8")
	initdb.SysProcAttr, initdb.Dir = &syscall.SysProcAttr{Credential: who}, dir
	if out, err := initdb.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w: %s", err, out)
	}
	s.settings = settings
	return s, s.Run()
}

// Run starts the server, again after Kill. What is left of one that was killed may still be in
// the way for a moment.
func (s *Server) Run() (err error) {
	for range 20 {
		if err = s.run(); err == nil {
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return err
}

func (s *Server) run() error {
	// The second shell reads how to end the server: a signal, or the end of the input, which
	// comes when this program ends.
	const script = `dir=$1; shift; exec 3<&0; "$@" >>"$dir/log" 2>&1 & pid=$!
(if read -r how <&3; then kill "-$how" $pid; else kill -INT $pid; while kill -0 $pid; do sleep 0.1; done; rm -rf "$dir"; fi) 2>/dev/null &
wait $pid`
	args := []string{"-c", script, "sh", s.Dir, filepath.Join(s.bin, "postgres"), "-D", filepath.Join(s.Dir, "data"), "-k", s.Dir, "-c", "listen_addresses="}
	for _, setting := range s.settings {
		args = append(args, "-c", setting)
	}
	in, keep, err := os.Pipe()
	if err != nil {
		return err
	}
	defer in.Close()
	who, err := account()
	if err != nil {
		return err
	}
	run := exec.Command("/bin/sh", args...)
	run.Stdin, run.Dir, run.Env = in, s.Dir, append(os.Environ(), s.Env...)
	run.SysProcAttr = &syscall.SysProcAttr{Credential: who, Setpgid: true}
	if err := run.Start(); err != nil {
		return err
	}
	s.keep, s.pid = keep, run.Process.Pid
	if err := s.await(); err != nil {
		s.Kill()
		return err
	}
	return nil
}

// Kill kills the server at once, as a crash would, and waits until it is gone.
func (s *Server) Kill() {
	_, _ = s.keep.WriteString("KILL\n")
	s.wait(0)
	_ = s.keep.Close()
}

// wait waits until the server has ended, and reports whether it has. No goroutine does that:
// tests look for those that are left.
func (s *Server) wait(options int) bool {
	for {
		pid, err := syscall.Wait4(s.pid, nil, options, nil)
		if err != syscall.EINTR {
			return pid == s.pid || err != nil
		}
	}
}

// account returns who runs the server, which refuses to be run by root.
func account() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		if u, err = user.Lookup("nobody"); err != nil {
			return nil, err
		}
	}
	uid, err := strconv.Atoi(u.Uid)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.Atoi(u.Gid)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, err
}

// await waits until the server answers.
func (s *Server) await() error {
	var err error
	for range 1000 {
		var conn *pgx.Conn
		if conn, err = pgx.Connect(context.Background(), s.URL(nil)); err == nil {
			return conn.Close(context.Background())
		}
		if s.wait(syscall.WNOHANG) {
			return fmt.Errorf("the server has ended: %w", err)
		}
		time.Sleep(20 * time.Millisecond)
	}
	text, _ := vfs.ReadFile(filepath.Join(s.Dir, "log"), vfs.SmallFile)
	return fmt.Errorf("the server does not answer: %w: %s", err, text)
}

// URL returns the URL of the server's database, with parameters.
func (s *Server) URL(params url.Values) string {
	if params == nil {
		params = url.Values{}
	}
	params.Set("host", s.Dir)
	params.Set("user", "coppice")
	return "postgres:///postgres?" + params.Encode()
}

// Stop ends the server and deletes its directory.
func (s *Server) Stop() {
	_ = s.keep.Close()
	s.wait(0)
}
