package home

import (
	"context"
	"time"

	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/redact"
	"github.com/coppice-dev/coppice/session/clean"
)

// Notice is something that happened on the side and that a person should know about.
// Faces choose the words; what it means for a result is in the result. The kind says which
// of the other members it has.
type Notice struct {
	Kind NoticeKind `json:"notice"`
	// Error is why, in the notices whose comment says so.
	Error *ErrorInfo `json:"error,omitempty"`

	Path    string           `json:"path,omitempty"`
	Missing string           `json:"missing,omitempty"` // a session that does not exist
	Session string           `json:"session,omitempty"`
	Offset  int64            `json:"offset,omitempty"` // in bytes
	Active  time.Time        `json:"active,omitzero"`  // when the session was last active
	Max     int              `json:"max,omitempty"`    // how many sessions the home may have
	Count   int              `json:"count,omitempty"`  // of sessions
	Finding *redact.Finding  `json:"finding,omitempty"`
	Receipt *clean.Receipt   `json:"receipt,omitempty"`
	Lost    []MissingContent `json:"lost,omitempty"`

	Server    string          `json:"server,omitempty"` // an MCP server
	Provider  string          `json:"provider,omitempty"`
	Model     string          `json:"model,omitempty"`
	For       string          `json:"for,omitempty"`        // what the model should write: summary or title
	ByDefault bool            `json:"by_default,omitempty"` // it is the built-in model, because no other is configured
	Retry     *provider.Retry `json:"retry,omitempty"`
}

// NoticeKind identifies a notice.
type NoticeKind string

// The kinds of notices. They never change.
const (
	// IndexElsewhere says that the index could not be kept beside the sessions, and why.
	// Another one is used, at Path, which takes time when it is first built.
	IndexElsewhere NoticeKind = "index_elsewhere"
	// IndexBehind says that what was written last is not in the index yet, and why: it was
	// being imported, or another process holds the index's lock. The next request that needs
	// the index brings it up to date.
	IndexBehind NoticeKind = "index_behind"
	// SessionUnread says that Session could not be read, and why. It is missing from every
	// list, search and sum.
	SessionUnread NoticeKind = "session_unread"
	// ChangesUntold says that nobody tells of changes in the home, and why. They are looked for
	// from time to time, and may be noticed late.
	ChangesUntold NoticeKind = "changes_untold"
	// ImportFailed says that what an agent of this machine keeps at Path could not be imported
	// live, and why. Without a Path, nothing could. It is tried again, but said once.
	ImportFailed NoticeKind = "import_failed"
	// LineSkipped says that the line of Session at Offset is not an entry.
	LineSkipped NoticeKind = "line_skipped"
	// ConnectionLost says that the server cannot be reached, and why. What is followed
	// continues when it can.
	ConnectionLost NoticeKind = "connection_lost"
	// EntriesMissed says that entries which were appended before this moment may be missing
	// from what is followed: the connection to the server was lost for too long.
	EntriesMissed NoticeKind = "entries_missed"
	// SessionTrashed says that the home was full at Max, and Session, which had been
	// inactive longest, made room.
	SessionTrashed NoticeKind = "session_trashed"
	// IdleArchived says that Count sessions were compressed because nobody had used them for as
	// long as the settings say. Error says why another one, Session, could not be, or why none
	// could.
	IdleArchived NoticeKind = "idle_archived"
	// SessionMissing says that Session, which is part of the conversation that was opened,
	// does not exist.
	SessionMissing NoticeKind = "session_missing"
	// ContentMissing says that Session is continued without what cannot be read of it, Lost: a
	// model is going to be asked about the conversation, or the session was brought back from a
	// damaged archive to be written to.
	ContentMissing NoticeKind = "content_missing"
	// ContinuedElsewhere says that the session that continued the conversation is Missing,
	// so a new one, Session, was created that continues it instead.
	ContinuedElsewhere NoticeKind = "continued_elsewhere"
	// SecretRemoved says that a secret, the Finding, was removed from an entry before it was
	// written.
	SecretRemoved NoticeKind = "secret_removed"
	// RedactionFinished says that an earlier redaction was interrupted, and the rest of it
	// was done now, with a Receipt. Error says why not.
	RedactionFinished NoticeKind = "redaction_finished"
	// ModelAsked says that Model is going to be asked to write something, For, which may
	// take a while.
	ModelAsked NoticeKind = "model_asked"
	// FileGone says that the context file Path, which the model of a chat was shown, can no
	// longer be read, and why. The model keeps what it was shown.
	FileGone NoticeKind = "file_gone"
	// ServerStarting says that the MCP Server of a chat takes a while to start.
	ServerStarting NoticeKind = "server_starting"
	// ModelRetried says that Model could not be asked and is going to be asked again.
	ModelRetried NoticeKind = "model_retried"
)

// WithNotify returns a context whose operations give their notices to notify and no longer to
// Options.Notify: a server answers many callers from one home.
func WithNotify(ctx context.Context, notify func(Notice)) context.Context {
	return context.WithValue(ctx, notifyKey{}, notify)
}

// WithProgress is WithNotify for Options.Progress.
func WithProgress(ctx context.Context, progress func(doing string, done, total int64)) context.Context {
	return context.WithValue(ctx, progressKey{}, progress)
}

// WithBegun returns a context with which Follow calls begun once it listens: it has sent what was
// asked for of the past, and misses nothing that is appended after that.
func WithBegun(ctx context.Context, begun func()) context.Context {
	return context.WithValue(ctx, begunKey{}, begun)
}

func begun(ctx context.Context) {
	if tell, ok := ctx.Value(begunKey{}).(func()); ok {
		tell()
	}
}

type (
	notifyKey   struct{}
	progressKey struct{}
	begunKey    struct{}
)

func (h *Home) notify(ctx context.Context, n Notice) {
	notify, ok := ctx.Value(notifyKey{}).(func(Notice))
	if !ok {
		notify = h.opts.Notify
	}
	if notify != nil {
		notify(n)
	}
}

// reporter returns a function that reports how far something has come.
func (h *Home) reporter(ctx context.Context) func(doing string, done, total int64) {
	report, ok := ctx.Value(progressKey{}).(func(string, int64, int64))
	if !ok {
		report = h.opts.Progress
	}
	if report == nil {
		return func(string, int64, int64) {}
	}
	return report
}

// progress is reporter for one thing.
func (h *Home) progress(ctx context.Context, doing string) func(done, total int64) {
	report := h.reporter(ctx)
	return func(done, total int64) { report(doing, done, total) }
}
