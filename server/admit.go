package server

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/coppice-dev/coppice/home"
)

// admission decides who may send requests. Its checks come before anything but the header of
// a request is read.
type admission struct {
	o       *Options
	origins *http.CrossOriginProtection
	memory  *memory

	browsers *browsers

	mu      sync.Mutex // guards callers
	callers map[string]*caller
}

// caller counts the requests of a token.
type caller struct {
	rate             *rate.Limiter
	requests, stream chan struct{} // as many elements as may run at once
	held             int64         // what its requests hold in memory; guarded by memory.mu
}

func newAdmission(o *Options) (*admission, error) {
	a := &admission{o: o, origins: http.NewCrossOriginProtection(), memory: newMemory(o.Limits.Memory), browsers: newBrowsers(), callers: make(map[string]*caller)}
	for _, origin := range o.Origins {
		if err := a.origins.AddTrustedOrigin(origin); err != nil {
			return nil, err
		}
	}
	return a, nil
}

type grantKey struct{}

// GrantOf returns what the caller of a request may do.
func GrantOf(ctx context.Context) *Grant {
	g, _ := ctx.Value(grantKey{}).(*Grant)
	return g
}

// admitting returns a handler that lets through what may pass, with its Grant.
func (s *Server) admitting(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cross-Origin-Resource-Policy", "same-origin")
		switch r.URL.Path { // these need no token; they reveal nothing about the home
		case "/healthz":
			s.healthy(w, r)
			return
		case "/readyz":
			s.ready(w, r)
			return
		case "/openapi.json":
			if r.Method == http.MethodGet && s.admit.isHost(r.Host) {
				s.serveAPI(w, r)
				return
			}
		}
		if s.page(w, r) {
			return
		}
		g, err := s.admit.check(r)
		if err != nil {
			s.fail(w, r, err)
			return
		}
		noteCaller(r.Context(), g.Name)
		held, end, err := s.admit.enter(g.Name, s.isStream(r))
		if err != nil {
			s.fail(w, r, err)
			return
		}
		defer end()
		ctx := context.WithValue(context.WithValue(r.Context(), grantKey{}, g), reservationKey{}, held)
		ctx, cancel := s.admit.whileAllowed(ctx, s.admit.browsers.tokenOf(r))
		defer cancel()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// askAgain is how long a request may run before its token is checked again.
const askAgain = 5 * time.Second

// whileAllowed returns a context that ends when a token is no longer valid: its holder must
// not keep listening. Its cause is why.
func (a *admission) whileAllowed(ctx context.Context, token string) (context.Context, context.CancelFunc) {
	if a.o.Authorize == nil {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	var look atomic.Pointer[time.Timer]
	look.Store(time.AfterFunc(askAgain, func() {
		if _, err := a.o.Authorize(ctx, token); err != nil {
			cancel(err)
		} else if ctx.Err() == nil {
			look.Load().Reset(askAgain)
		}
	}))
	return ctx, func() { cancel(nil); look.Load().Stop() }
}

// check returns who asks.
func (a *admission) check(r *http.Request) (*Grant, error) {
	if err := a.isAllowed(r); err != nil {
		return nil, err
	}
	return a.grantTo(r.Context(), a.browsers.tokenOf(r))
}

// isAllowed returns why a request is refused whoever sends it, or nil.
func (a *admission) isAllowed(r *http.Request) error {
	if !a.isHost(r.Host) {
		return &Problem{
			Status: http.StatusMisdirectedRequest, Kind: home.KindForbidden, Detail: "this server does not answer for the host " + r.Host,
			Hint: "ask for localhost, or have the server answer for this name: coppice serve --host NAME",
		}
	}
	if err := a.origins.Check(r); err != nil || a.isForeign(r) {
		return problemf(http.StatusForbidden, home.KindForbidden, "a page of another site may not ask this server")
	}
	return nil
}

// isForeign reports whether a page of another site sends a request to a server without
// tokens. Such a page could embed images, and find out which sessions exist.
func (a *admission) isForeign(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	return a.o.Authorize == nil && (site == "cross-site" || site == "same-site")
}

// isHost reports whether the server answers for a name. A page of another site whose name
// points to this machine (DNS rebinding) uses that name.
func (a *admission) isHost(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.TrimSuffix(strings.ToLower(strings.Trim(name, "[]")), ".")
	if ip, err := netip.ParseAddr(name); err == nil && ip.IsLoopback() || name == "localhost" {
		return true
	}
	return slices.ContainsFunc(a.o.Hosts, func(known string) bool {
		return strings.EqualFold(known, host) || strings.EqualFold(known, name)
	})
}

// grantTo finds out who has a token.
func (a *admission) grantTo(ctx context.Context, token string) (*Grant, error) {
	g := &Grant{Name: "everybody", Access: home.Admin}
	if a.o.Authorize != nil {
		var err error
		if g, err = a.o.Authorize(ctx, token); errors.Is(err, ErrUnauthorized) {
			return nil, &Problem{
				Status: http.StatusUnauthorized, Kind: home.KindUnauthorized, Detail: ErrUnauthorized.Error(),
				Hint: "send it as Authorization: Bearer TOKEN; coppice token add NAME makes one",
			}
		} else if err != nil {
			return nil, err
		}
	}
	return g, nil
}

// bearer returns the token of a request. It is not taken from the address: that ends up in
// logs and histories.
func bearer(r *http.Request) string {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// enter counts a request in. It returns what the request holds in memory, which is nothing yet,
// and what counts it out.
func (a *admission) enter(name string, stream bool) (_ *reservation, end func(), _ error) {
	a.mu.Lock()
	c := a.callers[name]
	if c == nil {
		l := a.o.Limits
		c = &caller{rate.NewLimiter(rate.Limit(l.Rate), int(2*l.Rate)+1), make(chan struct{}, l.Requests), make(chan struct{}, l.Streams), 0}
		a.callers[name] = c
	}
	a.mu.Unlock()
	if !c.rate.Allow() {
		return nil, nil, tooMany("there are too many requests a second")
	}
	room, what := c.requests, "requests"
	if stream {
		room, what = c.stream, "streams"
	}
	select {
	case room <- struct{}{}:
		held := &reservation{of: a.memory, caller: c}
		return held, func() { held.end(); <-room }, nil
	default:
		return nil, nil, tooMany("there are too many " + what + " at once")
	}
}

func tooMany(why string) *Problem {
	return &Problem{Status: http.StatusTooManyRequests, Kind: home.KindLimited, Detail: why, Hint: "wait a moment, and ask again"}
}
