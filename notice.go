package coppice

import (
	"time"

	"github.com/coppice-dev/coppice/redact"
	"github.com/coppice-dev/coppice/session/clean"
)

// Notice is something that happened beside what was asked for and that a person
// should know about. Faces word it; what it means for a result is in the result.
type Notice interface{ notice() }

// The notices.
type (
	// IndexElsewhere says that the index could not be kept beside the sessions. Another
	// one is used, which costs time the first time.
	IndexElsewhere struct {
		Path string
		Err  error // why not beside them
	}
	// IndexBehind says that what was imported is not in the index yet. It will be when
	// somebody next asks for something that needs it.
	IndexBehind struct{ Err error }
	// SessionUnread says that a session could not be read. It is missing from every list,
	// search and sum.
	SessionUnread struct {
		Name string
		Err  error
	}
	// LineSkipped says that a line of a session is no entry.
	LineSkipped struct {
		Name   string
		Offset int64 // in bytes
	}
	// SessionTrashed says that the home was full, and this session, which was active
	// longest ago, made room.
	SessionTrashed struct {
		Name   string
		Active time.Time
		Max    int // how many sessions the home may have
	}
	// SessionMissing says that a session of the conversation that was opened is not there.
	SessionMissing struct{ ID string }
	// ContinuedElsewhere says that the session that continued the conversation is missing,
	// so a new one was begun that continues it instead.
	ContinuedElsewhere struct{ Missing, Session string }
	// SecretRemoved says that a secret was taken out of an entry before it was written.
	SecretRemoved struct{ Finding redact.Finding }
	// RedactionFinished says that an earlier redaction was interrupted; the rest of it was
	// done now. Err says why not.
	RedactionFinished struct {
		Receipt *clean.Receipt
		Err     error
	}
)

func (IndexElsewhere) notice()     {}
func (IndexBehind) notice()        {}
func (SessionUnread) notice()      {}
func (LineSkipped) notice()        {}
func (SessionTrashed) notice()     {}
func (SessionMissing) notice()     {}
func (ContinuedElsewhere) notice() {}
func (SecretRemoved) notice()      {}
func (RedactionFinished) notice()  {}
