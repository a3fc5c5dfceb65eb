package tiktoken_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/window"
	"github.com/coppice-dev/coppice/window/tiktoken"
)

func BenchmarkCountText(b *testing.B) {
	for _, counter := range []window.Counter{tiktoken.O200k(), tiktoken.Cl100k()} {
		for name, text := range map[string]string{
			"english": megabyte(b, "../../docs/*.md"),
			"code":    megabyte(b, "../../session/*.go"),
			"cjk":     strings.Repeat("秋の京都旅行では、清水寺と嵐山を訪れました。今天天气很好，我们去公园散步吧。한국어 문장도 있습니다. ", 7200),
			"a":       strings.Repeat("a", 1<<20),
		} {
			b.Run(counter.Name()+"/"+name, func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				b.ReportAllocs()
				for b.Loop() {
					counter.CountText(text)
				}
			})
		}
	}
}

// BenchmarkLoad unpacks a vocabulary, as the first count does.
func BenchmarkLoad(b *testing.B) {
	for _, counter := range []window.Counter{tiktoken.O200k(), tiktoken.Cl100k()} {
		b.Run(counter.Name(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := tiktoken.Load(counter); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// megabyte returns the text of some files, again and again.
func megabyte(b *testing.B, pattern string) string {
	b.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil {
		b.Fatal(err)
	}
	var text strings.Builder
	for i := 0; text.Len() < 1<<20; i++ {
		data, err := os.ReadFile(files[i%len(files)])
		if err != nil {
			b.Fatal(err)
		}
		text.Write(data)
	}
	return text.String()[:1<<20]
}
