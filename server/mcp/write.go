package mcp

import (
	"context"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/render"
)

// addWriters adds the tools that write. They only add to the log of a session: nothing that
// was there is lost. A wrong guess would write into somebody's session, so they take only the whole
// id of one.
func (f *face) addWriters() {
	addWriter(f, "append_note", "Append a note to a session", false,
		"Append a note at the end of a past session, for the person and for agents that continue it: what was decided, what is left to do. It can be searched. They see that an agent wrote it.", f.note)
	addWriter(f, "set_label", "Label an entry", true,
		"Give an entry of a session a name, by which it can be found again and read (at). An empty label takes the name away.", f.label)
}

func addWriter[In, Out any](f *face, name, title string, idempotent bool, description string, h sdk.ToolHandlerFor[In, Out]) {
	addTool(f, &sdk.Tool{
		Name: name, Title: title, Description: description,
		Annotations: &sdk.ToolAnnotations{DestructiveHint: new(bool), IdempotentHint: idempotent, OpenWorldHint: new(bool)},
	}, h)
	f.writers[name] = true
}

// mustBeID refuses a name of a session that is not its whole id.
func (f *face) mustBeID(ctx context.Context, given string) error {
	found, err := f.home.Sessions.Resolve(ctx, home.SessionRequest{Session: given})
	if err == nil && found.Session != given {
		err = callError("session must be the whole id of a session, as search and recent_sessions give it; nothing was written")
	}
	return err
}

// mustBeEntry refuses a name of an entry that is neither its id, whole or as the other tools print
// it, nor "leaf".
func (f *face) mustBeEntry(ctx context.Context, session, given string) error {
	if given == home.Leaf {
		return nil
	}
	if given != "" {
		found, err := f.home.Entries.Rows(ctx, home.RowsRequest{Session: session, At: given, Count: 1, Limit: 1})
		if err != nil {
			return err
		}
		if len(found.Rows) > 0 && (given == found.Rows[0].Entry.ID || given == render.ShortID(found.Rows[0].Entry.ID)) {
			return nil
		}
	}
	return callError("entry must be the id of an entry, as search and read_session give it, or leaf; nothing was written")
}

type noteRequest struct {
	Session string `json:"session" jsonschema:"the session's whole id"`
	Text    string `json:"text" jsonschema:"the note"`
}

func (f *face) note(ctx context.Context, call *sdk.CallToolRequest, r noteRequest) (*sdk.CallToolResult, *home.AppendResult, error) {
	if err := f.mustBeID(ctx, r.Session); err != nil {
		return f.failed(err), nil, nil
	}
	done, err := f.home.Entries.Note(ctx, home.NoteRequest{Session: r.Session, Text: r.Text, By: writerOf(call)})
	if err != nil {
		return f.failed(err), nil, nil
	}
	return nil, done, nil
}

// writerOf returns what the program of a model calls itself.
func writerOf(call *sdk.CallToolRequest) string {
	const by = "an agent, by MCP"
	if p := call.Session.InitializeParams(); p != nil && p.ClientInfo != nil {
		return render.OneLine(p.ClientInfo.Name, maxValue) + ", " + by
	}
	return by
}

type labelRequest struct {
	Session string `json:"session" jsonschema:"the session's whole id"`
	Entry   string `json:"entry" jsonschema:"the entry's id as search and read_session give it; leaf for the last one"`
	Label   string `json:"label" jsonschema:"the name; empty to take it away"`
}

func (f *face) label(ctx context.Context, _ *sdk.CallToolRequest, r labelRequest) (*sdk.CallToolResult, *home.LabelResult, error) {
	if err := f.mustBeID(ctx, r.Session); err != nil {
		return f.failed(err), nil, nil
	}
	if err := f.mustBeEntry(ctx, r.Session, r.Entry); err != nil {
		return f.failed(err), nil, nil
	}
	done, err := f.home.Entries.Label(ctx, home.LabelRequest(r))
	if err != nil {
		return f.failed(err), nil, nil
	}
	return nil, done, nil
}
