package tiktoken_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/coppice-dev/coppice/window"
	"github.com/coppice-dev/coppice/window/tiktoken"
)

// The ids are those of OpenAI's own tokenizer.
func TestTokens(t *testing.T) {
	t.Parallel()
	tests := []struct {
		text          string
		o200k, cl100k []uint32
	}{
		{"", nil, nil},
		{"hello world", []uint32{24912, 2375}, []uint32{15339, 1917}},
		{"tiktoken is great!", []uint32{83, 8251, 2488, 382, 2212, 0}, []uint32{83, 1609, 5963, 374, 2294, 0}},
		{"お誕生日おめでとう", []uint32{8930, 9697, 243, 128225, 8930, 17693, 4344, 48669}, []uint32{33334, 45918, 243, 21990, 9080, 33334, 62004, 16556, 78699}},
		{"2 + 2 = 4", []uint32{17, 659, 220, 17, 314, 220, 19}, []uint32{17, 489, 220, 17, 284, 220, 19}},
		{"It's HE'LL don't, 'ſ", []uint32{15834, 18638, 6, 7454, 4128, 11, 461, 70067}, []uint32{2181, 596, 11947, 6, 4178, 1541, 956, 11, 364, 129, 123}},
		{"12345 ½", []uint32{7633, 2548, 220, 27124}, []uint32{4513, 1774, 220, 27154}},
		{"XMLHttpRequest HTTPServer", []uint32{13836, 4682, 2303, 21929, 6444}, []uint32{10833, 27459, 10339, 5592}},
		{"if x {\n\t\n\t\treturn  nil // done\n}\n\n", []uint32{366, 1215, 405, 2775, 197, 1393, 220, 4038, 602, 4167, 198, 943}, []uint32{333, 865, 341, 1602, 197, 862, 220, 2139, 443, 2884, 198, 633}},
		{"x\n\t\ny", []uint32{87, 40612, 88}, []uint32{87, 18108, 88}},
		{"it'ſx", []uint32{278, 6, 70067, 87}, []uint32{275, 6, 129, 123, 87}},
		{"a  b   \n  \n c ", []uint32{64, 220, 287, 10190, 4066, 274, 220}, []uint32{64, 220, 293, 5996, 2355, 272, 220}},
		{"path//to\r\n/file", []uint32{4189, 393, 935, 370, 51766}, []uint32{2398, 322, 998, 319, 24849}},
		{"日本ABC\u0301x", []uint32{9048, 44197, 13430, 87}, []uint32{9080, 22656, 26484, 54939, 87}},
		{"👩\u200d👩\u200d👧 ok", []uint32{28823, 102, 2524, 28823, 102, 2524, 28823, 100, 4763}, []uint32{9468, 239, 102, 378, 235, 9468, 239, 102, 378, 235, 9468, 239, 100, 5509}},
		{"ไทย नमस्ते", []uint32{20619, 100793, 14681, 628}, []uint32{50856, 36984, 35609, 15272, 101, 88344, 79468, 31584, 97, 35470}},
		{"\x7f!", []uint32{221, 0}, []uint32{221, 0}},
		{"<|endoftext|>", []uint32{27, 91, 419, 1440, 919, 91, 29}, []uint32{27, 91, 8862, 728, 428, 91, 29}},
		{"a\xffb", []uint32{64, 3251, 65}, []uint32{64, 5809, 65}},
		{" aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", []uint32{261, 117525, 117525, 117525, 117525, 117525}, []uint32{264, 70540, 70540, 70540, 70540, 70540}},
	}
	for _, tt := range tests {
		for counter, want := range map[window.Counter][]uint32{tiktoken.O200k(): tt.o200k, tiktoken.Cl100k(): tt.cl100k} {
			if got, tokens := tiktoken.Tokens(counter, tt.text); !slices.Equal(got, want) {
				t.Errorf("%s: %q has the tokens %v, which are %q, want %v", counter.Name(), tt.text, got, tokens, want)
			}
			if got := counter.CountText(tt.text); got != len(want) {
				t.Errorf("%s: %q has %d tokens, want %d", counter.Name(), tt.text, got, len(want))
			}
		}
	}
}

// Where OpenAI's regular expressions split a text.
func TestPieces(t *testing.T) {
	t.Parallel()
	tests := []struct{ text, o200k, cl100k string }{
		{"It's GOOD'LL x", "It's| GOOD'LL| x", "It|'s| GOOD|'LL| x"},
		{"it'ſx 'Rex", "it'ſ|x| '|Rex", "it|'ſ|x| '|Rex"},
		{"HTTPServer iPhone ABC", "HTTPServer| i|Phone| ABC", "HTTPServer| iPhone| ABC"},
		{"日本ABC!", "日本|ABC|!", "日本ABC|!"},
		{"A日BC日D!", "A日BC日|D|!", "A日BC日D|!"},
		{"\u0301ABC\u0301's", "\u0301ABC\u0301's", "\u0301ABC|\u0301'|s"},
		{"\u0301ABC!", "\u0301|ABC|!", "\u0301ABC|!"},
		{"1234 56", "123|4| |56", "123|4| |56"},
		{"x/\n/y ++/ z", "x|/\n/|y| ++/| z", "x|/\n|/y| ++/| z"},
		{"a   b\t\tc  ", "a|  | b|\t|\tc|  ", "a|  | b|\t|\tc|  "},
		{"a \n\t\r\n  b", "a| \n\t\r\n| | b", "a| \n\t\r\n| | b"},
		{"\u3000\u3000x\u00a07", "\u3000|\u3000x|\u00a0|7", "\u3000|\u3000x|\u00a0|7"},
	}
	for _, tt := range tests {
		for counter, want := range map[window.Counter]string{tiktoken.O200k(): tt.o200k, tiktoken.Cl100k(): tt.cl100k} {
			if got := strings.Join(tiktoken.Pieces(counter, tt.text), "|"); got != want {
				t.Errorf("%s: %q is split into %q, want %q", counter.Name(), tt.text, got, want)
			}
		}
	}
}

// Whatever the text, its tokens are that text again.
func FuzzTokens(f *testing.F) {
	for _, text := range []string{
		"", "It's 12345 apples, isn't IT?", "  func main() {\n\t\n}\r\n", "HTTPServer //\n/x", "日本ABC\u0301's 😀", "a\xff\xe6\x97b", "<|endoftext|>",
	} {
		f.Add(text)
	}
	// Many pairs of letters that are no token, but have a slot and some bits of a hash in
	// common with one.
	random, letters := rand.New(rand.NewPCG(1, 2)), make([]byte, 50_000)
	for i := range letters {
		letters[i] = 'a' + byte(random.IntN(26))
	}
	f.Add(string(letters))
	f.Fuzz(func(t *testing.T, text string) {
		valid := string([]rune(text)) // bytes that are no text are replaced, one by one
		for _, counter := range []window.Counter{tiktoken.O200k(), tiktoken.Cl100k()} {
			ids, tokens := tiktoken.Tokens(counter, text)
			if got := strings.Join(tokens, ""); got != valid {
				t.Errorf("%s: the tokens of %q are those of %q", counter.Name(), text, got)
			}
			if got := counter.CountText(text); got != len(ids) {
				t.Errorf("%s: counts %d tokens of %q, want %d", counter.Name(), got, text, len(ids))
			}
		}
	})
}

// Nobody waits for a long text, whatever it is. If splitting or merging it took quadratic
// time, this test would take hours.
func TestLongTexts(t *testing.T) {
	t.Parallel()
	const size = 1 << 20
	for _, counter := range []window.Counter{tiktoken.O200k(), tiktoken.Cl100k()} {
		if n := counter.CountText(strings.Repeat("a", size)); n != size/8 {
			t.Errorf("%s: the long word has %d tokens, want %d", counter.Name(), n, size/8)
		}
		for _, part := range []string{"A", " ", "\n", " \n", "!", "!/\n", "0", "日本", "A日", "日A", "\u0301", "\u0301A", "'s"} {
			text := strings.Repeat(part, size/len(part))
			if n := len(tiktoken.Pieces(counter, text)); n < 1 || n > len(text) {
				t.Errorf("%s: %d times %q has %d pieces", counter.Name(), size/len(part), part, n)
			}
		}
	}
}

// A piece of twice the length takes about twice the work.
func TestMergeSteps(t *testing.T) {
	t.Parallel()
	for _, part := range []string{"a", "ab", "ACGT", "日本", "\xff"} {
		once := tiktoken.MergeSteps(tiktoken.O200k(), strings.Repeat(part, 10_000))
		twice := tiktoken.MergeSteps(tiktoken.O200k(), strings.Repeat(part, 20_000))
		if twice > once*21/10 || twice > 3*20_000*len(part) {
			t.Errorf("%q: merging takes %d steps, and %d for twice the length", part, once, twice)
		}
	}
}

func TestFor(t *testing.T) {
	t.Parallel()
	tests := map[[2]string]string{
		{"openai", "gpt-5-mini"}:             "o200k_base",
		{"openai", "o3"}:                     "o200k_base",
		{"azure", "gpt-4o"}:                  "o200k_base",
		{"openrouter", "openai/gpt-4.1"}:     "o200k_base",
		{"openai", "GPT-9"}:                  "o200k_base",
		{"OpenAI", ""}:                       "o200k_base",
		{"openai", "gpt-4-0613"}:             "cl100k_base",
		{"openai", "gpt-3.5-turbo"}:          "cl100k_base",
		{"anthropic", "claude-sonnet-4-5"}:   "",
		{"openrouter", "google/gemini-2.5"}:  "",
		{"", ""}:                             "",
		{"openai", "text-embedding-3-small"}: "",
	}
	for model, want := range tests {
		got := ""
		if c := tiktoken.For(model[0], model[1]); c != nil {
			got = c.Name()
		}
		if got != want {
			t.Errorf("%v is counted by %q, want %q", model, got, want)
		}
	}
}

func TestNamed(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]window.Counter{
		"o200k": tiktoken.O200k(), "o200k_base": tiktoken.O200k(), "cl100k": tiktoken.Cl100k(), "cl100k_base": tiktoken.Cl100k(),
	} {
		if got, err := tiktoken.Named(name); err != nil || got != want {
			t.Errorf("%s is %v, error %v", name, got, err)
		}
	}
	if _, err := tiktoken.Named("p50k"); err == nil {
		t.Error("p50k is known")
	}
}

func TestConcurrently(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("The roses in this garden. ", 50)
	want := tiktoken.O200k().CountText(text)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if got := tiktoken.O200k().CountText(text); got != want {
				t.Errorf("counted %d, want %d", got, want)
			}
		})
	}
	wg.Wait()
}
