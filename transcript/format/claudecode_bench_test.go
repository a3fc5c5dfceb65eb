package format_test

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/format/claudecode"
)

const benchSize = 200 << 20

// BenchmarkClaudeCodeScan reads a file and looks for its lines: the limit.
func BenchmarkClaudeCodeScan(b *testing.B) {
	path := benchFile(b)
	for b.Loop() {
		f, err := os.Open(path)
		if err != nil {
			b.Fatal(err)
		}
		buf := make([]byte, 1<<20)
		lines := 0
		for {
			n, err := f.Read(buf)
			lines += bytes.Count(buf[:n], []byte{'\n'})
			if err == io.EOF {
				break
			}
		}
		f.Close()
	}
}

// BenchmarkClaudeCodeImport imports a file of 200 MB into an empty store. The goal is 100
// MB/s on two cores.
func BenchmarkClaudeCodeImport(b *testing.B) {
	path := benchFile(b)
	for b.Loop() {
		b.StopTimer()
		dir := b.TempDir()
		b.StartTimer()
		st, err := file.Open(dir, &file.Options{Sync: file.Every(time.Second)})
		if err != nil {
			b.Fatal(err)
		}
		f, err := transcript.OpenFile(path)
		if err != nil {
			b.Fatal(err)
		}
		im := &transcript.Importer{Store: st}
		if _, err := im.Import(context.Background(), claudecode.Format(), f); err != nil {
			b.Fatal(err)
		}
		if err := st.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkClaudeCodeRead only reads: what the format itself costs.
func BenchmarkClaudeCodeRead(b *testing.B) {
	path := benchFile(b)
	for b.Loop() {
		f, err := transcript.OpenFile(path)
		if err != nil {
			b.Fatal(err)
		}
		if err := claudecode.Format().Read(context.Background(), f, discard{}); err != nil {
			b.Fatal(err)
		}
	}
}

type discard struct{}

func (discard) Begin(transcript.Conversation) error          { return nil }
func (discard) Add(transcript.Record) error                  { return nil }
func (discard) Keep(string, []byte) (transcript.Span, error) { return transcript.Span{}, nil }
func (discard) Count(string, string, int)                    {}
func (discard) Problem(transcript.Problem)                   {}

func benchFile(b *testing.B) string {
	b.Helper()
	path := filepath.Join(b.TempDir(), "0b3c1f7e-4d57-4a54-9be1-3f6b1b2f6f10.jsonl")
	data := generate(b, benchSize)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(data)))
	b.ResetTimer()
	return path
}
