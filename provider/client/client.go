package client

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/internal/wire"
	"github.com/coppice-dev/coppice/session"
)

// Options say which model to ask, and how.
type Options struct {
	// Provider is one of Providers. A server that is not listed and speaks Chat
	// Completions is "openai-chat" with a BaseURL.
	Provider string
	Model    string
	// BaseURL is where the provider is, without the path of a request:
	// "http://localhost:11434/v1". Default: the provider's own address.
	BaseURL string
	// Name is what messages call the provider. Default: Provider, or "openai" for
	// both ways to ask OpenAI at its own address. A server elsewhere that speaks like
	// OpenAI is not OpenAI: a conversation with it must not end up there.
	Name string
	// Key returns the key. Default: none is sent, which is right for a local server.
	// See StaticKey, CommandKey, KeyVariable.
	Key KeyFunc
	// Header is sent with every request, for gateways and organisations.
	Header http.Header
	// Families are what the caller knows about models. They count before what is known here:
	// see provider.FamilyOf.
	Families []provider.Family
	// Refusals remember what models turned out not to take. Default: the client's own.
	Refusals *Refusals
	// Window and MaxOutput are the model's limits in tokens. Default: what is known
	// about the model.
	Window, MaxOutput int
	// Retries is how often a request that failed is sent again. Default: 4; -1 is
	// never. An agent counts its requests itself, and takes the number from here.
	Retries int
	Timeouts
	// HTTP sends the requests. Default: a client of its own, which uses the proxy
	// that the environment names. Its Timeout must be 0: answers take minutes. It does not
	// follow redirects to another host, because the key would go there too.
	HTTP *http.Client
}

// Timeouts are how long to wait. Zero means the default, a negative value for ever.
type Timeouts struct {
	Connect   time.Duration // for a connection. Default: 15 s
	FirstByte time.Duration // for the beginning of the answer. Default: 5 min
	Silence   time.Duration // between two pieces of the answer. Default: 2 min
	// Retry is the wait before the first retry; each further one waits twice as
	// long, up to 30 s. Default: 500 ms
	Retry time.Duration
	// RetryAfter is the longest wait that a provider may ask for; if it asks for
	// more, the request fails. Default: 1 min
	RetryAfter time.Duration
}

// Client is a provider.Model.
type Client struct {
	opts    Options
	dialect *dialect
	base    string
	http    *http.Client
	info    provider.Info
	family  provider.Family
}

// New returns a client. It sends nothing: a wrong key or model shows with the first
// request. For options that cannot be used it returns session.ErrInvalid.
func New(o Options) (*Client, error) {
	d := dialects[o.Provider]
	if d == nil {
		return nil, invalid("there is no provider %q: it is one of %s", o.Provider, strings.Join(Providers(), ", "))
	}
	if o.Model == "" {
		return nil, invalid("no model is named")
	}
	if o.BaseURL == "" {
		o.BaseURL = d.base
	}
	if err := CheckBaseURL(o.BaseURL); err != nil {
		return nil, err
	}
	if o.Name == "" {
		o.Name = d.name
		if strings.TrimSuffix(o.BaseURL, "/") != d.base {
			o.Name = o.Provider
		}
	}
	o.Connect = cmp.Or(o.Connect, 15*time.Second)
	o.FirstByte = cmp.Or(o.FirstByte, 5*time.Minute)
	o.Silence = cmp.Or(o.Silence, 2*time.Minute)
	c := &Client{opts: o, dialect: d, base: strings.TrimSuffix(o.BaseURL, "/"), http: o.HTTP}
	c.info = provider.Info{Provider: o.Name, Model: o.Model, API: o.Provider, MaxBytes: d.maxBytes}
	c.info.Retries = provider.Retries{Most: o.Retries, First: o.Retry, Longest: o.RetryAfter}
	c.family, _ = provider.FamilyOf(o.Model, o.Families...)
	c.info.Window = cmp.Or(max(o.Window, 0), c.family.Window, unknownWindow)
	c.info.MaxOutput = cmp.Or(max(o.MaxOutput, 0), c.family.MaxOutput, unknownOutput)
	if c.opts.Refusals == nil {
		c.opts.Refusals = &Refusals{}
	}
	if c.http == nil {
		c.http = newHTTP(o.Connect)
	}
	c.http = atHome(c.http)
	return c, nil
}

// CheckBaseURL returns what is wrong with the address of a provider, as
// session.ErrInvalid. A password in it is not in the error.
func CheckBaseURL(given string) error {
	base, err := url.Parse(given)
	switch {
	case err == nil && (base.RawQuery != "" || base.Fragment != "" || base.User != nil):
		return invalid("the base URL of %s must not have a user, a query or a fragment", base.Host)
	case err != nil || base.Host == "" || base.Scheme != "https" && base.Scheme != "http":
		return invalid("the base URL %q must begin with http:// or https:// and name a host", given)
	}
	return nil
}

func invalid(format string, args ...any) error {
	return &session.Error{Op: "ask", Err: session.Invalidf(format, args...)}
}

// Providers lists what Options.Provider may be.
func Providers() []string {
	names := make([]string, 0, len(dialects))
	for name := range dialects {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Info returns what is known about the model.
func (c *Client) Info() provider.Info { return c.info }

// Encode returns the body that Stream would send.
func (c *Client) Encode(r *provider.Request) (*provider.Encoded, error) {
	r = c.allowed(r)
	encode := func(r *provider.Request) (*provider.Encoded, error) { return c.dialect.encode(c, r) }
	if r == nil || r.Memo == nil {
		encoded, err := encode(r)
		return c.noteOmitted(encoded, r), err
	}
	encoded, err := r.Memo.Encode(r, encode)
	return c.noteOmitted(encoded, r), err
}

// noteOmitted notes in an encoded request what it was written without.
func (c *Client) noteOmitted(encoded *provider.Encoded, r *provider.Request) *provider.Encoded {
	if encoded != nil {
		encoded.Without = r.Without
	}
	return encoded
}

// Stream sends a request and yields the answer as it arrives.
func (c *Client) Stream(ctx context.Context, r *provider.Request) iter.Seq2[provider.Event, error] {
	return func(yield func(provider.Event, error) bool) {
		var encoded *provider.Encoded
		if r != nil {
			encoded = r.Encoded
		}
		if encoded == nil {
			var err error
			if encoded, err = c.Encode(r); err != nil {
				yield(provider.Event{}, err)
				return
			}
		}
		t := turn{client: c, ctx: ctx, request: r, encoded: encoded, yield: yield, once: r != nil && r.Once}
		t.run()
	}
}

// turn is one request with its attempts.
type turn struct {
	client  *Client
	ctx     context.Context
	request *provider.Request
	encoded *provider.Encoded
	yield   func(provider.Event, error) bool
	once    bool // the caller sends it again, if anybody does
	stopped bool // the caller wants no more
	begun   bool // part of the answer was yielded, not just token counts
}

// errStopped ends an attempt that the caller has left.
var errStopped = errors.New("the caller stopped")

func (t *turn) run() {
	for attempt := 1; ; attempt++ {
		m, err := t.attempt()
		if t.stopped {
			return
		}
		wait, again := t.client.info.Retries.After(err, attempt)
		if less := t.client.noteRefused(t.request, t.encoded, err); less != nil { // each time it has less
			t.encoded, wait, again = less, 0, true
		}
		if !again || t.begun || t.once || t.ctx.Err() != nil {
			t.finish(m, err)
			return
		}
		retry := &provider.Retry{Attempt: attempt + 1, After: wait, Reason: err.Error()}
		if m != nil {
			retry.Usage = m.Usage
		}
		if !t.yield(provider.Event{Type: provider.EventRetry, Retry: retry}, nil) {
			return
		}
		if err := sleep(t.ctx, wait); err != nil {
			t.yield(provider.Event{}, err)
			return
		}
	}
}

// attempt sends the request once and returns the part of the answer that arrived, and why
// there is no more.
func (t *turn) attempt() (m *session.MessageEntry, err error) {
	ctx, cancel := context.WithCancelCause(t.ctx)
	defer cancel(nil)
	c := t.client
	key, err := c.key(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = c.clean(err, key) }()
	body, err := c.post(ctx, cancel, key, c.dialect.path(c, true), t.encoded.Pieces()...)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	silent := newWatched(body, c.opts.Silence, cancel)
	defer silent.stop()
	answer := bufio.NewReader(silent)
	if isJSON(answer) {
		m, err = t.readWhole(answer)
	} else {
		m, err = t.readStream(answer)
	}
	if cause := context.Cause(ctx); err != nil && cause != nil && t.ctx.Err() == nil {
		err = cause // the timeout, not its effect on the connection
	}
	return m, c.broken(t.ctx, err)
}

// isJSON reports whether an answer is a JSON value. Events are not: each of their lines
// begins with a name or a colon.
func isJSON(answer *bufio.Reader) bool {
	for {
		next, err := answer.Peek(1)
		if err != nil {
			return false // reading says why
		}
		switch next[0] {
		case ' ', '\t', '\r', '\n':
			_, _ = answer.Discard(1) // it is there
		default:
			return next[0] == '{' || next[0] == '['
		}
	}
}

// readStream reads the events of an answer.
func (t *turn) readStream(answer io.Reader) (*session.MessageEntry, error) {
	stream := t.client.dialect.stream()
	err := wire.Events(answer, func(data []byte) error {
		events, err := stream.Add(data)
		if !t.emit(events) {
			return errStopped
		}
		if err == nil && stream.Done() && t.client.dialect.endsAtOnce {
			return errDone
		}
		return err
	})
	if errors.Is(err, errDone) || stream.Done() {
		err = nil // what comes after the end is of no interest
	} else if err == nil {
		err = io.ErrUnexpectedEOF
	}
	m, unreadable := stream.Message()
	if err == nil {
		err = unreadable
	}
	return m, err
}

// errDone ends the reading of a stream that is complete.
var errDone = errors.New("the answer is complete")

// maxWhole is the size of the largest answer that is read as a whole, in bytes.
const maxWhole = 64 << 20

// readWhole reads an answer that is not a stream of events: some servers and gateways
// ignore that they are asked for one, and report errors without a status.
func (t *turn) readWhole(answer io.Reader) (*session.MessageEntry, error) {
	data, err := io.ReadAll(io.LimitReader(answer, maxWhole+1))
	switch {
	case err != nil:
		return nil, err
	case len(data) > maxWhole:
		return nil, fmt.Errorf("it has more than %d MiB", maxWhole>>20)
	}
	if failure := wire.Members(data).Get("error"); failure != nil && !rawjson.IsNull(failure) {
		return nil, provider.ReadError(t.client.info.Provider, 0, data)
	}
	body, err := t.client.dialect.decode(data)
	if err != nil || len(body.Entries) == 0 || body.Entries[0].Message == nil || body.Entries[0].Message.Role != session.RoleAssistant {
		return nil, fmt.Errorf("it is no message: %q", data)
	}
	m := body.Entries[0].Message
	t.emit(provider.EventsOf(m))
	return m, nil
}

// emit yields events. It reports whether the caller wants more.
func (t *turn) emit(events []provider.Event) bool {
	for _, event := range events {
		t.begun = t.begun || event.Type != provider.EventUsage
		if t.stopped = !t.yield(event, nil); t.stopped {
			return false
		}
	}
	return true
}

// broken returns the error of an answer that is not whole.
func (c *Client) broken(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var known *provider.Error
	if errors.As(err, &known) {
		known.Provider = c.info.Provider
		return known
	}
	return &provider.Error{Kind: provider.ErrBroken, Provider: c.info.Provider, Err: err}
}

var errEmpty = errors.New("the answer is empty")

// finish yields the last event: the whole answer, or the part that arrived and why
// there is no more.
func (t *turn) finish(m *session.MessageEntry, cause error) {
	if m == nil || cause != nil && len(m.Content) == 0 && m.Usage == nil {
		if cause == nil {
			cause = t.client.broken(t.ctx, errEmpty)
		}
		t.yield(provider.Event{}, cause)
		return
	}
	m.Provider = t.client.info.Provider
	if m.Model == "" {
		m.Model = t.client.info.Model
	}
	response := &provider.Response{Message: m, Partial: cause != nil}
	if cause != nil {
		m.StopReason = provider.StopFailed
		if t.ctx.Err() != nil {
			m.StopReason = provider.StopCancelled
		}
	}
	t.yield(provider.Event{Type: provider.EventStop, Response: response}, cause)
}

// CountTokens asks the provider how many tokens a request has. For a provider that does
// not count it returns session.ErrInvalid.
func (c *Client) CountTokens(ctx context.Context, r *provider.Request) (int, error) {
	if c.dialect.count == nil {
		return 0, invalid("%s does not count tokens", c.info.Provider)
	}
	encoded, err := c.Encode(r)
	if err != nil {
		return 0, err
	}
	key, err := c.key(ctx)
	if err != nil {
		return 0, err
	}
	n, err := c.count(ctx, key, slices.Concat(encoded.Pieces()...))
	return n, c.clean(err, key)
}

// count asks for the tokens of a request.
func (c *Client) count(ctx context.Context, key string, request []byte) (n int, err error) {
	path, body, member := c.dialect.count(c, request)
	within, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	answer, err := c.post(within, cancel, key, path, body)
	if err != nil {
		return 0, err
	}
	defer answer.Close()
	data, err := c.readAll(answer, maxAnswer, cancel)
	if err != nil {
		return 0, c.broken(ctx, cmp.Or(context.Cause(within), err))
	}
	var counts map[string]json.RawMessage
	if err = json.Unmarshal(data, &counts); err == nil {
		err = json.Unmarshal(counts[member], &n)
	}
	if err != nil {
		err = c.broken(ctx, fmt.Errorf("no %s in %q", member, data))
	}
	return n, err
}

// maxAnswer is how much of an answer that is not streamed is read, in bytes.
const maxAnswer = 1 << 20

// post sends a body, which may be in pieces, and returns the answer's, if the provider
// accepts the request.
func (c *Client) post(ctx context.Context, cancel context.CancelCauseFunc, key, path string, body ...[]byte) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+path, nil)
	if err != nil {
		return nil, err
	}
	request.GetBody = func() (io.ReadCloser, error) {
		var pieces []io.Reader
		for _, piece := range body {
			pieces = append(pieces, bytes.NewReader(piece))
		}
		return io.NopCloser(io.MultiReader(pieces...)), nil
	}
	request.Body, _ = request.GetBody()
	for _, piece := range body {
		request.ContentLength += int64(len(piece))
	}
	for name, values := range c.opts.Header {
		request.Header[http.CanonicalHeaderKey(name)] = values
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "text/event-stream, application/json")
	c.dialect.authorise(request.Header, key)
	patience := newTimer(c.opts.FirstByte, func() {
		cancel(fmt.Errorf("no answer for %s", c.opts.FirstByte))
	})
	response, err := c.http.Do(request)
	patience.stop()
	if err != nil {
		return nil, c.unreachable(ctx, err)
	}
	if response.StatusCode == http.StatusOK {
		return response.Body, nil
	}
	defer response.Body.Close()
	return nil, c.refused(response, cancel)
}
