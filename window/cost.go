package window

import (
	"encoding/base64"
	"strings"

	"github.com/coppice-dev/coppice/session"
)

// Cost is what an entry takes of a window.
type Cost struct {
	Tokens int
	// Bytes is the size of the content as it is sent, images in base64. What
	// JSON escapes is not counted twice: it is little where bytes matter.
	Bytes int
}

func (c *Cost) add(d Cost) {
	c.Tokens += d.Tokens
	c.Bytes += d.Bytes
}

// What the wire adds to the content, about the same for all providers.
const (
	messageTokens = 4 // role and delimiters
	blockTokens   = 6 // a call's or a result's id and frame
	messageBytes  = 40
	blockBytes    = 60
)

// CountEntry returns what an entry costs: the tokens that were recorded with it,
// or that its provider reported for it, or else what a counter counts. provider
// says how images are priced; empty gives the most cautious price.
func CountEntry(c Counter, provider string, e *session.Entry) Cost {
	if m := e.Message; m != nil && m.Tokens != nil && *m.Tokens >= 0 {
		return Cost{*m.Tokens, entryBytes(e)}
	}
	cost := countAfresh(c, provider, e)
	if reported, ok := reportedTokens(e.Message, cost.Tokens); ok {
		cost.Tokens = reported
	}
	return cost
}

// countAfresh is what an entry's content costs, whatever was recorded.
func countAfresh(c Counter, provider string, e *session.Entry) Cost {
	cost := Cost{messageTokens, entryBytes(e)}
	if e.Message == nil {
		cost.Tokens += c.CountText(e.Summary())
		return cost
	}
	cost.Tokens += CountContent(c, provider, e.Message.Content).Tokens
	return cost
}

// reportedTokens is what a provider reported that a response has. The report is
// of a whole response, with reasoning that is not sent again, and some record it
// while the response still grows; so it is believed if it is near the count.
func reportedTokens(m *session.MessageEntry, counted int) (int, bool) {
	if m == nil || m.Usage == nil || m.Role != session.RoleAssistant {
		return 0, false
	}
	reported := m.Usage.Output
	if !thinks(m) {
		reported -= m.Usage.Reasoning
	}
	return reported + messageTokens, reported*2 >= counted && reported <= counted*2
}

func thinks(m *session.MessageEntry) bool {
	for i := range m.Content {
		if m.Content[i].Thinking != nil {
			return true
		}
	}
	return false
}

// CountContent returns what blocks of content cost, whatever was recorded.
func CountContent(c Counter, provider string, blocks []session.Content) Cost {
	var cost Cost
	for i := range blocks {
		cost.add(Cost{blockCost(c, provider, &blocks[i]), contentBytes(&blocks[i])})
	}
	return cost
}

// blockCost is how many tokens a block has.
func blockCost(c Counter, provider string, b *session.Content) int {
	switch {
	case b.Text != nil:
		return c.CountText(b.Text.Content)
	case b.Thinking != nil:
		// What a provider encrypted is about four thirds of what it stands for.
		return c.CountText(b.Thinking.Content) + len(b.Thinking.Redacted)*3/4/averageToken
	case b.ToolUse != nil:
		input, err := b.ToolUse.InputJSON()
		if err != nil { // cannot be sent either; count its size
			return blockTokens + mapBytes(b.ToolUse.Input)/averageToken
		}
		return blockTokens + c.CountText(b.ToolUse.Name) + c.CountText(string(input))
	case b.ToolResult != nil && len(b.ToolResult.Parts) > 0:
		return blockTokens + CountContent(c, provider, b.ToolResult.Parts).Tokens
	case b.ToolResult != nil:
		return blockTokens + c.CountText(b.ToolResult.Content)
	case b.Image != nil:
		return imageTokens(provider, b.Image.Source)
	case b.Audio != nil:
		return attachmentTokens(c, b.Audio.Source, bytesPerAudioToken)
	case b.File != nil:
		return attachmentTokens(c, b.File.Source, bytesPerFileToken)
	}
	return c.CountText(string(b.Raw))
}

// Rough sizes, for what cannot be counted: a second of compressed speech is
// about 16 kB and 32 tokens, a page of a PDF about 60 kB and 1,500 tokens.
const (
	averageToken       = 4 // bytes of text
	bytesPerAudioToken = 500
	bytesPerFileToken  = 40
	leastAttachment    = 250
)

func attachmentTokens(c Counter, s *session.Source, bytesPerToken int) int {
	if s == nil {
		return 0
	}
	if s.Type == "base64" && strings.HasPrefix(s.MediaType, "text/") {
		if text, err := base64.StdEncoding.DecodeString(s.Data); err == nil {
			return c.CountText(string(text))
		}
	}
	return max(leastAttachment, sourceBytes(s)*3/4/bytesPerToken)
}

// entryBytes is how many bytes an entry has when it is sent.
func entryBytes(e *session.Entry) int {
	if e.Message == nil {
		return messageBytes + len(e.Summary())
	}
	n := messageBytes
	for i := range e.Message.Content {
		n += contentBytes(&e.Message.Content[i])
	}
	return n
}

func contentBytes(b *session.Content) int {
	switch {
	case b.Text != nil:
		return len(b.Text.Content)
	case b.Thinking != nil:
		return len(b.Thinking.Content) + len(b.Thinking.Signature) + len(b.Thinking.Redacted)
	case b.ToolUse != nil:
		return blockBytes + len(b.ToolUse.Name) + mapBytes(b.ToolUse.Input)
	case b.ToolResult != nil && len(b.ToolResult.Parts) > 0:
		n := blockBytes
		for i := range b.ToolResult.Parts {
			n += contentBytes(&b.ToolResult.Parts[i])
		}
		return n
	case b.ToolResult != nil:
		return blockBytes + len(b.ToolResult.Content)
	case b.Image != nil:
		return blockBytes + sourceBytes(b.Image.Source)
	case b.Audio != nil:
		return blockBytes + sourceBytes(b.Audio.Source)
	case b.File != nil:
		return blockBytes + len(b.File.Name) + sourceBytes(b.File.Source)
	}
	return len(b.Raw)
}

// sourceBytes is the size of a source as it is sent. One whose bytes are still
// in a blob will be sent in base64.
func sourceBytes(s *session.Source) int {
	if s == nil {
		return 0
	}
	return max(len(s.Data), base64.StdEncoding.EncodedLen(int(s.Size)))
}

// mapBytes is the size of a call's input in JSON. It is not written for that:
// that would cost more than all the rest of planning.
func mapBytes(m map[string]any) int {
	n := 2
	for key, value := range m {
		n += len(key) + 4 + valueBytes(value)
	}
	return n
}

func valueBytes(value any) int {
	switch v := value.(type) {
	case string:
		return len(v) + 2
	case map[string]any:
		return mapBytes(v)
	case []any:
		n := 2
		for _, item := range v {
			n += 1 + valueBytes(item)
		}
		return n
	}
	return 5 // a number, true, false, null
}
