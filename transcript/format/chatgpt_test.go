package format_test

import (
	"archive/zip"
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/format/chatgpt"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
	"github.com/coppice-dev/coppice/transcript/transcripttest"
)

func chatgptCollect(t *testing.T, f *transcript.File) *transcript.Collected {
	t.Helper()
	return transcripttest.Collect(t, chatgpt.Format(), f)
}

// TestChatGPTStandard reads all kinds of content, branches, and a damaged tree: a missing
// parent, a circle, no id and no current node.
func TestChatGPTStandard(t *testing.T) {
	t.Parallel()
	transcripttest.Standard(t, transcripttest.Suite{
		Format: chatgpt.Format(), Fixtures: []string{"testdata/chatgpt/*.json"}, Sessions: 2,
	})
}

func TestChatGPTArchive(t *testing.T) {
	t.Parallel()
	conversations, err := os.ReadFile("testdata/chatgpt/conversations.json")
	if err != nil {
		t.Fatal(err)
	}
	pixel := "\x89PNG\r\n\x1a\nrest"
	path := filepath.Join(t.TempDir(), "export.zip")
	writeZip(t, path, map[string]string{
		"user.json": "{}", "conversations-000.json": string(conversations), "file-AAA-oven.png": pixel, "chat.html": "",
	})
	got := chatgptCollect(t, transcripttest.Open(t, path))
	image := got.Conversations[0].Records[1].Entry.Message.Content[0].Image
	if image.Source.Type != "base64" || image.Source.MediaType != "image/png" {
		t.Errorf("the picture's source is %+v, want the bytes of the archive", image.Source)
	}
}

func TestChatGPTBadArchives(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	evil := filepath.Join(dir, "evil.zip")
	writeZip(t, evil, map[string]string{"../conversations.json": "[]"})
	bomb := filepath.Join(dir, "bomb.zip")
	writeZip(t, bomb, map[string]string{"conversations.json": "[" + strings.Repeat(" ", 16<<20)})
	for path, want := range map[string]error{evil: session.ErrInvalid, bomb: session.ErrTooLarge} {
		f := transcripttest.Open(t, path)
		if _, err := transcript.Collect(t.Context(), chatgpt.Format(), f); !errors.Is(err, want) {
			t.Errorf("%s gives %v, want %v", filepath.Base(path), err, want)
		}
	}
	other := filepath.Join(dir, "other.zip")
	writeZip(t, other, map[string]string{"conversations.json": `[{"chat_messages":[]}]`})
	for _, path := range []string{evil, other} {
		if chatgpt.Format().Detect(transcripttest.Open(t, path)) {
			t.Errorf("%s is taken for an export", filepath.Base(path))
		}
	}
}

func TestChatGPTTorn(t *testing.T) {
	t.Parallel()
	data, _ := os.ReadFile("testdata/chatgpt/conversations.json")
	_, err := transcript.Collect(t.Context(), chatgpt.Format(), transcript.FileOf("conversations.json", data[:len(data)/2]))
	if !errors.Is(err, session.ErrCorrupt) {
		t.Errorf("half a file gives %v, want ErrCorrupt", err)
	}
}

func writeZip(t *testing.T, path string, files map[string]string) {
	t.Helper()
	var buf bytes.Buffer
	w := zip.NewWriter(&buf)
	for name, content := range files {
		member, err := w.Create(name)
		if err == nil {
			_, err = member.Write([]byte(content))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), os.WriteFile(path, buf.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// TestChatGPTSamples reads real files, where there are any, and counts what must come
// of them in its own way: every message with a text in its parts.
func TestChatGPTSamples(t *testing.T) {
	t.Parallel()
	for _, path := range transcripttest.Samples(t, "chatgpt-export/*.json") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			f := transcripttest.Open(t, path)
			if strings.Contains(path, "browser-capture") {
				if chatgpt.Format().Detect(f) && !bytes.HasPrefix(bytes.TrimSpace(f.Head()), []byte("{")) {
					t.Error("a capture of a browser is taken for an export")
				}
				return
			}
			got := chatgptCollect(t, f)
			want, have := map[string]bool{}, map[string]bool{}
			for doc, err := range f.Documents(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				for id, n := range loose.Value(doc.Data).Get("mapping").Members() {
					if n.Get("message", "content", "parts").First().Text() != "" && n.Get("message", "weight").Name() != "0.0" {
						want[id] = true
					}
				}
			}
			for _, c := range got.Conversations {
				for _, r := range c.Records {
					have[r.ID] = true
				}
			}
			for id := range want {
				if !have[id] {
					t.Errorf("message %s is missing", id)
				}
			}
		})
	}
}

func FuzzChatGPTRead(f *testing.F) {
	data, err := os.ReadFile("testdata/chatgpt/conversations.json")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := transcript.Collect(t.Context(), chatgpt.Format(), transcript.FileOf("conversations.json", data))
		if err != nil {
			return
		}
		for _, c := range got.Conversations {
			seen := map[string]bool{transcript.Root: true}
			for _, r := range c.Records {
				if !seen[r.Parent] {
					t.Errorf("record %q comes before its parent %q", r.ID, r.Parent)
				}
				seen[r.ID] = true
			}
		}
	})
}
