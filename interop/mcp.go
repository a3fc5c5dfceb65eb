package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/server"
)

// mcpToken is what the server wants to see.
const mcpToken = "interop-token"

// serveMCP serves the machine's home over HTTP with the checks that a server for others has:
// tokens, limits, hosts and origins. It returns two addresses: one that wants the token, and
// one for clients that cannot send it, which adds it and leaves everything else as it is.
func (m *machine) serveMCP(setup func(*sdk.Server)) (strict, open string, stop func(), err error) {
	s, err := server.New(server.Options{
		Home: m.home,
		Authorize: func(_ context.Context, token string) (*server.Grant, error) {
			if token != mcpToken {
				return nil, server.ErrUnauthorized
			}
			return &server.Grant{Name: "interop", Access: home.Write}, nil
		},
		SetupMCP: setup,
	})
	if err != nil {
		return "", "", nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", "", nil, err
	}
	ctx, cancel := context.WithCancel(m.ctx)
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l) }()
	strict = "http://" + l.Addr().String() + "/mcp"
	// No reverse proxy: that of the standard library breaks an answer off if it begins before
	// the proxy has seen the end of the request. What a tool that asks returns is lost then.
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Set("Authorization", "Bearer "+mcpToken)
		s.ServeHTTP(w, r)
	}))
	return strict, front.URL + "/mcp", func() {
		front.CloseClientConnections()
		front.Close()
		cancel()
		<-ended
	}, nil
}

// coppice runs the command line on the machine.
func (m *machine) coppice(args ...string) (string, error) {
	return m.exec("coppice", []string{"COPPICE_HOME=" + filepath.Join(m.dir, "sessions")}, append([]string{m.coppicePath()}, args...))
}

// coppicePath is where buildCoppice puts the program: in the directory of all machines.
func (m *machine) coppicePath() string { return filepath.Join(filepath.Dir(m.dir), coppiceName) }

const coppiceName = "coppice"

// suiteSets are the sets of requirements of the MCP conformance suite, and how many scenarios
// count. All of them pass.
var suiteSets = []struct {
	revision string
	scored   int
}{
	{"2026-07-28", 37},
	{"2025-11-25", 30},
}

// visitMCPSuite runs the official suite against the server.
func visitMCPSuite(g *guest) {
	for _, set := range suiteSets {
		g.ask(fmt.Sprintf("passes %d scenarios of %s", set.scored, set.revision), func() error {
			_, open, stop, err := g.serveMCP(suiteTools)
			if err != nil {
				return err
			}
			defer stop()
			args := []string{"server", "--url", open, "--requirements", set.revision, "-o", filepath.Join(g.dir, "suite-"+set.revision)}
			out, err := g.run(args...)
			g.save("suite-"+set.revision+".txt", []byte(out))
			return wrong(suiteComplaints(out, err, set.scored))
		})
	}
}

var (
	suiteLine  = regexp.MustCompile(`(?m)^([✓✗]) (\S+): \d+ passed, (\d+) failed`)
	suiteAside = regexp.MustCompile(`(?m)^  [✓✗] (\S+) \(`)
)

// suiteComplaints compares the summary of the suite with what is expected.
func suiteComplaints(out string, err error, scored int) (complaints []string) {
	_, summary, ok := strings.Cut(out, "=== SUMMARY ===")
	if !ok {
		return []string{fmt.Sprintf("the suite did not come to its end: %v", err)}
	}
	unscored := make(map[string]bool)
	for _, m := range suiteAside.FindAllStringSubmatch(summary, -1) {
		unscored[m[1]] = true
	}
	n := 0
	for _, m := range suiteLine.FindAllStringSubmatch(summary, -1) {
		if unscored[m[2]] {
			continue
		}
		n++
		if m[1] == "✗" {
			complaints = append(complaints, m[0])
		}
	}
	if n != scored {
		complaints = append(complaints, fmt.Sprintf("%d scenarios were run, not %d", n, scored))
	}
	return complaints
}

//go:embed mcp.mjs
var mcpScript []byte

// visitMCPClient uses the server with the official SDK for TypeScript.
func visitMCPClient(g *guest) {
	if !g.ask("gets a session", func() error {
		_, err := writeFixture(g.ctx, g.home.Store(), g.project())
		return err
	}) {
		return
	}
	script := filepath.Join(g.tmp(), "mcp.mjs")
	modules := g.program.modules(g.cache)
	uses := func(args ...string) error {
		if err := os.WriteFile(script, mcpScript, 0o600); err != nil {
			return err
		}
		out, err := g.runs(node, nil, append([]string{script, modules}, args...)...)
		if err != nil {
			return err
		}
		return clientGot([]byte(out))
	}
	g.ask("uses it over standard input and output", func() error {
		return uses("stdio", g.coppicePath(), "--dir", filepath.Join(g.dir, "sessions"), "mcp")
	})
	g.ask("uses it over HTTP", func() error {
		strict, _, stop, err := g.serveMCP(nil)
		if err != nil {
			return err
		}
		defer stop()
		if err := uses(strict, "wrong-token"); err == nil {
			return errors.New("a wrong token is let in")
		}
		return uses(strict, mcpToken)
	})
}

// clientGot checks what the script printed.
func clientGot(out []byte) error {
	var got struct {
		Tools                             []string
		Search, Read, Image, Note, Prompt string
		Failed                            bool
	}
	if err := json.Unmarshal(out, &got); err != nil {
		return err
	}
	var complaints []string
	if len(got.Tools) != 7 {
		complaints = append(complaints, fmt.Sprintf("the tools are %v", got.Tools))
	}
	for text, want := range map[string]string{got.Search: "north has 17 planks", got.Read: "half sawn", got.Prompt: "Write a hand-over", got.Image: "image/png"} {
		if !strings.Contains(text, want) {
			complaints = append(complaints, fmt.Sprintf("%q is not in %.500q", want, text))
		}
	}
	if got.Note == "" || !got.Failed {
		complaints = append(complaints, fmt.Sprintf("the note is %q, and a session that is not there is an error: %v", got.Note, got.Failed))
	}
	return wrong(complaints)
}

// visitMCPAgent has an agent call the server that coppice mcp install gave it.
func visitMCPAgent(g *guest) {
	how := agents[g.program.name]
	g.ask("calls what coppice mcp install gave it", func() error {
		if err := g.setUp(); err != nil {
			return err
		}
		if _, err := writeFixture(g.ctx, g.home.Store(), g.project()); err != nil {
			return err
		}
		if _, err := g.coppice("mcp", "install", how.makes.format, "--yes"); err != nil {
			return err
		}
		return g.callsMCP(how)
	})
}

// callsMCP lets the model call the tool, and looks at what the program sends back.
func (g *guest) callsMCP(how agent) error {
	g.model.requests()
	g.model.willCall(&toolCall{how.searches, object{"query": "planks"}})
	defer g.model.willCall(nil)
	args := slices.Clone(how.makes.args)
	for i, a := range args {
		args[i] = strings.ReplaceAll(a, "PROMPT", prompt)
	}
	if _, err := g.run(args...); err != nil {
		return err
	}
	r, err := g.main(prompt)
	if err != nil {
		return err
	}
	for _, f := range r.Facts {
		if f.Kind == factResult && strings.Contains(f.Text, "north has 17 planks") && strings.Contains(f.Text, "<quotation ") {
			return nil
		}
	}
	return fmt.Errorf("the model did not get what the tool found; it was offered: %s", strings.Join(r.Tools, " "))
}
