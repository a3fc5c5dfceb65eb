package mcp

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// network sends requests to a server over HTTP. It adds the caller's header, and it can be
// torn down, because the library waits for answers that may never come.
type network struct {
	header http.Header
	base   *http.Transport
	life   context.Context
	end    context.CancelFunc
}

func newNetwork(s *Server) *network {
	n := &network{header: s.opts.Header.Clone(), base: http.DefaultTransport.(*http.Transport).Clone()}
	n.life, n.end = context.WithCancel(context.Background())
	return n
}

func (n *network) transport(address string, maxAnswer int) sdk.Transport {
	return &sdk.StreamableClientTransport{Endpoint: address, MaxEventSize: maxAnswer, HTTPClient: &http.Client{
		Transport: n,
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if len(via) > 5 || !sameHost(r.URL, via[0].URL) {
				return http.ErrUseLastResponse // the header is for that host alone
			}
			return nil
		},
	}}
}

func sameHost(a, b *url.URL) bool { return a.Scheme == b.Scheme && a.Host == b.Host }

// RoundTrip implements http.RoundTripper.
func (n *network) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	stop := context.AfterFunc(n.life, cancel)
	done := sync.OnceFunc(func() { stop(); cancel() })
	r = r.Clone(ctx)
	for name, values := range n.header {
		r.Header[http.CanonicalHeaderKey(name)] = values
	}
	response, err := n.base.RoundTrip(r)
	if err != nil {
		done()
		return nil, err
	}
	response.Body = &body{response.Body, done}
	return response, nil
}

// close ends all requests.
func (n *network) close() {
	n.end()
	n.base.CloseIdleConnections()
}

// body releases a request's resources when its answer is closed.
type body struct {
	io.ReadCloser
	done func()
}

// Close implements io.Closer.
func (b *body) Close() error {
	defer b.done()
	return b.ReadCloser.Close()
}
