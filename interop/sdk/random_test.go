package sdk_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/memory"
)

// TestRandomRequests is TestRequests for what programs leave in logs: ids that are
// used again, results that come late, twice or never, texts without words, blocks
// of every kind in any order. The context that a session makes of it comes through
// the SDK as well.
func TestRandomRequests(t *testing.T) {
	const conversations = 60
	each(t, func(t *testing.T, o *official) {
		s := talk(t)
		c := connect(t, s, o.dialect)
		sent := 0
		for seed := range uint64(conversations) {
			entries := randomContext(t, rand.New(rand.NewPCG(seed, 1)))
			if len(entries) == 0 {
				continue
			}
			encoded, err := c.Encode(ask(entries...))
			if err != nil {
				t.Fatal(err)
			}
			theirs, err := o.open(s, encoded.Body)
			if err != nil {
				t.Fatalf("seed %d: the SDK cannot read %s: %v", seed, encoded.Body, err)
			}
			if _, err := theirs.ask(); err != nil {
				_, words := o.failed(err)
				t.Fatalf("seed %d: %v %s\nours: %s\nthe SDK's: %s", seed, err, words, encoded.Body, s.Requests()[sent].Body)
			}
			want, got := object(t, encoded.Body), object(t, s.Requests()[sent].Body)
			sent++
			for _, d := range o.allowed {
				d.apply(want)
			}
			for _, d := range diff("", want, got) {
				t.Errorf("seed %d: %s\n%s", seed, d, encoded.Body)
			}
		}
		if sent < conversations/2 {
			t.Errorf("only %d conversations were sent", sent)
		}
	})
}

// randomContext is the context of a session with random messages, the first of them
// a prompt.
func randomContext(t *testing.T, r *rand.Rand) []session.Entry {
	t.Helper()
	s, err := session.Create(t.Context(), memory.New(nil), session.Header{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	all := []session.Entry{message("", session.RoleUser, session.Text("begin"))}
	for i := range r.IntN(12) {
		all = append(all, randomMessage(r, i))
	}
	for _, e := range all {
		if err := s.Append(e); err != nil {
			t.Fatal(err)
		}
	}
	c, err := s.Context(session.ContextOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return c.Entries
}

func randomMessage(r *rand.Rand, i int) session.Entry {
	e := message("", one(r, session.RoleUser, session.RoleAssistant, session.RoleAssistant, session.RoleTool, session.RoleTool, session.RoleSystem))
	add := func(most int, draw func(*rand.Rand) session.Content) {
		for range r.IntN(most + 1) {
			e.Message.Content = append(e.Message.Content, draw(r))
		}
	}
	switch e.Message.Role {
	case session.RoleTool:
		add(3, randomResult)
	case session.RoleAssistant:
		e.Message.Provider = one(r, "", "anthropic", "openai", "google")
		add(2, randomBlock)
		add(3, randomCall)
		add(1, randomBlock)
	case session.RoleUser:
		add(1, randomBlock)
		add(1, randomResult)
		add(2, randomBlock)
	default:
		e.Message.Content = []session.Content{session.Text(fmt.Sprint("rule ", i))}
	}
	return e
}

func one[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

func randomText(r *rand.Rand) string { return one(r, "words", "more words", odd, "", " \n") }

func randomID(r *rand.Rand) string {
	return one(r, "a", "b", "c", "call|1", "", strings.Repeat("x", 90))
}

func randomBlock(r *rand.Rand) session.Content {
	switch r.IntN(8) {
	case 0:
		return session.Image("image/png", pixel)
	case 1:
		return source(session.ContentTypeImage, "url", one(r, "", "image/png"), "https://example.com/a.png")
	case 2:
		return thought(randomText(r), one(r, "", "c2lnbmF0dXJl"))
	case 3:
		return source(session.ContentTypeFile, "base64", "application/pdf", "JVBERi0xLjQK")
	case 4:
		return session.Content{Type: "hologram", Raw: []byte(`{"type":"hologram","depth":3}`)}
	}
	return session.Text(randomText(r))
}

func randomCall(r *rand.Rand) session.Content {
	input := one(r, `{}`, `{"path":"a.txt"}`, `{"n":12345678901234567890,"list":[1,{"x":null}]}`, string(quoteArgs(odd)), `[1]`, `"text"`)
	return session.ToolUseJSON(randomID(r), one(r, "read", "fs.read", "9 lives", ""), []byte(input))
}

func randomResult(r *rand.Rand) session.Content {
	c := session.ToolResult(randomID(r), randomText(r), r.IntN(3) == 0)
	if r.IntN(4) == 0 {
		c.ToolResult.Parts = []session.Content{session.Text(one(r, "", c.ToolResult.Content)), session.Image("image/png", pixel)}
	}
	return c
}
