package geminicli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/google"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
	"github.com/coppice-dev/coppice/transcript/internal/residue"
)

// kindOf returns who speaks: user, gemini, or the program itself (info, error,
// warning).
func kindOf(v loose.Value) string {
	kind := cmp.Or(v.Get("type").Text(), v.Get("role").Text())
	if kind == "model" {
		return "gemini"
	}
	return kind
}

// decode turns a message into an entry and the results of its calls. It leaves results of
// calls that are answered already out of the user's message.
func decode(v loose.Value, answered map[string]bool) (said session.Entry, results []session.Content) {
	switch kind := kindOf(v); {
	case kind == "user" && len(blocks(v, "user")) > 0:
		said = decodeUser(withoutStoredResults(blocks(v, "user"), answered), isMarked(v))
		if said.Message.Role == session.RoleTool {
			return said, nil // it is written with its calls
		}
	case kind == "gemini":
		said, results = decodeAnswer(v)
	default: // the program's own messages, and empty ones
		return session.Custom(name+"."+kindOf(v), v.Rest("id", "timestamp")), nil
	}
	made := encodeMessage(said.Message, results)
	said.Extra = residue.Keep(said.Extra, name, residue.Of(loose.Value(made), withoutPlace(v)))
	return said, results
}

// withoutPlace returns a message without its id and time.
func withoutPlace(v loose.Value) loose.Value {
	return loose.Value(v.Others("id", "timestamp").JSON())
}

// partsOf returns a content, which may be a text, a part or several, as parts. They
// may be slices of the message.
func partsOf(v loose.Value) json.RawMessage {
	switch content := v.Get("content"); {
	case content.IsString() && content.Text() == "":
		return json.RawMessage("[]")
	case content.IsString():
		var part residue.Object
		part.Put("text", json.RawMessage(content))
		return residue.List([]json.RawMessage{part.JSON()})
	case content.IsObject():
		return residue.List([]json.RawMessage{json.RawMessage(content)})
	case content.IsArray():
		return json.RawMessage(content)
	}
	if parts := v.Get("parts"); parts.IsArray() {
		return json.RawMessage(parts)
	}
	return json.RawMessage("[]")
}

// blocks reads the parts of a message; bare strings are parts too.
func blocks(v loose.Value, role string) []session.Content {
	var parts []json.RawMessage
	for part := range loose.Value(partsOf(v)).Items() {
		if part.Get("text").Text() == marker {
			continue
		}
		if part.IsString() {
			var o residue.Object
			o.Put("text", json.RawMessage(part))
			parts = append(parts, o.JSON())
			continue
		}
		parts = append(parts, json.RawMessage(part))
	}
	var o residue.Object
	o.Set("role", role)
	o.Set("parts", residue.List(parts))
	body, err := google.Decode(o.JSON())
	if err != nil {
		return nil
	}
	var list []session.Content
	for _, e := range body.Entries {
		list = append(list, e.Message.Content...)
	}
	return list
}

// withoutStoredResults returns the blocks of a message without the results that are stored with
// their calls.
func withoutStoredResults(list []session.Content, answered map[string]bool) []session.Content {
	return slices.DeleteFunc(list, func(c session.Content) bool { return c.ToolResult != nil && answered[c.ToolResult.ToolUseID] })
}

// contentKey identifies the content of a message, however the recording spells it. Thoughts are
// left out: a resumed recording has them as parts too, in another form.
func contentKey(v loose.Value) string {
	said, results := decode(v, nil)
	if said.Message == nil {
		return string(v)
	}
	var text strings.Builder
	for _, c := range append(said.Message.Content, results...) {
		switch {
		case c.Thinking != nil:
		case c.Text != nil:
			fmt.Fprintf(&text, "text %q\n", c.Text.Content)
		case c.ToolUse != nil:
			input, _ := c.ToolUse.InputJSON() // text that is not JSON is compared as it is
			fmt.Fprintf(&text, "call %q %q %s\n", c.ToolUse.ID, c.ToolUse.Name, input)
		case c.ToolResult != nil:
			fmt.Fprintf(&text, "result %q %t %q and %d more\n", c.ToolResult.ToolUseID, c.ToolResult.IsError, c.ToolResult.Content, len(c.ToolResult.Parts))
		default:
			block, _ := json.Marshal(c)
			fmt.Fprintf(&text, "%s\n", block)
		}
	}
	return text.String()
}

func decodeUser(content []session.Content, marked bool) session.Entry {
	m := &session.MessageEntry{Role: session.RoleUser, Content: content}
	if !slices.ContainsFunc(content, func(c session.Content) bool { return c.ToolResult == nil }) {
		m.Role = session.RoleTool
		return session.Entry{Type: session.TypeMessage, Message: m}
	}
	if !marked && isInjected(m.Content) {
		m.Metadata = map[string]any{session.MetaInjected: true}
	}
	return session.Entry{Type: session.TypeMessage, Message: m}
}

// isMarked reports whether a message has the marker of one that is meant for the
// model, whatever it begins with.
func isMarked(v loose.Value) bool { return v.Get("content").First().Get("text").Text() == marker }

// isInjected reports whether a message is not the user's words to the model: a command, or
// text that the program wrote in the user's name.
func isInjected(content []session.Content) bool {
	if len(content) == 0 || content[0].Text == nil {
		return len(content) == 0
	}
	text := strings.TrimSpace(content[0].Text.Content)
	return text == "" && len(content) == 1 || slices.ContainsFunc([]string{"/", "?", "<session_context>", "<hook_context>", "<state_snapshot>"},
		func(beginning string) bool { return strings.HasPrefix(text, beginning) })
}

// decodeAnswer reads what Gemini thought, said and called, and the results.
func decodeAnswer(v loose.Value) (session.Entry, []session.Content) {
	m := &session.MessageEntry{
		Role: session.RoleAssistant, Provider: "google", Model: v.Get("model").Text(),
		Usage: provider.GeminiCLIUsage(v.Get("tokens")),
	}
	for thought := range v.Get("thoughts").Items() {
		m.Content = append(m.Content, session.Thinking(thoughtText(thought), ""))
	}
	content := blocks(v, "model")
	if len(m.Content) > 0 {
		content = slices.DeleteFunc(content, func(c session.Content) bool { return c.Thinking != nil })
	}
	m.Content = append(m.Content, content...)
	made := make(map[string]bool)
	for i := range m.Content {
		if c := m.Content[i].ToolUse; c != nil {
			made[c.ID] = true
		}
	}
	var results []session.Content
	for call := range v.Get("toolCalls").Items() {
		id := call.Get("id").Text()
		if !made[id] {
			made[id] = true
			m.Content = append(m.Content, session.ToolUseJSON(id, call.Get("name").Text(), call.Get("args").Raw()))
		}
		if result, ok := decodeResult(call); ok {
			results = append(results, result)
		}
	}
	return session.Entry{Type: session.TypeMessage, Message: m}, results
}

// thoughtText joins a thought's subject and description.
func thoughtText(v loose.Value) string {
	subject, description := v.Get("subject").Text(), v.Get("description").Text()
	if subject == "" {
		return description
	}
	return "**" + subject + "**\n\n" + description
}

// decodeResult reads the result of a call, which is stored in the call. A call that was
// cancelled or failed without a result has the text that the user was shown.
func decodeResult(call loose.Value) (session.Content, bool) {
	status := call.Get("status").Text()
	failed := status == "error" || status == "cancelled"
	result := session.ToolResult(call.Get("id").Text(), "", failed)
	t := result.ToolResult
	var rest []json.RawMessage
	found := false
	for part := range ownParts(call) {
		response := part.Get("functionResponse", "response")
		if !response.Exists() {
			rest = append(rest, part.Raw())
			continue
		}
		found = true
		text, isError := responseText(response)
		t.Content += text
		t.IsError = t.IsError || isError
	}
	if call.Get("result").IsString() {
		t.Content, found = call.Get("result").Text(), true
	}
	if media := mediaOf(rest); len(media) > 0 {
		t.Parts = append([]session.Content{session.Text(t.Content)}, media...)
		found = true
	}
	if !found && failed {
		if t.Content = call.Get("resultDisplay").Text(); t.Content == "" {
			t.Content = status
		}
		found = true
	}
	return result, found
}

// ownParts yields the parts of a call's own result. In a resumed conversation, each of
// several calls has the results of all of them.
func ownParts(call loose.Value) iter.Seq[loose.Value] {
	parts, id := call.Get("result"), call.Get("id").Text()
	isOwn := func(part loose.Value) bool { return part.Get("functionResponse", "id").Text() == id }
	shared := slices.ContainsFunc(slices.Collect(parts.Items()), isOwn)
	return func(yield func(loose.Value) bool) {
		given := make(map[string]bool)
		for part := range parts.Items() {
			if given[string(part)] || part.Has("functionResponse") && shared && !isOwn(part) {
				continue
			}
			given[string(part)] = true
			if !yield(part) {
				return
			}
		}
	}
}

// responseText returns a function's answer, and whether it is an error.
func responseText(response loose.Value) (string, bool) {
	for _, member := range []string{"output", "error"} {
		if v := response.Get(member); v.Exists() {
			if v.IsString() {
				return v.Text(), member == "error"
			}
			return string(v), member == "error"
		}
	}
	return string(response), false
}

// mediaOf reads the pictures and files that a result has besides its text.
func mediaOf(parts []json.RawMessage) []session.Content {
	if len(parts) == 0 {
		return nil
	}
	var o residue.Object
	o.Set("content", residue.List(parts))
	return blocks(loose.Value(o.JSON()), "user")
}
