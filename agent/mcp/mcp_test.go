package mcp_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/agent/mcp"
	"github.com/coppice-dev/coppice/internal/leak"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/session"
)

// The test binary is also the server: it is started again with this variable set.
const serverVariable = "COPPICE_TEST_MCP_SERVER"

func TestMain(m *testing.M) {
	if kind := os.Getenv(serverVariable); kind != "" {
		serve(kind)
		return
	}
	leak.Main(m)
}

// text is a result with a text.
func text(format string, args ...any) *sdk.CallToolResult {
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: fmt.Sprintf(format, args...)}}}
}

var (
	png, _ = base64.StdEncoding.DecodeString("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==") // one pixel
	object = json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}}}`)
)

// newServer makes a server with a tool for everything that can happen. What takes long
// ends when it is over.
func newServer(over <-chan struct{}) *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "Test Server!", Version: "1"}, nil)
	add := func(t *sdk.Tool, run func(ctx context.Context, text string) (*sdk.CallToolResult, error)) {
		if t.InputSchema == nil {
			t.InputSchema = object
		}
		s.AddTool(t, func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			var in struct{ Text string }
			if err := json.Unmarshal(r.Params.Arguments, &in); err != nil {
				return nil, err
			}
			return run(ctx, in.Text)
		})
	}
	returns := func(content ...sdk.Content) func(context.Context, string) (*sdk.CallToolResult, error) {
		return func(context.Context, string) (*sdk.CallToolResult, error) {
			return &sdk.CallToolResult{Content: content}, nil
		}
	}
	blob := func(uri, kind string, data []byte) sdk.Content {
		return &sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: uri, MIMEType: kind, Blob: data}}
	}
	add(&sdk.Tool{Name: "echo", Description: "says it again", Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true}},
		func(_ context.Context, in string) (*sdk.CallToolResult, error) { return text("you said %s", in), nil })
	add(&sdk.Tool{Name: "set", Title: "Set it", Annotations: &sdk.ToolAnnotations{IdempotentHint: true}}, returns())
	add(&sdk.Tool{Name: "slow"}, func(ctx context.Context, marker string) (*sdk.CallToolResult, error) {
		_ = os.WriteFile(marker+".begun", nil, 0o600)
		select {
		case <-ctx.Done():
			_ = os.WriteFile(marker+".cancelled", nil, 0o600)
			return nil, ctx.Err()
		case <-over:
			return text("at last"), nil
		}
	})
	add(&sdk.Tool{Name: "die"}, func(context.Context, string) (*sdk.CallToolResult, error) {
		fmt.Fprintln(os.Stderr, "out of \x1b[31mmemory")
		os.Exit(3)
		return nil, nil
	})
	add(&sdk.Tool{Name: "huge"}, func(context.Context, string) (*sdk.CallToolResult, error) {
		return text("%s", strings.Repeat("x", 1<<19)), nil
	})
	add(&sdk.Tool{Name: "gigantic"}, func(context.Context, string) (*sdk.CallToolResult, error) {
		return text("%s", strings.Repeat("x", 17<<20)), nil
	})
	add(&sdk.Tool{Name: "env"}, func(_ context.Context, name string) (*sdk.CallToolResult, error) {
		dir, err := os.Getwd()
		return text("%s in %s", os.Getenv(name), filepath.Base(dir)), err
	})
	add(&sdk.Tool{Name: "fail"}, func(context.Context, string) (*sdk.CallToolResult, error) {
		r := text("it did not work")
		r.IsError = true
		return r, nil
	})
	add(&sdk.Tool{Name: "refuse"}, func(context.Context, string) (*sdk.CallToolResult, error) { return nil, errors.New("not like that") })
	add(&sdk.Tool{Name: "image"}, returns(&sdk.TextContent{Text: "look"}, &sdk.ImageContent{MIMEType: "image/jpeg", Data: png}))
	add(&sdk.Tool{Name: "no_image"}, returns(&sdk.ImageContent{MIMEType: "image/png", Data: []byte("<html>")}))
	add(&sdk.Tool{Name: "audio"}, returns(&sdk.AudioContent{MIMEType: "audio/wav", Data: []byte("RIFF")}))
	add(&sdk.Tool{Name: "resources"}, returns(
		&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "file:///a", Text: "in a"}},
		&sdk.ResourceLink{URI: "file:///b", Name: "b", Description: "the other"},
		blob("file:///c.png", "image/png", png), blob("file:///d.pdf", "application/pdf", []byte("%PDF")),
		blob("file:///e", "", []byte("PK\x03\x04")), blob("file:///f.csv", "text/csv", []byte("a,b")), blob("file:///g", "application/zip", make([]byte, 10<<20))))
	add(&sdk.Tool{Name: "pieces"}, func(context.Context, string) (*sdk.CallToolResult, error) {
		r := &sdk.CallToolResult{Content: []sdk.Content{&sdk.ImageContent{MIMEType: "image/png", Data: png}}}
		for range 1000 {
			r.Content = append(r.Content, &sdk.TextContent{Text: "y"})
		}
		return r, nil
	})
	add(&sdk.Tool{Name: "empty"}, returns(&sdk.TextContent{}, &sdk.TextContent{Text: " \n"}))
	add(&sdk.Tool{Name: "structured"}, func(context.Context, string) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{StructuredContent: map[string]any{"answer": 42}}, nil
	})
	add(&sdk.Tool{Name: "grow"}, func(_ context.Context, name string) (*sdk.CallToolResult, error) {
		s.AddTool(&sdk.Tool{Name: name, InputSchema: object}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) { return text("new"), nil })
		return text("grown"), nil
	})
	return s
}

// serve is the program that the tests start.
func serve(kind string) {
	switch kind {
	case "silent":
		_, _ = io.Copy(io.Discard, os.Stdin)
	case "stubborn": // it answers nothing, and does not end
		signal.Ignore(syscall.SIGTERM)
		time.Sleep(10 * time.Minute)
	case "broken":
		fmt.Fprintln(os.Stderr, "there is no such database")
		os.Exit(1)
	case "chatty":
		fmt.Println("Welcome to the server!")
		_, _ = io.Copy(io.Discard, os.Stdin)
	case "normal":
		if err := newServer(nil).Run(context.Background(), &sdk.StdioTransport{}); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	default:
		hostile(kind)
	}
}

// hostile is a server that was written by hand, and not well.
func hostile(kind string) {
	tools := map[string]string{
		"odd": `{"tools":[{"name":"a.b","inputSchema":{"type":"object"}},{"name":"a b","inputSchema":{"type":"object"}},{"name":"a_b","inputSchema":{"type":"object"}},` +
			`{"name":"` + strings.Repeat("long", 40) + `1","inputSchema":{"type":"object"}},{"name":"` + strings.Repeat("long", 40) + `2","inputSchema":{"type":"object"}},` +
			`{"name":"日本","inputSchema":{"type":"object"}},{"name":"","inputSchema":{"type":"object"}},` +
			`{"name":"twice","description":"one","inputSchema":{"type":"object"}},{"name":"twice","description":"two","inputSchema":{"type":"object"}}]}`,
		"schemas": `{"tools":[{"name":"none"},{"name":"null","inputSchema":null},{"name":"untyped","inputSchema":{"properties":{}}},` +
			`{"name":"good","inputSchema":{"type":"object","properties":{"n":{"type":"integer","maximum":9007199254740993}},"$defs":{"x":{"$ref":"#/$defs/x"}}}},` +
			`{"name":"array","inputSchema":{"type":"array"}},{"name":"list","inputSchema":[1]},{"name":"true","inputSchema":true},{"name":"text","inputSchema":"x"},` +
			`{"name":"large","inputSchema":{"type":"object","description":"` + strings.Repeat("x", 70_000) + `"}},` +
			`{"name":"deep","inputSchema":{"type":"object","x":` + strings.Repeat(`{"x":`, 500) + "1" + strings.Repeat("}", 500) + `}},` +
			`{"name":"wordy","description":"` + strings.Repeat("日本", 20_000) + `","inputSchema":{"type":"object"}}]}`,
		"endless": `{"tools":[],"nextCursor":"again"}`,
		"many":    `{"tools":[` + strings.TrimSuffix(strings.Repeat(`{"name":"x","inputSchema":{"type":"object"}},`, 600), ",") + `],"nextCursor":"again"}`,
		"refuses": ``,
		"sloppy":  `{"tools":[{"name":"f","inputSchema":{"type":"object"}}]}`,
		"strange": `{"tools":[{"name":"f","inputSchema":{"type":"object"}}]}`,
	}[kind]
	dec := json.NewDecoder(os.Stdin)
	for {
		var r struct {
			ID     json.RawMessage
			Method string
		}
		if dec.Decode(&r) != nil {
			return
		}
		answer := func(member, value string) { fmt.Printf(`{"jsonrpc":"2.0","id":%s,%q:%s}`+"\n", r.ID, member, value) }
		switch {
		case kind == "sloppy" && r.Method == "server/discover":
			fmt.Print("Loading plugins…\n\n12\n")
		case kind == "sloppy" && r.Method == "tools/call":
			fmt.Print("warning: {\n")
			answer("result", `{"content":[{"type":"text","text":"fine"}]}`)
		case r.ID == nil:
		case r.Method == "initialize":
			answer("result", `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"日本","version":"1"}}`)
		case r.Method == "tools/list" && tools != "":
			answer("result", tools)
		case r.Method == "tools/call":
			answer("result", `{"content":[{"type":"hologram"}]}`)
		default:
			answer("error", `{"code":-32601,"message":"no such method"}`)
		}
	}
}

// logs is a logger to look into.
type logs struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func (l *logs) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// options start the test binary as a server of a kind, on a machine that may be slow.
func options(kind string) mcp.Options {
	return mcp.Options{Command: []string{os.Args[0]}, Env: []string{serverVariable + "=" + kind, "GORACE=atexit_sleep_ms=0"}, ConnectTimeout: 5 * time.Minute}
}

// connected is a server with its tools by the names that the server gave them.
type connected struct {
	t *testing.T
	*mcp.Server
}

func connect(t *testing.T, o mcp.Options) *connected {
	t.Helper()
	s, err := mcp.Connect(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return &connected{t, s}
}

func (c *connected) tool(name string) agent.Tool {
	c.t.Helper()
	list := c.Tools()
	i := slices.IndexFunc(list, func(t agent.Tool) bool { return t.Name == c.Name()+"_"+name })
	if i < 0 {
		c.t.Fatalf("there is no tool %s_%s among %d", c.Name(), name, len(list))
	}
	return list[i]
}

func (c *connected) run(ctx context.Context, name, in string) (agent.Result, error) {
	c.t.Helper()
	input, err := json.Marshal(map[string]string{"text": in})
	if err != nil {
		c.t.Fatal(err)
	}
	return c.tool(name).Run(ctx, agent.Call{Input: input})
}

// call runs a tool without an error of ours.
func (c *connected) call(name, in string) agent.Result {
	c.t.Helper()
	r, err := c.run(c.t.Context(), name, in)
	if err != nil {
		c.t.Fatalf("%s: %v", name, err)
	}
	return r
}

// eventually waits for something that happens elsewhere.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it never came: %s", what)
		}
	}
}

// onBoth runs a test with a program and with a server on the network.
func onBoth(t *testing.T, test func(t *testing.T, o mcp.Options)) {
	t.Run("stdio", func(t *testing.T) { test(t, options("normal")) })
	t.Run("http", func(t *testing.T) {
		over := make(chan struct{})
		server := newServer(over)
		h := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil))
		t.Cleanup(func() {
			close(over)
			h.CloseClientConnections()
			h.Close()
		})
		test(t, mcp.Options{URL: h.URL})
	})
}

func TestToolsOfAServer(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, o mcp.Options) {
		o.Name = "Named!"
		c := connect(t, o)
		if c.Name() != "named" { // and not what it calls itself
			t.Errorf("the server is called %q", c.Name())
		}
		r := provider.Request{Entries: []session.Entry{{}}}
		for _, tool := range c.Tools() {
			r.Tools = append(r.Tools, tool.Tool)
		}
		if err := r.Check(); err != nil || !slices.IsSortedFunc(r.Tools, func(a, b provider.Tool) int { return strings.Compare(a.Name, b.Name) }) {
			t.Error(err, r.Tools)
		}
		echo := c.tool("echo")
		var schema, want any
		if err := errors.Join(json.Unmarshal(echo.Schema, &schema), json.Unmarshal(object, &want)); err != nil || fmt.Sprint(schema) != fmt.Sprint(want) {
			t.Errorf("%s, %v", echo.Schema, err)
		}
		if echo.Description != "says it again" || c.tool("set").Description != "Set it" {
			t.Errorf("%q, %q", echo.Description, c.tool("set").Description)
		}
		for name, want := range map[string]agent.Result{
			"echo":       {Text: "you said hi"},
			"set":        {Text: "[no output]"},
			"empty":      {Text: "[no output]"},
			"structured": {Text: `{"answer":42}`},
			"fail":       {Text: "it did not work", IsError: true},
			"refuse":     {Text: "not like that", IsError: true},
		} {
			if got := c.call(name, "hi"); got.Text != want.Text || got.IsError != want.IsError || got.Parts != nil {
				t.Errorf("%s: %+v, want %+v", name, got, want)
			}
		}
		if got := c.call("huge", ""); len(got.Text) != 1<<19 {
			t.Errorf("%d bytes", len(got.Text))
		}
	})
}

func TestResultsThatAreMoreThanText(t *testing.T) {
	t.Parallel()
	c := connect(t, options("normal"))
	types := func(r agent.Result) string {
		var list []string
		for _, p := range r.Parts {
			list = append(list, string(p.Type))
		}
		return strings.Join(list, " ")
	}
	r := c.call("image", "")
	if types(r) != "text image" || r.Text != "look" || r.Parts[1].Image.Source.MediaType != "image/png" { // whatever the server calls it
		t.Errorf("%+v", r)
	}
	if r := c.call("no_image", ""); r.Parts != nil || !strings.Contains(r.Text, "left out") {
		t.Errorf("%+v", r)
	}
	if r := c.call("audio", ""); types(r) != "text audio" || r.Text != "[audio (audio/wav, 4 bytes)]" || r.Parts[1].Audio.Source.MediaType != "audio/wav" {
		t.Errorf("%+v", r)
	}
	r = c.call("resources", "")
	if types(r) != "text image text file text file text" || r.Parts[3].File.Name != "file:///d.pdf" || r.Parts[5].File.Source.MediaType != "application/zip" {
		t.Errorf("%s", types(r))
	}
	for _, want := range []string{"[file:///a]\nin a", "[b: file:///b] the other", "file:///d.pdf", "[file:///e (application/zip, 4 bytes)]", "[file:///f.csv]\na,b", "up to 10485760 bytes"} {
		if !strings.Contains(r.Text, want) {
			t.Errorf("%q is not in %q", want, r.Text)
		}
	}
}

// Any number of texts in a row is one part.
func TestResultOfManyPieces(t *testing.T) {
	t.Parallel()
	r := connect(t, options("normal")).call("pieces", "")
	if len(r.Parts) != 2 || r.Text != strings.TrimSpace(strings.Repeat("y\n", 1000)) {
		t.Errorf("%d parts, %d bytes", len(r.Parts), len(r.Text))
	}
}

// A rule for the tools of one server never allows those of another that takes its name.
func TestServerDoesNotNameItself(t *testing.T) {
	t.Parallel()
	c := connect(t, options("normal"))
	if want := strings.ReplaceAll(strings.ToLower(filepath.Base(os.Args[0])), ".", "_"); c.Name() != want {
		t.Errorf("it is called %q, and its program %q", c.Name(), want)
	}
}

// A server may print what is no message, and be silent about questions it does not know.
func TestJunkAndSilence(t *testing.T) {
	t.Parallel()
	var l logs
	o := options("sloppy")
	o.Name, o.Logger = "s", l.logger()
	c := connect(t, o)
	if r := c.call("f", ""); r.Text != "fine" || r.IsError {
		t.Errorf("%+v", r)
	}
	if !strings.Contains(l.String(), "Loading plugins") {
		t.Error(l.String())
	}
}

// What a server says about its tools counts only if the user trusts it.
func TestHintsCountOnlyIfTheyAreTrusted(t *testing.T) {
	t.Parallel()
	for _, trust := range []bool{false, true} {
		o := options("normal")
		o.TrustHints, o.Timeout = trust, time.Hour
		c := connect(t, o)
		for name, want := range map[string]struct{ asks, repeatable bool }{
			"echo": {!trust, trust}, "set": {true, trust}, "slow": {true, false},
		} {
			tool := c.tool(name)
			asks, reason := tool.Ask(agent.Call{})
			if asks != want.asks || tool.Repeatable != want.repeatable || tool.Timeout != time.Hour {
				t.Errorf("trust %v: %s asks %v, repeatable %v", trust, name, asks, tool.Repeatable)
			}
			if !strings.Contains(reason, "mcp_test") || strings.Contains(reason, "only reads") != (name == "echo") {
				t.Errorf("%s: %q", name, reason)
			}
		}
	}
}

// A call that nobody waits for any more ends at once, and the server hears of it.
func TestCancelledCall(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, o mcp.Options) {
		c := connect(t, o)
		marker := filepath.Join(t.TempDir(), "slow")
		exists := func(name string) func() bool {
			return func() bool {
				_, err := os.Stat(marker + name)
				return err == nil
			}
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		enough := errors.New("enough")
		go func() {
			eventually(t, "the call begins", exists(".begun"))
			cancel(enough)
		}()
		if r, err := c.run(ctx, "slow", marker); !errors.Is(err, enough) || !strings.Contains(r.Text, "may still be working") {
			t.Errorf("%+v, %v", r, err)
		}
		eventually(t, "the server stops", exists(".cancelled"))
		if r := c.call("echo", "again"); r.Text != "you said again" {
			t.Errorf("%+v", r)
		}
	})
}

func TestCloseEndsCalls(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, o mcp.Options) {
		c := connect(t, o)
		marker := filepath.Join(t.TempDir(), "slow")
		done := make(chan error, 1)
		go func() {
			_, err := c.run(t.Context(), "slow", marker)
			done <- err
		}()
		eventually(t, "the call begins", func() bool {
			_, err := os.Stat(marker + ".begun")
			return err == nil
		})
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if err := <-done; err == nil || !strings.Contains(err.Error(), "closed") {
			t.Error(err)
		}
		if _, err := c.run(t.Context(), "echo", ""); err == nil || !strings.Contains(err.Error(), "closed") {
			t.Error(err)
		}
	})
}

// The call that a server died of says so, is not repeated, and the next one works.
func TestServerThatDiesIsStartedAgain(t *testing.T) {
	t.Parallel()
	var l logs
	o := options("normal")
	o.Logger = l.logger()
	c := connect(t, o)
	for range 5 { // it is of use in between
		r := c.call("die", "")
		if !r.IsError || !strings.Contains(r.Text, "exit status 3") || !strings.Contains(r.Text, "may have been done or not") || !strings.Contains(r.Text, "memory") || strings.ContainsRune(r.Text, 0x1b) {
			t.Errorf("%+v", r)
		}
		if r := c.call("echo", "back"); r.Text != "you said back" {
			t.Errorf("%+v", r)
		}
	}
	if !strings.Contains(l.String(), "connecting again") || !strings.Contains(l.String(), "memory") {
		t.Error(l.String())
	}
}

func TestServerThatDiesAgainAndAgainIsLeftAlone(t *testing.T) {
	t.Parallel()
	c := connect(t, options("normal"))
	for range 3 {
		if r := c.call("die", ""); !strings.Contains(r.Text, "exit status 3") {
			t.Errorf("%+v", r)
		}
	}
	for range 2 {
		if r := c.call("echo", ""); !r.IsError || !strings.Contains(r.Text, "not started again") {
			t.Errorf("%+v", r)
		}
	}
}

// An answer beyond all measure breaks the connection, and not the agent.
func TestGiganticAnswer(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, o mcp.Options) {
		o.MaxAnswer = 100_000
		c := connect(t, o)
		if r := c.call("huge", ""); !r.IsError || !strings.Contains(r.Text, "100000") {
			t.Errorf("%.300s", r.Text)
		}
		if r := c.call("echo", "back"); r.Text != "you said back" {
			t.Errorf("%+v", r)
		}
	})
}

func TestNetworkServerThatForgotTheSession(t *testing.T) {
	t.Parallel()
	server := newServer(nil)
	handler := func() http.Handler {
		return sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil)
	}
	var mu sync.Mutex
	now := handler()
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		serve := now
		mu.Unlock()
		serve.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		h.CloseClientConnections()
		h.Close()
		for forgotten := range server.Sessions() {
			_ = forgotten.Close()
		}
	})
	c := connect(t, mcp.Options{URL: h.URL, Name: "net"})
	if r := c.call("echo", "1"); r.IsError {
		t.Fatal(r.Text)
	}
	mu.Lock()
	now = handler() // as after a restart
	mu.Unlock()
	eventually(t, "the connection is made again", func() bool { return c.call("echo", "2").Text == "you said 2" })
}

// The environment has what was asked for, but not the keys to the models.
func TestProgramsGetTheirEnvironment(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "the-key")
	dir := t.TempDir()
	o := options("normal")
	o.Dir, o.Env = dir, append(o.Env, "TOKEN=theirs")
	c := connect(t, o)
	for name, want := range map[string]string{"TOKEN": "theirs in ", "ANTHROPIC_API_KEY": " in "} {
		if r := c.call("env", name); r.Text != want+filepath.Base(dir) {
			t.Errorf("%s: %q", name, r.Text)
		}
	}
}

func TestNewToolsAreNoticed(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, o mcp.Options) {
		changed := make(chan struct{}, 10)
		o.Changed = func() { changed <- struct{}{} }
		c := connect(t, o)
		before := len(c.Tools())
		c.call("grow", "leaf")
		select {
		case <-changed:
		case <-time.After(time.Minute):
			t.Fatal("nobody noticed")
		}
		if r := c.call("leaf", ""); r.Text != "new" || len(c.Tools()) != before+1 {
			t.Errorf("%+v, %d tools", r, len(c.Tools()))
		}
	})
}

// Whatever a server calls its tools, providers take the names, and they are different.
func TestOddNames(t *testing.T) {
	t.Parallel()
	var l logs
	o := options("odd")
	o.Logger = l.logger()
	c := connect(t, o)
	base := strings.ToLower(strings.NewReplacer(".", "_").Replace(filepath.Base(os.Args[0])))
	if c.Name() != base { // its own name has no letters that can be used
		t.Errorf("the server is called %q, want %q", c.Name(), base)
	}
	names := make(map[string]bool)
	r := provider.Request{Entries: []session.Entry{{}}}
	for _, tool := range c.Tools() {
		names[strings.TrimPrefix(tool.Name, c.Name()+"_")] = true
		r.Tools = append(r.Tools, tool.Tool)
	}
	if err := r.Check(); err != nil || len(names) != 7 || !names["a_b"] || !names["twice"] {
		t.Errorf("%v, %v", err, names)
	}
	if c.tool("twice").Description != "one" || !strings.Contains(l.String(), "the same name") || !strings.Contains(l.String(), "no name") {
		t.Error(l.String())
	}
	again := connect(t, options("odd"))
	if !slices.EqualFunc(c.Tools(), again.Tools(), func(a, b agent.Tool) bool { return a.Name == b.Name }) {
		t.Error("the names change")
	}
}

func TestHostileSchemas(t *testing.T) {
	t.Parallel()
	o := options("schemas")
	o.Name = "s"
	c := connect(t, o)
	var names []string
	r := provider.Request{Entries: []session.Entry{{}}}
	for _, tool := range c.Tools() {
		names = append(names, tool.Name)
		r.Tools = append(r.Tools, tool.Tool)
		if len(tool.Schema) > 0 && !strings.Contains(string(tool.Schema), `"type":"object"`) || len(tool.Description) > 9000 {
			t.Errorf("%s: %s", tool.Name, tool.Schema)
		}
	}
	if got := strings.Join(names, " "); r.Check() != nil || got != "s_deep s_good s_none s_null s_untyped s_wordy" {
		t.Errorf("%s: %v", got, r.Check())
	}
	if schema := string(c.tool("good").Schema); !strings.Contains(schema, `"#/$defs/x"`) {
		t.Error(schema)
	}
}

func TestAnswersThatMakeNoSense(t *testing.T) {
	t.Parallel()
	o := options("strange")
	o.Name = "s"
	c := connect(t, o)
	if r := c.call("f", ""); !r.IsError || r.Text == "" {
		t.Errorf("%+v", r)
	}
}

func TestConnectFailsWithAReason(t *testing.T) {
	t.Parallel()
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	short := func(kind string) mcp.Options {
		o := options(kind)
		o.ConnectTimeout = 200 * time.Millisecond
		return o
	}
	for name, tt := range map[string]struct {
		o    mcp.Options
		want string
	}{
		"nothing":          {mcp.Options{}, "command or an address"},
		"both":             {mcp.Options{Command: []string{"x"}, URL: "http://x"}, "not both"},
		"address":          {mcp.Options{URL: "file:///x"}, "http://"},
		"no such program":  {mcp.Options{Command: []string{"no-such-program-here"}}, "no-such-program-here"},
		"ends":             {options("broken"), "no such database"},
		"silent":           {short("silent"), "not ready after 200ms"},
		"no JSON":          {short("chatty"), "not ready after 200ms"},
		"nobody listens":   {mcp.Options{URL: gone.URL}, "refused"},
		"no MCP":           {mcp.Options{URL: other.URL}, "Not Found"},
		"endless":          {options("endless"), "does not end"},
		"too many":         {options("many"), "more than 1000"},
		"lists no tools":   {options("refuses"), "no such method"},
		"no such address":  {mcp.Options{URL: "://"}, "http://"},
		"an empty command": {mcp.Options{Command: []string{""}}, "command or an address"},
	} {
		s, err := mcp.Connect(t.Context(), tt.o)
		if err == nil {
			s.Close()
		}
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q in it", name, err, tt.want)
		}
	}
}

// A program that does not want to end is ended, with what it has started.
func TestStubbornProgramIsEnded(t *testing.T) {
	t.Parallel()
	o := options("stubborn")
	o.ConnectTimeout, o.CloseTimeout = 100*time.Millisecond, 100*time.Millisecond
	start := time.Now()
	if _, err := mcp.Connect(t.Context(), o); err == nil || !strings.Contains(err.Error(), "not ready") {
		t.Error(err)
	}
	if took := time.Since(start); took > 5*time.Minute { // it would sleep for ten
		t.Errorf("it took %v", took)
	}
}

// The header goes to the server that it is meant for, and not where that points to.
func TestHeaderStaysWithItsHost(t *testing.T) {
	t.Parallel()
	server := newServer(nil)
	inner := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil)
	var mu sync.Mutex
	seen := make(map[string]bool)
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		seen[r.Header.Get("Authorization")] = true
		mu.Unlock()
		inner.ServeHTTP(w, r)
	}))
	away := httptest.NewServer(http.RedirectHandler(h.URL, http.StatusTemporaryRedirect))
	t.Cleanup(func() {
		h.CloseClientConnections()
		h.Close()
		away.Close()
	})
	o := mcp.Options{URL: away.URL, Header: http.Header{"authorization": {"Bearer secret"}}, Logger: slog.New(slog.DiscardHandler)}
	if s, err := mcp.Connect(t.Context(), o); err == nil {
		s.Close()
		t.Error("it followed to another host")
	} else if strings.Contains(err.Error(), "secret") || len(seen) > 0 {
		t.Errorf("%v, seen %v", err, seen)
	}
	o.URL = h.URL
	c := connect(t, o)
	c.call("echo", "x")
	mu.Lock()
	defer mu.Unlock()
	if !seen["Bearer secret"] || len(seen) != 1 {
		t.Errorf("seen %v", seen)
	}
}

// An address may have a key in it, and the library writes the address into its errors.
func TestErrorsHideWhatTheyMust(t *testing.T) {
	t.Parallel()
	gone := httptest.NewServer(nil)
	gone.Close()
	_, err := mcp.Connect(t.Context(), mcp.Options{URL: gone.URL + "/?key=k-314", Hide: strings.NewReplacer("k-314", "${KEY}")})
	if err == nil || strings.Contains(err.Error(), "k-314") || !strings.Contains(err.Error(), "${KEY}") {
		t.Errorf("the connection says: %v", err)
	}
}

func TestJoinGivesEachToolANameOfItsOwn(t *testing.T) {
	t.Parallel()
	tool := func(name string) agent.Tool { return agent.Tool{Tool: provider.Tool{Name: name}} }
	long := strings.Repeat("x", 64)
	all := agent.JoinTools([]agent.Tool{tool("read"), tool(long)}, nil, []agent.Tool{tool("read"), tool("write")}, []agent.Tool{tool("read"), tool(long), tool("read_2")})
	var names []string
	for _, t := range all {
		names = append(names, t.Name)
	}
	want := []string{"read", long, "read_2", "write", "read_3", long[:62] + "_2", "read_2_2"}
	if !slices.Equal(names, want) {
		t.Errorf("%q", names)
	}
}
