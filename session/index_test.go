package session

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestIDIndex compares the index with a map, for ids that rise, that do not, that
// do for a while, and that come twice.
func TestIDIndex(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for name, id := range map[string]func(i int) string{
		"rising":  func(i int) string { return fmt.Sprintf("%08d", i) },
		"falling": func(i int) string { return fmt.Sprintf("%08d", 1e6-i) },
		"random":  func(int) string { return fmt.Sprintf("%08x", rng.Uint32()) },
		"twice":   func(i int) string { return fmt.Sprintf("%08d", i/2) },
		"few":     func(int) string { return fmt.Sprint(rng.IntN(300)) },
		"stumbles": func(i int) string {
			if i == 500 {
				return "00000000-"
			}
			return fmt.Sprintf("%08d", i)
		},
	} {
		t.Run(name, func(t *testing.T) {
			var x idIndex
			var nodes []node
			want := make(map[string]int32)
			for i := range 3000 {
				id := id(i)
				nodes = append(nodes, node{id: id})
				other, ok := x.add(nodes)
				if first, known := want[id]; known {
					if ok || other != first {
						t.Fatalf("add(%q) again = %d, %v, want %d", id, other, ok, first)
					}
					nodes = nodes[:len(nodes)-1]
					continue
				}
				if !ok {
					t.Fatalf("add(%q) = %d, but it is new", id, other)
				}
				want[id] = int32(len(nodes) - 1)
			}
			for id, at := range want {
				if got, ok := x.find(nodes, id); !ok || got != at {
					t.Fatalf("find(%q) = %d, %v, want %d", id, got, ok, at)
				}
			}
			for _, id := range []string{"", "-", "zzz", "00000000x"} {
				if at, ok := x.find(nodes, id); ok {
					t.Errorf("find(%q) = %d, but it is not there", id, at)
				}
			}
		})
	}
}

// TestIDArena: the ids stay what they were when more are added.
func TestIDArena(t *testing.T) {
	var a arena
	var got []string
	id := func(i int) string { return fmt.Sprintf("%0*d", 1+i%90, i) }
	for i := range 10_000 {
		got = append(got, a.keep([]byte(id(i))))
	}
	for i := range got {
		if got[i] != id(i) {
			t.Fatalf("id %d became %q", i, got[i])
		}
	}
	long := make([]byte, 3*maxPiece)
	if a.keep(long) != string(long) {
		t.Error("an id longer than a piece was changed")
	}
}
