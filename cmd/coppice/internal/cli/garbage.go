package cli

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
)

const (
	// enoughGarbage is how much garbage is worth waiting for before it is collected.
	enoughGarbage = 48 << 20
	// muchGarbage is how much there may be if that is less than half of what is in use.
	muchGarbage = 128 << 20
	// The garbage in percent of what is in use. Most commands end before memory
	// matters, and those that read many small things spend a quarter of their time on
	// garbage at Go's default, 100. A command that has something large in memory makes
	// copies of it, and the more of them are garbage the fewer can be in use.
	mostGarbage, fairGarbage, leastGarbage = 200, 50, 25
	// A program that is open all day has little: it waits for keys most of the time, in which
	// collecting costs nobody anything.
	littleGarbage, littlePercent = 16 << 20, 10
)

// boundGarbage lets the program have much garbage while it uses little memory, and
// little when it uses much. Go itself only knows the same share for both. isOpenAllDay may change while
// the program runs.
func boundGarbage(isOpenAllDay *atomic.Bool) {
	debug.SetGCPercent(mostGarbage)
	afterEachCollection(func() {
		live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		metrics.Read(live)
		debug.SetGCPercent(garbageFor(live[0].Value.Uint64(), isOpenAllDay.Load()))
	})
}

// garbageFor returns how much garbage there may be, in percent of what is in use.
func garbageFor(live uint64, isOpenAllDay bool) int {
	live = max(live, 1)
	if isOpenAllDay {
		return int(min(mostGarbage, max(littlePercent, 100*littleGarbage/live)))
	}
	percent := max(fairGarbage, 100*enoughGarbage/live)
	return int(min(mostGarbage, percent, max(leastGarbage, 100*muchGarbage/live)))
}

// afterEachCollection has a function called after each garbage collection from now on.
func afterEachCollection(do func()) {
	runtime.SetFinalizer(new([16]byte), func(*[16]byte) {
		do()
		afterEachCollection(do)
	})
}
