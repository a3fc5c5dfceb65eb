package main

import (
	"io/fs"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dlclark/regexp2/v2"
	"github.com/klauspost/compress/zstd"
	"github.com/tiktoken-go/tokenizer"

	"github.com/coppice-dev/coppice/window"
	"github.com/coppice-dev/coppice/window/tiktoken"
)

// expressions are those by which OpenAI splits a text into pieces. The groups around them
// make regexp2 interpret them: the tokenizer brings compiled ones, which lose the character
// DEL, and end a piece of white space at the first newline instead of the last.
var expressions = map[tokenizer.Encoding]*regexp2.Regexp{
	tokenizer.O200kBase: regexp2.MustCompile(`(?:[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|`+
		`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|`+
		`\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)`, regexp2.None),
	tokenizer.Cl100kBase: regexp2.MustCompile(`(?:(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|`+
		`\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)`, regexp2.None),
}

// pair is our tokenizer of a vocabulary, and the other one.
type pair struct {
	name   tokenizer.Encoding
	ours   window.Counter
	theirs tokenizer.Codec
	ranks  map[string]uint
}

func pairs(t testing.TB) []pair {
	t.Helper()
	var all []pair
	for _, ours := range []window.Counter{tiktoken.O200k(), tiktoken.Cl100k()} {
		name := tokenizer.Encoding(ours.Name())
		theirs, err := tokenizer.Get(name)
		if err != nil {
			t.Fatal(err)
		}
		ranks := map[string]uint{}
		for id := uint(0); ; id++ {
			token, err := theirs.Decode([]uint{id})
			if err != nil {
				break
			}
			ranks[token] = id
		}
		all = append(all, pair{name, ours, theirs, ranks})
	}
	return all
}

// same fails unless both tokenizers have the same tokens for a text.
func (p pair) same(t *testing.T, text string) {
	t.Helper()
	var got, want []uint
	for id := range p.ours.(interface{ IDs(string) iter.Seq[uint32] }).IDs(text) {
		got = append(got, uint(id))
	}
	match, err := expressions[p.name].FindStringMatch(text)
	for ; match != nil; match, err = expressions[p.name].FindNextMatch(match) {
		want = append(want, p.ids(t, match.String())...)
	}
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s: %.300q has the tokens %v, want %v", p.name, text, got, want)
	}
	if n := p.ours.CountText(text); n != len(want) {
		t.Errorf("%s: %.300q has %d tokens, want %d", p.name, text, n, len(want))
	}
}

// ids returns the tokens of a piece according to the other tokenizer, or, where its
// compiled expressions are wrong, by merging as slowly and plainly as can be.
func (p pair) ids(t *testing.T, piece string) []uint {
	t.Helper()
	if strings.TrimSpace(piece) != "" && !strings.Contains(piece, "\x7f") {
		ids, _, err := p.theirs.Encode(piece)
		if err != nil {
			t.Fatal(err)
		}
		return ids
	}
	if id, ok := p.ranks[piece]; ok {
		return []uint{id}
	}
	var parts []string
	for i := range len(piece) {
		parts = append(parts, piece[i:i+1])
	}
	for {
		best, at := uint(len(p.ranks)), -1
		for i := range len(parts) - 1 {
			if rank, ok := p.ranks[parts[i]+parts[i+1]]; ok && rank < best {
				best, at = rank, i
			}
		}
		if at < 0 {
			break
		}
		parts = slices.Replace(parts, at, at+2, parts[at]+parts[at+1])
	}
	var ids []uint
	for _, part := range parts {
		ids = append(ids, p.ranks[part])
	}
	return ids
}

// The committed files are those that this program writes.
func TestFiles(t *testing.T) {
	t.Parallel()
	decoder, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer decoder.Close()
	for _, p := range pairs(t) {
		packed, err := os.ReadFile(filepath.Join("..", directory, string(p.name)+".zst"))
		if err != nil {
			t.Fatal(err)
		}
		got, err := decoder.DecodeAll(packed, nil)
		if err != nil || string(got) != string(vocabulary(p.theirs)) {
			t.Errorf("%s.zst does not have the vocabulary, error %v; run this program", p.name, err)
		}
	}
}

// Every token is one token, or is split alike.
func TestTokens(t *testing.T) {
	t.Parallel()
	for _, p := range pairs(t) {
		for token := range p.ranks {
			p.same(t, token)
		}
	}
}

// A tenth of the files of this repository: code, documents, and conversations in many
// languages.
func TestFilesOfTheRepository(t *testing.T) {
	t.Parallel()
	all := pairs(t)
	n := 0
	err := filepath.WalkDir("../../..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && (entry.Name() == ".git" || entry.Name() == "node_modules") {
			return fs.SkipDir
		}
		info, err := entry.Info()
		if err != nil || !info.Mode().IsRegular() || info.Size() > 100_000 {
			return err
		}
		if n++; n%10 != 0 {
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, p := range all {
			p.same(t, string(data))
		}
		return nil
	})
	if err != nil || n < 1000 {
		t.Errorf("read %d files, error %v", n, err)
	}
}

// Texts that try the limits of pieces, and of merging.
func TestOddTexts(t *testing.T) {
	t.Parallel()
	texts := []string{
		"", " ", "  ", "   a", "\n", " \n ", "\r\n\r\n  x", "\t\t\n\t\tx", "a \n", "a\u00a0b\u00a0\u00a0c", "\u3000\u3000日本",
		"a\u2028\u2029b\u0085c\v\fd", "\u200b\u200bzero", "x  \n\n  y  ", " \u2003 word", "end   ",
		"I'm you're HE'LL they'd've it'S 'tis rock'n'roll ''s 'ſ don'ſt 'lL 'Re 'vE 'l 'r '", "'", "'s", "s's's's",
		"1", "12", "1234567", "3.14159", "٣٤٥٦٧", "Ⅷ½²³", "1a2b3c", "１２３４",
		"CamelCaseHTTPServer", "HTTPSServer", "ǅungla ǅǅa", "ʰʰA", "日本ABC", "日本ABC日本", "AあBい", "ñÑñ", "n\u0303N\u0303", "\u0301ABC", "\u0301abc", "\u0301's", " \u0301", "!\u0301\u0301", "!!\u0301a",
		"אבגד", "ไทยแลนด์", "हिन्दी में", "한국어 문장", "中文字符，测试。", "😀👩‍👩‍👧‍👦🏳️‍🌈🇩🇪", "a😀b", "\U000e0100x", "𝐀𝐛𝟏", "𠀀𠀁",
		"http://example.com//a/b", "//\n//\n///\r\n/x", "a/\n/b", "/*\n * x\n */", "!!!\n\n\nx", "...\r\n\r\n", "?/\r/",
		"<|endoftext|>", "a<|endofprompt|>b", "<|fim_prefix|>", "<|im_start|>user",
		"\xff", "\xff\xfe", "a\xffb", "\xe6\x97", "\xe6\x97a", "\xc3\x28", "\xf0\x9f\x98", "\xed\xa0\x80", "日\x97本", "\x00\x01\x02", " \xff", "\ufffd\xff",
	}
	for _, run := range []string{"a", "ab", "A", " ", "\n", " \n", "!", "=", "-", "0", "あ", "日本", "é", "😀", "\xff", "\u0301", "Aé", "aaaaaaab", "ACGT"} {
		for _, times := range []int{10, 100, 1000} {
			texts = append(texts, strings.Repeat(run, times), "x"+strings.Repeat(run, times)+" x")
		}
	}
	for _, p := range pairs(t) {
		for _, text := range texts {
			p.same(t, text)
		}
	}
}

// Random texts, of characters that the expressions treat differently, of any characters,
// of the letters of a few scripts, and of bytes.
func TestRandomTexts(t *testing.T) {
	t.Parallel()
	times := 3000
	if testing.Short() {
		times /= 10
	}
	random := rand.New(rand.NewPCG(1, 2))
	edges := []rune(" \t\n\r\u00a0\u3000'sStTrReEvVlLmMdDſ12½٣aAbBzǅʰあ日\u0301\u0e31/!.-<|😀\ufffd𝐀\U000e0100")
	ranges := [][2]int{{0x20, 0x7f}, {0xa0, 0x250}, {0x370, 0x400}, {0x400, 0x500}, {0x590, 0x700}, {0x900, 0x980}, {0x3040, 0x3100}, {0x4e00, 0x9fff}, {0xac00, 0xd7a4}, {0x1f300, 0x1f700}}
	of := func(next func() rune) string {
		text := make([]rune, random.IntN(40))
		for i := range text {
			text[i] = next()
		}
		return string(text)
	}
	all := pairs(t)
	for range times {
		script := ranges[random.IntN(len(ranges))]
		raw := make([]byte, random.IntN(20))
		for i := range raw {
			raw[i] = byte(random.Uint32())
		}
		for _, text := range []string{
			of(func() rune { return edges[random.IntN(len(edges))] }),
			of(func() rune { return random.Int32N(0x110000) }),
			of(func() rune { return random.Int32N(0x3000) }),
			of(func() rune { return rune(script[0] + random.IntN(script[1]-script[0])) }),
			string(raw),
			"日本" + string(raw) + " word",
		} {
			for _, p := range all {
				p.same(t, text)
			}
		}
	}
}

// BenchmarkBoth compares the speed of the two.
func BenchmarkBoth(b *testing.B) {
	read := func(paths ...string) string {
		var text strings.Builder
		for _, pattern := range paths {
			files, err := filepath.Glob(pattern)
			if err != nil {
				b.Fatal(err)
			}
			for _, path := range files {
				data, err := os.ReadFile(path)
				if err != nil {
					b.Fatal(err)
				}
				text.Write(data)
			}
		}
		return strings.Repeat(text.String(), 1+(1<<20)/text.Len())[:1<<20]
	}
	texts := map[string]string{
		"english": read("../../../docs/*.md", "../../../*.md"),
		"code":    read("../../../session/*.go"),
		"cjk":     strings.ToValidUTF8(strings.Repeat("秋の京都旅行では、清水寺と嵐山を訪れました。今天天气很好，我们去公园散步吧。한국어 문장도 있습니다. ", 10_000)[:1<<20], ""),
	}
	for _, p := range pairs(b) {
		for name, text := range texts {
			b.Run(string(p.name)+"/"+name+"/ours", func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				b.ReportAllocs()
				for b.Loop() {
					p.ours.CountText(text)
				}
			})
			b.Run(string(p.name)+"/"+name+"/theirs", func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				b.ReportAllocs()
				for b.Loop() {
					if _, err := p.theirs.Count(text); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
