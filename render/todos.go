package render

import (
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/session/files"
)

// Todo is an item of a list with which an agent plans its work.
type Todo struct {
	Text  string
	State TodoState
}

// TodoState is how far an item is.
type TodoState string

// The states of items.
const (
	TodoOpen   TodoState = "open"
	TodoActive TodoState = "active"
	TodoDone   TodoState = "done"
)

// Todos returns the items of a call that writes such a list, and nil for other
// calls.
func Todos(t *session.ToolUseContent) []Todo {
	var list []any
	for _, key := range []string{"todos", "plan", "items"} {
		if items, ok := t.Input[key].([]any); ok {
			list = items
			break
		}
	}
	var todos []Todo
	for _, item := range list {
		fields, _ := item.(map[string]any)
		text, state := files.Text(fields, "content", "step", "title", "text", "description"), files.Text(fields, "status", "state")
		if text == "" || state == "" {
			return nil
		}
		todos = append(todos, Todo{text, todoState(state)})
	}
	return todos
}

func todoState(word string) TodoState {
	switch word {
	case "completed", "done":
		return TodoDone
	case "in_progress", "in-progress", "active", "doing":
		return TodoActive
	}
	return TodoOpen
}
