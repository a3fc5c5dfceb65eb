package server

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/session/clean"
	"github.com/coppice-dev/coppice/store/remote"
)

// Options say what a server offers, and to whom. Home is required.
type Options struct {
	Home *home.Home
	// Authorize returns what the holder of a token may do; the token is "" if there was none.
	// An error that matches ErrUnauthorized is answered with 401, any other with 500.
	// Default: every caller may do everything.
	Authorize func(ctx context.Context, token string) (*Grant, error)
	// Hosts are the names, with or without a port, for which the server answers, besides
	// those of the local machine. Other names are refused, so that a web page cannot reach
	// the server by a name that it controls.
	Hosts []string
	// Origins are the origins of web pages, besides the server's own, that may use it, such
	// as "https://example.org".
	Origins []string
	// Version is the program's version, which the server reports.
	Version string
	// SetupMCP adds tools, resources and prompts to the MCP server at /mcp. Default: none.
	SetupMCP func(*mcp.Server)
	// Log gets a line for each request, without any text of a session.
	// Default: none.
	Log *slog.Logger
	// Tools is the access that a caller needs for turns in which the model has tools, MCP
	// servers or files, and for allowing its calls: all of that acts on the machine of the
	// server. Default: no caller may.
	Tools home.Access
	// Pprof offers the profiles of net/http/pprof to callers with admin access.
	Pprof bool

	Limits Limits
}

// Limits keep one caller from using up the server. Each has a default.
type Limits struct {
	// Body is the greatest size of a request in bytes, except that of an import. Default:
	// 64 MB. Requests that carry no content have at most 1 MB.
	Body int64
	// Time is how long an operation may take, except one that streams. Default: a minute.
	Time time.Duration
	// Requests is how many requests of a token may run at once, and Streams how many more may
	// stream. Default: 1,000 of each.
	Requests, Streams int
	// Memory is how many bytes of requests and answers may be in memory at once. Those with one
	// token may have a quarter of it. Default: eight times Body.
	Memory int64
	// Rate is how many requests a token may make in a second, on average. Default: 5,000.
	Rate float64
}

func (l Limits) orDefault() Limits {
	body := cmp.Or(l.Body, 64<<20)
	return Limits{
		Body:     body,
		Memory:   cmp.Or(l.Memory, 8*max(body, 1<<20)),
		Time:     cmp.Or(l.Time, time.Minute),
		Requests: cmp.Or(l.Requests, 1000),
		Streams:  cmp.Or(l.Streams, 1000),
		Rate:     cmp.Or(l.Rate, 5000),
	}
}

// ErrUnauthorized means that a token is missing, wrong, expired or revoked. The caller does
// not learn which.
var ErrUnauthorized = errors.New("this needs a valid token")

// Grant is what the holder of a token may do.
type Grant struct {
	Name   string // of the token, for the log and for limits
	Access home.Access
}

// Server answers requests. Use it as an http.Handler, or call Serve.
type Server struct {
	o       Options
	handler http.Handler
	mux     *http.ServeMux  // of handler
	streams map[string]bool // the patterns of mux whose answers have no end in sight
	watch   *watch
	admit   *admission
	feeds   *feeds
	// readiness is what /readyz answers.
	readiness readiness
	// document is what /openapi.json answers. It is made when it is first asked for.
	document func() ([]byte, error)
	store    *remote.Handler
	// stopping ends when the server stops: no new streams begin, and running ones end.
	stopping context.Context
	stop     context.CancelFunc
}

// New returns a server. Close it after use.
func New(o Options) (*Server, error) {
	if o.Home == nil {
		return nil, errors.New("server: Options.Home is missing")
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.Limits = o.Limits.orDefault()
	s := &Server{o: o, watch: newWatch(o.Log), mux: http.NewServeMux(), streams: make(map[string]bool)}
	s.stopping, s.stop = context.WithCancel(context.Background())
	var err error
	if s.admit, err = newAdmission(&s.o); err != nil {
		return nil, err
	}
	s.feeds = newFeeds(s)
	s.store = remote.NewHandler(clean.NewDoor(o.Home.Store()))
	s.document = sync.OnceValues(document)
	s.addRoutes()
	s.handler = s.watch.wrap(s.admitting(s.mux))
	return s, nil
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// Close ends the streams. It does not close the home.
func (s *Server) Close() error {
	s.stop()
	s.feeds.close()
	return s.store.Close()
}

const (
	// A header that takes longer than this comes from a client that only wants to keep a
	// connection busy. Bodies may take longer: an import may be large.
	headerTimeout = 10 * time.Second
	idleTimeout   = 2 * time.Minute
	// graceful is how long requests may take to end after the context of Serve has ended.
	graceful = 20 * time.Second
)

// Serve answers requests at a listener until ctx ends. Then it lets running requests finish,
// and ends the streams of listeners, who can reconnect later.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	srv := &http.Server{
		Handler: s, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: 64 << 10,
		ErrorLog: slog.NewLogLogger(s.o.Log.Handler(), slog.LevelDebug),
	}
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(l) }()
	var work sync.WaitGroup
	defer work.Wait()
	work.Go(func() { s.o.Home.KeepUp(s.stopping) })
	select {
	case err := <-ended:
		return errors.Join(err, s.Close())
	case <-ctx.Done():
	}
	s.stop()
	s.store.Stop()
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), graceful)
	defer cancel()
	err := srv.Shutdown(last)
	if errors.Is(err, context.DeadlineExceeded) {
		s.o.Log.Warn("requests that took too long were cut off", "after", graceful)
		err = srv.Close()
	}
	return errors.Join(err, s.Close())
}

// addRoutes adds what answers the requests that were let in.
func (s *Server) addRoutes() {
	registry := newRegistry()
	for _, op := range home.Operations() {
		if op.Route != "" {
			s.mux.Handle(op.Route, s.operation(describe(op, registry)))
			s.streams[op.Route] = op.Event != nil
			switch op.Name {
			case "entries.rows":
				s.mux.Handle("GET /web/rows/{session}", s.forPage(describe(op, registry), rowsForPage))
			case "entries.picture":
				s.mux.Handle("GET /web/picture/{session}", s.forPage(describe(op, registry), pictureForPage))
			}
		}
	}
	s.mux.HandleFunc("POST "+storePath, s.serveStore)
	s.mux.Handle("/mcp", s.models())
	s.mux.HandleFunc("GET /web/me", s.signedIn)
	s.mux.HandleFunc("POST /web/html", s.draw)
	s.mux.HandleFunc("GET /web/choices", s.choices)
	s.mux.HandleFunc("POST /web/code", s.issueCode)
	s.mux.HandleFunc("POST /web/sign-out", s.signOut)
	s.mux.Handle("GET /metrics", s.only(home.Admin, s.watch.metrics()))
	if s.o.Pprof {
		s.mux.Handle("/debug/pprof/", s.only(home.Admin, profiles()))
	}
	s.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { s.fail(w, r, noRoute(s.mux, w, r)) })
}

// isStream reports whether the answer to a request is a stream. What it accepts does not matter:
// a stream goes on for as long in any form.
func (s *Server) isStream(r *http.Request) bool {
	_, pattern := s.mux.Handler(r)
	return s.streams[pattern] || pattern == "/mcp" && r.Method == http.MethodGet || pattern == "POST "+storePath && remote.Watches(r)
}

// noRoute is the answer to a request for an unknown path, or with the wrong method.
func noRoute(mux *http.ServeMux, w http.ResponseWriter, r *http.Request) *Problem {
	var allowed []string
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete} {
		other := &http.Request{Method: method, URL: r.URL, Host: r.Host}
		if _, pattern := mux.Handler(other); pattern != "/" {
			allowed = append(allowed, method)
		}
	}
	if len(allowed) == 0 {
		return problemf(http.StatusNotFound, home.KindNotFound, "there is no %s; GET /openapi.json lists the paths", r.URL.Path)
	}
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	return problemf(http.StatusMethodNotAllowed, home.KindInvalid, "%s takes %s, not %s", r.URL.Path, strings.Join(allowed, " or "), r.Method)
}

// only admits callers with a degree of access.
func (s *Server) only(a home.Access, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g := GrantOf(r.Context())
		if g.Access < a {
			s.fail(w, r, forbidden(g, a))
			return
		}
		next.ServeHTTP(w, r)
	})
}
