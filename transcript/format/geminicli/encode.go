package geminicli

import (
	"encoding/json"
	"strings"

	"github.com/coppice-dev/coppice/provider/google"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
	"github.com/coppice-dev/coppice/transcript/internal/residue"
)

// encodeMessage returns a message and the results of its calls as one message of a recording,
// without its id and time.
func encodeMessage(m *session.MessageEntry, results []session.Content) json.RawMessage {
	var o residue.Object
	if m.Role != session.RoleAssistant {
		o.Set("type", "user")
		o.Set("content", encodeParts(m, "user"))
		return o.JSON()
	}
	o.Set("type", "gemini")
	o.Set("content", answerText(m))
	answers := answersByCall(results)
	var thoughts, calls []json.RawMessage
	for i := range m.Content {
		switch c := &m.Content[i]; {
		case c.Thinking != nil && c.Thinking.Content != "":
			thoughts = append(thoughts, encodeThought(c.Thinking.Content))
		case c.ToolUse != nil:
			calls = append(calls, encodeCall(c.ToolUse, answers[c.ToolUse.ID]))
		}
	}
	if len(thoughts) > 0 {
		o.Set("thoughts", residue.List(thoughts))
	}
	if m.Usage != nil {
		o.Set("tokens", encodeTokens(m.Usage))
	}
	o.SetText("model", m.Model)
	if len(calls) > 0 {
		o.Set("toolCalls", residue.List(calls))
	}
	return o.JSON()
}

// answerText returns what Gemini said: a text, or else parts.
func answerText(m *session.MessageEntry) json.RawMessage {
	parts := encodeParts(m, "model")
	list := loose.Value(parts)
	n := 0
	for range list.Items() {
		n++
	}
	first := list.First()
	switch {
	case n == 0:
		return json.RawMessage(`""`)
	case n == 1 && len(first.Except("text")) == 0:
		return first.Get("text").Raw()
	}
	return parts
}

// encodeParts returns texts and media as parts.
func encodeParts(m *session.MessageEntry, role string) json.RawMessage {
	plain := *m
	plain.Content = nil
	for _, c := range m.Content {
		if c.Thinking == nil && c.ToolUse == nil && c.ToolResult == nil {
			plain.Content = append(plain.Content, c)
		}
	}
	if plain.Role = session.RoleUser; role == "model" {
		plain.Role = session.RoleAssistant
	}
	messages, err := google.EncodeVerbatim([]session.Entry{{Type: session.TypeMessage, Message: &plain}})
	if err != nil || len(plain.Content) == 0 {
		return json.RawMessage("[]")
	}
	for _, f := range messages.Fields {
		if f.Name == "contents" {
			if parts := loose.Value(f.Value).First().Get("parts"); parts.IsArray() {
				return parts.Raw()
			}
		}
	}
	return json.RawMessage("[]")
}

// isPart reports whether a picture, a recording or a file can be written as a part.
func isPart(c *session.Content) bool {
	return string(encodeParts(&session.MessageEntry{Content: []session.Content{*c}}, "user")) != "[]"
}

// encodeThought is the reverse of thoughtText: a bold first line is the subject.
func encodeThought(text string) json.RawMessage {
	var o residue.Object
	subject, description := "", text
	if rest, ok := strings.CutPrefix(text, "**"); ok {
		if s, d, ok := strings.Cut(rest, "**\n\n"); ok {
			subject, description = s, d
		}
	}
	o.Set("subject", subject)
	o.Set("description", description)
	return o.JSON()
}

// encodeTokens writes a usage as the program counts: the input is the whole context with its
// cached part, and the output lacks the thoughts.
func encodeTokens(u *session.Usage) json.RawMessage {
	input, output := u.Sent(), max(u.Output-u.Reasoning, 0)
	var o residue.Object
	o.Set("input", input)
	o.Set("output", output)
	o.Set("cached", u.CacheRead)
	o.Set("thoughts", u.Reasoning)
	o.Set("tool", 0)
	o.Set("total", input+output+u.Reasoning)
	return o.JSON()
}

// answersByCall returns the first result of each call.
func answersByCall(results []session.Content) map[string]*session.ToolResultContent {
	answers := make(map[string]*session.ToolResultContent, len(results))
	for i := range results {
		if t := results[i].ToolResult; t != nil && answers[t.ToolUseID] == nil {
			answers[t.ToolUseID] = t
		}
	}
	return answers
}

// encodeCall writes a call with its result, if there is one.
func encodeCall(call *session.ToolUseContent, answer *session.ToolResultContent) json.RawMessage {
	args, err := call.InputJSON()
	if err != nil || call.Input == nil {
		args = json.RawMessage("{}")
	}
	var o residue.Object
	o.Set("id", call.ID)
	o.Set("name", call.Name)
	o.Set("args", args)
	status := "cancelled"
	if answer != nil {
		if status = "success"; answer.IsError {
			status = "error"
		}
		o.Set("result", encodeResult(call, answer))
	}
	o.Set("status", status)
	return o.JSON()
}

// encodeResult writes a result as parts: the function's response with the text, then the media.
func encodeResult(call *session.ToolUseContent, t *session.ToolResultContent) json.RawMessage {
	member := "output"
	if t.IsError {
		member = "error"
	}
	var response, function, part residue.Object
	response.Set(member, t.Content)
	function.Set("id", call.ID)
	function.Set("name", call.Name)
	function.Set("response", response.JSON())
	part.Set("functionResponse", function.JSON())
	list := []json.RawMessage{part.JSON()}
	var media []session.Content
	for _, p := range t.Parts {
		if p.Text == nil {
			media = append(media, p)
		}
	}
	for p := range loose.Value(encodeParts(&session.MessageEntry{Content: media}, "user")).Items() {
		list = append(list, p.Raw())
	}
	return residue.List(list)
}
