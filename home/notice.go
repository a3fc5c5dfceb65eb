package home

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/redact"
	"github.com/coppice-dev/coppice/session/clean"
)

// Notice is something that happened on the side and that a person should know about.
// Faces choose the words; what it means for a result is in the result. NoticeJSON
// encodes it.
type Notice interface {
	// Kind identifies the notice, as in "index_elsewhere". It never changes.
	Kind() string
	// cause is the error that came with it, or nil.
	cause() error
}

// The notices.
type (
	// IndexElsewhere says that the index could not be kept beside the sessions. Another one is used,
	// which takes time when it is first built.
	IndexElsewhere struct {
		Path string `json:"path"`
		Err  error  `json:"-"` // why it could not be beside them
	}
	// IndexBehind says that what was written last is not in the index yet, because it was being
	// imported, or another process does not give the index's lock back. It will be when somebody next
	// asks for something that needs it.
	IndexBehind struct {
		Err error `json:"-"`
	}
	// SessionUnread says that a session could not be read. It is missing from every list, search and
	// sum.
	SessionUnread struct {
		Name string `json:"session"`
		Err  error  `json:"-"`
	}
	// LineSkipped says that a line of a session is not an entry.
	LineSkipped struct {
		Name   string `json:"session"`
		Offset int64  `json:"offset"` // in bytes
	}
	// SessionTrashed says that the home was full, and this session, which had been inactive longest,
	// made room.
	SessionTrashed struct {
		Name   string    `json:"session"`
		Active time.Time `json:"active"`
		Max    int       `json:"max"` // how many sessions the home may have
	}
	// SessionMissing says that a session of the conversation that was opened does not exist.
	SessionMissing struct {
		ID string `json:"session"`
	}
	// ContinuedElsewhere says that the session that continued the conversation is missing, so a new
	// one was created that continues it instead.
	ContinuedElsewhere struct {
		Missing string `json:"missing"`
		Session string `json:"session"`
	}
	// SecretRemoved says that a secret was taken out of an entry before it was written.
	SecretRemoved struct {
		Finding redact.Finding `json:"finding"`
	}
	// RedactionFinished says that an earlier redaction was interrupted, and the rest of it was done
	// now. Err says why not.
	RedactionFinished struct {
		Receipt *clean.Receipt `json:"receipt,omitempty"`
		Err     error          `json:"-"`
	}
	// ModelAsked says that a model is going to be asked to write something, which may take a
	// while.
	ModelAsked struct {
		Provider string `json:"provider"`
		Model    string `json:"model"`
		For      string `json:"for"` // summary or title
		// ByDefault: it is the built-in model, because no other is configured.
		ByDefault bool `json:"by_default,omitempty"`
	}
	// ModelRetried says that a model could not be asked and is going to be asked again.
	ModelRetried struct {
		Provider string         `json:"provider"`
		Model    string         `json:"model"`
		Retry    provider.Retry `json:"retry"`
	}
)

// Kind implements Notice.
func (IndexElsewhere) Kind() string { return "index_elsewhere" }

// Kind implements Notice.
func (IndexBehind) Kind() string { return "index_behind" }

// Kind implements Notice.
func (SessionUnread) Kind() string { return "session_unread" }

// Kind implements Notice.
func (LineSkipped) Kind() string { return "line_skipped" }

// Kind implements Notice.
func (SessionTrashed) Kind() string { return "session_trashed" }

// Kind implements Notice.
func (SessionMissing) Kind() string { return "session_missing" }

// Kind implements Notice.
func (ContinuedElsewhere) Kind() string { return "continued_elsewhere" }

// Kind implements Notice.
func (SecretRemoved) Kind() string { return "secret_removed" }

// Kind implements Notice.
func (RedactionFinished) Kind() string { return "redaction_finished" }

// Kind implements Notice.
func (ModelAsked) Kind() string { return "model_asked" }

// Kind implements Notice.
func (ModelRetried) Kind() string { return "model_retried" }

func (n IndexElsewhere) cause() error    { return n.Err }
func (n IndexBehind) cause() error       { return n.Err }
func (n SessionUnread) cause() error     { return n.Err }
func (LineSkipped) cause() error         { return nil }
func (SessionTrashed) cause() error      { return nil }
func (SessionMissing) cause() error      { return nil }
func (ContinuedElsewhere) cause() error  { return nil }
func (SecretRemoved) cause() error       { return nil }
func (n RedactionFinished) cause() error { return n.Err }
func (ModelAsked) cause() error          { return nil }
func (ModelRetried) cause() error        { return nil }

// NoticeJSON encodes a notice as one JSON object: its kind as "notice", its own
// members, and, if an error came with it, the ErrorInfo as "error".
func NoticeJSON(n Notice) ([]byte, error) {
	own, err := json.Marshal(n)
	if err != nil {
		return nil, err
	}
	head := struct {
		Notice string     `json:"notice"`
		Error  *ErrorInfo `json:"error,omitempty"`
	}{Notice: n.Kind()}
	if cause := n.cause(); cause != nil {
		info := Describe(cause)
		head.Error = &info
	}
	object, err := json.Marshal(head)
	if err != nil || len(own) <= len("{}") {
		return object, err
	}
	return slices.Concat(object[:len(object)-1], []byte(","), own[1:]), nil
}
