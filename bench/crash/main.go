// Command crash does work on a store whose every step can be checked after a
// crash: of the process, of the machine, or of the disk. The work is random and
// goes through all floors: sessions, blobs, branches, archives, the trash,
// redaction, repair, keyed sessions, conversations, imports and the command line.
//
//	crash DIR MODE      does the work in DIR. After each step it prints
//	                    "acked FILE K" and waits for a line on standard input.
//	crash check DIR K   looks at DIR after a crash, K being the last step that was
//	                    acknowledged before it (-1: none). It exits with 1, and
//	                    says what is missing, if anything acknowledged is.
//	crash full DIR N    fills the disk N times while it works in DIR.
//	crash faulty DIR PID
//	                    works in DIR while a write to the disk fails. The signal
//	                    USR1 makes the process PID fail its next write.
//	crash kept DIR      looks at DIR after that, when it was mounted again.
//
// The command line is the program coppice, which must lie beside crash; COPPICE_CRASH_PROGRAM
// names another. The first two are the protocol of a block-level crash harness: a disk that logs
// each block written and each flush, from which the disk is rebuilt as a power cut
// could have left it (everything before the last flush, and some sectors of the
// rest), mounted, and checked. The harness is not part of this module.
//
// The worker writes down what each step is about to do and what the store holds
// after it, in the directory that COPPICE_CRASH_RECORD names, which must not be on
// the disk that crashes. COPPICE_CRASH_SEED chooses other steps.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	_ "github.com/coppice-dev/coppice/home/all"
)

// maxSteps is how many steps the worker does for the harness.
const maxSteps = 220

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	switch {
	case len(args) == 3 && args[0] == "check":
		step, err := strconv.Atoi(args[2])
		if err == nil {
			err = check(context.Background(), args[1], recordDir(), step)
		}
		return report(err)
	case len(args) == 3 && args[0] == "full":
		n, err := strconv.Atoi(args[2])
		if err == nil {
			err = fillDisk(context.Background(), args[1], n)
		}
		return report(err)
	case len(args) == 3 && args[0] == "faulty":
		pid, err := strconv.Atoi(args[2])
		if err == nil {
			err = failWrites(context.Background(), args[1], pid)
		}
		return report(err)
	case len(args) == 2 && args[0] == "kept":
		return report(checkKept(context.Background(), args[1]))
	case len(args) == 2:
		return report(work(context.Background(), args[0], args[1]))
	}
	fmt.Fprintln(os.Stderr, "usage: crash DIR MODE | check DIR K | full DIR N | faulty DIR PID | kept DIR")
	return 2
}

func report(err error) int {
	if err == nil {
		return 0
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}

func recordDir() string {
	if dir := os.Getenv("COPPICE_CRASH_RECORD"); dir != "" {
		return dir
	}
	return filepath.Join(os.TempDir(), "coppice-crash-record")
}

// work does steps until it has done enough, from the one after the last that is
// on record.
func work(ctx context.Context, dir, mode string) error {
	record := recordDir()
	goOn := os.Getenv("COPPICE_CRASH_GO_ON") != "" // see TestKills
	if !goOn {
		if err := os.RemoveAll(record); err != nil {
			return err
		}
	}
	w, err := newWorld(dir, mode, record)
	if err != nil {
		return err
	}
	if goOn {
		w.out = os.Stdout
	}
	in := bufio.NewReader(os.Stdin)
	for first := w.step; w.step < first+maxSteps; {
		if err := w.next(ctx); err != nil {
			return err
		}
		fmt.Println("acked", w.op, w.step-1)
		_, _ = in.ReadString('\n') // the end of input is as good as a line
	}
	return w.close()
}
