//go:build unix

// Command histories lets several processes work on one store at once, kills some of them, and
// then checks from what each of them saw whether the store kept its contract.
//
//	histories [flags] DIR|URL|postgres:
//
// The store is in a directory, or in a PostgreSQL database that has the tables; "postgres:" is a
// new one, on a server that the program starts and that ends with it. Every worker
// writes down each operation before it calls the store and again after the answer, so that of a
// killed process it is known what it had begun. Two checks follow:
//
//   - Lists (lists.go): workers append entries with unique ids to logs, and read them. The
//     whole history is checked, in a time that grows with its length.
//   - Windows (windows.go): for a moment, workers do everything to one log, one lease and one
//     note: create, compare-and-swap, fork, redact. Each of these short histories is searched
//     for an order of its operations that a store without concurrency could have had.
//
// Nothing is fetched from the store to judge it but what any program could read.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/internal/postgrestest"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/postgres"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	c := plan{}
	flags := flag.NewFlagSet("histories", flag.ContinueOnError)
	flags.IntVar(&c.ops, "ops", 1_000_000, "how many operations on lists to do at least")
	flags.IntVar(&c.processes, "processes", 4, "how many processes there are at a time")
	flags.IntVar(&c.kills, "kills", 40, "how many processes to kill")
	flags.DurationVar(&c.killAfter, "kill-after", 8*time.Second, "the longest time that a process lives that is killed")
	flags.StringVar(&c.records, "records", "", "where to keep what the workers write down; a temporary directory if empty")
	self := flags.Int("process", 0, "be this process (which the program starts itself)")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return errors.New("usage: histories [flags] DIR|URL (postgres: starts a server)")
	}
	c.where = flags.Arg(0)
	if *self > 0 {
		return c.work(ctx, *self)
	}
	if c.where == "postgres:" {
		server, err := newServer(ctx)
		if err != nil {
			return err
		}
		defer server.Stop()
		c.where = server.URL(nil)
	}
	if c.records == "" {
		dir, err := os.MkdirTemp("", "histories")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		c.records = dir
	}
	h, err := c.run(ctx)
	if err != nil {
		return err
	}
	report, err := h.check()
	fmt.Fprint(out, report)
	return err
}

// newServer starts a server with an empty store. Like files, it does not wait for the disk: it
// is not killed.
func newServer(ctx context.Context) (*postgrestest.Server, error) {
	bin, err := postgrestest.Find()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("/tmp", "pgh") // the path of a socket must be short
	if err != nil {
		return nil, err
	}
	server, err := postgrestest.Start(bin, dir, "fsync=off", "full_page_writes=off")
	if err != nil {
		return nil, err
	}
	if _, err := postgres.Migrate(ctx, server.URL(nil)); err != nil {
		server.Stop()
		return nil, err
	}
	return server, nil
}

// open opens the store. Processes are killed here and not machines, so files need no sync.
func open(ctx context.Context, where string) (store.Store, error) {
	if strings.HasPrefix(where, "postgres:") {
		return postgres.Open(ctx, where, nil)
	}
	return file.Open(filepath.Clean(where), &file.Options{Sync: file.Never})
}
