package redact_test

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/redact"
)

// prose makes text as it stands in conversations: words, among them those that
// the rules look at closer, code, paths, hashes and addresses, and no secret.
func prose(size int) string {
	words := strings.Fields(`the token count of a request is what the model has read and the password field is empty so we
		return err and fmt.Println(secret) with https://pkg.go.dev/net/http and user@host.org for (i:=0; i<n; i++) { key=keys[i] }
		9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08 550e8400-e29b-41d4-a716-446655440000 internal/cli/append.go:42
		max_tokens=4096 "type":"text" error: connection refused, retrying in 5s… naïve café 数据 ls -la /usr/share/doc import os, sys`)
	r := rand.New(rand.NewPCG(1, 2))
	var b strings.Builder
	for b.Len() < size {
		b.WriteString(words[r.IntN(len(words))])
		b.WriteByte(" \n"[r.IntN(20)/19])
	}
	return b.String()
}

// BenchmarkText is the goal of 200 MB/s on text without secrets; BenchmarkRawScan
// is what looking at each byte costs at least.
func BenchmarkText(b *testing.B) {
	text := prose(1 << 20)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, found := redact.Text(text); len(found) > 0 {
			b.Fatal(found)
		}
	}
}

func BenchmarkJSON(b *testing.B) {
	var line bytes.Buffer
	enc := json.NewEncoder(&line)
	_ = enc.Encode(map[string]any{"type": "message", "message": map[string]any{"content": []any{prose(1 << 19), prose(1 << 19)}}})
	b.SetBytes(int64(line.Len()))
	for b.Loop() {
		if _, found, err := redact.JSON(line.Bytes()); err != nil || len(found) > 0 {
			b.Fatal(found, err)
		}
	}
}

func BenchmarkRawScan(b *testing.B) {
	text := []byte(prose(1 << 20))
	b.SetBytes(int64(len(text)))
	sum := 0
	for b.Loop() {
		for _, c := range text {
			if c == '\\' {
				sum++
			}
		}
	}
	_ = sum
}

// BenchmarkCorpus measures real conversations, where there are any.
func BenchmarkCorpus(b *testing.B) {
	paths, _ := filepath.Glob(filepath.Join(os.Getenv("COPPICE_CORPUS"), "*", "*.json*"))
	var all []byte
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			b.Fatal(err)
		}
		all = append(all, data...)
	}
	if os.Getenv("COPPICE_CORPUS") == "" || len(all) == 0 {
		return
	}
	b.SetBytes(int64(len(all)))
	for b.Loop() {
		redact.Find(all)
	}
}

// BenchmarkHostile is the goal that a hostile text which is ten times as long takes
// at most twelve times as long. It reports the worst of all texts, and how many
// bytes the slowest one gets done. With -v it names all that miss the goal.
func BenchmarkHostile(b *testing.B) {
	scan := func(text string) { redact.Text(text) }
	b.Run("text", func(b *testing.B) { grow(b, 20_000, hostile, scan) })
	b.Run("JSON", func(b *testing.B) { grow(b, 100_000, hostileJSON, func(text string) { redact.Bytes([]byte(text)) }) })
	b.Run("strings", func(b *testing.B) {
		grow(b, 100_000, hostileJSON, func(text string) { _ = redact.Strings([]byte(text), func(string, []byte) {}) })
	})
	b.Run("known", func(b *testing.B) {
		// The secrets grow with the text, as they do when a store is swept.
		grow(b, 100_000, hostileKnown, func(text string) {
			known := redact.NewScanner(manyKnown(len(text) / 2)...)
			known.Known([]byte(text))
		})
	})
}

// hostileKnown makes texts that have much of what manyKnown returns.
func hostileKnown(size int) map[string]string {
	all := make(map[string]string)
	for name, piece := range map[string]string{"a": "a", "ab": "ab", "abc": strings.Repeat("ab", 50) + "c", "prefix": "ghp_", "zeros": "ghp_000000000000000000000000000", "whole": "ghp_000000000000000000000000000007 "} {
		all[name] = strings.Repeat(piece, size/len(piece))
	}
	return all
}

// grow measures texts of a size and of ten times the size.
func grow(b *testing.B, size int, texts func(int) map[string]string, scan func(string)) {
	worst, slowest := 0.0, math.Inf(1)
	for b.Loop() {
		short, long := texts(size), texts(10*size)
		for name, text := range long {
			// The short text is scanned ten times, so that both leave as much to the
			// garbage collector.
			before, after := fastest(short[name], 10, scan)/10, fastest(text, 1, scan)
			// What takes no time at all says nothing about how it grows.
			factor := float64(after) / float64(max(before, 100*time.Microsecond))
			factor *= 10 * float64(len(short[name])) / float64(len(text)) // not all texts grow by ten exactly
			worst, slowest = max(worst, factor), min(slowest, float64(len(text))/after.Seconds()/1e6)
			if factor > 12 {
				b.Logf("%s: %d bytes take %v, %d take %v", name, len(short[name]), before, len(text), after)
			}
		}
	}
	b.ReportMetric(worst, "growth")
	b.ReportMetric(slowest, "slowest-MB/s")
}

// fastest returns how long something takes if nobody disturbs it.
func fastest(text string, times int, scan func(string)) time.Duration {
	best := time.Duration(math.MaxInt64)
	for range 3 {
		began := cpuTime()
		for range times {
			scan(text)
		}
		best = min(best, cpuTime()-began)
	}
	return max(best, time.Microsecond)
}

var (
	began   = time.Now()
	cpuTime = func() time.Duration { return time.Since(began) }
)
