package window_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math/rand/v2"
	"strings"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/window"
)

// fataler is a testing.TB or a rapid.T.
type fataler interface {
	Helper()
	Fatal(args ...any)
}

// must fails the test if an error came with a value.
func must[T any](v T, err error) func(fataler) T {
	return func(t fataler) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// builder makes conversations.
type builder struct {
	entries []session.Entry
	calls   int
}

// message adds a message, and returns it to be changed.
func (b *builder) message(role session.MessageRole, content ...session.Content) *session.MessageEntry {
	m := &session.MessageEntry{Role: role, Content: content}
	b.entries = append(b.entries, session.Entry{Type: session.TypeMessage, ID: fmt.Sprintf("e%05d", len(b.entries)), Message: m})
	return m
}

// toolTurn adds a message that calls tools, and their results.
func (b *builder) toolTurn(calls, size int, answered, pictured bool) {
	content := []session.Content{thinking("Let me see.")}
	first := b.calls
	for range calls {
		content = append(content, session.ToolUse(fmt.Sprintf("call%d", b.calls), "read", map[string]any{"path": "garden.txt", "line": 40.0}))
		b.calls++
	}
	b.message(session.RoleAssistant, content...)
	for id := first; answered && id < b.calls; id++ {
		result := session.ToolResult(fmt.Sprintf("call%d", id), words(size), false)
		if pictured {
			result.ToolResult.Parts = []session.Content{session.Text(result.ToolResult.Content), picture(640, 480)}
		}
		b.message(session.RoleTool, result)
	}
}

func (b *builder) context() *session.Context { return &session.Context{Entries: b.entries} }

func thinking(text string) session.Content {
	return session.Content{Type: session.ContentTypeThinking, Thinking: &session.ThinkingContent{Content: text, Signature: "c2lnbmVk"}}
}

var vocabulary = strings.Fields("the roses in this garden grow slowly because of shade; water them at dawn, prune in March, and count 14 buds (or more)")

// words returns so many words.
func words(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(vocabulary[i%len(vocabulary)])
		b.WriteByte(' ')
	}
	return b.String()
}

// picture returns a PNG of a size.
func picture(width, height int) session.Content {
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewPaletted(image.Rect(0, 0, width, height), color.Palette{color.Black, color.White})); err != nil {
		panic(err) // a picture of one colour can be written
	}
	return session.Image("image/png", base64.StdEncoding.EncodeToString(b.Bytes()))
}

// noise returns a picture whose bytes do not shrink: a screenshot.
func noise(size int) session.Content {
	head, _ := base64.StdEncoding.DecodeString(picture(1280, 800).Image.Source.Data)
	data := make([]byte, size)
	rng := rand.NewChaCha8([32]byte{byte(size)})
	_, _ = rng.Read(data)
	copy(data, head[:33])
	return session.Image("image/png", base64.StdEncoding.EncodeToString(data))
}

// snapshot returns the bytes of entries.
func snapshot(t fataler, entries []session.Entry) []byte {
	t.Helper()
	data, err := json.Marshal(entries)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// fingerprintOf is what two equal views have in common.
func fingerprintOf(t fataler, v *window.View) map[string]any {
	t.Helper()
	return map[string]any{"entries": string(snapshot(t, v.Entries)), "costs": v.Costs, "report": v.Report}
}
