package window

import (
	"math"
	"sync"
)

// learning is a Counter that corrects another one by what providers report: it
// multiplies by the ratio of reported to counted tokens. A Planner tells it what the
// responses of its conversation reported. It may be used concurrently, and for several
// conversations with one model.
//
// The ratio must depend on what was reported, not on how often it was read. So a report
// is compared with what the base counter counts, never with a corrected count, and each
// response is used once.
type learning struct {
	base Counter

	mu                sync.RWMutex // guards what follows
	reported, counted float64      // sums in which old reports fade
	seen              map[string]struct{}
}

// The effect of a single report is limited, because reports include what we cannot see
// (hidden reasoning), and short texts say little.
const (
	minReported  = 32 // tokens; smaller reports are ignored
	priorTokens  = 64 // how many tokens the base counter is trusted for before the first report
	maxSum       = 50_000
	lowestRatio  = 0.5
	highestRatio = 2.0
	// maxHeard is how many responses are remembered. Using one twice only gives it more
	// weight, so forgetting them is harmless.
	maxHeard = 20_000
)

// newLearning returns a counter that corrects another one.
func newLearning(base Counter) *learning {
	return &learning{base: base, reported: priorTokens, counted: priorTokens, seen: make(map[string]struct{})}
}

// Name returns the name of the counter that is corrected.
func (l *learning) Name() string { return l.base.Name() + "+learning" }

// Exact returns false: a correction is a guess.
func (l *learning) Exact() bool { return false }

// Ratio returns the present correction factor.
func (l *learning) Ratio() float64 {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return min(max(l.reported/l.counted, lowestRatio), highestRatio)
}

// CountText returns how many tokens a text has, by what is known so far.
func (l *learning) CountText(text string) int { return l.correct(l.base.CountText(text)) }

// correct corrects a count of the other counter.
func (l *learning) correct(counted int) int {
	return int(math.Ceil(float64(counted)*l.Ratio() - 1e-9)) // 1.3 × 10 is 13, not 14
}

// Observe learns from the report of a response: where the base counter counts counted
// tokens, the provider reported reported tokens. It ignores a response that it has seen
// before (an empty id is always new), reports of less than 32 tokens, and reports that
// differ so much that something else must have been counted.
func (l *learning) Observe(id string, reported, counted int) {
	if reported < minReported || counted < minReported {
		return
	}
	off := float64(reported) / float64(counted)
	if off < lowestRatio/highestRatio || off > highestRatio/lowestRatio {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.isNew(id) {
		return
	}
	l.reported += float64(reported)
	l.counted += float64(counted)
	if l.counted > maxSum {
		l.reported *= maxSum / l.counted
		l.counted = maxSum
	}
}

// isNew reports whether a response is new, and remembers it.
func (l *learning) isNew(id string) bool {
	if id == "" {
		return true
	}
	if _, ok := l.seen[id]; ok {
		return false
	}
	if len(l.seen) >= maxHeard {
		clear(l.seen)
	}
	l.seen[id] = struct{}{}
	return true
}
