package agent_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/internal/soak"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/file"
)

// draftDir tells the child of TestKillDuringAnswer where its session is.
const draftDir = "COPPICE_TEST_DRAFT_DIR"

// draftEvery is how often the child saves what has arrived.
const draftEvery = 20 * time.Millisecond

// TestKillDuringAnswer kills an agent while an answer arrives. What was shown is in the
// log, up to the last moments before the kill. It measures how long those were. An answer
// that goes silent is there to its last word.
func TestKillDuringAnswer(t *testing.T) {
	t.Parallel()
	worst, rng := time.Duration(0), soak.Rand(t)
	for n := range soak.N(6) {
		dir := t.TempDir()
		c := startKillChild(t, append(os.Environ(), draftDir+"="+dir))
		c.until(t, "ready")
		var shown []time.Time // when each word was
		stopAt := rng.IntN(draftWords)
		if n%2 == 0 {
			stopAt = draftWords
		}
		for len(shown) < stopAt && c.lines.Scan() {
			if !strings.HasPrefix(c.lines.Text(), "shown ") {
				t.Fatalf("the agent says %q", c.lines.Text())
			}
			shown = append(shown, time.Now())
		}
		for n%2 == 0 && wordsIn(t, dir) < draftWords { // it is silent now
			time.Sleep(time.Millisecond)
		}
		killed := time.Now()
		_ = c.cmd.Process.Kill()
		for c.lines.Scan() { // what was shown before it was dead
		}
		_ = c.cmd.Wait()
		if kept := wordsIn(t, dir); kept < len(shown) {
			worst = max(worst, killed.Sub(shown[kept]))
		}
	}
	t.Logf("with a draft every %v, the oldest text that was lost had been shown for %v", draftEvery, worst)
}

const draftWords = 30

// wordsIn returns how many words of the answer a log has.
func wordsIn(t *testing.T, dir string) int {
	t.Helper()
	st, err := file.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	s, err := session.Open(t.Context(), st, killSession, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	text, _, err := session.DraftAt(s, s.LeafID())
	if err != nil {
		t.Fatal(err)
	}
	words := strings.Fields(text)
	if want := strings.Repeat("word ", len(words)); text != want {
		t.Fatalf("the log has %q", text)
	}
	return len(words)
}

// draftChild is what TestKillDuringAnswer kills: an agent whose model says some words and
// then nothing more.
func draftChild() error {
	ctx := context.Background()
	st, err := file.Open(os.Getenv(draftDir), nil)
	if err != nil {
		return err
	}
	s, err := session.Create(ctx, st, session.Header{ID: killSession}, nil)
	if err != nil {
		return err
	}
	model := provider.Func{About: provider.Info{Provider: "p", Model: "m"}, Answer: func(_ context.Context, _ *provider.Request, tell func(string) error) (*session.MessageEntry, error) {
		for n := range draftWords {
			if err := tell("word "); err != nil {
				return nil, err
			}
			time.Sleep(time.Duration(n%4) * time.Millisecond)
		}
		select {}
	}}
	a, err := agent.New(s, agent.Options{Model: model, Draft: draftEvery})
	if err != nil {
		return err
	}
	news := a.Subscribe(1 << 16)
	go func() {
		for e := range news.Events(ctx) {
			if e.Type == agent.MessageUpdate {
				for range strings.Fields(e.Update.Text) { // pieces that wait are joined
					fmt.Println("shown word")
				}
			}
		}
	}()
	fmt.Println("ready")
	_, err = a.Send(ctx, session.Text("speak"))
	return err
}
