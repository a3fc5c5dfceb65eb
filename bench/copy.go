package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/coppice-dev/coppice/home"
)

// copyGoal is how many bytes of sessions a copy should read in a second.
const copyGoal = 200e6

// copyFiles copies a home in files to another, twice: the second time everything is there, and is
// compared. The raw limit reads the same files.
func copyFiles(b *bench) []row {
	files := b.homeToCopy()
	return b.copyHome("copy files to files", files, files, func() string { return filepath.Join(b.newDir(), "sessions") })
}

// homeToCopy makes a home with sessions of several sizes.
func (b *bench) homeToCopy() string {
	large, small := 40, 400
	if b.quick {
		large, small = 4, 100
	}
	from, dir := b.newDir(), b.newDir()
	for i := range large + small {
		messages := 10
		if i < large {
			messages = 1000
		}
		check(os.WriteFile(filepath.Join(from, fmt.Sprintf("%08d.jsonl", i)), transcriptOf(i, messages, 4000), 0o600))
	}
	importOnly(dir, from)
	return filepath.Join(dir, "sessions")
}

// copyHome measures a copy to a new home, and again to that one, beside reading files with the
// same sessions.
func (b *bench) copyHome(what, files, from string, newHome func() string) []row {
	var size int64
	var to string
	copied := func() int64 {
		did, err := home.Copy(context.Background(), home.CopyRequest{From: from, To: to}, nil)
		check(err)
		return did.Read
	}
	raw, rawBusy := both(func() { readAll(files) })
	first, firstBusy := both(func() { to = newHome(); size = copied() })
	again, againBusy := both(func() { copied() })
	t := inTurns(b.rounds(3), raw, first, again, rawBusy, firstBusy, againBusy)
	limit := time.Duration(float64(size) / copyGoal * float64(time.Second))
	rate := func(d time.Duration) float64 { return float64(size) / 1e6 / d.Seconds() }
	return []row{
		beside(fmt.Sprintf("%s, %d MB (%.0f MB/s)", what, size/1e6, rate(t[1])), t[0], t[1], limit),
		atMost("– processor time", t[3], t[4], 0),
		beside(fmt.Sprintf("– again, comparing everything (%.0f MB/s)", rate(t[2])), t[0], t[2], limit),
		atMost("– processor time", t[3], t[5], 0),
	}
}

// readAll reads the sessions of a home in files.
func readAll(dir string) {
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	check(err)
	for _, path := range files {
		f, err := os.Open(path)
		check(err)
		_, err = io.Copy(struct{ io.Writer }{io.Discard}, f)
		check(err)
		check(f.Close())
	}
}
