package main

import (
	"errors"
	"strings"
	"testing"
	"time"
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

// What an append may cost on top of its sync depends on what the sync costs.
func TestGoalOfADurableAppend(t *testing.T) {
	for _, c := range []struct {
		raw, ours time.Duration
		met       bool
	}{
		{50 * time.Microsecond, 65 * time.Microsecond, true},
		{50 * time.Microsecond, 66 * time.Microsecond, false},
		{200 * time.Microsecond, 240 * time.Microsecond, true},
		{200 * time.Microsecond, 241 * time.Microsecond, false},
	} {
		if r := durable("", c.raw, c.ours); r.met != c.met || r.goal == "" {
			t.Errorf("%v beside %v: %+v", c.ours, c.raw, r)
		}
	}
}
