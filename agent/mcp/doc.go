// Package mcp gives an agent the tools of MCP servers: programs that it starts and talks to
// over their standard input and output, and servers on the network that speak streamable
// HTTP.
//
//	server, err := mcp.Connect(ctx, mcp.Options{Command: []string{"github-mcp", "stdio"}})
//	defer server.Close()
//	a, err := agent.New(s, agent.Options{Model: model, Tools: server.Tools()})
//
// # Trust
//
// A server says whether its tools only read, and whether a call can be repeated. These
// are hints by a foreign program, so by default they are ignored: every call asks, and
// none is repeated after a crash. Options.TrustHints is for servers that the user trusts.
// A rule of package tools can allow single tools.
//
// A program gets no terminal, and no keys except those in Options.Env. Its standard error
// goes to the logger. From a server's answers we remove whatever would make a provider refuse
// the request: broken images, empty texts, schemas that are not objects.
//
// # Failures
//
// The next call restarts a server that has ended. The call that it was working on is not
// repeated, because it may have been half done; its result says so. A server that keeps
// ending is given up after a few restarts.
package mcp
