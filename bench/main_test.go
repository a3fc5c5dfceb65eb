package main

import (
	"errors"
	"strings"
	"testing"
)

func TestAWorkThatFailsLeavesTheOthers(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	ok := measure(&out, &bench{}, []work{
		{"first", func(*bench) []row { return []row{{work: "one", ours: "1 s"}} }},
		{"second", func(*bench) []row { check(errors.New("too large")); return nil }},
		{"third", func(*bench) []row { return []row{{work: "three", goal: "≤ 2 s", met: true}} }},
	}, "")
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if ok || len(lines) != 5 || !strings.Contains(lines[2], "one") || !strings.Contains(lines[3], "failed") || !strings.Contains(lines[4], "met") {
		t.Errorf("%v\n%s", ok, out.String())
	}
}
