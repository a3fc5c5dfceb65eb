package main

import (
	"runtime"
	"slices"
	"time"
)

// rounds is how often a measurement is repeated.
func (b *bench) rounds(full int) int {
	if b.quick {
		return max(3, full/3)
	}
	return full
}

// inTurns runs the measurements one after the other, again and again, so that a
// change of the machine's mood meets all of them, and returns the median of each.
// The first round warms up and does not count.
func inTurns(rounds int, measure ...func() time.Duration) []time.Duration {
	all := make([][]time.Duration, len(measure))
	for round := range rounds + 1 {
		for i, m := range measure {
			if d := m(); round > 0 {
				all[i] = append(all[i], d)
			}
		}
	}
	medians := make([]time.Duration, len(measure))
	for i := range all {
		medians[i] = quantile(all[i], 0.5)
	}
	return medians
}

// each returns a measurement of the time that one of n calls takes, on average.
func each(n int, call func()) func() time.Duration {
	return func() time.Duration {
		start := time.Now()
		for range n {
			call()
		}
		return time.Since(start) / time.Duration(n)
	}
}

// once returns a measurement of a single call. Garbage of what came before is
// collected first.
func once(call func()) func() time.Duration {
	return func() time.Duration {
		runtime.GC()
		start := time.Now()
		call()
		return time.Since(start)
	}
}

// busy returns a measurement of the processor time of a single call. This is
// roughly how fast a call would be if nothing else used the machine.
func busy(call func()) func() time.Duration {
	return func() time.Duration {
		runtime.GC()
		start := processorTime()
		call()
		return processorTime() - start
	}
}

// both measures a single call twice: took makes the call, and busy, which comes later in
// each round, returns the processor time of that call.
func both(call func()) (took, busy func() time.Duration) {
	var processor time.Duration
	took = once(func() {
		start := processorTime()
		call()
		processor = processorTime() - start
	})
	return took, func() time.Duration { return processor }
}

// quantile returns the value below which a share of the durations lies. It sorts
// them.
func quantile(all []time.Duration, share float64) time.Duration {
	slices.Sort(all)
	return all[min(len(all)-1, int(share*float64(len(all))))]
}
