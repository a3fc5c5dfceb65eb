package remote

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"github.com/coppice-dev/coppice/store"
)

// connection makes requests to a server.
type connection struct {
	url      string
	client   *http.Client
	patience time.Duration
	quiet    time.Duration // after a silence of this length the server is taken for dead
	tick     time.Duration // how often the server hears of a lease
}

// Client returns an HTTP client for a server: it sends the token only to that server, and
// only over an encrypted or local connection, and follows no redirection. base, if not nil,
// has its other settings.
func Client(where, token string, base *http.Client) (*http.Client, error) {
	u, err := url.Parse(where)
	refuse := func(why, hint string) error {
		return &store.Error{Op: "open store", Kind: store.ErrInvalid, Err: errors.New(why), Hint: hint}
	}
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return nil, refuse("this is not the address of a server", "it looks like https://host:port")
	case u.User != nil:
		return nil, refuse("the address has a user or a password in it", "give a token apart from the address")
	case token != "" && u.Scheme != "https" && !isLoopback(u.Hostname()):
		return nil, refuse("the token would be sent to "+u.Host+" without encryption", "use https")
	}
	client := &http.Client{}
	if base != nil {
		*client = *base
	}
	next := client.Transport
	if next == nil {
		next = http.DefaultTransport
	}
	if token != "" {
		client.Transport = bearer{u.Scheme, u.Host, token, next}
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return client, nil
}

func isLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}

// bearer adds a token to the requests to one server.
type bearer struct {
	scheme, host, token string
	next                http.RoundTripper
}

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme == b.scheme && r.URL.Host == b.host {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+b.token)
	}
	return b.next.RoundTrip(r)
}

// query is a request, and the functions that handle its answer.
type query struct {
	op   string
	args request
	data [][]byte // frames of bytes after the arguments
	// stream writes further frames, and is called once. An error of its source is a *refusal.
	stream func(w io.Writer) error
	repeat bool              // repeating it does no harm
	begin  func()            // called before every attempt
	each   func(frame) error // called with every frame of the answer

	begun bool // stream was called
}

// frame is one frame of an answer.
type frame struct {
	kind    byte
	payload []byte
}

func (f frame) result(r *result) error {
	*r = result{}
	if f.kind != kindJSON || json.Unmarshal(f.payload, r) != nil {
		return malformed(fmt.Sprintf("a frame of kind %q where a result should be", f.kind))
	}
	return nil
}

// lost is the error of a request that was not answered, or not to the end.
type lost struct {
	err  error
	sent bool // the server may have got the request
}

func (l *lost) Error() string { return l.err.Error() }
func (l *lost) Unwrap() error { return l.err }

// refusal is an error of the data that the caller wanted to send: nothing was done.
type refusal struct{ err error }

func (r *refusal) Error() string { return r.err.Error() }

// ask makes a request, and repeats a lost one if that does no harm.
func (c *connection) ask(ctx context.Context, q *query) error {
	var retry pauses
	for {
		err := c.once(ctx, q)
		l, isLost := errors.AsType[*lost](err)
		if !isLost || ctx.Err() != nil || l.sent && !q.repeat || q.begun || !retry.wait(ctx, c.patience) {
			return err
		}
	}
}

// once makes a request. It returns an error of the server as it is, and a *lost if there is
// no answer.
func (c *connection) once(ctx context.Context, q *query) error {
	if ctx.Err() != nil {
		return &lost{context.Cause(ctx), false}
	}
	if q.begin != nil {
		q.begin()
	}
	var body bytes.Buffer
	_ = writeFrame(&body, kindJSON, mustJSON(q.args))
	for _, data := range q.data {
		_ = writeFrame(&body, kindData, data)
	}
	if q.stream == nil {
		_ = writeFrame(&body, kindEnd)
		return c.answer(ctx, q, &body)
	}
	pipe, w := io.Pipe()
	answered := make(chan error, 1)
	go func() {
		err := c.answer(ctx, q, pipe)
		pipe.Close()
		answered <- err
	}()
	out := &gathered{Writer: bufio.NewWriterSize(w, chunk), sent: time.Now()}
	_, err := body.WriteTo(out)
	if err == nil {
		err = out.Flush()
	}
	if err == nil {
		q.begun = true
		err = q.stream(out)
	}
	if err == nil {
		err = ctx.Err() // all of it may still be here
	}
	if err == nil {
		err = errors.Join(writeFrame(out, kindEnd), out.Flush())
	}
	_ = w.CloseWithError(err) // without the last frame, the server does nothing
	result := <-answered
	if own, ok := err.(*refusal); ok {
		return own
	}
	return result
}

// gathered sends many small pieces as few large ones, but keeps none for long: the server gives up
// on a client that is silent.
type gathered struct {
	*bufio.Writer
	sent time.Time
}

func (g *gathered) Write(p []byte) (int, error) {
	n, err := g.Writer.Write(p)
	if err == nil && time.Since(g.sent) > time.Second {
		g.sent, err = time.Now(), g.Flush()
	}
	return n, err
}

// answer sends a body and reads the answer.
func (c *connection) answer(ctx context.Context, q *query, body io.Reader) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	alive := time.AfterFunc(c.quiet, func() { cancel(errSilent) })
	defer alive.Stop()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+"/"+q.op, body)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", mimeType)
	resp, err := c.client.Do(req)
	if err != nil {
		return why(ctx, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return refused(resp)
	}
	in := newFrames(resp.Body, maxData+lineHead)
	for {
		alive.Reset(c.quiet)
		kind, payload, err := in.next()
		switch {
		case errors.Is(err, errFrame):
			return err
		case err != nil:
			return why(ctx, err)
		case kind == kindBeat:
		case kind == kindEnd:
			_, _ = io.CopyN(io.Discard, in.r, 1) // read to the end, so that the connection can be reused
			return nil
		case kind == kindError:
			var f failure
			if json.Unmarshal(payload, &f) != nil {
				return malformed("an error")
			}
			return f.err()
		case q.each == nil:
			return malformed("a result where none should be")
		default:
			alive.Stop() // the reader may be slow
			if err := q.each(frame{kind, payload}); err != nil {
				return err
			}
		}
	}
}

// Unreachable says why a server does not answer, and what to do about it. err is that of a
// request, without the address.
func Unreachable(where string, err error) (hint string, why error) {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return "ask by the name that its certificate is for; if it vouches for itself, let SSL_CERT_FILE name a file with the certificate",
			fmt.Errorf("%s cannot prove that it is the server: %w", where, err)
	}
	return "is the server running, and is there a way to it?", fmt.Errorf("%s does not answer: %w", where, err)
}

// errSilent is why a connection is given up on which nothing comes any more.
var errSilent = errors.New("the server is silent")

// why returns the error of a request that did not get its answer.
func why(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return &lost{cause, true}
	}
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err // without the address, which the outer error has
	}
	op, ok := errors.AsType[*net.OpError](err)
	return &lost{err, !ok || op.Op != "dial"}
}

// refused is the error of an answer that does not come from the store.
func refused(resp *http.Response) error {
	text := fmt.Sprintf("%s://%s answered %q", resp.Request.URL.Scheme, resp.Request.URL.Host, resp.Status)
	switch resp.StatusCode {
	case http.StatusUnauthorized:
		return &store.Error{Op: "ask the server", Err: &cause{text, []error{store.ErrUnauthorized}}, Hint: "give a token that the server knows"}
	case http.StatusForbidden:
		return &store.Error{Op: "ask the server", Err: &cause{text, []error{fs.ErrPermission}}, Hint: "this works on the lines of the store; give a token with admin access"}
	case http.StatusBadRequest:
		return &store.Error{Op: "ask the server", Err: errors.New(text), Hint: "the address of a server with TLS begins with https://"}
	case http.StatusNotFound, http.StatusMethodNotAllowed:
		return &store.Error{Op: "ask the server", Err: errors.New(text), Hint: "check that this is the address of a Coppice server"}
	case http.StatusRequestEntityTooLarge:
		return &store.Error{Op: "ask the server", Kind: store.ErrTooLarge, Err: errors.New(text)}
	case http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusBadGateway, http.StatusGatewayTimeout:
		return &lost{errors.New(text), resp.StatusCode == http.StatusBadGateway || resp.StatusCode == http.StatusGatewayTimeout}
	}
	return &store.Error{Op: "ask the server", Err: errors.New(text)}
}

// pauses are the pauses between requests that were lost.
type pauses struct {
	since time.Time
	next  time.Duration
}

// wait pauses, or returns false if there is no time left.
func (p *pauses) wait(ctx context.Context, patience time.Duration) bool {
	if p.since.IsZero() {
		p.since, p.next = time.Now(), firstPause
	}
	if time.Since(p.since)+p.next > patience {
		return false
	}
	select {
	case <-time.After(p.next):
		p.next = min(2*p.next, longestPause)
		return true
	case <-ctx.Done():
		return false
	}
}
