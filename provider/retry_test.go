package provider_test

import (
	"context"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/provider"
)

// TestRetries: what may help is tried again, so often and no earlier than the provider says.
func TestRetries(t *testing.T) {
	t.Parallel()
	busy := func(after time.Duration) error {
		return &provider.Error{Kind: provider.ErrLimited, Provider: "p", RetryAfter: after}
	}
	for name, tt := range map[string]struct {
		r             provider.Retries
		err           error
		attempts      int
		again         bool
		least, atMost time.Duration
	}{
		"first":              {provider.Retries{}, busy(0), 1, true, 375 * time.Millisecond, 625 * time.Millisecond},
		"fourth":             {provider.Retries{}, busy(0), 4, true, 3 * time.Second, 5 * time.Second},
		"fifth":              {provider.Retries{}, busy(0), 5, false, 0, 0},
		"never":              {provider.Retries{Most: -1}, busy(0), 1, false, 0, 0},
		"the hundredth":      {provider.Retries{Most: 100}, busy(0), 100, true, 22 * time.Second, 38 * time.Second},
		"as long as asked":   {provider.Retries{}, busy(time.Minute), 1, true, time.Minute, time.Minute},
		"too long":           {provider.Retries{}, busy(time.Minute + 1), 1, false, 0, 0},
		"any wait":           {provider.Retries{Longest: -1}, busy(time.Hour), 1, true, time.Hour, time.Hour},
		"a bad key":          {provider.Retries{}, &provider.Error{Kind: provider.ErrDenied}, 1, false, 0, 0},
		"given up":           {provider.Retries{}, context.Canceled, 1, false, 0, 0},
		"nothing went wrong": {provider.Retries{}, nil, 1, false, 0, 0},
	} {
		if wait, again := tt.r.After(tt.err, tt.attempts); again != tt.again || wait < tt.least || wait > tt.atMost {
			t.Errorf("%s: %v after %s, want %v after %s to %s", name, again, wait, tt.again, tt.least, tt.atMost)
		}
	}
}
