package client

import (
	"errors"
	"slices"
	"sync"

	"github.com/coppice-dev/coppice/provider"
)

// Refusals remember which parameters models turned out not to take. They may be used
// concurrently, and by several clients: then what one of them found out, the others know. The
// zero value knows nothing.
type Refusals struct {
	mu   sync.Mutex
	byID map[string][]string
}

// of returns the parameters that a model does not take.
func (r *Refusals) of(model string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.byID[model]
}

func (r *Refusals) add(model, parameter string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Contains(r.byID[model], parameter) {
		if r.byID == nil {
			r.byID = make(map[string][]string)
		}
		r.byID[model] = append(slices.Clip(r.byID[model]), parameter) // others read the old list
	}
}

// id names the client's model among all of the world's.
func (c *Client) id() string { return c.base + " " + c.info.Model }

// allowed returns a request without the parameters that its model turned out not to take.
func (c *Client) allowed(r *provider.Request) *provider.Request {
	refused := c.opts.Refusals.of(c.id())
	if r == nil || len(refused) == 0 {
		return r
	}
	less := *r
	less.Without = slices.Clone(r.Without)
	for _, parameter := range refused {
		if !slices.Contains(less.Without, parameter) {
			less.Without = append(less.Without, parameter)
		}
	}
	return &less
}

// noteRefused looks at the error of a request. If the request was refused for a parameter that
// can be left out, later requests lack it, the error says so, and the result is the request
// without it.
func (c *Client) noteRefused(r *provider.Request, sent *provider.Encoded, err error) *provider.Encoded {
	var refused *provider.Error
	if r == nil || !errors.As(err, &refused) {
		return nil
	}
	parameter := refused.Parameter()
	if parameter == "" {
		return nil
	}
	less := *r
	less.Memo, less.Without = nil, append(slices.Clone(sent.Without), parameter)
	encoded, err := c.Encode(&less)
	if err != nil || encoded.Sum() == sent.Sum() {
		return nil // it was not sent, or cannot be left out
	}
	c.opts.Refusals.add(c.id(), parameter)
	refused.Dropped = parameter
	return encoded
}
