package crush

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript/internal/blocks"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
	"github.com/coppice-dev/coppice/transcript/internal/sqlitefile"
)

// entry turns a message's row into a message, or into a compaction where the context begins
// again with a summary.
func entry(row loose.Value, summary string) session.Entry {
	m := &session.MessageEntry{
		Role:     row.Get("role").Text(),
		Model:    row.Get("model").Text(),
		Provider: row.Get("provider").Text(),
	}
	for part := range sqlitefile.JSON(row.Get("parts")).Items() {
		add(m, part.Get("type").Text(), part.Get("data"), part)
	}
	e := session.Entry{Type: session.TypeMessage, Message: m}
	if row.Get("id").Text() == summary || row.Get("is_summary_message").Int() == 1 {
		e = session.Compaction(session.TextOf(m.Content), "", 0)
	}
	e.Timestamp = row.Get("created_at").Time(time.UTC)
	return e
}

// add adds a part to a message.
func add(m *session.MessageEntry, kind string, data, part loose.Value) {
	put := func(c session.Content) { m.Content = append(m.Content, c) }
	switch kind {
	case "text":
		m.Content = append(m.Content, blocks.Text(data.Get("text").Text())...)
	case "reasoning":
		if data.Get("thinking").Text() != "" || data.Get("signature").Text() != "" {
			put(thinking(data))
		}
	case "image_url":
		put(session.ImageFrom(&session.Source{Type: "url", Data: data.Get("url").Text()}))
	case "binary":
		put(binary(data))
	case "tool_call":
		put(call(data))
	case "tool_result":
		put(result(data))
	case "finish":
		finish(m, data)
	case "shell_command":
		m.Role = session.RoleBashExecution
		put(session.Text("$ " + data.Get("command").Text() + "\n" + data.Get("output").Text()))
		m.Metadata = map[string]any{"command": data.Get("command").Text(), "exit_code": data.Get("exit_code").Int()}
	default:
		put(blocks.Unknown(part))
	}
}

// thinking reads what the model thought. The members beside the text differ by provider, so they
// are kept.
func thinking(data loose.Value) session.Content {
	c := session.Thinking(data.Get("thinking").Text(), data.Get("signature").Text())
	c.Thinking.Extra = data.Except("thinking", "signature", "started_at", "finished_at")
	return c
}

// binary is a file attached to a message; the names of its members have capitals.
func binary(data loose.Value) session.Content {
	source := &session.Source{Type: "base64", MediaType: data.Get("MIMEType").Text(), Data: data.Get("Data").Text()}
	return blocks.File(data.Get("Path").Text(), source)
}

// call is a tool call. Its input is JSON in a string, which may be cut short.
func call(data loose.Value) session.Content {
	input := sqlitefile.JSON(data.Get("input"))
	c := session.ToolUseJSON(data.Get("id").Text(), data.Get("name").Text(), input.Raw())
	if !input.IsObject() && data.Get("input").Text() != "" {
		text, _ := json.Marshal(data.Get("input").Text()) // a string can always be encoded
		c.ToolUse.Extra = session.Fields{{Name: "input_text", Value: text}}
	}
	return c
}

// result reads a tool's answer, whose metadata is JSON in a string. A picture is beside the text.
func result(data loose.Value) session.Content {
	c := session.ToolResult(data.Get("tool_call_id").Text(), data.Get("content").Text(), data.Get("is_error").Bool())
	if picture := data.Get("data").Text(); picture != "" {
		c.ToolResult.Parts = []session.Content{
			session.Text(c.ToolResult.Content), session.Image(data.Get("mime_type").Text(), picture),
		}
	}
	if meta := data.Get("metadata").Text(); meta != "" {
		c.ToolResult.Extra = session.Fields{{Name: "metadata", Value: data.Get("metadata").Raw()}}
	}
	return c
}

// finish reads why the model stopped. With an error, it says which.
func finish(m *session.MessageEntry, data loose.Value) {
	m.StopReason = data.Get("reason").Text()
	if message := data.Get("message").Text(); message != "" {
		m.Metadata = map[string]any{"error": fmt.Sprintf("%s %s", message, data.Get("details").Text())}
	}
}
