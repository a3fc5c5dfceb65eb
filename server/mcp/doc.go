// Package mcp offers a home to models as an MCP server: tools with which they search past
// sessions, read them in parts that fit a budget, and leave notes.
//
//	server := mcp.New(h, nil)
//	err := server.Run(ctx, &sdk.StdioTransport{})
//
// Every answer keeps to a token budget, says what it leaves out, and how to get the rest.
//
// The text of a session was written by strangers: users, models, tools, web pages. An answer
// puts all of it between two marks that the text cannot know, and calls it a quotation, so
// that a model can distinguish it from what Coppice says. Invisible characters, and those
// that change the direction of text, are replaced.
//
// The rules are those of package home. This package only words them for models.
package mcp
