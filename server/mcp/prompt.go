package mcp

import (
	"context"
	"slices"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/session"
)

func (f *face) addPrompts(s *sdk.Server) {
	s.AddPrompt(&sdk.Prompt{
		Name: "hand_over", Title: "Hand work over",
		Description: "Sum up a past session for someone who continues the work, with what is still open.",
		Arguments: []*sdk.PromptArgument{{
			Name: "session", Title: "Session", Required: true,
			Description: "The session's id, its short name, its title, or last for the latest one.",
		}},
	}, f.handOver)
}

const handOver = `Write a hand-over of the past session below, for somebody who continues the work and has not read it:
1. the goal, in the user's words;
2. what was done, and what was found out: files, commands, results;
3. what was decided, why, and what was tried and rejected;
4. what is open: unanswered questions, unfinished steps, failing checks;
5. the next step.
Name the entry for what matters, so that it can be read again. Say so where you do not know. Use read_session for what is left out.`

// handOverTokens is how many tokens of the session the prompt contains.
const handOverTokens = 12_000

func (f *face) handOver(ctx context.Context, r *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
	name := r.Params.Arguments["session"]
	a, err := f.read(ctx, readRequest{Session: name, page: page{MaxTokens: handOverTokens}})
	if err != nil {
		return nil, f.worded(err)
	}
	open, err := f.openEnds(ctx, name)
	if err != nil {
		return nil, f.worded(err)
	}
	text := handOver + "\n\n" + a.String()
	if len(open) > 0 {
		ends := &answer{head: "Open ends that Coppice sees:", limit: defaultTokens}
		for _, end := range open {
			ends.add("- " + end)
		}
		text += "\n\n" + ends.String()
	}
	return &sdk.GetPromptResult{
		Description: "A hand-over of a past session",
		Messages:    []*sdk.PromptMessage{{Role: "user", Content: &sdk.TextContent{Text: text}}},
	}, nil
}

// openEnds lists what a session left unfinished: open items of its last to-do list, calls
// without a result, and a message without an answer.
func (f *face) openEnds(ctx context.Context, name string) (open []string, err error) {
	c, err := f.home.Entries.Context(ctx, home.ContextRequest{Session: name})
	if err != nil {
		return nil, err
	}
	var todos []render.Todo
	var calls []*session.ToolUseContent // of the last turn, without a result
	unanswered := ""
	for i := range c.Entries {
		e := &c.Entries[i]
		if e.Message == nil {
			continue
		}
		if unanswered = ""; e.BeginsTurn() {
			unanswered, calls = render.Gist(e, maxGist), nil
		}
		for j := range e.Message.Content {
			b := &e.Message.Content[j]
			switch {
			case b.ToolUse != nil:
				if list := render.Todos(b.ToolUse); list != nil {
					todos = list
				}
				calls = append(calls, b.ToolUse)
			case b.ToolResult != nil && b.ToolResult.Content != session.InterruptedText:
				calls = slices.DeleteFunc(calls, func(t *session.ToolUseContent) bool { return t.ID == b.ToolResult.ToolUseID })
			}
		}
	}
	for _, t := range todos {
		if t.State != render.TodoDone {
			open = append(open, "to do ("+string(t.State)+"): "+t.Text)
		}
	}
	for _, t := range calls {
		open = append(open, "a call without a result: "+render.OneLine(render.CallGist(t), maxGist))
	}
	if unanswered != "" {
		open = append(open, "a message without an answer: "+unanswered)
	}
	return open, nil
}

// maxGist is the maximum width of the summary of a message or a call, in columns.
const maxGist = 200
