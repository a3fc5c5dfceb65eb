package upkeep

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/internal/soak"
	"github.com/coppice-dev/coppice/store"
)

// The entry that is saved from a damaged line is the first with which the line can
// be read to its end.
func TestGluedEntryIsTheFirstThatReadsToTheEnd(t *testing.T) {
	t.Parallel()
	pieces := []string{
		`{"type":`, `"message"`, `,"id":"a"`, `,"id":""`, `}`, `{"type":"message","id":"b"}`, `{"type":"tool_use","id":"c"}`,
		`"text":"`, `"`, `,`, `[`, `]`, `\`, `{"x":`, `{"type":"session","id":"s"}`, ` `, `null`,
	}
	r := soak.Rand(t)
	for range soak.N(500) {
		var b strings.Builder
		for range 1 + r.IntN(12) {
			b.WriteString(pieces[r.IntN(len(pieces))])
		}
		data := bytes.TrimSpace([]byte(b.String()))
		want := 0
		for at := 1; at < len(data) && want == 0; at++ {
			if isEntry(data[at:]) {
				want = at
			}
		}
		if got := gluedEntry(data); got != want {
			t.Fatalf("%s: found at %d, want %d", data, got, want)
		}
	}
}

// What a damaged line of many blocks costs is in proportion to its length.
func TestDamagedLineOfManyBlocks(t *testing.T) {
	t.Parallel()
	for _, block := range []string{`{"type":`, `{"type":[`, `{"type":"a","b":[`, `{"type":"a"},`, `{"type":"\"`} {
		line := store.RawLine{Line: store.Line{Data: []byte(strings.Repeat(block, 512<<10/len(block)))}}
		if got := classify(line); len(got) != 1 || got[0].class != lineDamaged {
			t.Errorf("%s, many times: %d lines", block, len(got))
		}
	}
}

// Gaps that hang on gaps are filled from the first on; where they go round in a
// circle, one of them becomes a root.
func TestManyGapsAreFilled(t *testing.T) {
	t.Parallel()
	const n = 50_000
	for name, first := range map[string]string{"chain": "", "circle": fmt.Sprint("g", n-1)} {
		p := &repairPlan{
			gaps: map[string]string{"g0": first}, filled: make(map[string]bool), present: make(map[string]int), cut: make(map[int]bool),
		}
		for i := 1; i < n; i++ {
			p.gaps[fmt.Sprint("g", i)] = fmt.Sprint("g", i-1)
		}
		p.findCircles()
		for i := range n {
			p.fillGap(fmt.Sprint("g", i), &rawLine{})
		}
		roots := 0
		for _, parent := range p.gaps {
			if parent == "" {
				roots++
			}
		}
		if len(p.pieces) != n || roots != 1 {
			t.Errorf("%s: %d placeholders and %d roots, want %d and 1", name, len(p.pieces), roots, n)
		}
	}
}
