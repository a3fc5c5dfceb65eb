package ipc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/creachadair/jrpc2"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/server/internal/lines"
)

// How many requests a connection may have under way. Those that end by themselves wait for
// one another, and the connection is not read in the meantime. Those that send events may
// never end, so too many of them are refused: a client that waited for one to end could not
// even cancel it.
const (
	maxUnary   = 8
	maxStreams = 16
)

// conn is a connection to a client.
type conn struct {
	server      *Server
	in          *lines.Reader
	out         *output
	stopReading func()
	close       func() error

	// ctx is the context of every request. It ends when nobody is left to read the answers.
	ctx    context.Context
	cancel context.CancelCauseFunc

	unary, streams chan struct{}  // a token for each request under way
	work           sync.WaitGroup // requests under way

	// isTagged says whether the last message was tagged. It decides in which dialect an
	// unreadable line is answered. Only the reading goroutine uses it.
	isTagged bool

	mu      sync.Mutex       // guards what follows
	calls   map[string]*call // those under way that have an id, by their ids
	endless map[*call]bool   // those under way that end only when they are cancelled
	drained bool             // no more requests are read
	tagged  taggedState
}

// newConn returns a connection. The caller sets stopReading and close.
func (s *Server) newConn(in io.Reader, out io.Writer) *conn {
	c := &conn{
		server: s, in: lines.New(in, s.opts.MaxLine),
		unary: make(chan struct{}, maxUnary), streams: make(chan struct{}, maxStreams),
		calls: make(map[string]*call), endless: make(map[*call]bool),
	}
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	c.out = newOutput(out, s.opts.ReadTimeout, func(err error) {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			s.opts.Log.Warn("gave up a client that does not read", "after", s.opts.ReadTimeout)
		}
		c.cancel(errGone)
		c.stopReading()
	})
	return c
}

// errGone is why requests end when their client is gone.
var errGone = &home.ErrorInfo{Kind: home.KindInterrupted, Message: "the client is gone"}

// serve answers a client until it sends nothing more, and everything is answered.
func (c *conn) serve() {
	for {
		line, err := c.in.Next()
		if errors.Is(err, lines.ErrTooLong) {
			c.reportBadLine(&home.ErrorInfo{
				Kind: home.KindTooLarge, Message: fmt.Sprintf("the line was skipped: it has more than %d bytes", c.server.opts.MaxLine),
				Hint: "send less at a time",
			}, jrpc2.InvalidRequest)
			continue
		}
		if err != nil {
			c.end(err)
			return
		}
		c.handle(line)
	}
}

// end finishes what is under way after the last request.
func (c *conn) end(err error) {
	c.mu.Lock()
	c.drained = true
	for watch := range c.endless {
		watch.cancel(errEnded)
	}
	turn := c.tagged.turn
	c.mu.Unlock()
	if turn != nil {
		c.leaveUndecided(c.ctx, turn)
	}
	if !errors.Is(err, io.EOF) && !errors.Is(err, os.ErrDeadlineExceeded) {
		c.cancel(errGone) // the connection broke
	}
	done := make(chan struct{})
	go func() { c.work.Wait(); close(done) }()
	c.await(done)
	var over <-chan time.Time
	if c.ctx.Err() != nil {
		over = time.After(time.Second) // what is still unread may be lost
	}
	c.out.flush(over)
	c.cancel(errGone)
	_ = c.close()
}

// errEnded is why requests that only watch end.
var errEnded = &home.ErrorInfo{Kind: home.KindInterrupted, Message: "no more requests are read from this connection"}

// await waits until what is under way is done. A client that only ended its input still gets
// the answers; one that is gone would keep a turn waiting for an approval forever.
func (c *conn) await(done <-chan struct{}) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case <-tick.C:
			if hungUp(c.out.w) {
				c.cancel(errGone)
			}
		}
	}
}

// handle answers a line, or begins to.
func (c *conn) handle(line []byte) {
	if !utf8.Valid(line) { // encoding/json would silently replace other bytes
		c.reportBadLine(invalid("", "the line is not UTF-8"), jrpc2.ParseError)
		return
	}
	if line[0] == '[' {
		c.isTagged = false
		c.rpc(line)
		return
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(line, &members); err != nil {
		if json.Valid(line) {
			c.reportBadLine(invalid("", `the line is JSON, but not an object: a message is an object with "jsonrpc" or "type"`), jrpc2.InvalidRequest)
		} else {
			c.reportBadLine(invalid("", "the line is not JSON: %v", err), jrpc2.ParseError)
		}
		return
	}
	switch {
	case members["jsonrpc"] != nil:
		c.isTagged = false
		c.rpc(line)
	case members["type"] != nil:
		c.isTagged = true
		c.answerTagged(members["type"], line)
	default:
		c.reportBadLine(invalid("", `the object has neither "jsonrpc" nor "type": it is a message of neither protocol`), jrpc2.InvalidRequest)
	}
}

// reportBadLine reports, in the dialect that the client used last, what is wrong with a line that
// belongs to no request.
func (c *conn) reportBadLine(info *home.ErrorInfo, code jrpc2.Code) {
	if c.isTagged {
		c.write(taggedFailure("", info))
		return
	}
	answer := failed(nil, info, nil)
	answer.Error.Code = code
	c.write(answer)
}

// write queues a message. Other code notices when the client is gone.
func (c *conn) write(message any) {
	_ = c.out.send(c.ctx, encode(message))
}

// guarded calls f, and turns a panic into an error for this client, so that the others keep
// their connections.
func (c *conn) guarded(what string, f func() (any, error)) (result any, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			c.server.opts.Log.Error("a fault of the program", "request", what, "fault", fault, "stack", string(debug.Stack()))
			result, err = nil, &home.ErrorInfo{Kind: home.KindError, Message: what + ": a fault of the program", Hint: "please report it"}
		}
	}()
	return f()
}

// invalid is the error of a request that makes no sense.
func invalid(field, format string, args ...any) *home.ErrorInfo {
	return &home.ErrorInfo{Kind: home.KindInvalid, Field: field, Message: fmt.Sprintf(format, args...)}
}

// encode returns a message as a line.
func encode(message any) []byte {
	var line bytes.Buffer
	enc := json.NewEncoder(&line)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(message); err != nil {
		// Every message is plain data.
		return encode(failed(nil, fmt.Errorf("an answer could not be written as JSON: %w", err), nil))
	}
	return line.Bytes()
}
