package conversation_test

import (
	"context"
	"fmt"
	"log"
	"strings"

	"github.com/coppice-dev/coppice/conversation"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/session"
)

// parrot is a model that repeats what it hears.
var parrot = provider.Func{Answer: func(_ context.Context, r *provider.Request, _ func(string) error) (*session.MessageEntry, error) {
	last := session.TextOf(r.Entries[len(r.Entries)-1].Message.Content)
	return &session.MessageEntry{Content: []session.Content{session.Text(strings.ToUpper(last))}}, nil
}}

// A whole conversation: the first message makes it, and a session that is full is
// continued in another without anybody noticing.
func Example() {
	m, err := conversation.NewConversationManager("", &conversation.ManagerOptions{
		Model: parrot, SystemPrompt: "Repeat what you hear.",
		Sessions: conversation.Options{Settings: conversation.Settings{MaxMessagesPerSession: 4}},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	for _, message := range []string{"hello", "how are you", "goodbye"} {
		answer, err := m.ProcessMessage(context.Background(), message, "")
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(answer)
	}
	c, err := m.Current().Conversation()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(c.Messages), "messages in", len(c.Links), "sessions")
	// Output:
	// HELLO
	// HOW ARE YOU
	// GOODBYE
	// 7 messages in 2 sessions
}

// Sessions are values: what is added to one is stored when it is saved.
func ExampleSessionManager() {
	m, err := conversation.NewSessionManager("", nil) // "" keeps them in memory
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	s, err := m.CreateSession("")
	if err != nil {
		log.Fatal(err)
	}
	message, err := conversation.NewMessage("user", "Hello, how are you?", conversation.CategoryDialog)
	if err != nil {
		log.Fatal(err)
	}
	s = s.AddMessage(message)
	if _, err := m.SaveSession(s); err != nil {
		log.Fatal(err)
	}
	loaded, err := m.LoadSession(s.ID)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(loaded.MessageCount(), loaded.Messages[0].Text(), m.CheckSessionBoundary(loaded))
	next, err := m.CreateContinuationSession(loaded)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(next.Metadata["continued_from"] == s.ID, next.Metadata["continuation_index"])
	// Output:
	// 1 Hello, how are you? false
	// true 1
}

// What does not fit the window is left out of a new value; the session stays.
func ExampleContextWindowManager_Trim() {
	w := conversation.NewContextWindowManager(nil)
	w.SetModel(conversation.Capabilities{ContextWindow: 200})
	s := conversation.NewSession()
	for i := range 50 {
		m, err := conversation.NewMessage("user", fmt.Sprint("message number ", i), conversation.CategoryDialog)
		if err != nil {
			log.Fatal(err)
		}
		s = s.AddMessage(m)
	}
	trimmed, report, err := w.Trim(s)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(s.MessageCount(), trimmed.MessageCount() < 50, report.Tokens <= 200)
	fmt.Println(trimmed.Messages[trimmed.MessageCount()-1].Text())
	// Output:
	// 50 true true
	// message number 49
}
