package api

import (
	"bytes"
	"io"
	"slices"

	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/anthropic"
	"github.com/coppice-dev/coppice/provider/bedrock"
	"github.com/coppice-dev/coppice/provider/google"
	"github.com/coppice-dev/coppice/provider/openai"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/shape"
)

// wire is a provider's wire format.
type wire struct {
	name, title string
	provider    string // of the models, as model changes name it
	list        string // the member of a request that holds the messages
	// looks reports whether text of a shape is this format.
	looks func(s *shape.Shape) bool
	// events are what the streams of this format contain.
	events []string
	// message is the members that a message in a bare list has.
	message []string

	decode func(data []byte) (*provider.Body, error)
	encode func(entries []session.Entry) (*provider.Messages, error)
	fold   func(r io.Reader) ([]byte, error)
	// check finds what the provider would refuse in a request.
	check func(request []byte) []provider.Fault
}

// Formats returns the formats, the specific before the general.
func Formats() []*transcript.Format {
	return []*transcript.Format{Google(), Bedrock(), Anthropic(), Responses(), OpenAI()}
}

// OpenAI returns the format of Chat Completions, and of data for training in
// that shape.
func OpenAI() *transcript.Format {
	w := &wire{
		name: "openai", title: "OpenAI Chat Completions", provider: "openai", list: "messages",
		looks: looksOpenAI, events: []string{`"choices"`}, message: []string{"role"},
		decode: openai.DecodeChat, fold: openai.FoldChat, check: openai.CheckChat,
		encode: func(entries []session.Entry) (*provider.Messages, error) {
			return openai.EncodeChat(entries, &openai.ChatOptions{Reasoning: "reasoning_content"})
		},
	}
	return w.format()
}

// Responses returns the format of OpenAI's Responses.
func Responses() *transcript.Format {
	w := &wire{
		name: "openai-responses", title: "OpenAI Responses", provider: "openai", list: "input",
		looks: looksResponses, events: []string{`"response.`}, message: []string{"role", "type"},
		decode: openai.DecodeResponses, encode: openai.EncodeResponses, fold: openai.FoldResponses, check: openai.CheckResponses,
	}
	return w.format()
}

// Anthropic returns the format of Anthropic's Messages.
func Anthropic() *transcript.Format {
	w := &wire{
		name: "anthropic", title: "Anthropic Messages", provider: "anthropic", list: "messages",
		looks: looksAnthropic, events: []string{`message_start`}, message: []string{"role"},
		decode: anthropic.Decode, encode: anthropic.Encode, fold: anthropic.Fold, check: anthropic.Check,
	}
	return w.format()
}

// Google returns the format of Gemini's contents, and of what AI Studio saves.
func Google() *transcript.Format {
	w := &wire{
		name: "google", title: "Google Gemini", provider: "google", list: "contents",
		looks: looksGoogle, events: []string{`"candidates"`}, message: []string{"parts", "candidates"},
		decode: decodeGoogle, encode: google.Encode, fold: google.Fold, check: google.Check,
	}
	return w.format()
}

// Bedrock returns the format of Bedrock's Converse, which is only read.
func Bedrock() *transcript.Format {
	w := &wire{
		name: "bedrock", title: "Bedrock Converse", provider: "bedrock", list: "messages",
		looks: looksBedrock, message: []string{"role"}, decode: bedrock.Decode,
	}
	return &transcript.Format{Name: w.name, Title: w.title, Detect: w.detect, Read: w.read}
}

func (w *wire) format() *transcript.Format {
	return &transcript.Format{Name: w.name, Title: w.title, Detect: w.detect, Read: w.read, Write: w.write}
}

func (w *wire) detect(f *transcript.File) bool {
	head := f.Head()
	if isEvents(head) {
		return slices.ContainsFunc(w.events, func(mark string) bool { return bytes.Contains(head, []byte(mark)) })
	}
	return w.looks(shape.OfFile(f))
}

// isEvents reports whether a text begins as a stream of events does.
func isEvents(head []byte) bool {
	head = bytes.TrimLeft(head, "\r\n")
	return slices.ContainsFunc([]string{"data:", "event:", ":"}, func(begin string) bool { return bytes.HasPrefix(head, []byte(begin)) })
}

// at returns a path as it may begin in a file: in one document, in an array of
// them, in a line of a batch, and in a bare list of messages or one message.
func at(list, path string) []string {
	return []string{
		list + "[]." + path, "[]." + list + "[]." + path, "body." + list + "[]." + path, "request." + list + "[]." + path,
		"[]." + path, path,
	}
}

// isAt reports whether one of the texts was seen at a path of a message.
func isAt(s *shape.Shape, list, path string, texts ...string) bool {
	for _, p := range at(list, path) {
		if s.Is(p, texts...) {
			return true
		}
	}
	return false
}

func looksGoogle(s *shape.Shape) bool {
	for _, part := range []string{
		"text", "thought", "inlineData", "inline_data", "fileData", "file_data", "functionCall", "function_call",
		"functionResponse", "function_response", "executableCode", "executable_code", "codeExecutionResult", "code_execution_result",
	} {
		if s.Has(at("contents", "parts[]."+part)...) {
			return true
		}
	}
	return s.Has("candidates[].content", "[].candidates[].content", "response.body.candidates[].content",
		"response.candidates[].content", "chunkedPrompt.chunks[].text", "chunkedPrompt.chunks[].role")
}

func looksBedrock(s *shape.Shape) bool {
	if s.Has("output.message.content[]", "[].output.message.content[]") {
		return true
	}
	if s.Has(at("messages", "content[].toolUse.toolUseId")...) || s.Has(at("messages", "content[].toolResult.toolUseId")...) {
		return true
	}
	return s.Has(at("messages", "content[].text")...) && !s.Has(at("messages", "content[].type")...) && s.Has(at("messages", "role")...)
}

func looksAnthropic(s *shape.Shape) bool {
	if s.Is("type", "message") && s.Has("role") && s.Has("content[].type") && s.Has("stop_reason", "model") && !s.Has("status") {
		return true
	}
	if !s.Has(at("messages", "role")...) || isAt(s, "messages", "role", "tool", "system", "developer", "function") ||
		s.Has(at("messages", "tool_calls")...) {
		return false
	}
	return s.Has("system", "body.system", "[].system") && s.Has("messages", "body.params.messages", "body.messages", "[].messages") ||
		s.Has("anthropic_version") ||
		isAt(s, "messages", "content[].type", "tool_use", "tool_result", "thinking", "redacted_thinking", "server_tool_use", "document") ||
		s.Has(at("messages", "content[].source.type")...)
}

func looksResponses(s *shape.Shape) bool {
	if s.Is("object", "response") || s.Is("[].object", "response") || s.Is("response.body.object", "response") {
		return true
	}
	if s.Has("input:text", "input[]", "body.input:text", "body.input[]") && s.Has("model:text", "body.model:text") &&
		!s.Has("messages", "instruction", "output") && !isOtherRequest(s) {
		return true
	}
	return isAt(s, "input", "content[].type", "input_text", "output_text", "input_image", "input_file") ||
		s.Is("input[].type", itemTypes...) || (s.Is("[].type", itemTypes...) || s.Is("type", itemTypes...)) && !s.Has("[].payload", "payload", "uuid", "[].uuid", "timestamp")
}

// isOtherRequest recognises requests for embeddings, speech and moderation, which have a model and
// an input too.
func isOtherRequest(s *shape.Shape) bool {
	for _, in := range []string{"", "body."} {
		if s.Has(in+"encoding_format", in+"dimensions", in+"voice") || s.Begins(in+"model", "text-embedding") ||
			s.Begins(in+"model", "omni-moderation") || s.Begins(in+"model", "text-moderation") {
			return true
		}
	}
	return false
}

// itemTypes are types of items that no other format has.
var itemTypes = []string{
	"function_call", "function_call_output", "reasoning", "custom_tool_call", "web_search_call", "local_shell_call", "computer_call",
}

func looksOpenAI(s *shape.Shape) bool {
	if s.Has(at("messages", "content[].value")...) || s.Has("chosen", "[].chosen", "rejected", "[].rejected") {
		return false // a data set's own shape
	}
	if s.Has("choices[].message", "[].choices[].message", "response.body.choices[].message", "response.choices[].message") {
		return true
	}
	if isAt(s, "messages", "role", "user", "assistant", "system", "tool", "developer", "function") {
		return s.Has(at("messages", "content")...) || s.Has(at("messages", "tool_calls")...) || s.Has(at("messages", "function_call")...)
	}
	// The role may come after a content that is longer than the head. Messages with a type
	// instead of a role are another program's.
	return s.IsCut() && s.Has("messages[].content", "[].messages[].content", "body.messages[].content") &&
		!s.Has(at("messages", "role")...) && !s.Has(at("messages", "type")...)
}
