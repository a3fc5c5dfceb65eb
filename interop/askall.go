package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"text/tabwriter"
	"time"
)

const (
	// exitNoLoopback is the exit code of a process that has a network of its own and
	// cannot use it.
	exitNoLoopback = 77
	// maxEnd is how long programs have to end when the run is interrupted.
	maxEnd = 20 * time.Second
	// abreast is how many programs are asked at once. They mostly wait for themselves.
	abreast = 2
)

var errWrong = errors.New("answers were wrong")

// askAll asks all programs, and prints what they answered.
func askAll(ctx context.Context) error {
	p, err := readPlan()
	if err != nil {
		return err
	}
	if p.Alone {
		if err := raiseLoopback(); err != nil {
			fmt.Fprintln(os.Stderr, "interop: loopback:", err)
			os.Exit(exitNoLoopback)
		}
	}
	for name, version := range p.Newest {
		programNamed(name).version = version
	}
	only := regexp.MustCompile(p.Run)
	rows := make([][]row, len(visits))
	var all sync.WaitGroup
	free := make(chan struct{}, abreast)
	for i, v := range visits {
		if !only.MatchString(v.program) {
			continue
		}
		all.Go(func() {
			free <- struct{}{}
			defer func() { <-free }()
			rows[i] = p.visit(ctx, i)
		})
	}
	all.Wait()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return report(os.Stdout, rows)
}

// visit gives a program a machine, and asks it.
func (p *plan) visit(ctx context.Context, i int) []row {
	v := visits[i]
	one := programNamed(v.program)
	for _, needed := range programs {
		if why := p.Missing[needed.name]; why != "" && v.needs(needed.name) {
			return []row{{Program: one.name, Version: one.version, Asked: "nothing", Outcome: notAsked, Why: needed.name + ": " + why}}
		}
	}
	dir := filepath.Join(p.Dir, fmt.Sprintf("%02d-%s", i, v.program))
	g := &guest{program: one}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return g.broken(err)
	}
	m, err := newMachine(ctx, p.Cache, dir)
	if err != nil {
		return g.broken(err)
	}
	defer m.close()
	g.machine = m
	v.run(g)
	g.save("other-requests.txt", []byte(strings.Join(m.model.others, "\n")))
	return g.rows
}

func (g *guest) broken(err error) []row {
	g.ask("gets a machine", func() error { return err })
	return g.rows
}

// report prints what went wrong, then everything as a table, then the counts.
func report(w io.Writer, visits [][]row) error {
	count := make(map[outcome]int)
	var rows []row
	unasked := make(map[string]bool)
	for _, v := range visits {
		for _, r := range v {
			if r.Outcome == notAsked && unasked[r.Program] {
				continue // two visits, one reason
			}
			unasked[r.Program] = r.Outcome == notAsked
			count[r.Outcome]++
			rows = append(rows, r)
		}
	}
	for _, r := range rows {
		if r.Outcome == failed {
			fmt.Fprintf(w, "%s %s: %s:\n    %s\n", r.Program, r.Version, r.Asked, strings.ReplaceAll(r.Why, "\n", "\n    "))
		}
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "program\tversion\tasked\toutcome\tseconds")
	for _, r := range rows {
		said := string(r.Outcome)
		if r.Outcome == notAsked {
			said += ": " + r.Why
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%.1f\n", r.Program, r.Version, r.Asked, said, r.Seconds)
	}
	t.Flush()
	fmt.Fprintf(w, "%d passed, %d failed, %d not asked\n", count[passed], count[failed], count[notAsked])
	if count[failed] > 0 {
		return errWrong
	}
	return nil
}
