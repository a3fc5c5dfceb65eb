package conversation

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/coppice-dev/coppice/provider/anthropic"
	"github.com/coppice-dev/coppice/provider/openai"
	"github.com/coppice-dev/coppice/session"
)

// ParseContent converts what a caller has into content: a string; blocks of package
// session; or any JSON value, as lists and maps or as raw bytes, in the shape of a log
// or of the common model APIs (image_url, input_audio, file, flat tool_use and
// tool_result). A block of an unknown shape is kept as it is.
func ParseContent(v any) ([]session.Content, error) {
	switch v := v.(type) {
	case nil:
		return nil, nil
	case string:
		return []session.Content{session.Text(v)}, nil
	case session.Content:
		return []session.Content{v}, nil
	case []session.Content:
		return v, nil
	case json.RawMessage:
		return parseJSON(v)
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("content of type %T: %w: %w", v, session.ErrInvalid, err)
	}
	return parseJSON(raw)
}

func parseJSON(raw json.RawMessage) ([]session.Content, error) {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		list = []json.RawMessage{raw} // one block, or a string
	}
	var blocks []session.Content
	for _, one := range list {
		if string(one) == "null" {
			continue
		}
		block, err := parseBlock(one)
		if err != nil {
			return nil, fmt.Errorf("content: %w: %w", session.ErrInvalid, err)
		}
		blocks = append(blocks, block)
	}
	return blocks, nil
}

// parseBlock reads a block in the shape of a log or of a model API. The packages below
// provider know the APIs: they keep numbers as written, and store members without a field of
// their own, such as cache_control and detail, with the block.
func parseBlock(raw json.RawMessage) (session.Content, error) {
	var shape struct {
		Type      string
		ID        string
		ToolUseID string `json:"tool_use_id"`
		Source    json.RawMessage
		Thinking  json.RawMessage
		File      json.RawMessage
		Text      json.RawMessage
	}
	if json.Unmarshal(raw, &shape) == nil {
		switch {
		case shape.Type == "image_url", shape.Type == "input_audio", shape.Type == "file" && hasMember(shape.File, "file_data"):
			return foreignBlock(raw, fromOpenAI)
		case shape.Type == "image" && shape.Source != nil, shape.Type == "document" && shape.Source != nil,
			shape.Type == "tool_use" && shape.ID != "", shape.Type == "tool_result" && shape.ToolUseID != "",
			shape.Type == "thinking" && len(shape.Thinking) > 0 && shape.Thinking[0] == '"', shape.Type == "redacted_thinking",
			shape.Type == "text" && len(shape.Text) > 0 && shape.Text[0] == '"':
			return foreignBlock(raw, anthropic.DecodeContent)
		}
	}
	var block session.Content
	err := block.UnmarshalJSON(raw)
	return block, err
}

func hasMember(raw json.RawMessage, name string) bool {
	var members map[string]json.RawMessage
	return json.Unmarshal(raw, &members) == nil && members[name] != nil
}

// foreignBlock reads a block with a provider's decoder for lists. If the decoder does not
// understand it, it is kept as it is.
func foreignBlock(raw json.RawMessage, decode func(list []byte) ([]session.Content, error)) (session.Content, error) {
	list := append(append([]byte{'['}, raw...), ']')
	if blocks, err := decode(list); err == nil && len(blocks) == 1 {
		if r := blocks[0].ToolResult; r != nil {
			readParts(r.Parts)
		}
		return blocks[0], nil
	}
	var block session.Content
	err := block.UnmarshalJSON(raw)
	return block, err
}

// readParts reads those parts of a result that its own API does not know. Some programs put
// images of one API into results of another.
func readParts(parts []session.Content) {
	for i := range parts {
		if parts[i].Raw == nil {
			continue
		}
		if block, err := parseBlock(parts[i].Raw); err == nil {
			parts[i] = block
		}
	}
}

// fromOpenAI reads the parts of a message of Chat Completions.
func fromOpenAI(list []byte) ([]session.Content, error) {
	body, err := openai.DecodeChat(append(append([]byte(`{"role":"user","content":`), list...), '}'))
	if err != nil || len(body.Entries) != 1 {
		return nil, err
	}
	return body.Entries[0].Message.Content, nil
}

// fieldsOf returns members in the order of their names.
func fieldsOf(members map[string]json.RawMessage) session.Fields {
	var fields session.Fields
	for _, name := range slices.Sorted(maps.Keys(members)) {
		fields = append(fields, session.Field{Name: name, Value: members[name]})
	}
	return fields
}

// isPlainText reports whether content is one text and nothing else.
func isPlainText(blocks []session.Content) bool {
	return len(blocks) == 1 && blocks[0].Text != nil && blocks[0].Extra == nil && blocks[0].Text.Extra == nil
}
