// Package install adds an MCP server to the configuration of an agent, so that the agent
// starts it, and removes it again.
//
// Every byte of the file around the change stays: comments, order, spaces. The new text is
// read back before it replaces the file; if it does not say what it should, nothing is
// written.
package install
