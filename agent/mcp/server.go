package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/internal/gate"
)

// Options say how a server is reached. One of Command and URL must be set.
type Options struct {
	// Command is the program to start, with its arguments.
	Command []string
	// Dir is the directory that it starts in. Default: the current one.
	Dir string
	// Env is added to its environment, as "NAME=value".
	Env []string

	// URL is the address of a server that speaks streamable HTTP.
	URL string
	// Header is sent with every request, to that host and no other.
	Header http.Header

	// Name is put before the names of the tools: "github" makes github_list_issues. Default:
	// the name of the program, or the host of the address. The name that the server gives
	// itself does not count: it could choose one that rules allow.
	Name string
	// TrustHints believes what the server says about its tools: those that only read
	// do not ask, and those that can be repeated are repeated after a crash.
	TrustHints bool
	// ConnectTimeout is how long the server may take until it is ready. Default: 30
	// seconds.
	ConnectTimeout time.Duration
	// Timeout is how long a call may take. Default: the agent's.
	Timeout time.Duration
	// MaxAnswer is how many bytes an answer may have. A longer one breaks the
	// connection, and the result says so. Default: 16 MiB.
	MaxAnswer int
	// CloseTimeout is how long a server may take to end by itself before it is killed.
	// Default: 2 seconds.
	CloseTimeout time.Duration
	// Changed is called, in a separate goroutine, when Tools returns other tools than before.
	Changed func()
	// Hide replaces what errors must not show, such as a key in the address. Default: nothing.
	Hide *strings.Replacer
	// Logger gets what the server prints and what goes wrong. Default: none.
	Logger *slog.Logger
}

const (
	connectTimeout = 30 * time.Second
	maxAnswer      = 16 << 20
	closeTimeout   = 2 * time.Second
	cancelTime     = 100 * time.Millisecond
	maxFailures    = 3 // restarts of a program that keeps ending before anything worked
)

// errClosed means that Close was called.
var errClosed = errors.New("the connection was closed")

// Server is a connection to an MCP server. Its methods may be called concurrently.
type Server struct {
	opts Options
	name string
	// life ends when the server is closed, and ends everything that is under way.
	life context.Context
	end  context.CancelCauseFunc
	work sync.WaitGroup // goroutines that life ends

	// connecting is held while a new connection is made.
	connecting gate.Mutex

	mu       sync.Mutex // guards what follows
	now      *link      // nil before the first connection
	failures int        // connections that broke before anything worked
	calls    int        // that are under way
	listed   bool
	tools    []agent.Tool
}

// Connect starts a program or calls a server, and asks it for its tools. ctx limits
// only that.
func Connect(ctx context.Context, o Options) (*Server, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	if o.ConnectTimeout <= 0 {
		o.ConnectTimeout = connectTimeout
	}
	if o.MaxAnswer <= 0 {
		o.MaxAnswer = maxAnswer
	}
	if o.CloseTimeout <= 0 {
		o.CloseTimeout = closeTimeout
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Server{opts: o, name: o.name()}
	s.life, s.end = context.WithCancelCause(context.WithoutCancel(ctx))
	if _, err := s.connected(ctx); err != nil {
		_ = s.Close()
		return nil, err
	}
	return s, nil
}

func (o *Options) check() error {
	switch {
	case len(o.Command) > 0 && o.URL != "":
		return errors.New("an MCP server has either a command or an address, not both")
	case o.URL != "":
		u, err := url.Parse(o.URL)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return errors.New("the address of an MCP server must begin with http:// or https:// and name a host")
		}
	case len(o.Command) == 0 || o.Command[0] == "":
		return errors.New("an MCP server needs a command or an address")
	}
	return nil
}

// maxPrefix leaves room for the names of tools.
const maxPrefix = 32

// name returns the prefix of the tools' names. It contains no secrets, unlike the arguments
// of a command or the rest of an address.
func (o *Options) name() string {
	name := o.Name
	if u, err := url.Parse(o.URL); name == "" && o.URL != "" && err == nil {
		name = u.Hostname()
	}
	if name == "" && len(o.Command) > 0 {
		name = filepath.Base(o.Command[0])
	}
	name = legal(strings.ToLower(name))
	return cmp.Or(strings.TrimRight(name[:min(len(name), maxPrefix)], "_"), "mcp")
}

// Name returns the server's name, which is the prefix of its tools' names.
func (s *Server) Name() string { return s.name }

// Tools returns the tools that the server has now, sorted by name, so that requests
// with them stay the same.
func (s *Server) Tools() []agent.Tool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]agent.Tool(nil), s.tools...)
}

// Close ends the connection, the calls that are under way and, if we started it, the program
// with everything that it has started.
func (s *Server) Close() error {
	s.end(errClosed)
	s.connecting.Lock() // wait for a connection attempt, which gives up now
	defer s.connecting.Unlock()
	s.mu.Lock()
	l, calls := s.now, s.calls
	s.mu.Unlock()
	if calls > 0 && l.network != nil {
		// The library tells the server in the background that the calls are over. A
		// program ends in any case; a server on the network would keep working on them.
		time.Sleep(cancelTime)
	}
	l.close()
	s.work.Wait()
	return nil
}

// current returns the connection if it holds.
func (s *Server) current() *link {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now == nil || s.now.broken() {
		return nil
	}
	return s.now
}

// connected returns a connection: the one there is, or a new one if that has broken.
func (s *Server) connected(ctx context.Context) (*link, error) {
	if l := s.current(); l != nil {
		return l, nil
	}
	if err := s.connecting.LockContext(ctx); err != nil {
		return nil, context.Cause(ctx)
	}
	defer s.connecting.Unlock()
	if s.life.Err() != nil {
		return nil, context.Cause(s.life)
	}
	if l := s.current(); l != nil { // another goroutine has connected
		return l, nil
	}
	s.mu.Lock()
	old, failures := s.now, s.failures
	s.failures++
	s.mu.Unlock()
	if old != nil {
		s.opts.Logger.Warn("the connection to an MCP server broke: connecting again", "server", s.name, "error", old.reason())
		old.close()
	}
	if failures >= maxFailures && s.opts.URL == "" { // connecting to a server on the network costs little
		return nil, s.hidden(fmt.Errorf("the MCP server %s has failed %d times in a row and is not started again: %w", s.name, failures, old.reason()))
	}
	l, err := s.connect(ctx)
	if err != nil {
		return nil, s.hidden(fmt.Errorf("the MCP server %s: %w", s.name, err))
	}
	return l, nil
}

// hidden returns an error without the parts that it must not show.
func (s *Server) hidden(err error) error {
	if s.opts.Hide == nil {
		return err
	}
	return &hiddenError{s.opts.Hide.Replace(err.Error()), err}
}

type hiddenError struct {
	text  string
	cause error
}

func (e *hiddenError) Error() string { return e.text }

// Is lets errors.Is see the cause. There is no Unwrap: it would show everything.
func (e *hiddenError) Is(target error) bool { return errors.Is(e.cause, target) }

// connect makes a new connection. The caller holds connecting.
func (s *Server) connect(ctx context.Context) (*link, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.opts.ConnectTimeout, fmt.Errorf("the server was not ready after %s", s.opts.ConnectTimeout))
	defer cancel()
	ctx, stop := s.whileOpen(ctx)
	defer stop()
	l, err := dial(ctx, s)
	if err != nil {
		return nil, err
	}
	found, err := l.list(ctx)
	if err != nil {
		l.close()
		return nil, err
	}
	s.mu.Lock()
	s.now = l
	s.mu.Unlock()
	s.setTools(found)
	return l, nil
}

// whileOpen returns a context that also ends when the server is closed.
func (s *Server) whileOpen(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(s.life, func() { cancel(context.Cause(s.life)) })
	if s.life.Err() != nil {
		cancel(context.Cause(s.life)) // the function above may run late
	}
	return ctx, func() { stop(); cancel(nil) }
}

// setTools replaces the tools by those that a connection has listed.
func (s *Server) setTools(found []*sdk.Tool) {
	tools := s.convert(found)
	s.mu.Lock()
	changed := s.listed && !agent.SameTools(s.tools, tools)
	s.tools, s.listed = tools, true
	s.mu.Unlock()
	if changed && s.opts.Changed != nil && s.life.Err() == nil {
		go s.opts.Changed()
	}
}

// relist asks for the tools again because the server said that they have changed.
func (s *Server) relist(l *link) {
	ctx, cancel := context.WithTimeout(s.life, s.opts.ConnectTimeout)
	defer cancel()
	found, err := l.list(ctx)
	if err != nil {
		s.opts.Logger.Warn("the tools of an MCP server have changed, but cannot be listed", "server", s.name, "error", err)
		return
	}
	s.setTools(found)
}

// count records that a call begins or ends.
func (s *Server) count(n int) {
	s.mu.Lock()
	s.calls += n
	s.mu.Unlock()
}

// recordSuccess records that the connection works, so that it may be made again when it breaks.
func (s *Server) recordSuccess() {
	s.mu.Lock()
	s.failures = 0
	s.mu.Unlock()
}
