package server

import (
	"context"
	"crypto/rand"
	"io"
	"log/slog"
	"net/http"
	"net/http/pprof"
	"runtime/debug"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/store"
)

// watch reports what the server does: a log line, counts and a span for each request. None
// contains text of a session, or a name that a caller made up.
type watch struct {
	log      *slog.Logger
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	running  prometheus.Gauge
	tracer   trace.Tracer
}

func newWatch(log *slog.Logger) *watch {
	w := &watch{
		log:      log,
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "coppice_requests_total", Help: "Requests, by operation and status.",
		}, []string{"operation", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "coppice_request_seconds", Help: "How long requests took, by operation.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 16),
		}, []string{"operation"}),
		running: prometheus.NewGauge(prometheus.GaugeOpts{Name: "coppice_requests_running", Help: "Requests that are being answered."}),
		tracer:  otel.Tracer("github.com/coppice-dev/coppice/server"),
	}
	w.registry.MustRegister(w.requests, w.seconds, w.running, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return w
}

// request is what is recorded about one request while it runs.
type request struct {
	id        string
	caller    string // the name of its token
	operation string // its name; "" for other requests
}

type requestKey struct{}

func requestOf(ctx context.Context) *request {
	r, _ := ctx.Value(requestKey{}).(*request)
	if r == nil {
		r = &request{}
	}
	return r
}

func requestID(ctx context.Context) string           { return requestOf(ctx).id }
func noteCaller(ctx context.Context, name string)    { requestOf(ctx).caller = name }
func noteOperation(ctx context.Context, name string) { requestOf(ctx).operation = name }

// wrap returns a handler that records what next does. If next panics, the caller gets a 500
// and the server keeps running.
func (w *watch) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		began := time.Now()
		noted := &request{id: rand.Text()[:10]}
		ctx, span := w.tracer.Start(context.WithValue(r.Context(), requestKey{}, noted), "coppice.request", trace.WithSpanKind(trace.SpanKindServer))
		out := &countedWriter{ResponseWriter: rw, control: http.NewResponseController(rw)}
		out.extendDeadline() // an earlier answer on this connection may have left a past deadline
		if r.Body != nil && r.Body != http.NoBody {
			r.Body = &timedBody{r.Body, out.control}
			_ = out.control.SetReadDeadline(time.Now().Add(patience)) // for bytes that no handler reads
		}
		w.running.Inc()
		defer func() {
			w.running.Dec()
			if why := recover(); why != nil {
				if why == http.ErrAbortHandler {
					w.finish(ctx, span, noted, r, out, began)
					panic(why) // net/http cuts the connection
				}
				w.log.ErrorContext(ctx, "a request panicked", "request", noted.id, "panic", why, "stack", string(debug.Stack()))
				if out.status == 0 {
					http.Error(out, `{"status":500,"kind":"error","detail":"the server could not do this; its log has the reason under request `+noted.id+`"}`, http.StatusInternalServerError)
				}
			}
			w.finish(ctx, span, noted, r, out, began)
		}()
		out.Header().Set("X-Request-Id", noted.id)
		next.ServeHTTP(out, r.WithContext(ctx))
	})
}

func (w *watch) finish(ctx context.Context, span trace.Span, noted *request, r *http.Request, out *countedWriter, began time.Time) {
	took, status := time.Since(began), strconv.Itoa(out.status)
	operation := noted.operation
	if operation == "" {
		operation = "other"
	}
	w.requests.WithLabelValues(operation, status).Inc()
	w.seconds.WithLabelValues(operation).Observe(took.Seconds())
	span.SetAttributes(attribute.String("coppice.operation", operation), attribute.Int("http.response.status_code", out.status))
	span.End()
	w.log.InfoContext(ctx, "request", "request", noted.id, "method", methodOf(r), "operation", operation, "token", noted.caller,
		"status", out.status, "bytes", out.bytes, "took", took.Round(time.Microsecond))
}

// methodOf returns the method of a request, or "other": a caller can make one up.
func methodOf(r *http.Request) string {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return r.Method
	}
	return "other"
}

// metrics returns the handler of /metrics.
func (w *watch) metrics() http.Handler {
	return promhttp.HandlerFor(w.registry, promhttp.HandlerOpts{})
}

// patience is how long a caller may take to send a piece of a body, or to receive a piece of
// an answer. A slower caller counts as gone.
const patience = 30 * time.Second

// timedBody is the body of a request, which must keep arriving.
type timedBody struct {
	io.ReadCloser
	control *http.ResponseController
}

func (a *timedBody) Read(p []byte) (int, error) {
	_ = a.control.SetReadDeadline(time.Now().Add(patience))
	n, err := a.ReadCloser.Read(p)
	if err == io.EOF {
		_ = a.control.SetReadDeadline(time.Time{}) // net/http keeps reading, to notice when the caller leaves
	}
	return n, err
}

// countedWriter records what is answered, and gives up on a caller that does not read it.
type countedWriter struct {
	http.ResponseWriter
	control *http.ResponseController
	status  int
	bytes   int64
	late    atomic.Bool // nothing more is waited for
}

func (c *countedWriter) extendDeadline() {
	_ = c.control.SetWriteDeadline(time.Now().Add(patience))
	if c.late.Load() { // it may have become late in between
		c.cutOff()
	}
}

// cutOff makes every write fail, also one that is waiting.
func (c *countedWriter) cutOff() {
	c.late.Store(true)
	_ = c.control.SetWriteDeadline(time.Unix(1, 0))
}

func (c *countedWriter) WriteHeader(status int) {
	if c.status == 0 {
		c.status = status
	}
	c.extendDeadline()
	c.ResponseWriter.WriteHeader(status)
}

// maxPiece is how much of an answer a caller has to receive in time, in bytes.
const maxPiece = 64 << 10

func (c *countedWriter) Write(p []byte) (n int, err error) {
	if c.status == 0 {
		c.status = http.StatusOK
	}
	for {
		c.extendDeadline()
		written, err := c.ResponseWriter.Write(p[n:min(n+maxPiece, len(p))])
		n += written
		c.bytes += int64(written)
		if err != nil || n == len(p) {
			return n, err
		}
	}
}

// Unwrap lets http.ResponseController reach the connection.
func (c *countedWriter) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// healthy says that the server runs.
func (s *Server) healthy(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write([]byte("{\"status\":\"ok\"}\n"))
}

// readyFor is how long what /readyz found out is good for. It needs no token, and those who ask
// again and again must not have the home read each time.
const readyFor = time.Second

// readiness is whether the home could be read when that was last looked at.
type readiness struct {
	mu     sync.Mutex // guards what follows, and is held by the one who looks
	looked time.Time
	err    error
}

func (n *readiness) of(ctx context.Context, st store.Store) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if time.Since(n.looked) >= readyFor {
		n.err = nil
		for _, n.err = range st.List(context.WithoutCancel(ctx)) { // the answer is for others, too
			break
		}
		n.looked = time.Now()
	}
	return n.err
}

// ready says whether the server accepts requests: it is not about to stop, and its home can
// be read.
func (s *Server) ready(w http.ResponseWriter, r *http.Request) {
	if s.stopping.Err() != nil {
		s.fail(w, r, problemf(http.StatusServiceUnavailable, home.KindUnavailable, "the server is stopping"))
		return
	}
	if err := s.readiness.of(r.Context(), s.o.Home.Store()); err != nil {
		s.o.Log.ErrorContext(r.Context(), "the home cannot be read", "error", err)
		s.fail(w, r, problemf(http.StatusServiceUnavailable, home.KindUnavailable, "the home cannot be read; the server's log says why"))
		return
	}
	s.healthy(w, r)
}

// profiles returns the handlers of net/http/pprof.
func profiles() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return mux
}
