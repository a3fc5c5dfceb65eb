package api

import (
	"encoding/json"

	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/google"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
	"github.com/coppice-dev/coppice/transcript/internal/residue"
)

// decodeGoogle reads a body of Gemini, or what AI Studio saves to Drive.
func decodeGoogle(data []byte) (*provider.Body, error) {
	if chunks := loose.Value(data).Get("chunkedPrompt", "chunks"); chunks.IsArray() {
		return decodeStudio(data, chunks)
	}
	return google.Decode(data)
}

// decodeStudio reads a prompt of AI Studio. Its chunks are parts with a role and
// a count of tokens each; they are read as contents of one part, and the chunks
// of one turn become one message.
func decodeStudio(data loose.Value, chunks loose.Value) (*provider.Body, error) {
	var request residue.Object
	if system := data.Get("systemInstruction"); system.IsObject() {
		request.Set("systemInstruction", studioSystem(system))
	}
	var contents []json.RawMessage
	for chunk := range chunks.Items() {
		contents = append(contents, content(chunk))
	}
	request.Set("contents", residue.List(contents))
	body, err := google.Decode(request.JSON())
	if err != nil {
		return nil, err
	}
	body.Entries = mergeTurns(body.Entries, countsOf(chunks))
	body.Fields = data.Except("systemInstruction", "chunkedPrompt")
	body.Model = data.Get("runSettings", "model").Text()
	return body, nil
}

// studioSystem returns a system prompt as the API has it: AI Studio also writes
// it as bare text.
func studioSystem(system loose.Value) json.RawMessage {
	if system.Get("parts").IsArray() {
		return system.Raw()
	}
	var part, o residue.Object
	part.Set("text", system.Get("text").Text())
	o.Set("parts", residue.List([]json.RawMessage{part.JSON()}))
	return o.JSON()
}

// content returns a chunk as a content of one part.
func content(chunk loose.Value) json.RawMessage {
	part := residue.Object(chunk.Except("role", "tokenCount", "isThought", "finishReason"))
	if chunk.Get("isThought").Bool() {
		part.Set("thought", json.RawMessage("true"))
	}
	if image := chunk.Get("inlineImage"); image.IsObject() {
		part.Remove("inlineImage")
		part.Set("inlineData", image.Raw())
	}
	if file := chunk.Get("inlineFile"); file.IsObject() {
		part.Remove("inlineFile")
		part.Set("inlineData", file.Raw())
	}
	var o residue.Object
	if role := chunk.Get("role").Text(); role != "" {
		o.Set("role", role)
	}
	o.Set("parts", residue.List([]json.RawMessage{part.JSON()}))
	return o.JSON()
}

func countsOf(chunks loose.Value) []int {
	var counts []int
	for chunk := range chunks.Items() {
		counts = append(counts, chunk.Get("tokenCount").Int())
	}
	return counts
}

// mergeTurns joins the messages of one turn of the model: all its chunks but the last are
// thoughts.
func mergeTurns(entries []session.Entry, tokens []int) []session.Entry {
	system := len(entries) - len(tokens) // 1 if there is a system prompt
	var merged []session.Entry
	for i := range entries {
		m := entries[i].Message
		if n := i - system; n >= 0 && n < len(tokens) {
			m.Tokens = session.CountedTokens(tokens[n])
		}
		if last := len(merged) - 1; last >= 0 && sameTurn(merged[last].Message, m) {
			before := merged[last].Message
			before.Content = append(before.Content, m.Content...)
			before.Tokens = sum(before.Tokens, m.Tokens)
			continue
		}
		merged = append(merged, entries[i])
	}
	return merged
}

func sameTurn(before, m *session.MessageEntry) bool {
	last := before.Content
	return before.Role == session.RoleAssistant && m.Role == before.Role && len(last) > 0 && last[len(last)-1].Thinking != nil
}

func sum(a, b *int) *int {
	if a == nil || b == nil {
		return nil // unknown
	}
	n := *a + *b
	return &n
}
