package home

import (
	"cmp"
	"context"
	"errors"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/client"
	"github.com/coppice-dev/coppice/provider/offline"
)

// DefaultLastRequests is how many requests Why explains by default.
const DefaultLastRequests = 10

// WhyRequest asks what was sent to models.
type WhyRequest struct {
	Session string `json:"session"`        // as a person names it: see Resolve
	Link    bool   `json:"link,omitempty"` // only the session that is named
	// Last is how many requests to explain, the latest ones; -1 means all. Default:
	// DefaultLastRequests.
	Last int `json:"last,omitempty"`
}

// WhyResult says what was sent to models.
type WhyResult struct {
	Session  string        `json:"session"`
	Requests []SentRequest `json:"requests"` // oldest first
}

// SentRequest is a request that an agent sent for a session.
type SentRequest struct {
	Session string `json:"session"`
	agent.Reuse
	Cached *int `json:"cached_percent,omitempty"` // how much of what was sent came from the cache; missing if it is not known
}

// Why returns the last requests that agents sent for a conversation, with what they cost,
// how much of each was the beginning of the one before and could come from the provider's
// cache, and why the rest could not. It also says whether a request can be built again from
// the log, byte for byte. It asks no model and writes nothing.
func (e *Entries) Why(ctx context.Context, r WhyRequest) (*WhyResult, error) {
	return call(ctx, e.home, "entries.why", r, e.why)
}

func (e *Entries) why(ctx context.Context, r WhyRequest) (*WhyResult, error) {
	last := cmp.Or(r.Last, DefaultLastRequests)
	if err := allOrMore("last", r.Last); err != nil {
		return nil, err
	}
	c, err := e.home.openFor(ctx, OpenRequest{Session: r.Session})
	if err != nil {
		return nil, err
	}
	result, err := e.home.why(ctx, c, r, max(last, 0))
	return result, errors.Join(err, c.Close())
}

func (h *Home) why(ctx context.Context, c *Conversation, r WhyRequest, last int) (_ *WhyResult, err error) {
	result, wanted := &WhyResult{Session: c.Handle, Requests: []SentRequest{}}, last
	if r.Link {
		if result.Session, err = h.resolve(ctx, r.Session); err != nil {
			return nil, err
		}
		wanted = 0 // requests of other sessions do not count
	}
	sent, err := agent.Requests(c.Session, wanted, h.settings.encoder)
	for i := range sent {
		if in := c.SessionOf(sent[i].ID); !r.Link || in == result.Session {
			one := SentRequest{Session: in, Reuse: sent[i]}
			if u := one.Usage; u != nil {
				one.Cached = cachedPercent(int64(u.CacheRead), int64(u.Sent()))
			}
			result.Requests = append(result.Requests, one)
		}
	}
	if n := len(result.Requests); last > 0 && n > last {
		result.Requests = result.Requests[n-last:]
	}
	return result, err
}

// encoder returns a model that encodes a request like the one that a record names, or nil if
// there is none.
func (s *Settings) encoder(r *agent.Record) provider.Model {
	if r.Provider == offline.Name {
		return &offline.Model{}
	}
	o := client.Options{Provider: cmp.Or(r.API, r.Provider), Model: r.Model, Name: r.Provider, Families: s.families()}
	if r.Provider == openAIChat { // a server of the user's own: see openAIChat
		o.BaseURL = "http://localhost"
	}
	m, err := client.New(o)
	if err != nil {
		return nil
	}
	return m
}
