package index

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// runSlowly is scanner.run without its short cuts: character by character.
func (s *scanner) runSlowly() {
	for i := 0; i < len(s.text); {
		r, size := decode(s.text, i)
		switch classOf(r) {
		case lower, upper, digit, mark:
			i = s.foreign(i)
			continue
		case separator:
			if r != '_' && r != '-' || s.chain.end != i {
				s.endChain()
			}
			i += size
		default:
			i = s.other(i)
		}
	}
	s.endChain()
}

func checkShortCuts(t *testing.T, text string) {
	t.Helper()
	var fast, short, slow []token
	text = canonical(text)
	scan(text, func(k token) { fast = append(fast, k) })
	s := scanner{text: text, emit: func(k token) { slow = append(slow, k) }}
	s.runSlowly()
	if !slices.Equal(fast, slow) {
		t.Fatalf("%q: got %v, character by character %v", text, fast, slow)
	}
	s = scanner{text: text, emit: func(k token) { short = append(short, token{text: k.text, whole: k.whole}) }}
	s.emitShort = func(key uint64, word string) {
		if key != shortKey(word) {
			t.Errorf("%q: the key of %q is %x, want %x", text, word, key, shortKey(word))
		}
		short = append(short, token{text: word})
	}
	s.run()
	for i := range slow {
		slow[i].start, slow[i].end = 0, 0
	}
	if !slices.Equal(short, slow) {
		t.Fatalf("%q: got %v, character by character %v", text, short, slow)
	}
}

func TestShortCutsFindTheSameTokens(t *testing.T) {
	t.Parallel()
	pieces := []string{
		"a", "b", "zeta", "X", "YZ", "7", "42", " ", " ", ".", "/", "-", "_", "--", "é", "É", "ß", "\u0301", "中", "文", "🚀", "\x00", "\x7f",
		"readFile", "HTTP", "Title", "eightlet", strings.Repeat("q", 63), "@", "[", "`", "{", "\n",
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		var b strings.Builder
		for range r.IntN(12) {
			b.WriteString(pieces[r.IntN(len(pieces))])
		}
		checkShortCuts(t, b.String())
	}
}

func FuzzShortCuts(f *testing.F) {
	f.Add("src/main.go --no-verify readFile read_file Crème 中文字 🚀 SHA256sum")
	f.Fuzz(checkShortCuts)
}

func TestVocabularyTellsWordsApart(t *testing.T) {
	t.Parallel()
	v := newVocabulary()
	words := []string{"a", "aa", "aaa", "aaaa", "aaaaa", "aaaaaa", "aaaaaaa", "aaaaaaaa", "aaaaaaaaa", "ab", "aba", "abaa", "aaba", "baaaaaaa", "aaaaaaab", "aaaabaaaa"}
	for i := range 5000 { // so that the table grows
		words = append(words, strings.Repeat("x", i%20)+word36(i))
	}
	slices.Sort(words)
	words = slices.Compact(words)
	numbers := make(map[string]uint32)
	for _, w := range words {
		numbers[w] = v.number(w)
	}
	for w, n := range numbers {
		if v.words[n] != w || v.number(w) != n {
			t.Errorf("%q has the number %d, which is that of %q", w, n, v.words[n])
		}
	}
	if len(v.words) != len(words) {
		t.Errorf("%d words have %d numbers", len(words), len(v.words))
	}
}

func word36(i int) string {
	const digits = "0123456789abcdefghijklmnopqrstuvwxyz"
	return string([]byte{digits[i/1296%36], digits[i/36%36], digits[i%36]})
}
