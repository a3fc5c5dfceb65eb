// Package mcp offers a home to models as an MCP server: tools with which they search past
// sessions, read them in parts that fit a budget, and leave notes.
//
//	server := mcp.New(h, nil)
//	err := server.Run(ctx, &sdk.StdioTransport{})
//
// Every answer keeps to a number of tokens, says what it leaves out, and how to get that.
//
// What a session says was written by strangers: users, models, tools, web pages. An answer
// has all of it between two marks that nothing in it can know, and names it as a quotation,
// so that a model can tell it from what Coppice says. Characters that show nothing, or turn
// the direction of text, are replaced.
//
// The rules are those of package home. This package only words them for models.
package mcp
