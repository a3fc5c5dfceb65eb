// Package ipc lets other programs of the same user work with a home, with lines of JSON on a
// unix socket or on standard input and output. Begin with New and Listen. A connection
// understands two dialects at once:
//
//   - An object with "jsonrpc" is JSON-RPC 2.0. It has every operation of home.Operations:
//     the method is the operation's name, the params are its request.
//   - An object with "type" is a message of the tagged protocol of terminals: session_create,
//     session_load, query, tool_approve and so on.
//
// docs/ipc.md describes both as bytes.
//
// How a line travels:
//
//	socket ─ lines ─ conn.handle ─┬─ conn.rpc ──── home.Operation.Call, several at a time ─┬─ output ─ socket
//	                              └─ conn.tagged ─ one after the other; a query beside them ┘
//
// Nothing grows with what a client sends or leaves unread. A line has a maximum length; a
// connection has a maximum number of requests under way, and is not read while it has more;
// the queue of answers is bounded, and an operation that wants to write more waits for the
// client, which is disconnected when it has read nothing for a while.
package ipc
