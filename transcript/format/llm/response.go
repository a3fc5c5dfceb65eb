package llm

import (
	"bytes"
	"cmp"
	"context"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/blocks"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
	"github.com/coppice-dev/coppice/transcript/internal/sqlitefile"
	"github.com/coppice-dev/coppice/transcript/internal/walk"
)

// reader reads the responses of one conversation.
type reader struct {
	db           *sqlitefile.DB
	to           transcript.Sink
	conversation loose.Value
	begun        bool
	system       string // the latest system prompt
	span         transcript.Span
}

// response adds the prompt and the answer.
func (r *reader) response(ctx context.Context, row loose.Value) error {
	if !r.begun {
		r.begun = true
		c := transcript.Conversation{
			ID: r.conversation.Get("id").Text(), Title: r.conversation.Get("name").Text(), Created: at(row),
		}
		if err := r.to.Begin(c); err != nil {
			return err
		}
	}
	id := row.Get("id").Text()
	calls, err := r.rows(ctx, "tool_calls", id)
	if err != nil {
		return err
	}
	results, err := r.rows(ctx, "tool_results", id)
	if err != nil {
		return err
	}
	if r.span, err = r.to.Keep("response "+id, whole(row, calls, results)); err != nil {
		return err
	}
	r.to.Count("response", "messages", 1)
	asked, err := r.asked(ctx, row, id)
	if err != nil {
		return err
	}
	for _, part := range []struct {
		suffix  string
		message *session.MessageEntry
	}{
		{"/system", r.systemPrompt(row)},
		{"/results", message(session.RoleTool, answers(results))},
		{"/prompt", message(session.RoleUser, asked)},
		{"", answer(row, calls)},
	} {
		if part.message == nil {
			continue
		}
		e := session.Entry{Type: session.TypeMessage, Timestamp: at(row), Message: part.message}
		if err := r.to.Add(transcript.Record{ID: id + part.suffix, Entry: e, From: []transcript.Span{r.span}}); err != nil {
			return err
		}
	}
	return nil
}

// rows returns the rows of a table that belong to a response.
func (r *reader) rows(ctx context.Context, table, response string) ([]loose.Value, error) {
	var list []loose.Value
	err := walk.Each(r.db.Rows(ctx, table, "response_id", response, "id"), func(row loose.Value) error {
		list = append(list, row)
		return nil
	})
	return list, err
}

// whole returns the rows from which a response's entries are made, as lines: they are kept
// together, because they have no place in a file to which an entry could refer.
func whole(row loose.Value, more ...[]loose.Value) []byte {
	lines := [][]byte{row}
	for _, list := range more {
		for _, v := range list {
			lines = append(lines, v)
		}
	}
	return bytes.Join(lines, []byte("\n"))
}

func message(role session.MessageRole, content []session.Content) *session.MessageEntry {
	if len(content) == 0 {
		return nil
	}
	return &session.MessageEntry{Role: role, Content: content}
}

// systemPrompt returns a response's system prompt if it differs from the last one: llm
// repeats it with every response.
func (r *reader) systemPrompt(row loose.Value) *session.MessageEntry {
	text := row.Get("system").Text()
	if text == "" || text == r.system {
		return nil
	}
	r.system = text
	return message(session.RoleSystem, []session.Content{session.Text(text)})
}

// answers returns the results that were sent with a prompt.
func answers(results []loose.Value) []session.Content {
	var list []session.Content
	for _, row := range results {
		failed := row.Get("exception").Text() != ""
		text := row.Get("output").Text()
		if text == "" && failed {
			text = row.Get("exception").Text()
		}
		list = append(list, session.ToolResult(row.Get("tool_call_id").Text(), text, failed))
	}
	return list
}

// asked returns a prompt with its attachments.
func (r *reader) asked(ctx context.Context, row loose.Value, id string) ([]session.Content, error) {
	var list []session.Content
	err := walk.Each(r.db.Rows(ctx, "prompt_attachments", "response_id", id, "order"), func(link loose.Value) error {
		return walk.Each(r.db.Rows(ctx, "attachments", "id", link.Get("attachment_id").Text()), func(a loose.Value) error {
			list = append(list, attachment(a))
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	return append(list, blocks.Text(row.Get("prompt").Text())...), nil
}

// attachment reads a picture, a recording or a file: its bytes, its address, or only its path.
func attachment(a loose.Value) session.Content {
	source := &session.Source{Type: "base64", MediaType: a.Get("type").Text(), Data: a.Get("content").Text()}
	if source.Data == "" {
		source.Type, source.Data = "url", a.Get("url").Text()
		if path := a.Get("path").Text(); source.Data == "" && path != "" {
			source.Data = "file://" + path
		}
	}
	c := session.Media(source)
	if c.File != nil {
		c.File.Name = a.Get("path").Text()
	}
	return c
}

// answer returns the model's message.
func answer(row loose.Value, calls []loose.Value) *session.MessageEntry {
	list := blocks.Text(row.Get("response").Text())
	for _, c := range calls {
		input := sqlitefile.JSON(c.Get("arguments"))
		list = append(list, session.ToolUseJSON(c.Get("tool_call_id").Text(), c.Get("name").Text(), input.Raw()))
	}
	m := message(session.RoleAssistant, list)
	if m == nil {
		return nil
	}
	m.Model, m.ResponseID, m.Usage = cmp.Or(row.Get("resolved_model").Text(), row.Get("model").Text()), row.Get("id").Text(), usage(row)
	if options := sqlitefile.JSON(row.Get("options_json")); options.IsObject() && len(options.Map()) > 0 {
		m.Metadata = map[string]any{"options": options.Any()}
	}
	return m
}

// usage returns what a response cost. Cached tokens are part of the input; the details have
// them under the provider's own name.
func usage(row loose.Value) *session.Usage {
	if !row.Has("input_tokens") && !row.Has("output_tokens") {
		return nil
	}
	details := sqlitefile.JSON(row.Get("token_details"))
	u := &session.Usage{
		Input: row.Get("input_tokens").Int(), Output: row.Get("output_tokens").Int(),
		CacheRead: details.Get("prompt_tokens_details", "cached_tokens").Int(),
		Reasoning: details.Get("completion_tokens_details", "reasoning_tokens").Int(),
	}
	u.Input = max(0, u.Input-u.CacheRead)
	if details.IsObject() {
		u.Extra = session.Fields{{Name: "details", Value: details.Raw()}}
	}
	return u
}
