//go:build unix

package postgres_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/internal/postgrestest"
	"github.com/coppice-dev/coppice/internal/soak"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/postgres"
	"github.com/coppice-dev/coppice/store/storetest"
)

const readerEnv = "COPPICE_POSTGRES_READER"

// TestMain is a program that reads a log for the processes that tests start.
func TestMain(m *testing.M) {
	if where := os.Getenv(readerEnv); where != "" {
		read(where)
		return
	}
	os.Exit(m.Run())
}

// read reads the log a, says so after each line, and what came of it.
func read(where string) {
	s, err := postgres.Open(context.Background(), where, nil)
	if err != nil {
		fmt.Println("open:", err)
		return
	}
	defer s.Close()
	log, err := s.Open(context.Background(), "a")
	if err != nil {
		fmt.Println("open:", err)
		return
	}
	n := 0
	for line, err := range log.Forward(context.Background(), 0) {
		if err != nil {
			fmt.Println("error", err)
			return
		}
		if !bytes.Equal(line.Data, longLine(n)) {
			fmt.Printf("line %d is %.20s\n", n, line.Data)
			return
		}
		n++
		fmt.Println("read", n)
	}
	fmt.Println("end", n)
}

func longLine(n int) []byte {
	return fmt.Appendf(nil, `{"n":%d,"text":"%s"}`, n, strings.Repeat(fmt.Sprint(n%10), 200<<10))
}

// A process that reads is stopped for longer than every timeout of the server, in the middle of
// what the server sends. It keeps nobody from writing, redacting and cleaning up, and when it
// goes on it gets all lines, or an error.
//
//	COPPICE_SOAK=40 go test ./store/postgres -run TestPausedReader -v
func TestPausedReader(t *testing.T) {
	t.Parallel()
	const lines = 60
	complete, clear := fmt.Sprintf("end %d", lines+1), `error read "a": unavailable: `
	for name, c := range map[string]struct {
		meanwhile func(t *testing.T, s *postgres.Store, user string)
		want      []string
	}{
		"others append": {func(*testing.T, *postgres.Store, string) {}, []string{complete, clear}},
		"the connection is ended": {func(t *testing.T, _ *postgres.Store, user string) {
			postgrestest.Exec(t, postgrestest.Owner(t), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1`, user)
		}, []string{complete, clear}},
		"another redacts": {func(t *testing.T, s *postgres.Store, _ string) {
			part := store.Part{Kind: store.PartLog, Name: "a", Place: s.Parts().Where(store.PartLog, "a")}
			if err := s.Parts().Edit(t.Context(), part, func([]byte) ([]byte, error) { return []byte(`{}`), nil }); err != nil {
				t.Error(err)
			}
			postgrestest.Exec(t, postgrestest.Owner(t), `VACUUM shared.lines`)
		}, []string{`error read "a": replaced`, clear}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			where := postgrestest.URL(t)
			s := mustOpen(t, where, nil)
			var all [][]byte
			for n := range lines {
				all = append(all, longLine(n))
			}
			log, err := s.Create(t.Context(), "a", store.Lines(all...))
			if err != nil {
				t.Fatal(err)
			}
			user := "reader-" + postgrestest.Param(t, where, "tenant")
			reader := exec.Command(os.Args[0])
			reader.Env = append(os.Environ(), readerEnv+"="+postgrestest.With(t, where, "application_name", user, "statement_timeout", "500", "idle_in_transaction_session_timeout", "500"))
			out, err := reader.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := reader.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() { _, _ = reader.Process.Kill(), reader.Wait() }()
			last := ""
			for in := bufio.NewScanner(out); in.Scan(); {
				if last = in.Text(); last != "read 10" {
					continue
				}
				if err := reader.Process.Signal(syscall.SIGSTOP); err != nil {
					t.Fatal(err)
				}
				storetest.MustAppend(t, log, string(longLine(lines)))
				time.Sleep(soak.For(time.Second))
				c.meanwhile(t, s, user)
				if err := reader.Process.Signal(syscall.SIGCONT); err != nil {
					t.Fatal(err)
				}
			}
			t.Log(last)
			if !slices.ContainsFunc(c.want, func(want string) bool { return strings.HasPrefix(last, want) }) {
				t.Errorf("the reader ends with %q, want %q", last, c.want)
			}
		})
	}
}
