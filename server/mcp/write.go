package mcp

import (
	"context"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/window"
)

// addWriters adds the tools that write. They only add to the log of a session: nothing that
// was there is lost.
func (f *face) addWriters() {
	addWriter(f, "append_note", "Append a note to a session", false,
		"Append a note at the end of a past session, for the person and for agents that continue it: what was decided, what is left to do. It can be searched.", f.note)
	addWriter(f, "set_label", "Label an entry", true,
		"Give an entry of a session a name, by which it can be found again and read (at). An empty label takes the name away.", f.label)
}

func addWriter[In, Out any](f *face, name, title string, idempotent bool, description string, h sdk.ToolHandlerFor[In, Out]) {
	addTool(f, &sdk.Tool{
		Name: name, Title: title, Description: description,
		Annotations: &sdk.ToolAnnotations{DestructiveHint: new(bool), IdempotentHint: idempotent, OpenWorldHint: new(bool)},
	}, h)
}

type noteRequest struct {
	Session string `json:"session" jsonschema:"the session's id"`
	Text    string `json:"text" jsonschema:"the note"`
}

// noteSource is the mark in the log for a note that was written in the user's name.
const noteSource = "mcp"

func (f *face) note(ctx context.Context, _ *sdk.CallToolRequest, r noteRequest) (*sdk.CallToolResult, *home.AppendResult, error) {
	done, err := f.home.Entries.Append(ctx, home.AppendRequest{Session: r.Session, Message: &session.MessageEntry{
		Role: session.RoleUser, Category: window.Context.String(),
		Content:  []session.Content{session.Text(r.Text)},
		Metadata: map[string]any{session.MetaInjected: noteSource},
	}})
	if err != nil {
		return f.failed(err), nil, nil
	}
	return nil, done, nil
}

type labelRequest struct {
	Session string `json:"session" jsonschema:"the session's id"`
	Entry   string `json:"entry" jsonschema:"the entry's id; leaf for the last one"`
	Label   string `json:"label" jsonschema:"the name; empty to take it away"`
}

func (f *face) label(ctx context.Context, _ *sdk.CallToolRequest, r labelRequest) (*sdk.CallToolResult, *home.LabelResult, error) {
	done, err := f.home.Entries.Label(ctx, home.LabelRequest(r))
	if err != nil {
		return f.failed(err), nil, nil
	}
	return nil, done, nil
}
