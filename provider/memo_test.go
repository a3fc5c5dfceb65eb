package provider_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/coppice-dev/coppice/internal/soak"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/anthropic"
	"github.com/coppice-dev/coppice/provider/google"
	"github.com/coppice-dev/coppice/provider/openai"
	"github.com/coppice-dev/coppice/session"
)

// dialects are the ways to write a request.
var dialects = map[string]func(*provider.Request) (*provider.Encoded, error){
	"anthropic": func(r *provider.Request) (*provider.Encoded, error) {
		f, _ := provider.FamilyOf("claude-sonnet-4-5")
		return anthropic.EncodeRequest(r, "m", f, 5000)
	},
	"adaptive": func(r *provider.Request) (*provider.Encoded, error) {
		f, _ := provider.FamilyOf("claude-opus-5")
		return anthropic.EncodeRequest(r, "m", f, 5000)
	},
	"responses": func(r *provider.Request) (*provider.Encoded, error) {
		f, _ := provider.FamilyOf("gpt-5")
		return openai.EncodeResponsesRequest(r, "m", f)
	},
	"chat": func(r *provider.Request) (*provider.Encoded, error) {
		f, _ := provider.FamilyOf("gpt-5")
		return openai.EncodeChatRequest(r, "m", f, nil)
	},
	"google": func(r *provider.Request) (*provider.Encoded, error) {
		f, _ := provider.FamilyOf("gemini-3-pro")
		return google.EncodeRequest(r, f)
	},
	"function": func(r *provider.Request) (*provider.Encoded, error) {
		whole := *r
		whole.Memo = nil
		return provider.Func{}.Encode(&whole)
	},
}

// growing is a conversation to which anything may happen that happens to one.
type growing struct {
	*rand.Rand
	entries []session.Entry
	request provider.Request
	n       int
}

func (g *growing) add(role session.MessageRole, blocks ...session.Content) {
	g.n++
	m := &session.MessageEntry{Role: role, Content: blocks}
	if role == session.RoleAssistant {
		m.Provider = []string{"anthropic", "openai", "google", ""}[g.IntN(4)]
	}
	g.entries = append(g.entries, session.Entry{Type: session.TypeMessage, ID: fmt.Sprint("e", g.n), Message: m})
}

func (g *growing) words() session.Content {
	return session.Text([]string{"some words", "more \"words\"\n", " ", "naïve – 漢字"}[g.IntN(4)])
}

// grow adds a few messages. Every call has its result.
func (g *growing) grow() {
	switch g.IntN(20) {
	case 0, 1, 2:
		g.add(session.RoleUser, session.Text(fmt.Sprint("prompt ", g.n)), g.words())
		if g.IntN(4) == 0 {
			g.add(session.RoleUser, g.words())
		}
	case 3:
		g.add(session.RoleSystem, session.Text("a remark"))
	case 4:
		g.add(session.RoleAssistant, g.words(), session.Text("said"))
	case 5:
		g.add(session.RoleAssistant, session.Thinking("only thoughts", "c2lnbmVk"))
	}
	g.step()
	switch g.IntN(60) {
	case 0: // the beginning is replaced by a summary
		if cut := len(g.entries) - g.IntN(20) - 2; cut > 0 && g.entries[cut].BeginsTurn() {
			g.n++
			summary := session.Entry{Type: session.TypeCompaction, ID: fmt.Sprint("e", g.n), Compaction: &session.CompactionEntry{Summary: "what was said"}}
			g.entries = append([]session.Entry{g.entries[0], summary}, g.entries[cut:]...)
		}
	case 1: // a message is edited
		g.entries = slices.Clone(g.entries)
		if e := &g.entries[g.IntN(len(g.entries))]; e.Message != nil && e.BeginsTurn() {
			e.Message = &session.MessageEntry{Role: e.Message.Role, Content: []session.Content{session.Text("edited")}}
		}
	case 2: // the conversation goes back
		at := len(g.entries) - g.IntN(len(g.entries)/2)
		for at < len(g.entries) && !g.entries[at].BeginsTurn() {
			at++
		}
		g.entries = slices.Clone(g.entries[:at])
	case 3:
		g.request.Thinking = provider.ThinkingLevels[g.IntN(len(provider.ThinkingLevels))]
	case 4:
		g.request.MaxTokens = 1000 + g.IntN(1000)
	case 5:
		g.request.NoCache = !g.request.NoCache
	case 6: // the same entries in another place of the memory
		g.entries = slices.Clone(g.entries)
	}
}

// step adds a message of the model with its calls, and their results.
func (g *growing) step() {
	var blocks []session.Content
	if g.IntN(3) == 0 {
		blocks = append(blocks, session.Thinking("hm", "c2lnbmVk"))
	}
	if g.IntN(3) > 0 {
		blocks = append(blocks, g.words())
	}
	var ids []string
	for i := range g.IntN(4) {
		id := fmt.Sprintf("call_%d_%d", g.n, i)
		switch g.IntN(30) {
		case 0:
			id = fmt.Sprint("again", i) // some programs count from the beginning
		case 1:
			id = fmt.Sprintf("again%d-2", i)
		case 2:
			id = "an id: " + id
		}
		ids = append(ids, id)
		blocks = append(blocks, session.ToolUse(id, "look", map[string]any{"n": i}))
	}
	if g.IntN(10) == 0 && len(blocks) > 1 { // some programs keep each block by itself
		g.add(session.RoleAssistant, blocks[0])
		blocks = blocks[1:]
	}
	g.add(session.RoleAssistant, blocks...)
	for _, id := range ids {
		g.add(session.RoleTool, session.ToolResult(id, "found", g.IntN(5) == 0))
	}
	if len(ids) > 0 && g.IntN(10) == 0 {
		g.add(session.RoleUser, session.Text("by the way"))
	}
}

// TestMemoChangesNothing: a request that is written as an addition to the one before has
// the bytes that it would have anyway.
func TestMemoChangesNothing(t *testing.T) {
	t.Parallel()
	for name, encode := range dialects {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(soak.N(2)) {
				g := &growing{Rand: rand.New(rand.NewPCG(seed, 1))}
				g.add(session.RoleSystem, session.Text("be brief"))
				g.add(session.RoleUser, session.Text("begin"))
				g.request = provider.Request{Memo: &provider.Memo{}, Tools: []provider.Tool{{Name: "look"}}}
				for step := range 80 {
					g.grow()
					r := g.request
					r.Entries = g.entries
					want, err := encode(&r)
					if err != nil {
						t.Fatalf("seed %d, step %d: %v", seed, step, err)
					}
					got, err := r.Memo.Encode(&r, encode)
					if err != nil {
						t.Fatalf("seed %d, step %d: %v", seed, step, err)
					}
					body := bytes.Join(got.Pieces(), nil)
					if !bytes.Equal(body, want.Body) {
						t.Fatalf("seed %d, step %d:\n%s", seed, step, differ(body, want.Body))
					}
					if sum := sha256.Sum256(body); got.Sum() != hex.EncodeToString(sum[:]) || got.Size() != len(body) {
						t.Fatalf("seed %d, step %d: the sum is %s", seed, step, got.Sum())
					}
					if a, b := count(got.Notes), count(want.Notes); len(a) != len(b) {
						t.Fatalf("seed %d, step %d: notes are %v, want %v", seed, step, a, b)
					}
				}
			}
		})
	}
}

// TestMemoWritesOnlyTheEnd: a request costs what it adds, within a turn and from turn to
// turn, however long the conversation is.
func TestMemoWritesOnlyTheEnd(t *testing.T) {
	t.Parallel()
	for name, encode := range dialects {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := &growing{}
			g.Rand = rand.New(rand.NewPCG(1, 2))
			g.add(session.RoleSystem, session.Text("be brief"))
			r := provider.Request{Memo: &provider.Memo{}, Thinking: provider.ThinkingHigh, Tools: []provider.Tool{{Name: "look"}}}
			written, most := 0, 0
			const steps = 300
			for step := range steps {
				if step%100 < 50 || step%100 == 99 {
					g.add(session.RoleUser, session.Text("go"))
				}
				id := fmt.Sprint("call", step)
				g.add(session.RoleAssistant, session.Thinking("hm", "c2lnbmVk"), session.ToolUse(id, "look", nil))
				g.add(session.RoleTool, session.ToolResult(id, "found", false))
				r.Entries = g.entries
				before := written
				if _, err := r.Memo.Encode(&r, func(r *provider.Request) (*provider.Encoded, error) {
					written += len(r.Entries)
					return encode(r)
				}); err != nil {
					t.Fatal(err)
				}
				most = max(most, written-before)
			}
			if written > 120*steps || most > 500 {
				t.Errorf("%d entries were written in %d steps, and up to %d in one", written, steps, most)
			}
		})
	}
}

func count(notes []provider.Note) map[provider.Note]bool {
	all := make(map[provider.Note]bool)
	for _, n := range notes {
		all[n] = true
	}
	return all
}

// differ shows where two bodies part.
func differ(got, want []byte) string {
	n := 0
	for n < len(got) && n < len(want) && got[n] == want[n] {
		n++
	}
	show := func(b []byte) string { return string(b[max(0, n-200):min(len(b), n+300)]) }
	return fmt.Sprintf("at %d of %d, %d\ngot  %s\nwant %s", n, len(got), len(want), show(got), show(want))
}
