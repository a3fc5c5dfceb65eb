package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/coppice-dev/coppice/bench/shapes"
)

// htmlExport measures the processor time of writing a session as a page, beside
// writing its log as it is: the same reading of the file without any of the work.
func htmlExport(b *bench) []row {
	small, large := 20_000, 50_000
	if b.quick {
		small, large = 2_000, 5_000
	}
	limit := time.Second * time.Duration(small) / 20_000
	program := b.build()
	dir, err := os.MkdirTemp("", "coppice-page-")
	check(err)
	defer os.RemoveAll(dir)
	out := filepath.Join(dir, "page")
	page := []string{"export", shapes.ID, "--format", "html", "-o", out, "--force"}
	lines := []string{"export", shapes.ID, "--format", "jsonl", "-o", out, "--force"}
	few, many := b.storeOf(shapes.Working(small)), b.storeOf(shapes.Working(large))
	times := inTurns(5,
		func() time.Duration { return run(program, few, lines) }, func() time.Duration { return run(program, few, page) },
		func() time.Duration { return run(program, many, lines) }, func() time.Duration { return run(program, many, page) })
	check(os.RemoveAll(few))
	check(os.RemoveAll(many))
	name := func(n int) string { return fmt.Sprintf("HTML page of %d messages, processor time", n) }
	growth := float64(large) / float64(small)
	return []row{
		beside(name(small), times[0], times[1], limit),
		atMost(name(large), times[2], times[3], 0),
		atMost(fmt.Sprintf("– %d beside %d messages", large, small), times[1], times[3], growth*tenfold/10),
	}
}
