// Package agent drives a model over a session: it sends what was said, runs the tools
// that the model calls, and repeats this until the model is done.
//
// Everything is logged before anything depends on it. The user's message is in the log
// before the model is asked, a call is there before its tool runs, and a result is
// there before the next request. So a program that dies at any moment, and starts
// again, finds everything that a person saw and everything that a tool may have done:
// see Agent.Resume.
//
// An Agent is a loop that decides and a Keeper that writes down. A loop of your own can use
// the Keeper alone.
package agent
