package ipc_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/server/ipc"
)

// object is a JSON object.
type object = map[string]any

// newHome opens a home in a directory of its own, with these settings.
func newHome(t testing.TB, more ...string) *home.Home {
	t.Helper()
	dir := t.TempDir()
	env := map[string]string{"HOME": dir, "COPPICE_SYNC": "never"}
	for _, one := range more {
		name, value, _ := strings.Cut(one, "=")
		env[name] = value
	}
	settings, err := home.LoadSettings(func(name string) string { return env[name] })
	if err != nil {
		t.Fatal(err)
	}
	h, err := home.Open(t.Context(), filepath.Join(dir, "sessions"), &home.Options{Settings: settings, Create: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

// socketPath returns a path for a socket. The directories of tests have names that are too long.
func socketPath(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "ipc")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "s")
}

// serve starts a server for a home and returns it and the path of its socket.
func serve(t testing.TB, h *home.Home, o *ipc.Options) (*ipc.Server, string) {
	t.Helper()
	path := socketPath(t)
	l, err := ipc.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	s := ipc.New(h, o)
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return s, path
}

// client talks to a server by lines.
type client struct {
	testing.TB
	net.Conn
	lines *bufio.Reader
}

func dial(t testing.TB, path string) *client {
	t.Helper()
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	// A test that waits in vain should say where.
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	return &client{t, conn, bufio.NewReader(conn)}
}

// begin starts a server for a new home, and connects to it.
func begin(t testing.TB) *client {
	t.Helper()
	_, path := serve(t, newHome(t), nil)
	return dial(t, path)
}

// progress is what notifications about progress begin with.
const progress = `{"jsonrpc":"2.0","method":"progress"`

// say sends a line.
func (c *client) say(line string) {
	c.Helper()
	if _, err := c.Write([]byte(line + "\n")); err != nil {
		c.Fatal(err)
	}
}

// hear returns the next line.
func (c *client) hear() string {
	c.Helper()
	line, err := c.lines.ReadString('\n')
	if err != nil {
		c.Fatalf("reading an answer: %v", err)
	}
	return line[:len(line)-1]
}

// ask sends a line and returns the next one as an object.
func (c *client) ask(line string) object {
	c.Helper()
	c.say(line)
	return c.next()
}

// next returns the next line as an object. How far a request has come does not count: it depends
// on how busy the machine is.
func (c *client) next() object {
	c.Helper()
	line := c.hear()
	for strings.HasPrefix(line, progress) {
		line = c.hear()
	}
	var answer object
	if err := json.Unmarshal([]byte(line), &answer); err != nil {
		c.Fatalf("%s: %v", line, err)
	}
	return answer
}

// call sends a request and returns its answer, without what comes before it.
func (c *client) call(id any, method string, params any) object {
	c.Helper()
	c.say(call(id, method, params))
	return c.answer()
}

// answer returns the next answer, without the notifications before it.
func (c *client) answer() object {
	c.Helper()
	for {
		if answer := c.next(); answer["method"] == nil {
			return answer
		}
	}
}

// create creates a session and returns its id.
func (c *client) create() string {
	c.Helper()
	id, ok := c.ask(`{"type":"session_create"}`)["session_id"].(string)
	if !ok || id == "" {
		c.Fatal("no session was created")
	}
	return id
}
