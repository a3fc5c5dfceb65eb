package keyed_test

// The code of this file is that of the session manager's API reference, block by
// block. Only the import paths are ours.
//
//lint:file-ignore ST1019 the reference has two packages, here they are one

import (
	"errors"
	"fmt"
	"log"
	"os"
	"sync"
	"time"

	providers "github.com/coppice-dev/coppice/keyed"
	session "github.com/coppice-dev/coppice/keyed"
)

// Types: the fields of a session.
var _ = session.Session{
	Key:      "",
	Messages: []providers.Message{},
	Summary:  "",
	Created:  time.Time{},
	Updated:  time.Time{},
}

// Functions and methods, as they are declared.
var (
	_ func(storage string) *session.SessionManager                               = session.NewSessionManager
	_ func(sm *session.SessionManager, key string) *session.Session              = (*session.SessionManager).GetOrCreate
	_ func(sm *session.SessionManager, sessionKey, role, content string)         = (*session.SessionManager).AddMessage
	_ func(sm *session.SessionManager, sessionKey string, msg providers.Message) = (*session.SessionManager).AddFullMessage
	_ func(sm *session.SessionManager, key string) []providers.Message           = (*session.SessionManager).GetHistory
	_ func(sm *session.SessionManager, key string, history []providers.Message)  = (*session.SessionManager).SetHistory
	_ func(sm *session.SessionManager, key string) string                        = (*session.SessionManager).GetSummary
	_ func(sm *session.SessionManager, key string, summary string)               = (*session.SessionManager).SetSummary
	_ func(sm *session.SessionManager, key string, keepLast int)                 = (*session.SessionManager).TruncateHistory
	_ func(sm *session.SessionManager, key string) error                         = (*session.SessionManager).Save
)

// temporary returns a directory for an example, and how to remove it.
func temporary() (dir string, remove func()) {
	dir, err := os.MkdirTemp("", "keyed")
	if err != nil {
		log.Fatal(err)
	}
	return dir, func() { os.RemoveAll(dir) }
}

func ExampleNewSessionManager() {
	{
		// With persistence
		sm := session.NewSessionManager("/path/to/sessions")
		fmt.Println(len(sm.GetHistory("telegram:123456")))
	}
	{
		// Memory-only
		sm := session.NewSessionManager("")
		fmt.Println(sm.Save("telegram:123456"))
	}
	// Output:
	// 0
	// <nil>
}

func ExampleSessionManager_GetOrCreate() {
	sm := session.NewSessionManager("")

	session := sm.GetOrCreate("telegram:123456")

	fmt.Println(session.Key, len(session.Messages), session.Created.IsZero())
	// Output: telegram:123456 0 false
}

func ExampleSessionManager_AddMessage() {
	sm := session.NewSessionManager("")

	sm.AddMessage("telegram:123456", "user", "Hello!")
	sm.AddMessage("telegram:123456", "assistant", "Hi there!")

	history := sm.GetHistory("telegram:123456")
	for _, msg := range history {
		fmt.Printf("%s: %s\n", msg.Role, msg.Content)
	}
	// Output:
	// user: Hello!
	// assistant: Hi there!
}

func ExampleSessionManager_AddFullMessage() {
	sm := session.NewSessionManager("")

	sm.AddFullMessage("telegram:123456", providers.Message{
		Role:    "assistant",
		Content: "Let me check that.",
		ToolCalls: []providers.ToolCall{
			{ID: "call_123", Name: "files_read", Arguments: map[string]interface{}{"path": "/tmp/file.txt"}},
		},
	})

	call := sm.GetHistory("telegram:123456")[0].ToolCalls[0]
	fmt.Println(call.ID, call.Name, call.Arguments["path"])
	// Output: call_123 files_read /tmp/file.txt
}

func ExampleSessionManager_GetHistory() {
	sm := session.NewSessionManager("")
	sm.AddMessage("telegram:123456", "user", "Hello!")

	history := sm.GetHistory("telegram:123456")
	for _, msg := range history {
		fmt.Printf("%s: %s\n", msg.Role, msg.Content)
	}
	// Output: user: Hello!
}

func ExampleSessionManager_SetHistory() {
	sm := session.NewSessionManager("")
	sm.AddMessage("telegram:123456", "user", "Something else")

	newHistory := []providers.Message{
		{Role: "system", Content: "You are helpful."},
		{Role: "user", Content: "Hello"},
	}
	sm.SetHistory("telegram:123456", newHistory)

	for _, msg := range sm.GetHistory("telegram:123456") {
		fmt.Printf("%s: %s\n", msg.Role, msg.Content)
	}
	// Output:
	// system: You are helpful.
	// user: Hello
}

func ExampleSessionManager_GetSummary() {
	sm := session.NewSessionManager("")

	sm.SetSummary("telegram:123456", "User asked about weather. Discussed forecast for the week.")

	summary := sm.GetSummary("telegram:123456")
	if summary != "" {
		fmt.Println("Previous context:", summary)
	}
	// Output: Previous context: User asked about weather. Discussed forecast for the week.
}

func ExampleSessionManager_TruncateHistory() {
	sm := session.NewSessionManager("")
	for i := range 6 {
		sm.AddMessage("telegram:123456", "user", fmt.Sprint("message ", i+1))
	}

	// Keep only last 4 messages
	sm.TruncateHistory("telegram:123456", 4)

	fmt.Println(len(sm.GetHistory("telegram:123456")), sm.GetHistory("telegram:123456")[0].Content)

	// Clear all messages
	sm.TruncateHistory("telegram:123456", 0)

	fmt.Println(len(sm.GetHistory("telegram:123456")))

	// Nothing of it is gone.
	all, err := sm.History("telegram:123456", session.All)
	fmt.Println(len(all), all[0].Content, err)
	// Output:
	// 4 message 3
	// 0
	// 6 message 1 <nil>
}

func ExampleSessionManager_Save() {
	storage, remove := temporary()
	defer remove()
	sm := session.NewSessionManager(storage)
	sm.AddMessage("telegram:123456", "user", "Hello!")

	if err := sm.Save("telegram:123456"); err != nil {
		log.Printf("Failed to save session: %v", err)
	}

	fmt.Println("saved")
	// Output: saved
}

func ExampleSessionManager_Save_errors() {
	storage, remove := temporary()
	defer remove()
	sm := session.NewSessionManager(storage)
	sessionKey := ""

	if err := sm.Save(sessionKey); err != nil {
		if errors.Is(err, os.ErrInvalid) {
			// Invalid session key
			fmt.Println("invalid session key")
		} else {
			// Filesystem error
			fmt.Println("file system error")
		}
	}
	// Output: invalid session key
}

func Example() {
	storagePath, remove := temporary()
	defer remove()

	sm := session.NewSessionManager(storagePath)
	sessionKey := "telegram:123456"

	// Get or create session
	sess := sm.GetOrCreate(sessionKey)

	// Add user message
	sm.AddMessage(sessionKey, "user", "What's the weather?")

	// ... LLM call ...

	// Add assistant response
	sm.AddMessage(sessionKey, "assistant", "It's sunny today.")

	// Save
	sm.Save(sessionKey)

	fmt.Println(sess.Key)
	fmt.Println(session.NewSessionManager(storagePath).GetHistory(sessionKey)[1].Content)
	// Output:
	// telegram:123456
	// It's sunny today.
}

func Example_withToolCalls() {
	sm := session.NewSessionManager("")
	sessionKey := "telegram:123456"

	// Add user message
	sm.AddMessage(sessionKey, "user", "Read the config file")

	// Add assistant message with tool call
	sm.AddFullMessage(sessionKey, providers.Message{
		Role:    "assistant",
		Content: "",
		ToolCalls: []providers.ToolCall{{
			ID:        "call_1",
			Name:      "files_read",
			Arguments: map[string]interface{}{"path": "config.json"},
		}},
	})

	// Add tool result
	sm.AddFullMessage(sessionKey, providers.Message{
		Role:       "tool",
		Content:    `{"setting": "value"}`,
		ToolCallID: "call_1",
	})

	// Add final assistant response
	sm.AddMessage(sessionKey, "assistant", "The config contains...")

	for _, msg := range sm.GetHistory(sessionKey) {
		fmt.Printf("%s: %q\n", msg.Role, msg.Content)
	}
	// Output:
	// user: "Read the config file"
	// assistant: ""
	// tool: "{\"setting\": \"value\"}"
	// assistant: "The config contains..."
}

func Example_summarization() {
	sm := session.NewSessionManager("")
	sessionKey := "telegram:123456"
	generateSummary := func(history []providers.Message) string {
		return fmt.Sprintf("%d messages", len(history))
	}
	for i := range 21 {
		sm.AddMessage(sessionKey, "user", fmt.Sprint("message ", i+1))
	}

	// Check if summarization needed
	history := sm.GetHistory(sessionKey)
	if len(history) > 20 {
		// Generate summary
		summary := generateSummary(history[:len(history)-4])

		// Set summary
		sm.SetSummary(sessionKey, summary)

		// Keep only recent messages
		sm.TruncateHistory(sessionKey, 4)

		// Save
		sm.Save(sessionKey)
	}

	fmt.Println(sm.GetSummary(sessionKey), "and", len(sm.GetHistory(sessionKey)))
	// Output: 17 messages and 4
}

func buildContext(sm *session.SessionManager, sessionKey, userMessage string) []providers.Message {
	var messages []providers.Message

	// System prompt
	messages = append(messages, providers.Message{
		Role:    "system",
		Content: "You are a helpful assistant.",
	})

	// Add summary if exists
	if summary := sm.GetSummary(sessionKey); summary != "" {
		messages = append(messages, providers.Message{
			Role:    "system",
			Content: "Previous conversation summary: " + summary,
		})
	}

	// Add history
	messages = append(messages, sm.GetHistory(sessionKey)...)

	// Add current message
	messages = append(messages, providers.Message{
		Role:    "user",
		Content: userMessage,
	})

	return messages
}

func Example_buildingLLMContext() {
	sm := session.NewSessionManager("")
	sm.SetSummary("telegram:123456", "They greeted.")
	sm.AddMessage("telegram:123456", "assistant", "Anything else?")

	for _, msg := range buildContext(sm, "telegram:123456", "No, thanks.") {
		fmt.Printf("%s: %s\n", msg.Role, msg.Content)
	}
	// Output:
	// system: You are a helpful assistant.
	// system: Previous conversation summary: They greeted.
	// assistant: Anything else?
	// user: No, thanks.
}

func Example_threadSafety() {
	sm := session.NewSessionManager("")
	var wait sync.WaitGroup
	wait.Add(2)

	// Safe to use from multiple goroutines
	go func() {
		sm.AddMessage("session1", "user", "Message 1")
		wait.Done()
	}()

	go func() {
		sm.AddMessage("session2", "user", "Message 2")
		wait.Done()
	}()

	wait.Wait()
	fmt.Println(sm.GetHistory("session1")[0].Content, sm.GetHistory("session2")[0].Content)
	// Output: Message 1 Message 2
}

func Example_missingSessions() {
	sm := session.NewSessionManager("")

	// GetHistory returns empty slice for missing sessions
	history := sm.GetHistory("nonexistent")
	// history == []providers.Message{}

	// GetSummary returns empty string for missing sessions
	summary := sm.GetSummary("nonexistent")
	// summary == ""

	fmt.Printf("%v %t %q\n", history, history != nil, summary)
	// Output: [] true ""
}

func Example_asyncSaving() {
	storage, remove := temporary()
	defer remove()
	sm := session.NewSessionManager(storage)
	sessionKey := "telegram:123456"
	sm.AddMessage(sessionKey, "user", "Hello!")
	saved := make(chan bool)

	// Save without blocking
	go func() {
		if err := sm.Save(sessionKey); err != nil {
			log.Printf("Failed to save session: %v", err)
		}
		saved <- true
	}()

	fmt.Println(<-saved)
	// Output: true
}

func Example_periodicSaving() {
	storage, remove := temporary()
	defer remove()
	sm := session.NewSessionManager(storage)
	sm.AddMessage("telegram:123456", "user", "Hello!")
	getActiveSessions := sm.Active

	go func() {
		ticker := time.NewTicker(30 * time.Second)
		defer ticker.Stop()

		for range ticker.C {
			for _, key := range getActiveSessions() {
				sm.Save(key)
			}
		}
	}()

	fmt.Println(getActiveSessions())
	// Output: [telegram:123456]
}
