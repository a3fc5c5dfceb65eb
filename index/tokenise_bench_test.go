package index

import (
	"os"
	"strings"
	"testing"
)

// BenchmarkTokenise measures what a text costs before it is written.
func BenchmarkTokenise(b *testing.B) {
	code, err := os.ReadFile("tokens.go")
	if err != nil {
		b.Fatal(err)
	}
	words := strings.Fields("func return error package the of and to in that it is for on with as if nil string context session entry tree log append read write file line")
	var prose strings.Builder
	for seed := uint32(1); prose.Len() < len(code); prose.WriteByte(' ') {
		seed = seed*1664525 + 1013904223
		prose.WriteString(words[int(seed>>8)%len(words)])
	}
	for name, text := range map[string]string{"code": string(code), "prose": prose.String()} {
		b.Run(name, func(b *testing.B) {
			r := lineReader{words: newVocabulary()}
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				r.newDoc(part{text: text})
			}
		})
	}
}
