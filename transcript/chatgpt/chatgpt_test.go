package chatgpt_test

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/chatgpt"
	"github.com/coppice-dev/coppice/transcript/loose"
)

func collect(t *testing.T, f *transcript.File) *transcript.Collected {
	t.Helper()
	if !chatgpt.Format().Detect(f) {
		t.Fatalf("%s is not recognised", f.Path)
	}
	got, err := transcript.Collect(t.Context(), chatgpt.Format(), f)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func fixture(t *testing.T) *transcript.File {
	t.Helper()
	f, err := transcript.OpenFile("testdata/conversations.json")
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// line says in one line what a record is.
func line(r transcript.Record) string {
	parent := r.Parent
	if parent == transcript.Root {
		parent = "-"
	}
	var blocks []string
	for _, c := range r.Entry.Message.Content {
		blocks = append(blocks, block(c))
	}
	return fmt.Sprintf("%s<%s %s: %s", r.ID, parent, r.Entry.Message.Role, strings.Join(blocks, " | "))
}

func block(c session.Content) string {
	switch {
	case c.Text != nil:
		return c.Text.Content
	case c.Thinking != nil:
		return "(" + c.Thinking.Content + ")"
	case c.ToolUse != nil:
		input, _ := c.ToolUse.InputJSON()
		return fmt.Sprintf("%s=%s%s", c.ToolUse.ID, c.ToolUse.Name, input)
	case c.ToolResult != nil:
		return fmt.Sprintf("%s→%s failed=%t parts=%d", c.ToolResult.ToolUseID, c.ToolResult.Content, c.ToolResult.IsError, len(c.ToolResult.Parts))
	case c.Image != nil:
		return "image " + c.Image.Source.Type + " " + c.Image.Source.MediaType + c.Image.Source.Data
	case c.Audio != nil:
		return "audio " + c.Audio.Source.Data
	}
	return string(c.Type) + string(c.Raw)
}

func TestTree(t *testing.T) {
	got := collect(t, fixture(t))
	if len(got.Conversations) != 2 {
		t.Fatalf("there are %d conversations, want 2", len(got.Conversations))
	}
	bread := got.Conversations[0]
	want := []string{
		"profile<- system: I bake.\nUse grams.",
		"ask<profile user: image url file-service://file-AAA | How much flour?",
		"first<ask assistant: Some.",
		"think<ask assistant: (Plan\nCompute it.\n\n500 g.)",
		"recap<think assistant: (Thought for 2 s)",
		`code<recap assistant: call_code=python{"language":"python","text":"print(500)"}`,
		"out<code tool: call_code→500 failed=false parts=0",
		`search<out assistant: call_search=web.search{"query":"flour","n":1.50}`,
		"quote<search tool: call_search→Flour\nhttps://example.com/f\n500 g failed=false parts=0",
		`fail<quote assistant: call_fail=browser{"text":"x"}`,
		"error<fail tool: call_fail→too slow failed=true parts=0",
		`picture<error system: image url sediment://file_gone | hello | audio sediment://file_voice | audio sediment://file_voice | chatgpt{"content":{"content_type":"hologram","x":1},"type":"chatgpt"}`,
		`odd<picture assistant: chatgpt{"content":{"content_type":"hologram","depth":3},"type":"chatgpt"}`,
		"final<odd assistant: 500 g ([f](https://example.com/f)), says this.",
	}
	compare(t, bread.Records, want)
	if bread.ID != "c-bread" || bread.Title != "Bread" || bread.Leaf != "final" || bread.Extra["is_archived"] != true {
		t.Errorf("the conversation is %+v", bread.Conversation)
	}
	final := bread.Records[len(bread.Records)-1].Entry.Message
	if final.Model != "gpt-5-thinking" || final.StopReason != "stop" || final.Metadata["channel"] != "final" {
		t.Errorf("the answer is %+v", final)
	}
	if got := bread.Records[2].Entry.Message.StopReason; got != "interrupted" {
		t.Errorf("the cut answer stopped for %q", got)
	}
	if len(got.Problems) != 1 || got.Counts[transcript.Became{What: "hidden or empty message", Became: transcript.OnlyKept}] != 1 {
		t.Errorf("problems %v, counts %v", got.Problems, got.Counts)
	}
}

// TestDamagedTree has a missing parent, a circle, no id and no current node.
func TestDamagedTree(t *testing.T) {
	old := collect(t, fixture(t)).Conversations[1]
	compare(t, old.Records, []string{
		"a<- user: hi", "b<a assistant: newest end", "c<a assistant: older end",
		"x<- system: round", "y<x system: and round",
	})
	if old.ID == "" || old.Leaf != "b" || old.Created.Year() != 2017 {
		t.Errorf("the conversation is %+v", old.Conversation)
	}
}

func compare(t *testing.T, records []transcript.Record, want []string) {
	t.Helper()
	for i, r := range records {
		if i >= len(want) || line(r) != want[i] {
			t.Errorf("record %d is\n\t%s\nwant\n\t%s", i, line(r), want[min(i, len(want)-1)])
		}
	}
	if len(records) != len(want) {
		t.Errorf("%d records, want %d", len(records), len(want))
	}
}

func TestArchive(t *testing.T) {
	conversations, err := os.ReadFile("testdata/conversations.json")
	if err != nil {
		t.Fatal(err)
	}
	pixel := "\x89PNG\r\n\x1a\nrest"
	path := filepath.Join(t.TempDir(), "export.zip")
	writeZip(t, path, map[string]string{
		"user.json": "{}", "conversations-000.json": string(conversations), "file-AAA-oven.png": pixel, "chat.html": "",
	})
	f, err := transcript.OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	got := collect(t, f)
	image := got.Conversations[0].Records[1].Entry.Message.Content[0].Image
	if image.Source.Type != "base64" || image.Source.MediaType != "image/png" {
		t.Errorf("the picture's source is %+v, want the bytes of the archive", image.Source)
	}
}

func TestBadArchives(t *testing.T) {
	dir := t.TempDir()
	evil := filepath.Join(dir, "evil.zip")
	writeZip(t, evil, map[string]string{"../conversations.json": "[]"})
	bomb := filepath.Join(dir, "bomb.zip")
	writeZip(t, bomb, map[string]string{"conversations.json": "[" + strings.Repeat(" ", 80<<20)})
	for path, want := range map[string]error{evil: session.ErrInvalid, bomb: session.ErrTooLarge} {
		f, err := transcript.OpenFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := transcript.Collect(t.Context(), chatgpt.Format(), f); !errors.Is(err, want) {
			t.Errorf("%s gives %v, want %v", filepath.Base(path), err, want)
		}
	}
	other := filepath.Join(dir, "other.zip")
	writeZip(t, other, map[string]string{"conversations.json": `[{"chat_messages":[]}]`})
	for _, path := range []string{evil, other} {
		f, _ := transcript.OpenFile(path)
		if chatgpt.Format().Detect(f) {
			t.Errorf("%s is taken for an export", filepath.Base(path))
		}
	}
}

func TestTorn(t *testing.T) {
	data, _ := os.ReadFile("testdata/conversations.json")
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

// TestSamples reads real files, where there are any, and counts what must come
// of them in its own way: every message with a text in its parts.
func TestSamples(t *testing.T) {
	dir := os.Getenv("COPPICE_SAMPLES")
	paths, _ := filepath.Glob(filepath.Join(dir, "chatgpt-export", "*.json"))
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			f, err := transcript.OpenFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(path, "browser-capture") {
				if chatgpt.Format().Detect(f) && !bytes.HasPrefix(bytes.TrimSpace(f.Head()), []byte("{")) {
					t.Error("a capture of a browser is taken for an export")
				}
				return
			}
			got := collect(t, f)
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

func FuzzRead(f *testing.F) {
	data, err := os.ReadFile("testdata/conversations.json")
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
