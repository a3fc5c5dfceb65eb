package anthropic

import (
	"encoding/json"
	"slices"

	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/internal/wire"
	"github.com/coppice-dev/coppice/provider/media"
	"github.com/coppice-dev/coppice/session"
)

// Encode writes the entries of a context as the messages of a request, and the
// system messages at its beginning as its system prompt.
//
// Given the entries of a session.Context, where every call has its result, the request
// keeps the rules that Check knows. For that, everything a model said before its calls
// were answered becomes one message, ids are made unique, and empty blocks are left
// out.
func Encode(entries []session.Entry) (*provider.Messages, error) { return encode(entries, false) }

// EncodeVerbatim is Encode for files that keep a conversation: messages that came from this
// format comes back with equal values, even where the provider would refuse it.
func EncodeVerbatim(entries []session.Entry) (*provider.Messages, error) {
	return encode(entries, true)
}

func encode(entries []session.Entry, verbatim bool) (*provider.Messages, error) {
	return encodeRuns(&encoder{verbatim: verbatim}, entries, func(*wire.Runs) {})
}

// encodeRuns is encode with a look at the messages before they are written.
func encodeRuns(e *encoder, entries []session.Entry, look func(*wire.Runs)) (*provider.Messages, error) {
	e.ids = wire.UniqueIDs{Verbatim: e.verbatim}
	var fields wire.Object
	list := wire.Sent(entries, e.verbatim, media.Anthropic, &e.notes)
	system, list := wire.CutSystem(list, wire.Anthropic)
	if prompt := e.system(system); prompt != nil {
		fields.Put("system", prompt)
	}
	runs := wire.Runs{Verbatim: e.verbatim, IsThought: isThought}
	if err := runs.Encode(list, wire.Anthropic, "content", e.message); err != nil {
		return nil, err
	}
	look(&runs)
	fields.Put("messages", runs.JSON())
	return &provider.Messages{Fields: session.Fields(fields), Notes: e.notes.List}, nil
}

type encoder struct {
	notes wire.Notes
	ids   wire.UniqueIDs
	own   bool   // the current message came from this format
	maker string // the provider whose model made the current message
	model bool   // the current message is the model's

	verbatim bool
	// unmarked: marks for the cache are left out. They belong to the request that they were
	// in, not to the conversation: with too many, a request is refused.
	unmarked bool
}

// of sets the current message.
func (e *encoder) of(m wire.Message) wire.Residue {
	e.notes.Of(m.Entry)
	r, own := wire.ResidueOf(m.Extra, wire.Anthropic)
	e.own, e.maker = own || m.Part && e.own, m.Provider
	return r
}

// system returns the system prompt: a string if it is one text, unless it was a
// list.
func (e *encoder) system(list []wire.Message) json.RawMessage {
	if len(list) == 0 {
		return nil
	}
	r := e.of(list[0])
	if len(list) == 1 && r.Form != formParts && wire.IsPlain(list[0].Content, wire.Anthropic) {
		return wire.Quote(list[0].Content[0].Text.Content)
	}
	blocks := []json.RawMessage{}
	for _, m := range list {
		e.of(m)
		for i := range m.Content {
			if m.Content[i].Text == nil && m.Content[i].Raw == nil {
				e.notes.Add("%s in a system message is left out", wire.Describe(&m.Content[i]))
				continue
			}
			added, _ := e.block(&m.Content[i]) // texts cannot fail
			blocks = append(blocks, added...)
		}
	}
	return wire.List(blocks)
}

// isThought reports whether a block is thinking. A model's message cannot end with it:
// https://github.com/tailcallhq/forgecode/issues/2107.
func isThought(block wire.Object) bool {
	kind := block.Str("type")
	return kind == "thinking" || kind == "redacted_thinking"
}

// message writes the messages that are one, or returns nil if nothing is left.
func (e *encoder) message(parts []wire.Message) (wire.Object, error) {
	role := session.RoleUser
	if e.model = parts[0].Role == session.RoleAssistant; e.model {
		role = session.RoleAssistant
	}
	var r wire.Residue
	blocks, had := []json.RawMessage{}, 0
	for i, m := range parts {
		own := e.of(m)
		if i == 0 {
			r = own
		}
		if m.Role == session.RoleSystem && !own.Fields.Has("role") {
			e.notes.Add("a system message amid the conversation is sent as the user's")
		}
		for j := range m.Content {
			added, err := e.block(&m.Content[j])
			if err != nil {
				return nil, err
			}
			had++
			blocks = append(blocks, added...)
		}
	}
	if len(blocks) == 0 && (had > 0 || !e.own || !e.verbatim) {
		return nil, nil
	}
	var o wire.Object
	o.SetStr("role", role)
	plain := len(blocks) == 1 && len(parts) == 1 && wire.IsPlain(parts[0].Content, wire.Anthropic)
	if len(blocks) > 0 {
		r.Forget("content")
	}
	if plain && (r.Form == formString || role == session.RoleUser && r.Form != formParts) {
		o.SetStr("content", parts[0].Content[0].Text.Content)
	} else {
		o.Put("content", wire.List(blocks))
	}
	if !e.verbatim {
		r.FixRole(role)
	}
	r.Restore(&o)
	return o, nil
}

// block writes a block, or notes why it cannot be written.
func (e *encoder) block(c *session.Content) ([]json.RawMessage, error) {
	if c.Raw != nil {
		if e.own || slices.Contains(providerBlocks, string(c.Type)) {
			return []json.RawMessage{e.raw(c)}, nil
		}
		e.notes.Add("%s is left out", wire.Describe(c))
		return nil, nil
	}
	r, own := wire.ResidueOf(c.Extra, wire.Anthropic)
	if e.unmarked {
		r.Fields.Take(cacheControl)
	}
	if c.Text != nil && wire.IsBlank(c.Text.Content) && (!e.verbatim || !own && !e.own) {
		return nil, nil // refused, and says nothing
	}
	if !e.verbatim && e.model && (c.Image != nil || c.File != nil) { // refused
		e.notes.Add("%s in a model's message is left out", wire.Describe(c))
		return nil, nil
	}
	if !e.verbatim && !e.model && c.Thinking != nil { // refused
		e.notes.Add("thinking that is not a model's is left out")
		return nil, nil
	}
	if c.Thinking != nil && !e.ownThinking(c, own) {
		e.notes.Add("thinking of another provider is left out")
		return nil, nil
	}
	o, err := e.newBlock(c, &r)
	if o == nil || err != nil {
		if err == nil {
			e.notes.Add("%s is left out", wire.Describe(c))
		}
		return nil, err
	}
	if inner := r.Inner("source"); inner != nil {
		source := wire.Members(o.Get("source"))
		source.Merge(inner)
		o.SetObject("source", source)
	}
	r.Restore(&o)
	return []json.RawMessage{o.JSON()}, nil
}

// cacheControl is the member that marks a block for the cache.
const cacheControl = "cache_control"

// raw returns a block that was kept whole.
func (e *encoder) raw(c *session.Content) json.RawMessage {
	block := wire.RawOf(c)
	o := wire.Members(block)
	if !e.unmarked || !o.Has(cacheControl) {
		return block
	}
	o.Take(cacheControl)
	return o.JSON()
}

// providerBlocks are blocks that the provider's own tools make. They may come from a
// source that does not say which provider its blocks are from.
var providerBlocks = []string{
	"server_tool_use", "web_search_tool_result", "web_fetch_tool_result", "code_execution_tool_result",
	"bash_code_execution_tool_result", "text_editor_code_execution_tool_result", "mcp_tool_use", "mcp_tool_result",
	"search_result", "container_upload", "tool_reference",
}

// ownThinking reports whether thinking can be sent back: it must be from this
// provider, and signed, or else it is refused.
func (e *encoder) ownThinking(c *session.Content, own bool) bool {
	signed := c.Thinking.Signature != "" || c.Thinking.Redacted != ""
	if !signed && !e.verbatim {
		return false // an answer that broke off has such
	}
	if foreign := wire.Foreign(c.Extra, wire.Anthropic); own || foreign || e.own {
		return !foreign
	}
	return signed && (e.maker == "" || e.maker == "anthropic")
}

func (e *encoder) newBlock(c *session.Content, r *wire.Residue) (wire.Object, error) {
	var o wire.Object
	switch {
	case c.Text != nil:
		o.SetStr("type", "text")
		o.SetStr("text", c.Text.Content)
	case c.Thinking != nil && c.Thinking.Redacted != "":
		o.SetStr("type", "redacted_thinking")
		o.SetStr("data", c.Thinking.Redacted)
	case c.Thinking != nil:
		o.SetStr("type", "thinking")
		o.SetStr("thinking", c.Thinking.Content)
		o.SetStr("signature", c.Thinking.Signature)
	case c.ToolUse != nil:
		input, err := wire.Input(c.ToolUse, c.Extra, &e.notes)
		if err != nil {
			return nil, err
		}
		if c.ToolUse.Input != nil {
			r.Forget("input")
		}
		if !e.verbatim {
			r.Forget("id")
			r.Forget("name")
			r.Forget("input")
		}
		o.SetStr("type", "tool_use")
		o.SetStr("id", e.ids.Call(c.ToolUse.ID, maxID))
		if !r.Fields.Has("name") {
			o.SetStr("name", e.notes.SafeName(c.ToolUse.Name, maxName))
		}
		o.Put("input", input)
	case c.ToolResult != nil:
		return e.toolResult(c.ToolResult, r)
	case c.Image != nil && c.Image.Source != nil:
		return e.withSource("image", c.Image.Source), nil
	case c.File != nil && c.File.Source != nil:
		o = e.withSource("document", c.File.Source)
		if o != nil && c.File.Name != "" {
			o.SetStr("title", c.File.Name)
		}
	}
	return o, nil
}

func (e *encoder) withSource(kind string, s *session.Source) wire.Object {
	member := sourceMember(s.Type)
	if member == "" {
		return nil
	}
	var o, source wire.Object
	source.SetStr("type", s.Type)
	if s.MediaType != "" && (e.verbatim || !isElsewhere(s.Type)) {
		source.SetStr("media_type", s.MediaType)
	}
	source.SetStr(member, s.Data)
	o.SetStr("type", kind)
	o.SetObject("source", source)
	return o
}

func (e *encoder) toolResult(t *session.ToolResultContent, r *wire.Residue) (wire.Object, error) {
	var o wire.Object
	if !e.verbatim {
		r.Forget("tool_use_id")
	}
	o.SetStr("type", "tool_result")
	o.SetStr("tool_use_id", e.ids.Result(t.ToolUseID, maxID))
	switch {
	case !e.verbatim && len(t.Parts) == 0 && wire.IsBlank(t.Content):
		// An empty text is left out, as everywhere: some clients and gateways turn it into a
		// block, and that is refused.
	case len(t.Parts) == 0 && r.Form != formParts:
		o.SetStr("content", t.Content)
	default:
		parts := []json.RawMessage{}
		for _, c := range wire.Parts(t) {
			added, err := e.block(&c)
			if err != nil {
				return nil, err
			}
			parts = append(parts, added...)
		}
		o.Put("content", wire.List(parts))
	}
	if was := r.Fields.Get("content"); len(t.Parts) > 0 || t.Content != "" && t.Content != string(was) || !e.verbatim {
		r.Forget("content")
	}
	if t.IsError {
		o.Put("is_error", json.RawMessage("true"))
	}
	return o, nil
}
