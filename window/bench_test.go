package window_test

import (
	"fmt"
	"testing"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/window"
)

// longSession is an agent's session of so many messages, their tokens recorded
// or not.
func longSession(messages int, recorded bool) []session.Entry {
	b := &builder{}
	b.message(session.RoleSystem, session.Text(words(200)))
	for n := 0; len(b.entries) < messages; n++ {
		b.message(session.RoleUser, session.Text(words(20+n%30)))
		for range n % 3 {
			b.toolTurn(1, 40+n%200, true, false)
		}
		b.message(session.RoleAssistant, session.Text(words(30+n%60)))
	}
	b.entries = b.entries[:messages]
	if recorded {
		for i := range b.entries {
			tokens := window.CountEntry(window.Estimate("", ""), "", &b.entries[i]).Tokens
			b.entries[i].Message.Tokens = &tokens
		}
	}
	return b.entries
}

func tokensIn(entries []session.Entry) int {
	n := 0
	for i := range entries {
		n += window.CountEntry(window.Estimate("", ""), "", &entries[i]).Tokens
	}
	return n
}

// BenchmarkTrim plans 10,000 messages from scratch. Goal: 5 ms.
func BenchmarkTrim(b *testing.B) {
	for _, recorded := range []bool{true, false} {
		entries := longSession(10_000, recorded)
		whole := tokensIn(entries)
		for _, part := range []int{1, 3, 10, 30} {
			for _, strict := range []bool{false, true} {
				b.Run(fmt.Sprintf("recorded=%v/window=1÷%d/strict=%v", recorded, part, strict), func(b *testing.B) {
					o := window.Options{Budget: window.Budget{Tokens: whole/part + 1, Strict: strict}}
					b.ReportAllocs()
					for b.Loop() {
						if _, err := window.Trim(&session.Context{Entries: entries}, o); err != nil {
							b.Fatal(err)
						}
					}
				})
			}
		}
	}
}

// BenchmarkTurn adds a message to 10,000 and looks at the view. Goal: 50 µs.
func BenchmarkTurn(b *testing.B) {
	entries := longSession(10_000, false)
	whole := tokensIn(entries)
	for _, part := range []int{1, 3, 30} {
		for _, strict := range []bool{false, true} {
			b.Run(fmt.Sprintf("window=1÷%d/strict=%v", part, strict), func(b *testing.B) {
				budget := window.Budget{Tokens: whole/part + 1, Strict: strict}
				if part == 1 {
					budget.Tokens = 1 << 40
				}
				p, err := window.NewPlanner(window.Options{Budget: budget})
				if err != nil {
					b.Fatal(err)
				}
				p.Add(entries...)
				b.ReportAllocs()
				for n := 0; b.Loop(); n++ {
					p.Add(entries[1+n%9_000])
					if _, err := p.View(); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
