package window

import (
	"math"
	"sync"
)

// Learning is a Counter that corrects another by what providers report: it
// multiplies by a moving average of reported to counted tokens. It may be used
// concurrently.
type Learning struct {
	base Counter

	mu    sync.RWMutex // guards ratio
	ratio float64
}

var _ Observer = (*Learning)(nil)

// What a single report can do is bounded: reports include what we do not see
// (schemas of tools, hidden reasoning), and short texts say little.
const (
	learnWeight  = 0.2 // of the newest report
	minReported  = 32  // tokens; below, a report is not listened to
	lowestRatio  = 0.5
	highestRatio = 2.0
)

// NewLearning returns a counter that corrects another one.
func NewLearning(base Counter) *Learning { return &Learning{base: base, ratio: 1} }

// Name returns the name of the counter that is corrected.
func (l *Learning) Name() string { return l.base.Name() + "+learning" }

// Ratio returns by what the counts are multiplied now.
func (l *Learning) Ratio() float64 {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.ratio
}

// CountText returns how many tokens a text has, as far as is known by now.
func (l *Learning) CountText(text string) int {
	return int(math.Ceil(float64(l.base.CountText(text)) * l.Ratio()))
}

// Observe learns from a report. Reports of less than 32 tokens, and ones that
// differ so much that something else must have been counted, are passed over.
func (l *Learning) Observe(reported, counted int) {
	if reported < minReported || counted < minReported {
		return
	}
	off := float64(reported) / float64(counted)
	if off < lowestRatio/highestRatio || off > highestRatio/lowestRatio {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	seen := l.ratio * off // counted had the ratio in it
	l.ratio += learnWeight * (seen - l.ratio)
	l.ratio = min(max(l.ratio, lowestRatio), highestRatio)
}
