package window

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"

	"github.com/coppice-dev/coppice/session"
)

// Cost is how much of a window an entry takes.
type Cost struct {
	Tokens int `json:"tokens"`
	// Bytes is the size of the content as it is sent, with images in base64. It ignores
	// escapes in JSON, which make little difference.
	Bytes int `json:"bytes"`
	// By says how the tokens were counted. A sum has none.
	By Source `json:"source"`
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

// CountEntry returns what an entry costs: the tokens that were recorded with it or
// reported by its provider, or else what a counter counts. provider decides how images
// are priced; an empty one gives the most cautious price.
func CountEntry(c Counter, provider string, e *session.Entry) Cost {
	return countEntry(c, provider, e).Cost
}

// count is what an entry costs, and where the numbers come from.
type count struct {
	Cost
	known int // tokens that did not come from the counter
	text  int // tokens that the counter counted, before learning corrects them
}

func countEntry(c Counter, provider string, e *session.Entry) count {
	if m := e.Message; m != nil && m.Tokens != nil && *m.Tokens >= 0 {
		return count{Cost: Cost{*m.Tokens, entryBytes(e), Recorded}, known: *m.Tokens}
	}
	n := countAfresh(c, provider, e)
	if reported, ok := reportedTokens(e.Message, n.Tokens); ok {
		n.Tokens, n.By, n.known, n.text = reported, Reported, reported, 0
	}
	return n
}

// countAfresh counts an entry's content, ignoring what was recorded.
func countAfresh(c Counter, provider string, e *session.Entry) count {
	n := count{Cost: Cost{Bytes: entryBytes(e), By: Estimated}, known: messageTokens}
	t := tally{base: c}
	learning, learns := c.(*learning)
	if learns {
		t.base = learning.base
	}
	guess := false
	if e.Message == nil {
		t.CountText(e.Summary())
	} else {
		for i := range e.Message.Content {
			n.known += blockCost(&t, provider, &e.Message.Content[i])
			guess = guess || isGuess(&e.Message.Content[i])
		}
	}
	if !guess && isExact(c) {
		n.By = Exact
	}
	n.text = t.text
	n.Tokens = n.known + n.text
	if learns {
		n.Tokens = n.known + learning.correct(n.text)
	}
	return n
}

// tally collects what a counter counts apart from everything else: it returns 0 for
// every text.
type tally struct {
	base Counter
	text int
}

func (t *tally) Name() string { return t.base.Name() }

func (t *tally) CountText(text string) int {
	t.text += t.base.CountText(text)
	return 0
}

// isGuess reports whether the price of a block is always a guess: no tokenizer counts
// pictures, sound, or what a provider encrypted.
func isGuess(b *session.Content) bool {
	switch {
	case b.Thinking != nil:
		return b.Thinking.Redacted != ""
	case b.ToolResult != nil:
		return slices.ContainsFunc(b.ToolResult.Parts, func(part session.Content) bool { return isGuess(&part) })
	}
	return b.Image != nil || b.Audio != nil || b.File != nil
}

// reportedTokens returns what a provider reported for a response. The report covers a
// whole response, including reasoning that is not sent again, and some are recorded
// while the response is still growing. So it is believed only if it is close to the
// count.
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

// blockCost is how many tokens a block has.
func blockCost(c Counter, provider string, b *session.Content) int {
	switch {
	case b.Text != nil:
		return c.CountText(b.Text.Content)
	case b.Thinking != nil:
		// Encrypted data is about a third larger than what it replaces.
		return c.CountText(b.Thinking.Content) + len(b.Thinking.Redacted)*3/4/averageToken
	case b.ToolUse != nil:
		input, err := b.ToolUse.InputJSON()
		if err != nil { // it cannot be sent either; count its size
			return blockTokens + mapBytes(b.ToolUse.Input)/averageToken
		}
		return blockTokens + c.CountText(b.ToolUse.Name) + c.CountText(string(input))
	case b.ToolResult != nil && len(b.ToolResult.Parts) > 0:
		cost := blockTokens
		for i := range b.ToolResult.Parts {
			cost += blockCost(c, provider, &b.ToolResult.Parts[i])
		}
		return cost
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

// Rough sizes for media that cannot be counted: a second of compressed speech is about 16 kB
// and 32 tokens, a page of a PDF about 60 kB and 1,500 tokens.
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

// entryBytes returns how many bytes an entry has when it is sent.
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

// sourceBytes returns the size of a source when it is sent. Bytes that are still in a
// blob will be sent in base64.
func sourceBytes(s *session.Source) int {
	if s == nil {
		return 0
	}
	return max(len(s.Data), base64.StdEncoding.EncodedLen(int(s.Size)))
}

// mapBytes returns the size of a call's input in JSON without encoding it, which would
// cost more than all the rest of planning.
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
	case json.RawMessage:
		return len(v)
	}
	return 5 // a number, true, false, null
}
