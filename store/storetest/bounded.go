package storetest

import (
	"runtime"
	"testing"
	"time"
)

// boundedTime is how long what Bounded calls may take, on a busy machine.
const boundedTime = time.Minute

// Bounded calls f and fails the test if f allocates more bytes than that in total,
// including those it frees, or takes very long. It is for fuzz targets: the cost of
// foreign bytes must be in proportion to them.
func Bounded(t testing.TB, bytes int64, f func()) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	f()
	took := time.Since(start)
	runtime.ReadMemStats(&after)
	if used := int64(after.TotalAlloc - before.TotalAlloc); used > bytes {
		t.Errorf("it allocated %d bytes, the limit is %d", used, bytes)
	}
	if took > boundedTime {
		t.Errorf("it took %v", took)
	}
}
