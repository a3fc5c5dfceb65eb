package remote_test

import (
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
)

// What a proxy does with answers.
const (
	pass    = iota
	cut     // closes the connection instead of the answer
	swallow // says nothing, and keeps the connection open
	half    // lets the first byte of an answer through, and closes the connection
)

// proxy is a bad connection to a server.
type proxy struct {
	listener net.Listener
	target   atomic.Pointer[string]
	mode     atomic.Int32
	refuse   atomic.Bool // closes connections before a byte of the request gets through
	cuts     atomic.Int32

	mu    sync.Mutex
	conns map[net.Conn]bool
}

func newProxy(t testing.TB, address string) (*proxy, string) {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: listener, conns: make(map[net.Conn]bool)}
	p.moveTo(u.Host)
	go p.run()
	t.Cleanup(func() {
		listener.Close()
		p.hangUp()
	})
	u.Host = listener.Addr().String()
	return p, u.String()
}

func (p *proxy) run() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", *p.target.Load())
		if err != nil || p.refuse.Load() {
			client.Close()
			continue
		}
		p.mu.Lock()
		p.conns[client], p.conns[server] = true, true
		p.mu.Unlock()
		go func() {
			_, _ = io.Copy(server, client)
			server.Close()
		}()
		go p.answer(client, server)
	}
}

func (p *proxy) answer(client, server net.Conn) {
	defer client.Close()
	defer server.Close()
	buf := make([]byte, 32<<10)
	for {
		n, err := server.Read(buf)
		if err != nil {
			return
		}
		mode := p.mode.Load()
		switch mode {
		case cut, half:
			if mode == half {
				_, _ = client.Write(buf[:1])
			}
			p.cuts.Add(1)
			return
		case swallow:
			p.cuts.Add(1)
			continue
		}
		if _, err := client.Write(buf[:n]); err != nil {
			return
		}
	}
}

// moveTo gives the proxy another server.
func (p *proxy) moveTo(host string) { p.target.Store(&host) }

// hangUp closes all connections.
func (p *proxy) hangUp() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for conn := range p.conns {
		conn.Close()
	}
	clear(p.conns)
}
