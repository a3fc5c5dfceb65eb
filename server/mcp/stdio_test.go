package mcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/coppice-dev/coppice/server/mcp"
)

// A line that is no message is answered with an error, and the next one is read.
func TestLinesThatAreNoMessages(t *testing.T) {
	t.Parallel()
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- mcp.New(newHome(t), nil).Run(t.Context(), mcp.Lines(in, out)) }()
	answers := bufio.NewReader(fromServer)
	next := func() string {
		t.Helper()
		line, err := answers.ReadBytes('\n')
		if err != nil {
			t.Fatal(err)
		}
		var got struct {
			ID    any
			Error struct{ Code int }
		}
		if err := json.Unmarshal(line, &got); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		return fmt.Sprintf("%v %d", got.ID, got.Error.Code)
	}
	ping := `{"jsonrpc":"2.0","id":7,"method":"ping"}`
	for _, c := range []struct{ send, want string }{
		{`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`, "1 0"},
		{`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n\n" + ping, "7 0"},
		{"Warning: something is deprecated", "<nil> -32700"},
		{`{"jsonrpc":"2.0","id":2,"method"`, "<nil> -32700"},
		{strings.Repeat("x", 20<<20), "<nil> -32700"},
		{`{"jsonrpc":"2.0","id":3,"method":"ping","params":{"x":"` + strings.Repeat("x", 20<<20) + `"}}`, "<nil> -32700"},
		{`{"id":4,"method":"ping"}`, "<nil> -32600"},
		{`"ping"`, "<nil> -32600"},
		{"[]", "<nil> -32600"},
		{`{"jsonrpc":"2.0","id":{},"method":"ping"}`, "<nil> -32600"},
		{"[" + ping + "]", "7 0"},
		{ping + "\r", "7 0"},
		{`{"jsonrpc":"2.0","id":5,"method":"none"}`, "5 -32601"},
	} {
		if _, err := io.WriteString(toServer, c.send+"\n"); err != nil {
			t.Fatal(err)
		}
		if got := next(); got != c.want {
			t.Errorf("%.80s: the answer is %s, not %s", c.send, got, c.want)
		}
	}
	if err := toServer.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// A script sends all of its requests, closes its end, and has every answer.
func TestTheEndOfTheInputWaitsForAnswers(t *testing.T) {
	t.Parallel()
	in := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
`
	for n := range 20 {
		in += fmt.Sprintf(`{"jsonrpc":"2.0","id":"%d","method":"tools/call","params":{"name":"recent_sessions","arguments":{}}}`+"\n", n)
	}
	// The answer to a cancelled request may never come.
	in += `{"jsonrpc":"2.0","id":"cancelled","method":"tools/call","params":{"name":"recent_sessions","arguments":{}}}
{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"cancelled"}}
`
	var out strings.Builder
	if err := mcp.New(newHome(t), nil).Run(t.Context(), mcp.Lines(strings.NewReader(in), &out)); err != nil {
		t.Fatal(err)
	}
	for n := range 20 {
		if id := fmt.Sprintf(`"id":"%d"`, n); !strings.Contains(out.String(), id) {
			t.Errorf("request %d has no answer: %s", n, out.String())
		}
	}
}

// waiting adds a tool that says that it was called, and answers when its context ends.
func waiting(called chan<- string) *mcp.Options {
	return &mcp.Options{Setup: func(s *sdk.Server) {
		s.AddTool(&sdk.Tool{Name: "wait", InputSchema: map[string]any{"type": "object"}}, func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			called <- r.Params.Name
			<-ctx.Done()
			return nil, ctx.Err()
		})
	}}
}

const callWait = `{"jsonrpc":"2.0","id":"w","method":"tools/call","params":{"name":"wait","arguments":{}}}` + "\n"

// begun is how a client of an older protocol begins.
const begun = initialize + "\n" + initialized + "\n"

// What can have no answer does not keep the server: a cancelled request, a subscription, and a
// request of a client that is gone.
func TestTheEndOfTheInputWaitsForNothingElse(t *testing.T) {
	t.Parallel()
	run := func(t *testing.T, o *mcp.Options, in io.Reader, out io.Writer) {
		t.Helper()
		_ = mcp.New(newHome(t), o).Run(t.Context(), mcp.Lines(in, out)) // it ends, however
	}
	t.Run("cancelled", func(t *testing.T) {
		t.Parallel()
		called := make(chan string, 1)
		in, toServer := io.Pipe()
		go func() {
			_, _ = io.WriteString(toServer, begun+callWait)
			<-called
			_, _ = io.WriteString(toServer, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"w"}}`+"\n")
			_ = toServer.Close()
		}()
		run(t, waiting(called), in, io.Discard)
	})
	t.Run("subscription", func(t *testing.T) {
		t.Parallel()
		in := `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}},"notifications":{"toolsListChanged":true}}}` + "\n"
		run(t, nil, strings.NewReader(in), io.Discard)
	})
	t.Run("gone", func(t *testing.T) {
		t.Parallel()
		_, out := io.Pipe()
		_ = out.CloseWithError(io.ErrClosedPipe)
		run(t, waiting(make(chan string, 1)), strings.NewReader(begun+callWait), out)
	})
}
