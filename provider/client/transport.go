package client

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/redact"
)

// maxRedirects is how many redirects are followed.
const maxRedirects = 3

// newHTTP returns a client for long answers.
func newHTTP(connect time.Duration) *http.Client {
	dialer := &net.Dialer{KeepAlive: 30 * time.Second}
	if connect > 0 {
		dialer.Timeout = connect
	}
	return &http.Client{
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, DialContext: dialer.DialContext,
			TLSHandshakeTimeout: dialer.Timeout, ForceAttemptHTTP2: true,
			MaxIdleConnsPerHost: 8, IdleConnTimeout: 90 * time.Second,
		},
		// The key would be sent along: net/http removes only the standard header for
		// other hosts.
		CheckRedirect: func(to *http.Request, via []*http.Request) error {
			if len(via) > maxRedirects || to.URL.Host != via[0].URL.Host || to.URL.Scheme != via[0].URL.Scheme {
				return errors.New("it redirects to " + to.URL.Host + ", which is not asked")
			}
			return nil
		},
	}
}

// unreachable returns the error of a request that was not answered. The address
// is not in it, except for the host.
func (c *Client) unreachable(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	if errors.Is(cause, context.Canceled) || errors.Is(cause, context.DeadlineExceeded) {
		return cause
	}
	var known *url.Error
	if errors.As(err, &known) {
		err = known.Err
	}
	if cause != nil {
		err = cause // how long we waited
	}
	e := &provider.Error{Kind: provider.ErrUnavailable, Provider: c.info.Provider, Err: err}
	if host, err := url.Parse(c.base); err == nil {
		e.Hint = "is " + host.Host + " the right address?"
	}
	return e
}

// refused returns the error of an answer with a status other than OK.
func (c *Client) refused(response *http.Response, key string) error {
	body, _ := io.ReadAll(io.LimitReader(response.Body, maxAnswer)) // a partial body will do
	e := provider.ReadError(c.info.Provider, response.StatusCode, body)
	if e.Message = withoutSecrets(e.Message); key != "" {
		e.Message = strings.ReplaceAll(e.Message, key, redact.Replacement("key"))
	}
	e.RetryAfter = retryAfter(response.Header, time.Now())
	switch {
	case errors.Is(e, provider.ErrDenied):
		e.Hint = "check the key"
	case response.StatusCode == http.StatusNotFound:
		e.Hint = "check the model's name and the base URL"
	}
	return e
}

// withoutSecrets takes keys out of a message: providers like to repeat them.
func withoutSecrets(message string) string {
	clean, _ := redact.Text(message)
	return clean
}

// retryAfter returns how long a provider asks to wait; 0 if it does not.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms > 0 {
		return time.Duration(ms * float64(time.Millisecond))
	}
	value := h.Get("Retry-After")
	if seconds, err := strconv.ParseFloat(value, 64); err == nil && seconds > 0 {
		return time.Duration(seconds * float64(time.Second))
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}

// mayRetry reports whether a request that failed is sent again.
func (t *turn) mayRetry(err error, attempt int) bool {
	var known *provider.Error
	if t.ctx.Err() != nil || attempt > t.client.opts.Retries || !errors.As(err, &known) || !known.Temporary() {
		return false
	}
	return t.client.opts.RetryAfter < 0 || known.RetryAfter <= t.client.opts.RetryAfter
}

// maxWait is the longest wait before a retry that the provider does not ask for.
const maxWait = 30 * time.Second

// wait returns how long to wait before the next attempt: twice as long as before, give
// or take a quarter so that clients that failed together do not all come back at once,
// and never less than the provider asks for.
func (t *turn) wait(err error, attempt int) time.Duration {
	wait := min(maxWait, max(0, t.client.opts.Retry)<<min(attempt-1, 10))
	wait += time.Duration((rand.Float64() - 0.5) * float64(wait) / 2)
	var known *provider.Error
	if errors.As(err, &known) {
		wait = max(wait, known.RetryAfter)
	}
	return wait
}

// sleep waits, or returns why it did not.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// timer calls a function after a while, unless it is stopped before. A duration
// below zero never ends.
type timer struct{ *time.Timer }

func newTimer(d time.Duration, then func()) timer {
	if d < 0 {
		return timer{}
	}
	return timer{time.AfterFunc(d, then)}
}

func (t timer) stop() {
	if t.Timer != nil {
		t.Stop()
	}
}

// watched is a reader with a time limit for each read. The caller may take any time
// between reads.
type watched struct {
	from    io.Reader
	silence time.Duration
	timer   timer
}

func newWatched(from io.Reader, silence time.Duration, cancel context.CancelCauseFunc) *watched {
	w := &watched{from: from, silence: silence}
	w.timer = newTimer(silence, func() { cancel(errSilence(silence)) })
	w.timer.stop()
	return w
}

func errSilence(d time.Duration) error {
	return errors.New("nothing more came for " + d.String())
}

func (w *watched) Read(p []byte) (int, error) {
	if w.timer.Timer != nil {
		w.timer.Reset(w.silence)
		defer w.timer.Stop()
	}
	return w.from.Read(p)
}

func (w *watched) stop() { w.timer.stop() }
