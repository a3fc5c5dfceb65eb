package session_test

import (
	"fmt"
	"testing"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/file"
)

// BenchmarkOpenChain opens conversations of 100,000 messages: in one session, whose tree is
// then read whole as that of a chain is, and in a chain of 100.
func BenchmarkOpenChain(b *testing.B) {
	for _, links := range []int{1, 100} {
		st, err := file.Open(b.TempDir(), &file.Options{Sync: file.Never})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { st.Close() })
		first := longChain(b, st, links, 100_000/links)
		b.Run(fmt.Sprintf("links=%d", links), func(b *testing.B) {
			for b.Loop() {
				chain, err := session.FindChain(b.Context(), st, first, nil)
				if err != nil || len(chain.Links) != links {
					b.Fatal(len(chain.Links), err)
				}
				s, err := session.OpenChain(b.Context(), st, chain, nil)
				if err != nil {
					b.Fatal(err)
				}
				if s.LeafID() == "" {
					b.Fatal("no leaf")
				}
				s.Close()
			}
		})
	}
}

// longChain makes a chain of sessions and returns the id of the first.
func longChain(b *testing.B, st *file.Store, links, messages int) string {
	b.Helper()
	s, err := session.Create(b.Context(), st, session.Header{}, nil)
	if err != nil {
		b.Fatal(err)
	}
	first := s.ID()
	for i := range links {
		var batch []session.Entry
		for n := range messages {
			role := []session.MessageRole{session.RoleUser, session.RoleAssistant}[n%2]
			batch = append(batch, session.Entry{Type: session.TypeMessage, Message: &session.MessageEntry{Role: role, Content: []session.Content{session.Text(fmt.Sprintf("message %d of session %d, with some words to read, and then some more of them", n, i))}}})
		}
		if _, err := s.AppendAll(batch...); err != nil {
			b.Fatal(err)
		}
		if i+1 == links {
			break
		}
		next, err := s.Continue()
		if err != nil {
			b.Fatal(err)
		}
		s.Close()
		s = next
	}
	s.Close()
	return first
}
