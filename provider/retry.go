package provider

import (
	"errors"
	"math/rand/v2"
	"time"
)

// Retries says how often a request that failed is sent again, and when. The zero value is
// the usual.
type Retries struct {
	// Most is how often it is sent again. Default: 4; -1 is never.
	Most int
	// First is the wait before the first retry; each further one waits twice as long, up
	// to 30 s. Default: 500 ms.
	First time.Duration
	// Longest is the longest wait that a provider may ask for; if it asks for more, the
	// request fails. Default: 1 min. Negative: any.
	Longest time.Duration
}

const (
	defaultRetries = 4
	defaultWait    = 500 * time.Millisecond
	defaultLongest = time.Minute
	maxWait        = 30 * time.Second // unless the provider asks for more
)

// After reports whether a request is sent again after so many attempts, the last of which
// failed with err, and how long to wait before. The wait is never shorter than the
// provider asks for. It varies by a quarter, so that clients that failed together do not
// all come back at once.
func (r Retries) After(err error, attempts int) (wait time.Duration, again bool) {
	if r.Most == 0 {
		r.Most = defaultRetries
	}
	if r.First == 0 {
		r.First = defaultWait
	}
	if r.Longest == 0 {
		r.Longest = defaultLongest
	}
	var known *Error
	if attempts > r.Most || !errors.As(err, &known) || !known.Temporary() || r.Longest > 0 && known.RetryAfter > r.Longest {
		return 0, false
	}
	wait = min(maxWait, max(0, r.First)<<min(attempts-1, 10))
	wait += time.Duration((rand.Float64() - 0.5) * float64(wait) / 2)
	return max(wait, known.RetryAfter), true
}
