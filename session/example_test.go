package session_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"strconv"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/memory"
)

// Two people answer the same question at once. Each answer begins a branch of its own, and
// its label is written with it or not at all.
func ExampleSession_Update() {
	ctx := context.Background()
	s, err := session.Create(ctx, memory.New(nil), session.Header{}, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	question, _ := s.AppendMessage(session.RoleUser, []session.Content{session.Text("Which way?")})

	answer := func(text, label string) error {
		return s.Update(ctx, func(tx *session.Tx) error {
			tx.Branch(question)
			id := tx.Append(session.Message(session.RoleAssistant, session.Text(text)))
			tx.Append(session.Entry{Type: session.TypeLabel, Label: &session.LabelEntry{TargetID: id, Label: label}})
			return nil
		})
	}
	fmt.Println(answer("Left.", "ann"), answer("Right.", "bob"))

	// Only if nothing came after the question.
	err = s.Update(ctx, func(tx *session.Tx) error {
		tx.Branch(question)
		return tx.Expect(question)
	})
	fmt.Println(errors.Is(err, session.ErrConflict))

	leaves, _ := s.Leaves()
	fmt.Println(len(leaves), "branches")
	// Output:
	// <nil> <nil>
	// true
	// 2 branches
}

// The first hour with the package: continue or begin a session, append, branch,
// label, compact, and see what a model would be sent.
func Example() {
	dir, err := os.MkdirTemp("", "sessions")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	// 1. Initialise or continue a session. Ids are UUIDs; here they are made
	// readable so that the example can name them.
	mgr := session.NewManager(dir)
	mgr.Options.NewID = readableIDs()
	s, err := mgr.ContinueRecent()
	if err != nil {
		s, _ = mgr.New("", "")
	}
	defer s.Close()

	// 2. Append a user message.
	userEntryID, _ := s.AppendMessage(session.RoleUser, []session.Content{
		{Type: session.ContentTypeText, Text: &session.TextContent{Content: "Hello, Agent!"}},
	})

	// 3. Get the context for the model.
	history, _ := s.GetContext()
	fmt.Printf("Context has %d messages\n", len(history))

	// 4. The assistant's response.
	s.AppendMessage(session.RoleAssistant, []session.Content{
		{Type: session.ContentTypeText, Text: &session.TextContent{Content: "Hello! How can I help?"}},
	})

	// 5. Branch: go back to the user's message.
	err = s.Branch(userEntryID)
	if err == nil {
		s.AppendMessage(session.RoleUser, []session.Content{
			{Type: session.ContentTypeText, Text: &session.TextContent{Content: "Actually, tell me a joke."}},
		})
	}

	// 6. Label an entry.
	s.SetLabel(userEntryID, "first-greeting")

	// 7. Compact: summarise msg-1 and msg-2, keep msg-3 and what follows.
	s.AppendCompaction("User greeted and then asked for a joke.", "msg-3", 1500)

	// 8. The resulting context: the summary, then msg-3.
	history, _ = s.GetContext()
	for _, entry := range history {
		if entry.Type == session.TypeCompaction {
			fmt.Println("Compaction summary included")
		} else if entry.ID == "msg-3" {
			fmt.Println("Recent message included")
		}
	}
	// Output:
	// Context has 1 messages
	// Compaction summary included
	// Recent message included
}

// readableIDs makes ids such as msg-1 and comp-1.
func readableIDs() func(session.EntryType) string {
	prefix := map[session.EntryType]string{
		session.TypeSession: "sess", session.TypeMessage: "msg", session.TypeLabel: "lbl",
		session.TypeCompaction: "comp", session.TypeLeaf: "leaf",
	}
	count := make(map[session.EntryType]int)
	return func(t session.EntryType) string {
		count[t]++
		name, ok := prefix[t]
		if !ok {
			name = string(t)
		}
		return name + "-" + strconv.Itoa(count[t])
	}
}
