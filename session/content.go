package session

import (
	"encoding/json"
	"strings"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/store"
)

// ContentType defines the kind of a piece of a message.
type ContentType string

// The content types. A block of any other type is kept as it is, in Raw.
const (
	ContentTypeText       ContentType = "text"
	ContentTypeImage      ContentType = "image"
	ContentTypeToolUse    ContentType = "tool_use"
	ContentTypeToolResult ContentType = "tool_result"
	ContentTypeThinking   ContentType = "thinking"
	ContentTypeAudio      ContentType = "audio"
	ContentTypeFile       ContentType = "file"
)

// Content is one piece of a message: a tagged union like Entry.
type Content struct {
	Type ContentType `json:"type"`

	// Exactly one of these is set.
	Text       *TextContent       `json:"text,omitempty"`
	Image      *ImageContent      `json:"image,omitempty"`
	ToolUse    *ToolUseContent    `json:"tool_use,omitempty"`
	ToolResult *ToolResultContent `json:"tool_result,omitempty"`
	Thinking   *ThinkingContent   `json:"thinking,omitempty"`
	Audio      *AudioContent      `json:"audio,omitempty"`
	File       *FileContent       `json:"file,omitempty"`
	Raw        json.RawMessage    `json:"-"` // the whole block, when its type is unknown

	Extra Fields `json:"-"`
}

// TextContent is plain text.
type TextContent struct {
	Content string `json:"content"`

	Extra Fields `json:"-"`
}

// ImageContent is a picture.
type ImageContent struct {
	Source *ImageSource `json:"source"`

	Extra Fields `json:"-"`
}

// AudioContent is a recording.
type AudioContent struct {
	Source *Source `json:"source"`

	Extra Fields `json:"-"`
}

// FileContent is an attached document.
type FileContent struct {
	Name   string  `json:"name,omitempty"`
	Source *Source `json:"source"`

	Extra Fields `json:"-"`
}

// Source is where the bytes of an image, a recording or a file are.
type Source struct {
	Type      string `json:"type"` // "base64" or "url"
	MediaType string `json:"media_type"`
	Data      string `json:"data"` // the bytes in base64, or the URL

	// Blob names the blob with the decoded bytes when they are not in the line. A Session
	// fills in Data when it returns an entry.
	Blob store.Ref `json:"blob,omitempty"`
	Size int64     `json:"size,omitempty"` // of the blob

	Extra Fields `json:"-"`
}

// ImageSource is the Source of an image.
type ImageSource = Source

// ToolUseContent is a model's call of a tool. Its input, like every object that programs make, is
// as encoding/json decodes it, but for two things: a number that a float64 cannot hold is a
// json.Number, and of more than 65,536 values what does not fit stays text, as a json.RawMessage.
type ToolUseContent struct {
	ID    string         `json:"id"`
	Name  string         `json:"name"`
	Input map[string]any `json:"input"`

	Extra    Fields `json:"-"`
	rawInput json.RawMessage
	opaque   bool // rawInput was never decoded, and counts as long as Input is nil
}

// ToolResultContent is a tool's answer to a call.
type ToolResultContent struct {
	ToolUseID string `json:"tool_use_id"`
	IsError   bool   `json:"is_error"`
	Content   string `json:"content"`
	// Parts is the answer when it is more than text. Content is then its text.
	Parts []Content `json:"parts,omitempty"`

	// Blob names the blob with Content when it is not in the line. A Session fills in
	// Content when it returns an entry.
	Blob store.Ref `json:"blob,omitempty"`
	Size int64     `json:"size,omitempty"` // of the blob

	Extra Fields `json:"-"`
}

// ThinkingContent is what a model thought before it answered.
type ThinkingContent struct {
	Content   string `json:"content"`
	Signature string `json:"signature,omitempty"` // from the provider, to be sent back unchanged
	Redacted  string `json:"redacted,omitempty"`  // what the provider sent instead of the text

	Extra Fields `json:"-"`
}

// Text returns a piece of plain text.
func Text(s string) Content {
	return Content{Type: ContentTypeText, Text: &TextContent{Content: s}}
}

// ToolUse returns a call of a tool.
func ToolUse(id, name string, input map[string]any) Content {
	return Content{Type: ContentTypeToolUse, ToolUse: &ToolUseContent{ID: id, Name: name, Input: input}}
}

// ToolUseJSON returns a call of a tool whose input is the text of a JSON object. The text is
// kept, so the order of its members and every digit of its numbers survive. If it is
// anything else, the call has no input.
func ToolUseJSON(id, name string, input json.RawMessage) Content {
	c := ToolUse(id, name, nil)
	if rawjson.Valid(input) {
		object(input, &c.ToolUse.Input, &c.ToolUse.rawInput)
	}
	return c
}

// ToolUseOpaque is ToolUseJSON for programs that only pass the call on. The input is not
// decoded, and Input stays nil until the call is read from a log; InputJSON returns it.
func ToolUseOpaque(id, name string, input json.RawMessage) Content {
	c := ToolUse(id, name, nil)
	if rawjson.Kind(input) == 'o' && rawjson.Valid(input) {
		c.ToolUse.rawInput, c.ToolUse.opaque = input, true
	}
	return c
}

// InputJSON returns the input as JSON: the original text, if Input has not changed since.
func (t *ToolUseContent) InputJSON() (json.RawMessage, error) {
	if t.opaque && t.Input == nil {
		return t.rawInput, nil
	}
	if t.rawInput != nil && sameObject(t.Input, t.rawInput) {
		return t.rawInput, nil
	}
	return rawjson.AppendAny(nil, t.Input)
}

// ToolResult returns the answer to a call.
func ToolResult(toolUseID, text string, isError bool) Content {
	return Content{Type: ContentTypeToolResult, ToolResult: &ToolResultContent{ToolUseID: toolUseID, IsError: isError, Content: text}}
}

// Image returns a picture whose bytes are given in base64.
func Image(mediaType, base64 string) Content {
	return Content{Type: ContentTypeImage, Image: &ImageContent{Source: &Source{Type: "base64", MediaType: mediaType, Data: base64}}}
}

// ImageFrom returns a picture from any source.
func ImageFrom(s *Source) Content {
	return Content{Type: ContentTypeImage, Image: &ImageContent{Source: s}}
}

// File returns a file. Its name may be empty.
func File(name string, s *Source) Content {
	return Content{Type: ContentTypeFile, File: &FileContent{Name: name, Source: s}}
}

// Media returns a picture, a recording or a file, as the media type of its source says.
func Media(s *Source) Content {
	switch {
	case strings.HasPrefix(s.MediaType, "image/"):
		return ImageFrom(s)
	case strings.HasPrefix(s.MediaType, "audio/"):
		return Content{Type: ContentTypeAudio, Audio: &AudioContent{Source: s}}
	}
	return File("", s)
}

// Thinking returns what a model thought. The signature is the provider's, or "".
func Thinking(text, signature string) Content {
	return Content{Type: ContentTypeThinking, Thinking: &ThinkingContent{Content: text, Signature: signature}}
}

// The words before a summary when a model or a person reads it, so that they know what it
// is: of a compaction, of a branch that was left, and of one that was merged.
const (
	CompactionLead = "Previous conversation summary: "
	BranchLead     = "Summary of a branch of the conversation that was left: "
	MergeLead      = "Summary of another branch of the conversation: "
)

// TextOf joins the texts of blocks, one below the other.
func TextOf(blocks []Content) string {
	var texts []string
	for i := range blocks {
		if blocks[i].Text != nil {
			texts = append(texts, blocks[i].Text.Content)
		}
	}
	return strings.Join(texts, "\n")
}
