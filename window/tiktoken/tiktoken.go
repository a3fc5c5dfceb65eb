// Package tiktoken counts tokens exactly as OpenAI's models do. Its vocabularies add about
// 12 MB to programs that import it, and nothing to others. For returns the Counter of a
// model, which may be used concurrently.
package tiktoken

import (
	"fmt"
	"strings"
	"sync"

	"github.com/tiktoken-go/tokenizer"

	"github.com/coppice-dev/coppice/window"
)

// encoding is a vocabulary. It is unpacked when it is first used.
type encoding struct {
	name  tokenizer.Encoding
	codec func() (tokenizer.Codec, error)
}

var _ window.Counter = (*encoding)(nil)

func load(name tokenizer.Encoding) *encoding {
	return &encoding{name, sync.OnceValues(func() (tokenizer.Codec, error) { return tokenizer.Get(name) })}
}

var (
	o200k  = load(tokenizer.O200kBase)
	cl100k = load(tokenizer.Cl100kBase)
)

// O200k returns the counter of gpt-4o and all later models of OpenAI.
func O200k() window.Counter { return o200k }

// Cl100k returns the counter of gpt-4 and gpt-3.5.
func Cl100k() window.Counter { return cl100k }

// Named returns the counter of a vocabulary: "o200k_base" or "cl100k_base", also
// without the ending. It returns an error for any other name.
func Named(name string) (window.Counter, error) {
	switch strings.TrimSuffix(name, "_base") {
	case "o200k":
		return o200k, nil
	case "cl100k":
		return cl100k, nil
	}
	return nil, fmt.Errorf("unknown vocabulary %q; it must be o200k_base or cl100k_base", name)
}

// For returns the exact counter of a model, or nil if there is none here. It is
// meant for window.Chooser.
func For(provider, model string) window.Counter {
	// Routers put the provider before the model.
	name := strings.ToLower(model[strings.LastIndexByte(model, '/')+1:])
	for _, family := range []struct {
		prefix string
		is     *encoding
	}{
		{"gpt-4o", o200k},
		{"chatgpt-4o", o200k},
		{"gpt-4.1", o200k},
		{"gpt-4.5", o200k},
		{"gpt-5", o200k},
		{"gpt-oss", o200k},
		{"o1", o200k},
		{"o3", o200k},
		{"o4", o200k},
		{"codex", o200k},
		{"gpt-4", cl100k},
		{"gpt-3.5", cl100k},
		{"gpt", o200k}, // models that are not out yet
	} {
		if strings.HasPrefix(name, family.prefix) {
			return family.is
		}
	}
	if model == "" && strings.EqualFold(provider, "openai") {
		return o200k
	}
	return nil
}

// Name returns the vocabulary's name.
func (e *encoding) Name() string { return string(e.name) }

// CountText returns how many tokens a text has. If the vocabulary does not load, which
// the tests rule out, it estimates.
func (e *encoding) CountText(text string) int {
	codec, err := e.codec()
	if err == nil {
		var n int
		if n, err = codec.Count(text); err == nil {
			return n
		}
	}
	return window.Estimate("openai", "").CountText(text)
}
