package conversation

import (
	"slices"
	"strings"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/window"
)

// Category says how important a message is in the context window. Lower
// numbers are more important.
type Category = window.Category

// The categories, in the order of their importance: 1 to 4.
const (
	CategorySystem       = window.System       // instructions: never trimmed
	CategoryContext      = window.Context      // documentation, requirements, specifications
	CategoryDialog       = window.Dialog       // what user and assistant say
	CategorySystemOutput = window.SystemOutput // results of tools: the first to go
)

// ParseCategory returns the category of a name. ACTIONS is an older name of
// SYSTEM_OUTPUT.
func ParseCategory(name string) (Category, error) { return window.ParseCategory(name) }

// outputMarks are the beginnings of messages in which some programs put tool output under
// the role system.
var outputMarks = []string{"action executed:", "code saved to:", "result:", "status:"}

const maxMark = 16 // the length of the longest mark, in bytes

// Categorise chooses a category for a new message without one. It is the category that
// window.CategoryFor would read from the message, so that all readers agree. The exception:
// text that looks like tool output is SYSTEM_OUTPUT, whatever its role, unless it is the
// system prompt.
func Categorise(role string, content []session.Content, systemPrompt string) Category {
	for i := range content {
		if content[i].ToolResult != nil {
			return CategorySystemOutput
		}
	}
	if role == session.RoleSystem && isOutput(session.TextOf(content), systemPrompt) {
		return CategorySystemOutput
	}
	return window.CategoryFor(role, content)
}

func isOutput(text, systemPrompt string) bool {
	if text == systemPrompt {
		return false
	}
	lower := strings.ToLower(text[:min(len(text), maxMark)])
	return slices.ContainsFunc(outputMarks, func(mark string) bool { return strings.HasPrefix(lower, mark) })
}
