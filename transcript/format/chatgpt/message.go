package chatgpt

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/blocks"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
)

// entry turns a node's message into an entry, or returns nil if it is empty.
func (t *tree) entry(n *node) *session.Entry {
	if !n.message.IsObject() || isHidden(n.message) {
		return nil
	}
	blocks := t.blocks(n)
	if len(blocks) == 0 {
		return nil
	}
	m := n.message
	entry := &session.Entry{
		Type:      session.TypeMessage,
		Timestamp: t.time(n),
		Message: &session.MessageEntry{
			Role:     m.Get("author", "role").Text(),
			Content:  blocks,
			Model:    m.Get("metadata", "model_slug").Text(),
			Metadata: notes(m),
		},
	}
	if entry.Message.Role == "assistant" {
		entry.Message.Provider = "openai"
		entry.Message.StopReason = stopReason(m)
	}
	if m.Get("content", "content_type").Text() == "user_editable_context" {
		entry.Message.Role, entry.Message.Category = session.RoleSystem, "SYSTEM"
	}
	if entry.Message.Role == session.RoleTool {
		t.answer(n, entry.Message)
	}
	return entry
}

// time returns the message's time or, for messages without one, that of the message before.
func (t *tree) time(n *node) time.Time {
	if own := n.message.Get("create_time").Time(time.UTC); !own.IsZero() {
		return own
	}
	if above := t.above(n); above != nil {
		return above.entry.Timestamp
	}
	return t.value.Get("create_time").Time(time.UTC)
}

// isHidden recognises messages that were not shown to the user and say nothing.
func isHidden(m loose.Value) bool {
	if m.Get("content", "content_type").Text() == "user_editable_context" {
		return false // what the user wants the model to know
	}
	weight := m.Get("weight")
	return weight.IsNumber() && weight.Number() == 0 ||
		m.Get("metadata", "is_visually_hidden_from_conversation").Bool()
}

func stopReason(m loose.Value) string {
	switch m.Get("status").Text() {
	case "finished_partial_completion":
		return "interrupted"
	case "in_progress":
		return "incomplete"
	}
	return m.Get("metadata", "finish_details", "type").Text()
}

// notes are the facts of a message that no field holds.
func notes(m loose.Value) map[string]any {
	found := m.Get("metadata").Pick("attachments", "finished_duration_sec", "citations", "aggregate_result")
	maps.DeleteFunc(found, func(_ string, v any) bool {
		list, ok := v.([]any)
		return ok && len(list) == 0
	})
	if channel := m.Get("channel").Text(); channel != "" {
		if found == nil {
			found = make(map[string]any)
		}
		found["channel"] = channel
	}
	return found
}

// answer turns what a tool said into the result of the call that asked for it. Without a
// call, as for a picture that the model did not ask for by name, it becomes a notice.
func (t *tree) answer(n *node, m *session.MessageEntry) {
	tool := n.message.Get("author", "name").Text()
	id := t.callFor(n, tool)
	if id == "" {
		m.Role, m.Category = session.RoleSystem, "SYSTEM_OUTPUT"
		return
	}
	failed := n.message.Get("content", "content_type").Text() == "system_error"
	result := session.ToolResult(id, session.TextOf(m.Content), failed)
	if len(m.Content) != 1 || m.Content[0].Text == nil {
		result.ToolResult.Parts = m.Content
	}
	m.Content = []session.Content{result}
}

// blocks returns the content of a message. A message to anyone but "all" is a call of that
// tool.
func (t *tree) blocks(n *node) []session.Content {
	content := n.message.Get("content")
	recipient := n.message.Get("recipient").Text()
	if n.message.Get("author", "role").Text() == "assistant" && recipient != "" && recipient != "all" {
		id := "call_" + n.id
		n.calls = append(n.calls, call{id: id, tool: recipient})
		return []session.Content{session.ToolUseJSON(id, recipient, input(content))}
	}
	return t.content(n, content)
}

// input returns a call's text as an object: the text itself, if it is one.
func input(content loose.Value) json.RawMessage {
	text := content.Get("text").Text()
	if text == "" {
		text = strings.Join(strs(content.Get("parts")), "\n")
	}
	if v, err := loose.Parse([]byte(text)); err == nil && v.IsObject() {
		return v.Raw()
	}
	wrapped := map[string]string{"text": text}
	if language := content.Get("language").Text(); language != "" && language != "unknown" {
		wrapped["language"] = language
	}
	raw, _ := json.Marshal(wrapped) // strings can always be encoded
	return raw
}

// content returns the blocks of a content, depending on its type.
func (t *tree) content(n *node, c loose.Value) []session.Content {
	switch kind := c.Get("content_type").Text(); kind {
	case "text", "multimodal_text":
		return t.parts(n, c.Get("parts"))
	case "thoughts":
		return thoughts(c)
	case "reasoning_recap":
		return thinking(joined(c, "content") + strings.Join(strs(c.Get("parts")), "\n"))
	case "code", "execution_output", "system_error", "computer_output", "citable_code_output":
		return blocks.Text(c.Get("text").Text())
	case "tether_quote":
		return blocks.Text(joined(c, "title", "url", "text"))
	case "tether_browsing_display", "sonic_webpage":
		return blocks.Text(joined(c, "title", "url", "summary", "result", "text"))
	case "user_editable_context":
		return blocks.Text(joined(c, "user_profile", "user_instructions"))
	case "model_editable_context":
		return blocks.Text(c.Get("model_set_context").Text())
	default:
		t.to.Count("content of type "+kind, "unknown block", 1)
		return []session.Content{unknown(c)}
	}
}

// unknown keeps a content of an unknown type as it is.
func unknown(c loose.Value) session.Content {
	raw, _ := json.Marshal(map[string]json.RawMessage{"type": json.RawMessage(`"chatgpt"`), "content": json.RawMessage(c)})
	return session.Content{Type: "chatgpt", Raw: raw}
}

func thinking(s string) []session.Content {
	if s == "" {
		return nil
	}
	return []session.Content{session.Thinking(s, "")}
}

func thoughts(c loose.Value) []session.Content {
	all := strs(c.Get("parts")) // some versions have them here
	for thought := range c.Get("thoughts").Items() {
		if s := joined(thought, "summary", "content"); s != "" {
			all = append(all, s)
		}
	}
	return thinking(strings.Join(all, "\n\n"))
}

// strs returns the strings of an array.
func strs(list loose.Value) []string {
	var all []string
	for item := range list.Items() {
		if item.IsString() {
			all = append(all, item.Text())
		}
	}
	return all
}

// joined returns the texts of some members, one below the other.
func joined(v loose.Value, names ...string) string {
	var texts []string
	for _, name := range names {
		if s := v.Get(name).Text(); s != "" {
			texts = append(texts, s)
		}
	}
	return strings.Join(texts, "\n")
}

func (t *tree) parts(n *node, parts loose.Value) []session.Content {
	var list []session.Content
	for part := range parts.Items() {
		switch {
		case part.IsString():
			list = append(list, blocks.Text(cited(part.Text(), n.message))...)
		case part.IsObject():
			list = append(list, t.part(part)...)
		}
	}
	return list
}

func (t *tree) part(part loose.Value) []session.Content {
	switch part.Get("content_type").Text() {
	case "image_asset_pointer":
		source := t.asset(part.Get("asset_pointer").Text())
		return []session.Content{{Type: session.ContentTypeImage, Image: &session.ImageContent{
			Source: source, Extra: part.Except("content_type", "asset_pointer"),
		}}}
	case "audio_transcription":
		return blocks.Text(part.Get("text").Text())
	case "audio_asset_pointer":
		return t.audio(part)
	case "real_time_user_audio_video_asset_pointer":
		return t.audio(part.Get("audio_asset_pointer"))
	}
	return []session.Content{unknown(part)}
}

func (t *tree) audio(pointer loose.Value) []session.Content {
	source := t.asset(pointer.Get("asset_pointer").Text())
	return []session.Content{{Type: session.ContentTypeAudio, Audio: &session.AudioContent{Source: source}}}
}

// asset returns the bytes that a pointer refers to, if they are in the archive, or else the
// pointer itself.
func (t *tree) asset(pointer string) *session.Source {
	_, id, _ := strings.Cut(pointer, "://")
	if t.assets != nil && id != "" {
		for _, name := range t.assets.Names() {
			if !strings.HasPrefix(path.Base(name), id) {
				continue
			}
			if source := t.load(name); source != nil {
				return source
			}
		}
	}
	t.to.Count("picture or recording that is not in the export", "reference", 1)
	return &session.Source{Type: "url", Data: pointer}
}

func (t *tree) load(name string) *session.Source {
	f, err := t.assets.File(name)
	if err != nil {
		return nil
	}
	data, err := f.ReadAll()
	if err != nil {
		t.to.Problem(transcript.Problem{Reason: name + ": " + err.Error()})
		return nil
	}
	media, _, _ := strings.Cut(http.DetectContentType(data), ";")
	return &session.Source{Type: "base64", MediaType: media, Data: base64.StdEncoding.EncodeToString(data)}
}

// cited replaces ChatGPT's private citation marks by what they refer to, and removes those
// that refer to nothing.
func cited(s string, m loose.Value) string {
	if !strings.ContainsAny(s, "\ue200\ue201\ue202") {
		return s
	}
	for ref := range m.Get("metadata", "content_references").Items() {
		if mark := ref.Get("matched_text").Text(); strings.ContainsRune(mark, '\ue200') {
			s = strings.ReplaceAll(s, mark, ref.Get("alt").Text())
		}
	}
	for {
		from := strings.IndexRune(s, '\ue200')
		to := strings.IndexRune(s, '\ue201')
		if from < 0 || to < from {
			break
		}
		s = s[:from] + s[to+len("\ue201"):]
	}
	return strings.Map(func(r rune) rune {
		if '\ue200' <= r && r <= '\ue202' {
			return -1
		}
		return r
	}, s)
}
