// Package coppice has no code. The module is a session engine for LLM agents, in these
// packages:
//
//	session         conversations as append-only trees: begin here
//	window          token counts, and requests that fit a model's window
//	provider        models: clients, and their wire formats
//	agent           a loop that drives a model with tools
//	keyed           sessions under a key, for chat bots
//	conversation    conversations of unlimited length
//	transcript      the files of other programs
//	redact          secrets in text
//	index           lists, search and costs
//	home            every operation of the command line, for other programs; import home/all with it
//	client          a home on another machine
//	server          a home for other machines: HTTP; server/ipc and server/mcp have other protocols
//	render          conversations for people: terminal, Markdown, HTML
//	upkeep          checks, backups and retention
//	store           the interfaces of a store; store/file, store/memory and store/remote are three
package coppice
