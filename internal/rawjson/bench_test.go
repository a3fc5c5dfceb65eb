package rawjson_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/internal/rawjson"
)

// chatLines are lines as a session file holds them: 555 bytes or so each, prose
// with a newline now and then, and a few numbers.
func chatLines() [][]byte {
	lines := make([][]byte, 1000)
	for i := range lines {
		prose := strings.Repeat("The walker keeps one int, and the caller keeps the line. ", 2+i%6)
		lines[i] = fmt.Appendf(nil, `{"type":"message","id":"01J%09d","parent_id":"01J%09d","timestamp":"2026-03-01T12:%02d:%02d.%03dZ",`+
			`"message":{"role":"assistant","content":[{"type":"text","text":"%s\n\n- \"first\" item\n- second"},`+
			`{"type":"tool_call","id":"call_%d","name":"read_file","arguments":{"path":"session/head.go","line":%d,"limit":200}}],`+
			`"usage":{"input":%d,"output":%d,"cost":0.01%d},"model":"large-1","stop":null}}`,
			i, i-1, i/60%60, i%60, i, prose, i, i, i*7, i*3, i)
	}
	return lines
}

func benchLines(b *testing.B, visit func(line []byte) bool) {
	lines := chatLines()
	total := 0
	for _, line := range lines {
		total += len(line)
	}
	b.SetBytes(int64(total))
	b.ReportAllocs()
	for b.Loop() {
		for _, line := range lines {
			if !visit(line) {
				b.Fatalf("refused: %s", line)
			}
		}
	}
}

func BenchmarkSkip(b *testing.B) {
	benchLines(b, func(line []byte) bool { return rawjson.Skip(line, 0) == len(line) })
}

func BenchmarkScanHead(b *testing.B) {
	benchLines(b, func(line []byte) bool {
		h, ok := rawjson.ScanHead(line)
		return ok && !h.Whole
	})
}

func BenchmarkScanHeadAnyOrder(b *testing.B) {
	benchLines(b, func(line []byte) bool {
		h, ok := rawjson.LenientHead(line)
		return ok && h.Whole
	})
}

func BenchmarkObject(b *testing.B) {
	benchLines(b, func(line []byte) bool {
		n := 0
		err := rawjson.Object(line, func(_, _ []byte) error { n++; return nil })
		return err == nil && n == 5
	})
}

// BenchmarkJSONValid is the yardstick for BenchmarkSkip.
func BenchmarkJSONValid(b *testing.B) { benchLines(b, json.Valid) }

func BenchmarkAppendString(b *testing.B) {
	for _, c := range []struct{ name, text string }{
		{"ascii", strings.Repeat("plain words without anything to escape, ", 25)},
		{"prose", strings.Repeat("some words, a \"quote\" and\n\ta new line, ", 25)},
		{"cjk", strings.Repeat("這是一些沒有跳脫字元的文字，", 25)},
		{"short", "assistant"},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(c.text)))
			b.ReportAllocs()
			var dst []byte
			for b.Loop() {
				dst = rawjson.AppendString(dst[:0], c.text)
			}
		})
	}
}

func BenchmarkString(b *testing.B) {
	lit := rawjson.AppendString(nil, strings.Repeat("some words, a \"quote\" and\n\ta new line, ", 25))
	b.SetBytes(int64(len(lit)))
	b.ReportAllocs()
	var dst []byte
	for b.Loop() {
		dst, _ = rawjson.StringBytes(lit, dst[:0])
	}
}
