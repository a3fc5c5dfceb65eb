package conversation

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/coppice-dev/coppice/session"
)

// ParseContent makes content of what a caller has: a string; blocks of package
// session; or anything that JSON can hold, as lists and maps or as raw bytes, in
// the shape of a log or of the common model APIs (image_url, input_audio, file,
// flat tool_use and tool_result). A block of an unknown shape is kept as it is.
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

// foreign is what blocks of the common APIs have in them.
type foreign struct {
	Type     string          `json:"type"`
	ImageURL json.RawMessage `json:"image_url"`
	Audio    *struct {
		Data   string `json:"data"`
		Format string `json:"format"`
	} `json:"input_audio"`
	File *struct {
		Name string `json:"filename"`
		Data string `json:"file_data"`
	} `json:"file"`
	Source *struct {
		Type      string `json:"type"`
		MediaType string `json:"media_type"`
		Data      string `json:"data"`
		URL       string `json:"url"`
	} `json:"source"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     map[string]any  `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	IsError   bool            `json:"is_error"`
	Content   json.RawMessage `json:"content"`
	Thinking  json.RawMessage `json:"thinking"`
	Signature string          `json:"signature"`
}

func parseBlock(raw json.RawMessage) (session.Content, error) {
	var f foreign
	if json.Unmarshal(raw, &f) == nil {
		if block, members := f.block(); members != nil {
			block.Extra = otherMembers(raw, append(members, "type")...)
			return block, nil
		}
	}
	var block session.Content
	err := block.UnmarshalJSON(raw)
	return block, err
}

// otherMembers returns the members of an object that are not named, in the order
// of their names.
func otherMembers(raw json.RawMessage, named ...string) session.Fields {
	var all map[string]json.RawMessage
	if json.Unmarshal(raw, &all) != nil {
		return nil
	}
	for _, name := range named {
		delete(all, name)
	}
	return fieldsOf(all)
}

// fieldsOf returns members in the order of their names.
func fieldsOf(members map[string]json.RawMessage) session.Fields {
	var fields session.Fields
	for _, name := range slices.Sorted(maps.Keys(members)) {
		fields = append(fields, session.Field{Name: name, Value: members[name]})
	}
	return fields
}

// block translates a block of another API, and names the members that went into
// it; none if it is not of another API.
func (f *foreign) block() (_ session.Content, members []string) {
	switch {
	case f.Type == "image_url":
		return imageFromURL(f.ImageURL)
	case f.Type == "image" && f.Source != nil:
		source := &session.Source{Type: f.Source.Type, MediaType: f.Source.MediaType, Data: f.Source.Data + f.Source.URL} // it has one of the two
		return session.Content{Type: session.ContentTypeImage, Image: &session.ImageContent{Source: source}}, []string{"source"}
	case f.Type == "input_audio" && f.Audio != nil:
		source := &session.Source{Type: "base64", MediaType: "audio/" + f.Audio.Format, Data: f.Audio.Data}
		return session.Content{Type: session.ContentTypeAudio, Audio: &session.AudioContent{Source: source}}, []string{"input_audio"}
	case f.Type == "file" && f.File != nil && f.File.Data != "":
		file := &session.FileContent{Name: f.File.Name, Source: sourceFromURL(f.File.Data)}
		return session.Content{Type: session.ContentTypeFile, File: file}, []string{"file"}
	case f.Type == "tool_use" && f.ID != "":
		return session.ToolUse(f.ID, f.Name, f.Input), []string{"id", "name", "input"}
	case f.Type == "tool_result" && f.ToolUseID != "":
		return f.toolResult()
	case f.Type == "thinking":
		var text string
		if json.Unmarshal(f.Thinking, &text) == nil {
			thought := &session.ThinkingContent{Content: text, Signature: f.Signature}
			return session.Content{Type: session.ContentTypeThinking, Thinking: thought}, []string{"thinking", "signature"}
		}
	}
	return session.Content{}, nil
}

func (f *foreign) toolResult() (session.Content, []string) {
	var parts []session.Content
	if f.Content != nil {
		var err error
		if parts, err = parseJSON(f.Content); err != nil {
			return session.Content{}, nil
		}
	}
	result := session.ToolResult(f.ToolUseID, session.TextOf(parts), f.IsError)
	if len(parts) > 0 && !isPlainText(parts) {
		result.ToolResult.Parts = parts
	}
	return result, []string{"tool_use_id", "is_error", "content"}
}

// imageFromURL reads {"url": "…"} or the bare address.
func imageFromURL(raw json.RawMessage) (session.Content, []string) {
	var address struct {
		URL string `json:"url"`
	}
	if json.Unmarshal(raw, &address) != nil && json.Unmarshal(raw, &address.URL) != nil || address.URL == "" {
		return session.Content{}, nil
	}
	image := &session.ImageContent{Source: sourceFromURL(address.URL), Extra: otherMembers(raw, "url")}
	return session.Content{Type: session.ContentTypeImage, Image: image}, []string{"image_url"}
}

// sourceFromURL takes data: addresses apart.
func sourceFromURL(url string) *session.Source {
	if rest, isData := strings.CutPrefix(url, "data:"); isData {
		if media, data, isBase64 := strings.Cut(rest, ";base64,"); isBase64 {
			return &session.Source{Type: "base64", MediaType: media, Data: data}
		}
	}
	return &session.Source{Type: "url", Data: url}
}

// isPlainText reports whether content is one text and nothing else.
func isPlainText(blocks []session.Content) bool {
	return len(blocks) == 1 && blocks[0].Text != nil && blocks[0].Extra == nil && blocks[0].Text.Extra == nil
}

// apiPart is a block in the shape that model APIs commonly take.
func apiPart(c *session.Content) map[string]any {
	switch {
	case c.Text != nil:
		return map[string]any{"type": "text", "text": c.Text.Content}
	case c.Image != nil && c.Image.Source != nil:
		return map[string]any{"type": "image_url", "image_url": map[string]any{"url": urlOf(c.Image.Source)}}
	case c.Audio != nil && c.Audio.Source != nil:
		_, format, _ := strings.Cut(c.Audio.Source.MediaType, "/")
		return map[string]any{"type": "input_audio", "input_audio": map[string]any{"data": c.Audio.Source.Data, "format": format}}
	case c.File != nil && c.File.Source != nil:
		return map[string]any{"type": "file", "file": map[string]any{"filename": c.File.Name, "file_data": urlOf(c.File.Source)}}
	case c.Thinking != nil:
		return map[string]any{"type": "thinking", "thinking": c.Thinking.Content, "signature": c.Thinking.Signature}
	case c.ToolUse != nil:
		return map[string]any{"type": "tool_use", "id": c.ToolUse.ID, "name": c.ToolUse.Name, "input": c.ToolUse.Input}
	case c.ToolResult != nil:
		return resultPart(c.ToolResult)
	}
	return rawPart(c)
}

func resultPart(r *session.ToolResultContent) map[string]any {
	part := map[string]any{"type": "tool_result", "tool_use_id": r.ToolUseID, "content": any(r.Content)}
	if r.IsError {
		part["is_error"] = true
	}
	if len(r.Parts) > 0 {
		part["content"] = apiParts(r.Parts)
	}
	return part
}

func apiParts(blocks []session.Content) []map[string]any {
	parts := make([]map[string]any, len(blocks))
	for i := range blocks {
		parts[i] = apiPart(&blocks[i])
	}
	return parts
}

// rawPart is a block that we do not know, as it came.
func rawPart(c *session.Content) map[string]any {
	part := map[string]any{"type": string(c.Type)}
	if raw, err := c.MarshalJSON(); err == nil {
		_ = json.Unmarshal(raw, &part) // what is no object has only its type to give
	}
	return part
}

func urlOf(s *session.Source) string {
	if s.Type == "url" {
		return s.Data
	}
	return "data:" + s.MediaType + ";base64," + s.Data
}
