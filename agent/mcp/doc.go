// Package mcp gives an agent the tools of MCP servers: programs that are started here
// and spoken to over their standard input and output, and servers on the network that
// speak streamable HTTP.
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
// A program gets no terminal, and no keys except those in Options.Env. What it prints on its
// standard error goes to the logger. What a server returns is cleaned of what would
// make a provider refuse the request: broken images, empty texts, schemas that are not
// objects.
//
// # Failures
//
// A server that ends is started again by the next call. The call that it was working on
// is not repeated, because it may have been half done; its result says so. A server that
// keeps ending is not started again after a few times.
package mcp
