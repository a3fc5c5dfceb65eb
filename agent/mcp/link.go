package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/coppice-dev/coppice/internal/gate"
)

const (
	maxTools = 1000 // tools of one server
	maxPages = 100  // of a list; a longer one counts as endless

	discoverTime = 3 * time.Second        // for the answer to a request that old servers do not know
	pingTime     = 10 * time.Second       // for the answer to a ping
	endTime      = 10 * time.Second       // until a program that hung up has ended
	noticeTime   = 500 * time.Millisecond // until a program that may be ending has ended
)

// link is one connection to a server.
type link struct {
	server  *Server
	session *sdk.ClientSession
	program *program // nil if the server is on the network
	lines   *lines   // of the program's output
	network *network // nil if it is a program
	gone    chan struct{}
	changes chan struct{} // has one element if the tools have changed
	closing sync.Once

	mu  sync.Mutex // guards err
	err error      // why the connection broke
}

// dial connects and says hello.
func dial(ctx context.Context, s *Server) (*link, error) {
	l := &link{server: s, gone: make(chan struct{}), changes: make(chan struct{}, 1)}
	var transport sdk.Transport
	if s.opts.URL != "" {
		l.network = newNetwork(s)
		transport = l.network.transport(s.opts.URL, s.opts.MaxAnswer)
	} else {
		p, err := startProgram(s)
		if err != nil {
			return nil, err
		}
		l.program = p
		l.lines = newLines(p.stdout, s.opts.MaxAnswer, func(line string) {
			s.opts.Logger.Warn("an MCP server printed a line that is not a message", "server", s.name, "line", line)
		})
		transport = &sdk.IOTransport{Reader: l.lines, Writer: p.stdin, MaxLineLength: -1}
	}
	client := sdk.NewClient(&sdk.Implementation{Name: "coppice", Version: "1"}, &sdk.ClientOptions{
		Logger:       s.opts.Logger,
		Capabilities: &sdk.ClientCapabilities{}, // nothing but tools
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) {
			select {
			case l.changes <- struct{}{}:
			default:
			}
		},
	})
	// The newest protocol begins with this request. If a server neither answers nor refuses
	// it, we use the older way.
	client.AddSendingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, method string, r sdk.Request) (sdk.Result, error) {
			if method == "server/discover" {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, min(discoverTime, s.opts.ConnectTimeout/2))
				defer cancel()
			}
			return next(ctx, method, r)
		}
	})
	// The library waits for the server even after ctx has ended, for example to write.
	session, err := gate.Await(ctx, func() (*sdk.ClientSession, error) { return client.Connect(ctx, transport, nil) })
	if err != nil {
		err = l.explain(ctx, err)
		l.close()
		return nil, err
	}
	l.session = session
	s.work.Go(l.watch)
	s.work.Go(l.follow)
	return l, nil
}

// watch notices when the connection breaks.
func (l *link) watch() {
	l.drop(cmp.Or(l.session.Wait(), sdk.ErrConnectionClosed))
	close(l.gone)
}

// follow lists the tools again when they change. Several changes in a row are one.
func (l *link) follow() {
	for {
		select {
		case <-l.gone:
			return
		case <-l.changes:
			l.server.relist(l)
		}
	}
}

func (l *link) broken() bool {
	l.mu.Lock()
	dropped := l.err != nil
	l.mu.Unlock()
	if dropped {
		return true
	}
	select {
	case <-l.gone:
		return true
	default:
		return l.program != nil && l.program.ended()
	}
}

// breaks reports whether the connection is useless after an error of a call. If that is not
// clear, it pings the server: an answer of an unknown kind is an error too, but no reason to
// restart the server.
func (l *link) breaks(ctx context.Context, err error) bool {
	if isAnswer(err) {
		return false
	}
	if !isEnd(err) {
		ctx, cancel := context.WithTimeout(ctx, pingTime)
		defer cancel()
		_, err := gate.Await(ctx, func() (struct{}, error) { return struct{}{}, l.session.Ping(ctx, nil) })
		if err == nil || isAnswer(err) {
			return false
		}
	}
	l.drop(err)
	return true
}

// isAnswer reports whether an error is the server's own answer, so that the server is alive.
func isAnswer(err error) bool {
	answer := (*jsonrpc.Error)(nil)
	return errors.As(err, &answer)
}

// isEnd reports whether an error says that the other end is gone.
func isEnd(err error) bool {
	return slices.ContainsFunc([]error{sdk.ErrConnectionClosed, sdk.ErrSessionMissing, io.EOF, io.ErrUnexpectedEOF, os.ErrClosed, syscall.EPIPE},
		func(end error) bool { return errors.Is(err, end) })
}

// drop records that the connection is useless.
func (l *link) drop(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.err = err
	}
}

// reason returns why the connection broke.
func (l *link) reason() error {
	if l == nil {
		return errors.New("the server could not be reached")
	}
	if l.program != nil {
		if err := cmp.Or(l.lines.fault(), l.program.reason()); err != nil {
			return err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// explain rewords an error: what the program did, or why ctx has ended.
func (l *link) explain(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case l.program == nil:
		return err
	case l.lines.fault() != nil:
		return l.lines.fault()
	}
	limit := noticeTime
	if isEnd(err) {
		limit = endTime
	}
	if l.program.awaitEnd(ctx, limit) {
		return l.program.reason() // it says more
	}
	return err
}

// close ends the connection. It does not wait for a server that does not answer.
func (l *link) close() {
	if l == nil {
		return
	}
	l.closing.Do(func() {
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			if l.session != nil {
				_ = l.session.Close() // it waits for the server
			}
		}()
		select {
		case <-closed:
		case <-time.After(l.server.opts.CloseTimeout):
		}
		if l.program != nil {
			l.program.close(l.server.opts.CloseTimeout)
		}
		if l.network != nil {
			l.network.close()
		}
		<-closed
	})
}

// list returns the tools of the server.
func (l *link) list(ctx context.Context) ([]*sdk.Tool, error) {
	var found []*sdk.Tool
	if r := l.session.InitializeResult(); r != nil && r.Capabilities != nil && r.Capabilities.Tools == nil {
		return nil, nil
	}
	params := &sdk.ListToolsParams{}
	for range maxPages {
		page, err := gate.Await(ctx, func() (*sdk.ListToolsResult, error) { return l.session.ListTools(ctx, params) })
		if err != nil {
			if l.breaks(ctx, err) {
				err = l.explain(ctx, err)
			}
			return nil, fmt.Errorf("its tools: %w", err)
		}
		found = append(found, page.Tools...)
		if len(found) > maxTools {
			return nil, fmt.Errorf("the server has more than %d tools", maxTools)
		}
		if page.NextCursor == "" {
			return found, nil
		}
		params = &sdk.ListToolsParams{Cursor: page.NextCursor}
	}
	return nil, errors.New("the server's list of tools does not end")
}
