package agent_test

import (
	"bytes"
	"context"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/internal/soak"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/session/clean"
	"github.com/coppice-dev/coppice/store"
)

// scripted is a model that streams what its script yields.
type scripted struct {
	provider.Func
	script iter.Seq[provider.Event]
}

func (m scripted) Stream(context.Context, *provider.Request) iter.Seq2[provider.Event, error] {
	return func(yield func(provider.Event, error) bool) {
		text := ""
		for e := range m.script {
			if e.Type == provider.EventText {
				text += e.Text
			}
			if !yield(e, nil) {
				return
			}
		}
		yield(provider.Event{Type: provider.EventStop, Response: &provider.Response{Message: &session.MessageEntry{
			Role: session.RoleAssistant, StopReason: provider.StopEndTurn, Content: []session.Content{session.Text(text)},
		}}}, nil)
	}
}

func sessionIn(t *testing.T, st store.Store, o *session.Options) *session.Session {
	t.Helper()
	s, err := session.Create(t.Context(), st, session.Header{ID: "s"}, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// draftIn returns what another program would find of an answer if this one died now.
func draftIn(t *testing.T, st store.Store) string {
	t.Helper()
	s, err := session.Open(t.Context(), st, "s", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	text, _, err := session.DraftAt(s, s.LeafID())
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestTextIsSavedAfterHalfASecond: what people have seen for that long is in the log,
// whatever the model does after it.
func TestTextIsSavedAfterHalfASecond(t *testing.T) {
	t.Parallel()
	const bound = 500 * time.Millisecond
	text := func(s string) provider.Event { return provider.Event{Type: provider.EventText, Text: s} }
	for name, after := range map[string]provider.Event{
		"silence":   {},
		"arguments": {Type: provider.EventCallDelta, Block: 1, Text: " "},
		"thinking":  {Type: provider.EventThinking, Block: 1, Text: "hm"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := newStore(t)
				said := ""
				wait := func(yield func(provider.Event) bool) bool {
					for range 10 {
						time.Sleep(bound / 10)
						if after.Type != "" && !yield(after) {
							return false
						}
					}
					synctest.Wait()
					return true
				}
				script := func(yield func(provider.Event) bool) {
					for _, piece := range []string{"Half a ", "sentence", " that anybody", " can read"} {
						said += piece
						if !yield(text(piece)) || !wait(yield) {
							return
						}
						if got := draftIn(t, st); got != said {
							t.Errorf("after %v the log has %q of %q", bound, got, said)
						}
					}
				}
				a := startIn(t, sessionIn(t, st, nil), agent.Options{Model: scripted{provider.Func{About: provider.Info{Provider: "p", Model: "m"}}, script}})
				send(t, a, "speak")
			})
		})
	}
}

// TestDraftsHaveEachPieceOnce: an answer that takes long does not fill the log.
func TestDraftsHaveEachPieceOnce(t *testing.T) {
	t.Parallel()
	s := sessionIn(t, newStore(t), &session.Options{Clean: clean.Append})
	want := ""
	model := provider.Func{About: provider.Info{Provider: "p", Model: "m"}, Answer: func(_ context.Context, _ *provider.Request, tell func(string) error) (*session.MessageEntry, error) {
		for i := range 200 {
			piece := []string{"A few words. ", "naïve – ", "x=1; ", "\n\n", "```go\nfunc main", "() {}\n```\n"}[i%6]
			want += piece
			if err := tell(piece); err != nil {
				return nil, err
			}
		}
		return nil, nil
	}}
	send(t, startIn(t, s, agent.Options{Model: model, Draft: 1}), "speak")
	got, n := "", 0
	for e, err := range s.Entries() {
		if err != nil {
			t.Fatal(err)
		}
		if piece, ok := e.DraftText(); ok {
			got, n = got+piece, n+1
		}
	}
	if got != want || n < 100 {
		t.Errorf("%d drafts have %q", n, got)
	}
}

// TestSecretInPieces: a secret is taken out whole, however the answer was cut into drafts.
func TestSecretInPieces(t *testing.T) {
	t.Parallel()
	letters := "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	rng := soak.Rand(t)
	random := func(n int) string { // made here, so that other programs do not find it in this file
		b := make([]byte, n)
		for i := range b {
			b[i] = letters[rng.IntN(len(letters))]
		}
		return string(b)
	}
	key := random(64) + "\n" + random(64) + "\n" + random(64)
	for name, parts := range map[string][3]string{
		"key":      {"The key is sk-ant-api03-", random(93) + "AA", " so be careful."},
		"password": {"Set password: ", "f7Kd93" + "kQ2z8Lw1", "\nand start it."},
		"header":   {"curl -H 'Authorization: Bearer ", "q1W2" + random(40), "' localhost"},
		"url":      {"Use postgres://app:", "x4Tq81" + "pW9zLm2v", "@db/app for that."},
		"pem":      {"Here:\n-----BEGIN RSA PRIVATE KEY-----\n", key, "\n-----END RSA PRIVATE KEY-----\nDone."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rng := soak.Rand(t)
			for range 20 {
				st := newStore(t)
				s := sessionIn(t, st, &session.Options{Clean: clean.Append})
				rest := strings.Join(parts[:], "")
				model := provider.Func{About: provider.Info{Provider: "p", Model: "m"}, Answer: func(_ context.Context, _ *provider.Request, tell func(string) error) (*session.MessageEntry, error) {
					for rest != "" {
						n := min(1+rng.IntN(20), len(rest))
						if err := tell(rest[:n]); err != nil {
							return nil, err
						}
						rest = rest[n:]
					}
					return nil, nil
				}}
				send(t, startIn(t, s, agent.Options{Model: model, Draft: 1}), "speak")
				const telling = 6
				for _, line := range linesIn(t, st, "s") {
					for i := 0; i+telling <= len(parts[1]); i++ {
						if bytes.Contains(line, []byte(parts[1][i:i+telling])) {
							t.Fatalf("%q is in the log: %s", parts[1][i:i+telling], line)
						}
					}
				}
			}
		})
	}
}
