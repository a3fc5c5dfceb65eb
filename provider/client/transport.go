package client

import (
	"context"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"slices"
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
	}
}

// atHome returns a client that sends no key to another host, whatever client a caller
// brings: net/http removes only the standard header when it follows a redirect.
func atHome(from *http.Client) *http.Client {
	own := *from
	own.CheckRedirect = func(to *http.Request, via []*http.Request) error {
		if len(via) > maxRedirects || to.URL.Host != via[0].URL.Host || to.URL.Scheme != via[0].URL.Scheme {
			return errors.New("it redirects to " + to.URL.Host + ", which is not asked")
		}
		if from.CheckRedirect != nil {
			return from.CheckRedirect(to, via)
		}
		return nil
	}
	return &own
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
func (c *Client) refused(response *http.Response, cancel context.CancelCauseFunc) error {
	body, _ := c.readAll(response.Body, maxAnswer, cancel) // a partial body will do
	e := provider.ReadError(c.info.Provider, response.StatusCode, body)
	now := time.Now()
	e.RetryAfter = retryAfter(response.Header, now)
	switch {
	case errors.Is(e, provider.ErrDenied):
		e.Hint = "check the key"
	case response.StatusCode == http.StatusNotFound && e.Param == "": // what names a part of the request has found the model
		e.Hint = "check the model's name and the base URL"
	case e.RetryAfter > 0:
		e.Hint = "try again at " + now.Add(e.RetryAfter).UTC().Format("2006-01-02 15:04:05 MST")
	}
	return e
}

// readAll reads an answer that is not streamed. It takes no longer than a piece of a
// streamed one may.
func (c *Client) readAll(from io.Reader, most int64, cancel context.CancelCauseFunc) ([]byte, error) {
	patience := newTimer(c.opts.Silence, func() { cancel(errSilence(c.opts.Silence)) })
	defer patience.stop()
	return io.ReadAll(io.LimitReader(from, most))
}

// clean takes the key, and the secrets among the caller's headers, out of an error:
// providers and gateways like to repeat them. Every error of a request passes through it.
func (c *Client) clean(err error, key string) error {
	var e *provider.Error
	if !errors.As(err, &e) {
		return err
	}
	secrets := []redact.Known{{Kind: "key", Value: key}}
	for name, values := range c.opts.Header {
		for _, value := range values {
			if isSecret(name) {
				value = value[strings.LastIndexByte(value, ' ')+1:] // without its scheme
				secrets = append(secrets, redact.Known{Kind: "key", Value: value})
			}
		}
	}
	scanner := redact.NewScanner(secrets...)
	e.Code, _ = scanner.Text(e.Code)
	e.Message, _ = scanner.Text(e.Message)
	if e.Err != nil {
		if text, found := scanner.Text(e.Err.Error()); len(found) > 0 {
			e.Err = errors.New(text)
		}
	}
	return err
}

// isSecret reports whether the value of a header is a secret, by the header's name.
func isSecret(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc([]string{"auth", "key", "token", "secret", "cookie", "password"}, func(word string) bool {
		return strings.Contains(name, word)
	})
}

// retryAfter returns how long a provider asks to wait; 0 if it does not.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if ms := asked(h.Get("Retry-After-Ms"), time.Millisecond); ms > 0 {
		return ms
	}
	value := h.Get("Retry-After")
	if at, err := http.ParseTime(value); err == nil {
		return max(0, at.Sub(now))
	}
	return asked(value, time.Second)
}

// asked returns so many units, or the longest duration if they are more.
func asked(number string, unit time.Duration) time.Duration {
	n, err := strconv.ParseFloat(number, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0
	}
	switch n *= float64(unit); {
	case n >= math.MaxInt64:
		return math.MaxInt64
	case n > 0:
		return time.Duration(n)
	}
	return 0 // it is not even a number
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
