package code

import (
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alecthomas/chroma/v2"
	"github.com/alecthomas/chroma/v2/lexers"
	"github.com/dlclark/regexp2/v2"
	"github.com/google/go-cmp/cmp"
)

// common are languages that stand behind the fences of many conversations.
const common = `bash c clojure cmake cpp csharp css dart diff docker elixir erlang fish go graphql groovy haskell hcl
	html ini java javascript json julia kotlin lua makefile nginx nix objective-c ocaml perl php powershell properties
	protobuf python r jsx ruby rust scala scss sql swift terraform tex toml typescript viml vue xml yaml zig`

// Trying fewer rules must not change what is found: chroma, which tries them all,
// finds the same. Every grammar reads a text that is a little of everything, so
// that many rules match and many fail.
func TestGrammarsFindWhatChromaFinds(t *testing.T) {
	data, err := os.ReadFile("testdata/mixed.txt")
	if err != nil {
		t.Fatal(err)
	}
	// The library with which chroma matches lets [^\W\d] match digits. Ours are told
	// apart before, so that numbers are numbers.
	better := map[string]bool{"GraphQL": true, "Java": true, "OCaml": true}
	for _, name := range strings.Fields(common) {
		lexer := lexers.GlobalLexerRegistry.Get(name)
		if lexer == nil {
			t.Errorf("%s: not known", name)
			continue
		}
		if better[lexer.Config().Name] {
			continue
		}
		g := newGrammar(lexer)
		if g == nil {
			t.Errorf("%s: no grammar", lexer.Config().Name)
			continue
		}
		diff := "-"
		for range 5 { // either gives a match up that takes long by the clock, as it may on a busy machine
			want, wantPanic := chromaTokens(lexer, string(data))
			got, gotPanic := ourTokens(g, string(data))
			if diff = cmp.Diff(want, got) + cmp.Diff(wantPanic, gotPanic); diff == "" {
				break
			}
		}
		if diff != "" {
			t.Errorf("%s (-want +got):\n%s", lexer.Config().Name, diff)
		}
	}
}

// A machine that stalls in the middle of a text does not change how it looks.
func TestAStallChangesNothing(t *testing.T) {
	t.Parallel()
	const text = "// x\nreturn \"s\" + 1"
	want, _ := lex(newGrammar(lexers.Get("go")), text, time.Hour)
	g := newGrammar(lexers.Get("go"))
	stalled := g.states["root"][0]
	compile := stalled.compile
	stalled.compile = sync.OnceValue(func() *regexp2.Regexp {
		time.Sleep(maxTime + 10*time.Millisecond)
		return compile()
	})
	if got := patiently(g, text); len(want) < 3 || !slices.Equal(want, got) {
		t.Errorf("after a stall it has the parts %v, else %v", got, want)
	}
}

func chromaTokens(lexer chroma.Lexer, text string) (tokens []chroma.Token, panicked bool) {
	defer func() { panicked = recover() != nil }()
	next, err := lexer.Tokenise(nil, text)
	if err != nil {
		panic(err)
	}
	for t := next(); t != chroma.EOF; t = next() {
		tokens = append(tokens, t)
	}
	return tokens, false
}

func ourTokens(g *grammar, text string) (tokens []chroma.Token, panicked bool) {
	defer func() { panicked = recover() != nil }()
	g.tokens(text, func(t chroma.Token) bool { tokens = append(tokens, t); return true })
	return tokens, false
}
