// Package summary asks a model for summaries: of the beginning of a conversation that a
// compaction replaces (Compaction), and of a branch that is left (Branch). It also asks for
// titles (Title).
//
// A summary is written in pieces if the conversation does not fit the model's window: each
// piece updates the summary so far, so everything is covered. The previous summary is updated
// too rather than replaced. The files that tools have read and changed are kept apart from
// the model's text, and passed on from one summary to the next, so that no model can forget
// them.
//
// An answer that is not a summary is an error, and nothing of it is kept: see ErrUnusable.
// Nothing here writes to a session, except Summary.Append and Summary.AppendBranch.
package summary
