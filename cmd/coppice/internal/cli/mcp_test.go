package cli

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// agentOf starts coppice mcp, and connects an agent to it.
func agentOf(t *testing.T, env map[string]string, args ...string) *sdk.ClientSession {
	t.Helper()
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	getenv := func(name string) string { return env[name] }
	var talk bytes.Buffer
	a := &app{talk: newTalk(out, &talk, getenv), stdin: in, getenv: getenv}
	ended := make(chan int)
	go func() { ended <- a.run(context.WithoutCancel(t.Context()), append([]string{"mcp"}, args...)) }()
	c, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), &sdk.IOTransport{Reader: fromServer, Writer: toServer}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Close()
		if code := <-ended; code != 0 {
			t.Errorf("exit code %d: %s", code, talk.String())
		}
	})
	return c
}

// An agent finds what another program is writing while the server runs.
func TestMCPImportsWhileItServes(t *testing.T) {
	t.Parallel()
	user := t.TempDir()
	env := map[string]string{"HOME": user, "COPPICE_HOME": filepath.Join(user, "sessions"), "XDG_CACHE_HOME": user}
	project := filepath.Join(user, ".claude", "projects", "-kiln")
	if err := os.MkdirAll(project, 0o700); err != nil {
		t.Fatal(err)
	}
	line := `{"type":"user","uuid":"5d0bba67-11d2-4b9b-bb4e-1b3b7d6b1c11","parentUuid":null,"sessionId":"2a4a1f1e-9a11-4a54-8f5c-0b8a35c0a001","timestamp":"2026-03-01T10:00:00.000Z","cwd":"/kiln","version":"2.1.0","message":{"role":"user","content":"the zirconia lining cracked"}}` + "\n"
	if err := os.WriteFile(filepath.Join(project, "2a4a1f1e-9a11-4a54-8f5c-0b8a35c0a001.jsonl"), []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	c := agentOf(t, env, "--import")
	for t.Context().Err() == nil {
		r, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: "search", Arguments: map[string]any{"query": "zirconia"}})
		if err != nil {
			t.Fatal(err)
		}
		if text := r.Content[0].(*sdk.TextContent).Text; strings.Contains(text, "lining cracked") {
			return
		}
	}
}

func TestMCPReadOnly(t *testing.T) {
	t.Parallel()
	user := t.TempDir()
	env := map[string]string{"HOME": user, "COPPICE_HOME": filepath.Join(user, "sessions"), "XDG_CACHE_HOME": user}
	for flag, want := range map[string]int{"--read-only=false": 2, "--read-only": 0} {
		writers := 0
		for tool, err := range agentOf(t, env, flag).Tools(t.Context(), nil) {
			if err != nil {
				t.Fatal(err)
			}
			if !tool.Annotations.ReadOnlyHint {
				writers++
			}
		}
		if writers != want {
			t.Errorf("%s: %d tools write, not %d", flag, writers, want)
		}
	}
}
