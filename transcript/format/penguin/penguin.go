// Package penguin reads and writes the sessions of Penguin: a JSON file for each,
// session_index.json, which lists them, and checkpoints, which are gzipped copies
// of sessions.
//
// A session that grew too long continues in another one. The two are linked here as they are
// there, in both directions: see chain.go.
package penguin

import (
	"context"
	"errors"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/provider/openai"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
	"github.com/coppice-dev/coppice/transcript/internal/place"
	"github.com/coppice-dev/coppice/transcript/internal/records"
	"github.com/coppice-dev/coppice/transcript/internal/shape"
)

const (
	name      = "penguin"
	indexFile = "session_index.json"
	// factSession is the fact with a session's members besides its messages.
	factSession = "session"
)

// Format returns the format.
func Format() *transcript.Format {
	return &transcript.Format{Name: name, Title: "Penguin", Detect: detect, Read: read, Places: places, Resume: resume, Write: write}
}

func places(env transcript.Env) []transcript.Place {
	workspace := env.Dir("PENGUIN_WORKSPACE", "penguin_workspace")
	return []transcript.Place{
		{Dir: filepath.Join(workspace, "conversations"), Match: func(path string) bool {
			return strings.HasSuffix(path, ".json") && !strings.HasSuffix(path, indexFile)
		}},
		{Dir: filepath.Join(workspace, "checkpoints"), Match: place.Named("*.json.gz")},
	}
}

func detect(f *transcript.File) bool {
	base := filepath.Base(f.Path)
	if base == indexFile && strings.Contains(f.HeadText(), `"session_2`) {
		return true
	}
	if isRecoverable(base) && len(f.Head()) > 0 {
		return true
	}
	seen := shape.OfFile(f)
	isSession := func(in string) bool {
		return seen.Has(in+"last_active") && seen.Has(in+"created_at") && seen.Has(in+"messages", in+"metadata")
	}
	return isSession("") || isSession("session.")
}

// isRecoverable recognises a session's file by its name alone, because it may be broken: its
// content may then be in the backup beside it.
func isRecoverable(base string) bool {
	ok, _ := path.Match("session_2???????_??????_*.json", base) // the day, the time, and more
	return ok
}

func read(_ context.Context, f *transcript.File, to transcript.Sink) error {
	data, err := f.ReadAll()
	if err != nil {
		return err
	}
	base := filepath.Base(f.Path)
	if base == indexFile {
		to.Count("index of the sessions", "left to the sessions' own files", 1)
		return nil
	}
	if _, err := f.Beside(strings.TrimSuffix(base, ".bak")); err == nil && strings.HasSuffix(base, ".bak") {
		to.Count("backup", "left to the session's own file", 1)
		return nil
	}
	v, err := loose.Parse(data)
	span := transcript.Span{Len: int64(len(data))}
	if err != nil {
		why := err
		if v, span, err = backup(f, why, to); err != nil {
			if v = records.Salvage(data, "messages", why, to); v == nil {
				return err
			}
			span = transcript.Span{Len: int64(len(data))}
		}
	}
	if checkpoint := v.Get("session"); checkpoint.IsObject() && v.Get("metadata").IsObject() {
		return readSession(f, checkpoint, v.Get("metadata"), span, to)
	}
	return readSession(f, v, nil, span, to)
}

// backup reads the copy beside a broken file.
func backup(f *transcript.File, why error, to transcript.Sink) (loose.Value, transcript.Span, error) {
	broken := &session.Error{Op: "read", Path: f.Path, Kind: session.ErrCorrupt, Err: why}
	data, err := f.Beside(filepath.Base(f.Path) + ".bak")
	if err != nil {
		return nil, transcript.Span{}, broken
	}
	v, err := loose.Parse(data)
	if err != nil {
		return nil, transcript.Span{}, errors.Join(broken, err)
	}
	to.Problem(transcript.Problem{Reason: why.Error() + "; the backup was read instead"})
	span, err := to.Keep(filepath.Base(f.Path)+".bak", data)
	return v, span, err
}

// readSession reads a session. checkpoint is the checkpoint that holds it, or nil.
func readSession(f *transcript.File, v, checkpoint loose.Value, span transcript.Span, to transcript.Sink) error {
	c := conversation(f, v, checkpoint)
	if err := to.Begin(c); err != nil {
		return err
	}
	var chat openai.ChatDecoder
	previous := ""
	if c.Relation == session.RelationContinuation {
		previous = c.Parent
	}
	p := partOf(f, c.ID, previous, v)
	for i, m := range p.messages {
		e := entryOf(m, &chat)
		what, became := e.Message.Role+" message", "message"
		if i == p.marker {
			e, became = p.markerIn(&e, m), string(session.TypeContinues)
		}
		to.Count(what, became, 1)
		if err := to.Add(transcript.Record{ID: p.ids[i], Entry: e, From: []transcript.Span{span}}); err != nil {
			return err
		}
	}
	next := v.Get("metadata", "continued_to").Text()
	if next == "" {
		return nil
	}
	record := transcript.ContinuedTo(name, c.ID, next, v.Get("last_active").Time(time.Local))
	record.From = []transcript.Span{span}
	return to.Add(record)
}

func conversation(f *transcript.File, v, checkpoint loose.Value) transcript.Conversation {
	meta := v.Get("metadata")
	c := transcript.Conversation{
		ID:      v.Get("id").Text(),
		Title:   meta.Get("title").Text(),
		Created: v.Get("created_at").Time(time.Local),
		CWD:     meta.Get("directory").Text(),
		Extra:   map[string]any{factSession: v.Rest("messages")},
	}
	if c.ID == "" {
		c.ID, _, _ = strings.Cut(filepath.Base(f.Path), ".json")
	}
	switch {
	case checkpoint != nil:
		c.Parent, c.Relation = checkpoint.Get("session_id").Text(), session.RelationFork
		if title := checkpoint.Get("name").Text(); title != "" {
			c.Title = title
		}
		c.Tags = []string{"checkpoint"}
	case meta.Has("continued_from"):
		c.Parent, c.Relation = previousIn(v), session.RelationContinuation
		c.Continuation = meta.Get("continuation_index").Int()
	case meta.Has("branched_from"):
		c.Parent, c.Relation = meta.Get("branched_from").Text(), session.RelationFork
	case meta.Has("forked_from_session_id"):
		c.Parent, c.Relation = meta.Get("forked_from_session_id").Text(), session.RelationFork
	case meta.Has("recovered_from"):
		c.Parent, c.Relation = meta.Get("recovered_from").Text(), session.RelationRecovery
	}
	if c.Title == "" {
		c.Title = titleInIndex(f, c.ID)
	}
	return c
}

// titleInIndex returns a session's title in the index beside it, unless it is the default
// one.
func titleInIndex(f *transcript.File, id string) string {
	title := records.Beside(f, indexFile).Get(id, "title").Text()
	if title == defaultTitle(id) {
		return ""
	}
	return title
}

func defaultTitle(id string) string { return "Session " + id[max(0, len(id)-8):] }
