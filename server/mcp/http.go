package mcp

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/coppice-dev/coppice/home"
)

// Handler serves MCP over streamable HTTP until ctx ends, and with it what streams. view
// returns the home as the sender of a request may see it, and how; a nil home refuses the
// request. The server around it checks who asks, for which host, and from which page.
//
// In the protocol of 2026-07-28, every request stands alone. A client of an older one gets a
// session when it initializes, over which it hears about changes. The session belongs to the
// caller, as long as that has the same view. It ends when it was not used for a while, and when
// a request's context ends with a cause of its own, such as a token that was revoked. There is
// only so much room for them. A client without a session, or with one that has ended, is
// answered like one that never had one: only changes need it.
func Handler(ctx context.Context, view func(*http.Request) (*home.Home, *Options)) http.Handler {
	h := &handler{ctx: ctx, view: view, schemas: sdk.NewSchemaCache(), sessions: make(map[string]*kept)}
	h.alone = sdk.NewStreamableHTTPHandler(serverOf, &sdk.StreamableHTTPOptions{
		Stateless: true, PropagateRequestCancellation: true, DisableLocalhostProtection: true,
	})
	h.kept = sdk.NewStreamableHTTPHandler(serverOf, &sdk.StreamableHTTPOptions{DisableLocalhostProtection: true})
	return h
}

const (
	// maxSessions is how many sessions there may be, and maxOwn how many of one caller.
	maxSessions, maxOwn = 1000, 50
	// maxIdle is how long a session is kept that nobody uses or listens to.
	maxIdle = 10 * time.Minute
)

// handler sends a request to where its session is, if it has one.
type handler struct {
	ctx         context.Context
	view        func(*http.Request) (*home.Home, *Options)
	schemas     *sdk.SchemaCache
	alone, kept http.Handler

	mu       sync.Mutex // guards sessions, and what they have
	sessions map[string]*kept
}

// owner is to whom a session belongs.
type owner struct {
	caller   string
	home     *home.Home
	readOnly bool
}

// kept is the session of a client.
type kept struct {
	id      string
	owner   owner
	server  *sdk.Server
	session *sdk.ServerSession // nil until it has begun
	busy    int                // requests of it that run
	idle    *time.Timer        // ends it
}

type serverKey struct{}

// serverOf returns the server for a request. The SDK asks for it more than once.
func serverOf(r *http.Request) *sdk.Server {
	s, _ := r.Context().Value(serverKey{}).(*sdk.Server)
	return s
}

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	seen, o := h.view(r)
	if seen == nil {
		h.alone.ServeHTTP(w, r)
		return
	}
	if o == nil {
		o = &Options{}
	}
	who, id := owner{o.Caller, seen, o.ReadOnly}, r.Header.Get("Mcp-Session-Id")
	var k *kept
	switch {
	case id != "":
		k = h.enter(id, who)
	case r.Method == http.MethodPost && initializes(r):
		k = h.begin(who, o)
	}
	switch {
	case k != nil:
		defer h.leave(k, r)
		h.kept.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), serverKey{}, k.server)))
	case id != "" && r.Method != http.MethodPost:
		http.Error(w, "session not found", http.StatusNotFound)
	default:
		f := newFace(seen, o, h.schemas, nil)
		f.alone = true
		f.server.AddReceivingMiddleware(h.untilStop)
		h.alone.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), serverKey{}, f.server)))
	}
}

// initializes reports whether a request begins a session. What was read of it can be read again.
func initializes(r *http.Request) bool {
	const most = 64 << 10
	if r.Header.Get("Mcp-Protocol-Version") >= listening {
		return false
	}
	start, err := io.ReadAll(io.LimitReader(r.Body, most))
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(start), r.Body), r.Body}
	var message struct{ Method string }
	return err == nil && len(start) < most && json.Unmarshal(start, &message) == nil && message.Method == "initialize"
}

// untilStop ends the requests that listen when the handler is to stop.
func (h *handler) untilStop(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, r sdk.Request) (sdk.Result, error) {
		if method == "subscriptions/listen" {
			var cancel context.CancelFunc
			ctx, cancel = context.WithCancel(ctx)
			defer cancel()
			defer context.AfterFunc(h.ctx, cancel)()
		}
		return next(ctx, method, r)
	}
}

// begin makes room for a session. It returns nil if there is none.
func (h *handler) begin(who owner, o *Options) *kept {
	h.mu.Lock()
	defer h.mu.Unlock()
	own := 0
	for _, k := range h.sessions {
		if k.owner.caller == who.caller {
			own++
		}
	}
	if own >= maxOwn || len(h.sessions) >= maxSessions || h.ctx.Err() != nil {
		return nil
	}
	k := &kept{id: rand.Text(), owner: who, busy: 1}
	k.server = newFace(who.home, o, h.schemas, func() string { return k.id }).server
	k.server.AddReceivingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, method string, r sdk.Request) (sdk.Result, error) {
			result, err := next(ctx, method, r)
			if c, ok := r.GetSession().(*sdk.ServerSession); ok && err == nil && method == "initialize" {
				h.keep(k, c)
			}
			return result, err
		}
	})
	h.sessions[k.id] = k
	return k
}

// keep keeps a session that has begun until it ends.
func (h *handler) keep(k *kept, c *sdk.ServerSession) {
	h.mu.Lock()
	defer h.mu.Unlock()
	k.session = c
	stop := context.AfterFunc(h.ctx, func() { _ = c.Close() }) // the client is gone, too
	go func() {
		_ = c.Wait() // however it ended
		stop()
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.sessions, k.id)
		if k.idle != nil {
			k.idle.Stop()
		}
	}()
}

// enter returns a session of a caller, or nil.
func (h *handler) enter(id string, who owner) *kept {
	h.mu.Lock()
	defer h.mu.Unlock()
	k := h.sessions[id]
	if k == nil || k.owner != who {
		return nil
	}
	k.busy++
	return k
}

// leave counts a request of a session out.
func (h *handler) leave(k *kept, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	k.busy--
	why := context.Cause(r.Context())
	switch refused := why != nil && !errors.Is(why, context.Canceled); {
	case k.session == nil: // it did not begin
		delete(h.sessions, k.id)
	case refused:
		go k.session.Close() // it waits for what runs
	case k.busy > 0:
	case k.idle == nil:
		k.idle = time.AfterFunc(maxIdle, func() { h.end(k) })
	default:
		k.idle.Reset(maxIdle)
	}
}

// end ends a session that was not used for a while.
func (h *handler) end(k *kept) {
	h.mu.Lock()
	busy := k.busy > 0
	if !busy {
		delete(h.sessions, k.id)
	}
	h.mu.Unlock()
	if !busy {
		_ = k.session.Close() // nobody is there to hear of it
	}
}
