package redact_test

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

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
