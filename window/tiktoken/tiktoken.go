// Package tiktoken counts tokens exactly as OpenAI's models do. For returns the Counter of
// a model, which may be used concurrently.
//
// The vocabularies o200k_base and cl100k_base, and the rules by which texts are split, are
// those of OpenAI's tiktoken, under the MIT licence (see LICENSE.tiktoken). Compressed, the
// vocabularies add 1.3 MB to programs that import this package. The first count unpacks
// the one it needs, which takes some 30 ms and 4.3 MB of memory for o200k_base, and half of
// that for cl100k_base. The program in interop/sdk/vocabulary writes the files, and its
// tests hold the counts against another tokenizer.
package tiktoken

import (
	"fmt"
	"iter"
	"strings"
	"sync"

	"github.com/coppice-dev/coppice/window"
)

// encoding is a vocabulary that is unpacked when it is first used.
type encoding struct {
	name string
	load func() *vocabulary
}

var _ window.Counter = (*encoding)(nil)

func named(name string, split func(string) int) *encoding {
	return &encoding{name, sync.OnceValue(func() *vocabulary {
		v, err := read(name, split)
		if err != nil {
			panic(err) // the program itself is damaged
		}
		return v
	})}
}

var (
	o200k  = named("o200k_base", splitO200k)
	cl100k = named("cl100k_base", splitCl100k)
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
func (e *encoding) Name() string { return e.name }

// CountText returns how many tokens a text has.
func (e *encoding) CountText(text string) int {
	n := 0
	for range e.IDs(text) {
		n++
	}
	return n
}

// IDs returns the ids of the tokens of a text.
func (e *encoding) IDs(text string) iter.Seq[uint32] { return e.load().ids(text) }
