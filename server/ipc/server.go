package ipc

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/store/vfs"
)

// MaxLine is how many bytes a request may have, without its newline, unless Options say
// otherwise.
const MaxLine = 16 << 20

// maxConns is how many connections a server has at once. One that is idle costs some 10 KB.
const maxConns = 1024

// Options adjusts a server. The zero value has good defaults.
type Options struct {
	// MaxLine is how many bytes a request may have. Default: MaxLine.
	MaxLine int
	// ReadTimeout is how long a client may leave what it was sent unread before it is
	// disconnected. Default: 30 seconds.
	ReadTimeout time.Duration
	// Notify gets the notices of tagged requests, one at a time: that dialect has no message
	// for them. Default: they are dropped.
	Notify func(home.Notice)
	// Log gets refused and abandoned connections, and panics of the server, but never text of
	// sessions. Default: nothing is logged.
	Log *slog.Logger
}

// Server answers the clients of a home.
type Server struct {
	home *home.Home
	opts Options
	uid  int // whose connections are accepted

	notifying sync.Mutex // held during Options.Notify

	mu        sync.Mutex // guards what follows
	closing   bool
	listeners map[net.Listener]bool
	conns     map[*conn]bool
	ended     sync.WaitGroup // for each of conns
}

// New returns a server for a home, which must stay open until Shutdown has returned.
func New(h *home.Home, o *Options) *Server {
	s := &Server{home: h, uid: os.Getuid(), listeners: make(map[net.Listener]bool), conns: make(map[*conn]bool)}
	if o != nil {
		s.opts = *o
	}
	if s.opts.MaxLine <= 0 {
		s.opts.MaxLine = MaxLine
	}
	if s.opts.ReadTimeout <= 0 {
		s.opts.ReadTimeout = 30 * time.Second
	}
	if s.opts.Log == nil {
		s.opts.Log = slog.New(slog.DiscardHandler)
	}
	return s
}

// Serve accepts connections until Shutdown, which makes it return nil, or until accepting
// fails. It closes the listener.
func (s *Server) Serve(l net.Listener) error {
	if !s.add(l) {
		return l.Close()
	}
	defer func() {
		s.mu.Lock()
		delete(s.listeners, l)
		s.mu.Unlock()
	}()
	for {
		accepted, err := l.Accept()
		switch {
		case err == nil:
			s.accept(accepted)
		case s.isClosing():
			return nil
		case vfs.NoDescriptors(err): // this is temporary
			s.opts.Log.Warn("a connection could not be accepted", "error", err)
			time.Sleep(100 * time.Millisecond)
		default:
			return errors.Join(err, l.Close())
		}
	}
}

func (s *Server) add(l net.Listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closing {
		s.listeners[l] = true
	}
	return !s.closing
}

func (s *Server) isClosing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closing
}

// accept serves a connection beside the others, if its user is allowed.
func (s *Server) accept(accepted net.Conn) {
	if err := checkPeer(accepted, s.uid); err != nil {
		s.opts.Log.Warn("refused a connection", "error", err)
		_ = accepted.Close()
		return
	}
	c := s.newConn(accepted, accepted)
	c.stopReading = func() { _ = accepted.SetReadDeadline(time.Unix(1, 0)) }
	c.close = accepted.Close
	if s.begin(c) {
		go s.run(c)
		return
	}
	// Say why, if the client reads at once.
	_ = accepted.SetWriteDeadline(time.Now().Add(time.Second))
	_, _ = accepted.Write(encode(failed(nil, errBusy, nil)))
	_ = accepted.Close()
}

var errBusy = &home.ErrorInfo{Kind: home.KindLimited, Message: "the server has too many connections, or is ending", Hint: "close some, and try again"}

// ServeStream serves one client on a pair of streams, such as standard input and output,
// until the input ends and everything is answered, or until Shutdown. A read of the input
// that is under way continues in the background until it returns.
func (s *Server) ServeStream(in io.Reader, out io.Writer) error {
	r, w := io.Pipe() // because a read of standard input cannot be interrupted
	go func() {
		_, err := io.Copy(w, in)
		w.CloseWithError(err)
	}()
	c := s.newConn(r, out)
	c.stopReading = func() { _ = r.CloseWithError(io.EOF) }
	c.close = r.Close
	if !s.begin(c) {
		return c.close()
	}
	s.run(c)
	return c.out.failure()
}

// begin counts a connection, unless there are too many.
func (s *Server) begin(c *conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing || len(s.conns) >= maxConns {
		return false
	}
	s.conns[c] = true
	s.ended.Add(1)
	return true
}

func (s *Server) run(c *conn) {
	c.serve()
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
	s.ended.Done()
}

// errShutdown is why requests end when the time of Shutdown is over.
var errShutdown = &home.ErrorInfo{Kind: home.KindInterrupted, Message: "the server ended", Hint: "start it again, and ask again"}

// Shutdown ends the server. It reads no more requests; those under way are finished and
// answered, except those that only watch, which end. When the context ends, the others are
// cancelled; what they have done stays. Shutdown returns when everything has ended, with the
// context's error if it had to cancel something.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	s.closing = true
	var errs []error
	for l := range s.listeners {
		errs = append(errs, l.Close())
	}
	for c := range s.conns {
		c.stopReading()
	}
	s.mu.Unlock()

	done := make(chan struct{})
	go func() { s.ended.Wait(); close(done) }()
	select {
	case <-done:
	case <-ctx.Done():
		errs = append(errs, context.Cause(ctx))
		s.mu.Lock()
		for c := range s.conns {
			c.cancel(errShutdown)
		}
		s.mu.Unlock()
		<-done
	}
	return errors.Join(errs...)
}

// notify passes on a notice of a tagged request.
func (s *Server) notify(n home.Notice) {
	if s.opts.Notify == nil {
		return
	}
	s.notifying.Lock()
	defer s.notifying.Unlock()
	s.opts.Notify(n)
}
