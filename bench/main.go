// Command bench measures what Coppice costs beside what the same work costs
// without it, and prints one table:
//
//	go run ./bench [-quick] [-only words] [-sessions n] [-dir directory]
//
// Each row is measured against its raw limit in the same run, in turns, several
// times over; medians are printed. Absolute times differ from machine to machine
// and from hour to hour; the ratios are what counts, and what the goals are set
// for.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	_ "github.com/coppice-dev/coppice/home/all"
)

// work is one thing to measure; it may give several rows.
type work struct {
	name string
	run  func(*bench) []row
}

var works = []work{
	{"durable append", durableAppend},
	{"append without sync", plainAppend},
	{"append to long sessions", flatAppend},
	{"many sessions", manySessions},
	{"group commit", groupCommit},
	{"resume", resume},
	{"resume without a state", resumeForeign},
	{"full load", fullLoad},
	{"branch", branch},
	{"fork", fork},
	{"first context", firstContext},
	{"context again", contextAgain},
	{"context memory", contextMemory},
	{"html export", htmlExport},
	{"import small", importSmall},
	{"import large", importLarge},
	{"copy", copyFiles},
	{"index messages", indexing},
	{"growth: large output", growthOfOutput},
	{"agent", agentLoop},
	{"agent in long conversations", longConversations},
}

// noFile is the default of -ask; an empty name asks for nothing.
const noFile = "-"

// bench is one run.
type bench struct {
	dir   string // for all files; deleted at the end
	quick bool
	dirs  int

	sessions int // how many a database of the scale work has

	program string // see build

	messages int    // in the index of a database
	database string // that has it; "": a new one
}

func main() {
	quick := flag.Bool("quick", false, "smaller files and fewer rounds: less than a minute")
	only := flag.String("only", "", "measure only the works whose name contains this")
	ask := flag.String("ask", noFile, "ask for the context of a session file and end; for the measurement of memory")
	peak := flag.Bool("peak", false, "run the command that follows and print how much memory it had; for the measurement of memory")
	sessions := flag.Int("sessions", 2000, "how many sessions the database of the work scale has")
	dir := flag.String("dir", "", "where to put the files; they are deleted (default: the system's temporary directory)")
	messages := flag.Int("messages", 100_000, "how many messages the index of a database has")
	database := flag.String("database", "", "the URL of an own database for its index, with the directory of its socket as host; it stays, and so does what it has (default: a new one)")
	flag.Parse()
	switch {
	case *peak:
		tellPeak(flag.Args())
		return
	case *ask == "":
		return
	case *ask != noFile:
		firstOf(*ask, viewContext)
		return
	}
	tmp, err := os.MkdirTemp(*dir, "coppice-bench-")
	check(err)
	defer os.RemoveAll(tmp)
	if !measure(os.Stdout, &bench{dir: tmp, quick: *quick, sessions: *sessions, messages: *messages, database: *database}, slices.Concat(works, databases(), growths()), *only) {
		os.RemoveAll(tmp)
		os.Exit(1)
	}
}

// measure measures the works whose name contains a word and writes the rows of each as
// soon as it has them. If one fails, it says so, and the others still run.
func measure(out io.Writer, b *bench, works []work, only string) (ok bool) {
	ok = true
	printHead(out)
	for _, w := range works {
		if !strings.Contains(w.name, only) {
			continue
		}
		rows, err := w.measure(b)
		for _, r := range rows {
			printRow(out, r)
		}
		if err != nil {
			ok = false
			printRow(out, row{work: w.name, goal: "failed"})
			fmt.Fprintf(os.Stderr, "bench: %s: %v\n", w.name, err)
		}
	}
	return ok
}

func (w work) measure(b *bench) (rows []row, err error) {
	defer func() {
		if r := recover(); r != nil { // see check
			err = fmt.Errorf("%v", r)
		}
	}()
	start := time.Now()
	rows = w.run(b)
	fmt.Fprintf(os.Stderr, "%s: %.1f s\n", w.name, time.Since(start).Seconds())
	return rows, nil
}

// check ends a work: a benchmark has no other use for an error.
func check(err error) {
	if err != nil {
		panic(err)
	}
}
