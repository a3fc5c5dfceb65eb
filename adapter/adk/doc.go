// Package adk keeps the sessions of Google's Agent Development Kit for Go in a Coppice
// store. New returns a session.Service of ADK:
//
//	st, err := file.Open(dir, nil)
//	...
//	r, err := runner.New(runner.Config{AppName: "garden", Agent: a, SessionService: adk.New(st, nil)})
//
// # What becomes of a session
//
// An ADK session is one Coppice session, and every event is one entry of its log. An event
// with content becomes a message; its function calls and responses become tool calls and
// results. So search, export and every other tool that reads Coppice sessions works on it.
// The entry also keeps the rest of the event, and Get returns every field as it was appended.
// Messages that another program appended come back as events too.
//
// The events of a session are the path to its leaf. Moving the leaf back to an earlier entry
// takes the session, with its state, back to that point.
//
// State lives in the log as well. Every event has its changes, and now and then an entry
// repeats the whole state, so that Get need not read the log from the beginning: the last
// events of a long session cost as little as those of a short one. State that an app or a
// user shares between sessions (keys that begin with "app:" and "user:") is kept in a
// separate session, which is pinned so that no retention removes it.
//
// # Calls and compactions
//
// An event with calls is written together with a mark that they run, as an agent of Coppice
// does: if the process dies, no other loop runs them again. Compact replaces the beginning of
// a session by a summary, with an agent.Keeper. The rest of the Keeper is not used, because
// ADK's runner itself decides what it sends, and passes only what must be kept to a service.
//
// # Several writers
//
// A session that Get or Create returned is a view of one moment. AppendEvent refuses to
// append to one that others have appended to since, with ErrStale, and writes nothing; see
// Options.Merge for the alternative. This does not depend on clocks. Shared state never
// makes a session stale.
//
// An event that changes shared state takes two or three writes. The shared state comes first,
// so that an event in the log has always had its effect. If the process dies in between, the
// state has changed and the event is missing.
package adk
