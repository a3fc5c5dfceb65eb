package client

import (
	"bytes"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/anthropic"
	"github.com/coppice-dev/coppice/provider/google"
	"github.com/coppice-dev/coppice/provider/internal/wire"
	"github.com/coppice-dev/coppice/provider/openai"
	"github.com/coppice-dev/coppice/session"
)

// dialect is how to talk to one provider.
type dialect struct {
	name     string // what messages call the provider
	base     string // its own address
	variable string // of the environment, where people keep the key
	maxBytes int    // the largest body that it accepts; 0 if that is not known
	// endsAtOnce: nothing comes after the event that completes an answer. Other
	// providers send the usage after it.
	endsAtOnce bool

	path      func(c *Client, stream bool) string
	authorise func(h http.Header, key string)
	encode    func(c *Client, r *provider.Request) (*provider.Encoded, error)
	stream    func() provider.Stream
	decode    func(body []byte) (*provider.Body, error) // of an answer that is not a stream
	// count returns a request that counts tokens, and the member of the answer
	// that has the number. Nil: the provider does not count.
	count func(c *Client, body []byte) (path string, request []byte, member string)
}

var dialects = map[string]*dialect{
	"anthropic": {
		name: "anthropic", base: "https://api.anthropic.com", variable: "ANTHROPIC_API_KEY", maxBytes: 32 << 20, endsAtOnce: true,
		path: func(*Client, bool) string { return "/v1/messages" },
		authorise: func(h http.Header, key string) {
			if h.Get("Anthropic-Version") == "" {
				h.Set("Anthropic-Version", "2023-06-01")
			}
			setKey(h, "X-Api-Key", "", key)
		},
		encode: func(c *Client, r *provider.Request) (*provider.Encoded, error) {
			return anthropic.EncodeRequest(r, c.info.Model, c.family, min(c.info.MaxOutput, defaultOutput))
		},
		stream: func() provider.Stream { return anthropic.NewStream() },
		decode: anthropic.Decode,
		count: func(_ *Client, body []byte) (string, []byte, string) {
			return "/v1/messages/count_tokens", only(body, "model", "messages", "system", "tools", "tool_choice", "thinking",
				"cache_control", "output_config", "mcp_servers", "context_management"), "input_tokens"
		},
	},
	"openai": {
		name: "openai", base: "https://api.openai.com/v1", variable: "OPENAI_API_KEY", endsAtOnce: true,
		path:      func(*Client, bool) string { return "/responses" },
		authorise: bearer,
		encode: func(c *Client, r *provider.Request) (*provider.Encoded, error) {
			return openai.EncodeResponsesRequest(r, c.info.Model, c.family)
		},
		stream: func() provider.Stream { return openai.NewResponsesStream() },
		decode: openai.DecodeResponses,
		count: func(_ *Client, body []byte) (string, []byte, string) {
			return "/responses/input_tokens", only(body, "model", "input", "instructions", "tools", "tool_choice", "reasoning",
				"text", "truncation", "parallel_tool_calls", "previous_response_id", "conversation"), "input_tokens"
		},
	},
	"openai-chat": {
		name: "openai", base: "https://api.openai.com/v1", variable: "OPENAI_API_KEY",
		path:      func(*Client, bool) string { return "/chat/completions" },
		authorise: bearer,
		encode: func(c *Client, r *provider.Request) (*provider.Encoded, error) {
			own := strings.HasPrefix(c.base, "https://api.openai.com/")
			return openai.EncodeChatRequest(r, c.info.Model, c.family, &openai.RequestOptions{Other: !own})
		},
		stream: func() provider.Stream { return openai.NewChatStream() },
		decode: openai.DecodeChat,
	},
	"google": {
		name: "google", base: "https://generativelanguage.googleapis.com/v1beta", variable: "GEMINI_API_KEY", maxBytes: 20 << 20,
		path: func(c *Client, stream bool) string {
			if !stream {
				return "/models/" + url.PathEscape(c.info.Model) + ":countTokens"
			}
			return "/models/" + url.PathEscape(c.info.Model) + ":streamGenerateContent?alt=sse"
		},
		authorise: func(h http.Header, key string) { setKey(h, "X-Goog-Api-Key", "", key) },
		encode: func(c *Client, r *provider.Request) (*provider.Encoded, error) {
			return google.EncodeRequest(r, c.family)
		},
		stream: func() provider.Stream { return google.NewStream() },
		decode: func(body []byte) (*provider.Body, error) { // one chunk, or a list of them
			whole, err := google.Fold(bytes.NewReader(body))
			if err != nil {
				return nil, err
			}
			return google.Decode(whole)
		},
		count: func(c *Client, body []byte) (string, []byte, string) {
			request := wire.Members(body)
			request.SetStr("model", "models/"+c.info.Model)
			whole := wire.Object{{Name: "generateContentRequest", Value: request.JSON()}}
			return c.dialect.path(c, false), whole.JSON(), "totalTokens"
		},
	},
}

func bearer(h http.Header, key string) { setKey(h, "Authorization", "Bearer ", key) }

// setKey sets the header of the key, unless the caller has set it.
func setKey(h http.Header, name, prefix, key string) {
	if key != "" && h.Get(name) == "" {
		h.Set(name, prefix+key)
	}
}

// only returns the members of a body that a request to count tokens may have. The
// others say how to answer, and are refused there.
func only(body []byte, names ...string) []byte {
	o := slices.DeleteFunc(wire.Members(body), func(f session.Field) bool { return !slices.Contains(names, f.Name) })
	return o.JSON()
}

// defaultOutput is the limit of an answer, in tokens, for providers that need one when
// the caller sets none. More is seldom wanted and makes a provider set aside more of
// the window.
const defaultOutput = 16384

// The limits of a model that is not known. They are small, so that a request that
// is built for them fits almost everywhere.
const (
	unknownWindow = 32_768
	unknownOutput = 4096
)
