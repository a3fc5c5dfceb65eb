package code

import (
	"strings"
	"sync"

	"github.com/alecthomas/chroma/v2/lexers"
)

// found caches the results of find. Looking for an unknown name is expensive, and many
// fences say "text" or "output".
var (
	found sync.Map // of strings to *grammar
	grown sync.Map // of chroma.Lexer to *grammar
)

// maxName is the length of the longest language name. Without a limit, strangers could
// fill the memory with names after fences.
const maxName = 20

// find returns the grammar for a name, an alias or the extension of a file, or nil.
func find(language string) *grammar {
	if language == "" || len(language) > maxName || strings.ContainsAny(language, `*?[]\/ `) {
		return nil
	}
	if g, ok := found.Load(language); ok {
		return g.(*grammar)
	}
	var g *grammar
	if lexer := lexers.GlobalLexerRegistry.Get(language); lexer != nil {
		same, ok := grown.Load(lexer) // under another name
		if !ok {
			same, _ = grown.LoadOrStore(lexer, newGrammar(lexer))
		}
		g = same.(*grammar)
	}
	found.Store(language, g)
	return g
}
