package provider_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/session"
)

// conversation is a long agent session: calls, results of a kilobyte, answers.
func conversation(turns int) []session.Entry {
	var entries []session.Entry
	for i := range turns {
		id := fmt.Sprint("call_", i)
		entries = append(
			entries,
			message(fmt.Sprint("u", i), session.RoleUser, session.Text("go on")),
			message(fmt.Sprint("a", i), session.RoleAssistant, session.Text("I look."), session.ToolUse(id, "read", map[string]any{"path": "main.go"})),
			message(fmt.Sprint("t", i), session.RoleTool, session.ToolResult(id, strings.Repeat("some text ", 100), false)),
		)
	}
	return entries
}

func BenchmarkEncode(b *testing.B) {
	entries := conversation(1000)
	for name, codec := range codecs {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				m, err := codec.encode(entries)
				if err != nil {
					b.Fatal(err)
				}
				b.SetBytes(int64(len(m.Fields[0].Value)))
			}
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	entries := conversation(1000)
	for name, codec := range codecs {
		m, err := codec.encode(entries)
		if err != nil {
			b.Fatal(err)
		}
		body := m.Request(nil)
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := codec.decode(body); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
