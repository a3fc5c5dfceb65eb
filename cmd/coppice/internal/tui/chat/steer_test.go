package chat_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/session"
)

// heldHome is a home whose model says what it heard last. When it is asked, asked gets a
// function that lets it answer this request.
func heldHome(t *testing.T) (_ *home.Home, asked <-chan func()) {
	t.Helper()
	requests := make(chan func(), 8)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			Messages []struct{ Content any }
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil || len(body.Messages) == 0 {
			t.Errorf("the request cannot be read: %v", err)
			return
		}
		answer := make(chan struct{})
		requests <- func() { close(answer) }
		select {
		case <-answer:
		case <-r.Context().Done():
			return
		}
		text, _ := json.Marshal(fmt.Sprint("heard: ", body.Messages[len(body.Messages)-1].Content))
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: {\"id\":\"r1\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":%s},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n", text)
	}))
	t.Cleanup(server.Close)
	return openHome(t,
		home.Setting{Key: home.SettingProvider, Value: "openai-chat"},
		home.Setting{Key: home.SettingModel, Value: "m"},
		home.Setting{Key: home.SettingBaseURL, Value: server.URL}), requests
}

// TestWordsTypedAheadSteer: what is typed during an answer is in the log at once, is shown as
// waiting, and becomes part of the same turn. Commands wait for its end.
func TestWordsTypedAheadSteer(t *testing.T) {
	t.Parallel()
	opened, asked := heldHome(t)
	p := sit(t, opened, nil)
	p.types("begin", enter)
	answer := <-asked
	p.types("only the tests", enter)
	p.sees("› only the tests · queued")
	queued, err := p.last().Queued()
	if err != nil || len(queued) != 1 || session.TextOf(queued[0].Content) != "only the tests" {
		t.Fatalf("the log has %+v, %v", queued, err)
	}
	p.types("/label tests", enter, "and after that", enter)
	p.sees("› /label tests", "› and after that")
	answer()
	p.sees("heard: begin")
	(<-asked)()
	p.sees("› only the tests\n\n  heard: only the tests")
	(<-asked)()
	p.sees("heard: and after that")
	p.leaves(ctrlD)
	c, err := p.last().Context(session.ContextOptions{})
	if err != nil || len(c.Entries) != 6 {
		t.Errorf("the conversation is %+v, %v", c, err)
	}
}

// TestWordsTypedAheadAreTakenBack: a person who stops the answer gets the words back, and the
// next turn does not have them twice.
func TestWordsTypedAheadAreTakenBack(t *testing.T) {
	t.Parallel()
	opened, asked := heldHome(t)
	p := sit(t, opened, nil)
	p.types("begin", enter)
	<-asked
	p.types("only the tests", enter)
	p.sees("· queued")
	p.types(ctrlC)
	p.sees("■ stopped", "› only the tests")
	p.types("!", enter)
	(<-asked)()
	p.sees("heard: only the tests!")
	p.leaves(ctrlD)
	if queued, err := p.last().Queued(); err != nil || len(queued) > 0 {
		t.Errorf("the log has %+v, %v", queued, err)
	}
}

// TestImagesTypedAheadAreTakenBack: images that go with words are with them again when the words
// are back in the prompt.
func TestImagesTypedAheadAreTakenBack(t *testing.T) {
	t.Parallel()
	dot := filepath.Join(t.TempDir(), "dot.gif")
	if err := os.WriteFile(dot, []byte("GIF89a"), 0o600); err != nil {
		t.Fatal(err)
	}
	opened, asked := heldHome(t)
	p := sit(t, opened, nil)
	p.types("begin", enter)
	<-asked
	p.types("/image "+dot, enter)
	p.sees("goes with the next message")
	p.types("like this", enter)
	p.sees("· queued")
	p.types(ctrlC)
	p.sees("■ stopped", "› like this")
	p.types(enter)
	(<-asked)()
	p.sees("heard: ")
	p.leaves(ctrlD)
	path, err := p.last().Forward("")
	if err != nil {
		t.Fatal(err)
	}
	sent := slices.IndexFunc(path, func(e session.Entry) bool {
		return e.Message != nil && session.TextOf(e.Message.Content) == "like this"
	})
	if sent < 0 || path[sent].Message.Content[0].Image == nil {
		t.Errorf("the message was sent without its image: %+v", path)
	}
}

// Of two chats with one conversation, each shows what was said in the other before it goes on.
func TestAChatShowsWhatAnotherAdded(t *testing.T) {
	t.Parallel()
	h := openHome(t)
	one := sit(t, h, nil)
	one.says("about peas")
	two := restored(t, h, one.sessions()[0].ID)
	two.sees("You said: about peas")
	two.says("and the carrots")
	one.doesNotSee("carrots")
	one.says("what now")
	one.sees("another program has added 2 messages", "and the carrots", "You said: and the carrots", "You said: what now")
	if two.leaves(ctrlD); strings.Contains(two.term.String(), "another program") {
		t.Errorf("a chat was told of its own words:\n%s", two.term)
	}
	one.leaves(ctrlD)
}
