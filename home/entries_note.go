package home

import (
	"context"
	"errors"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/window"
)

// NoteRequest leaves a note in a conversation.
type NoteRequest struct {
	Session string `json:"session"` // as a person names it: see Resolve
	Text    string `json:"text"`    // what the note says
	// By is who writes it. It is part of what people and models see of the note. Default: a
	// program.
	By string `json:"by,omitempty"`
}

// Note leaves a note at the end of a conversation, for people and for the agents that continue it.
// It is not the user's message: readers see who wrote it, a model gets it as a quotation, and
// nothing waits for an answer.
func (e *Entries) Note(ctx context.Context, r NoteRequest) (*AppendResult, error) {
	return call(ctx, e.home, "entries.note", r, e.note)
}

func (e *Entries) note(ctx context.Context, r NoteRequest) (*AppendResult, error) {
	if orNone(r.Text) == "" {
		return nil, wrong("text", "the note is empty")
	}
	if err := errors.Join(checkUTF8("text", r.Text), checkUTF8("by", r.By)); err != nil {
		return nil, err
	}
	note := session.NewNote(r.By, r.Text)
	note.Message.Category = window.Context.String()
	result, again, err := e.appendEntry(ctx, AppendRequest{Session: r.Session}, note)
	if again {
		result, _, err = e.appendEntry(ctx, AppendRequest{Session: r.Session}, note)
	}
	return result, err
}

// appendEntry appends an entry that the home itself writes. It also reports whether the session
// was open before and has changed so much that nothing was tried.
func (e *Entries) appendEntry(ctx context.Context, r AppendRequest, entry session.Entry) (_ *AppendResult, again bool, _ error) {
	e.home.beforeWriting(ctx)
	c, err := e.home.openToAppend(ctx, r, &entry)
	if err != nil {
		return nil, false, err
	}
	id, err := e.home.append(ctx, c, entry, r)
	again = c.kept.failed(err)
	if err := errors.Join(forCaller("append", c.Handle, err), c.Close()); err != nil {
		return nil, again, err
	}
	return &AppendResult{Session: c.Handle, Entry: id}, false, nil
}
