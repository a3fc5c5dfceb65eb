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

// outputMarks are how programs that put the output of tools into messages of the
// system begin it.
var outputMarks = []string{"action executed:", "code saved to:", "result:", "status:"}

const maxMark = 16 // bytes; the longest of them

// Categorise chooses the category of a new message that was given none. It is the
// one that window.CategoryFor reads from such a message, so that everybody who
// reads it agrees; except that what looks like the output of a tool is output,
// whatever role brings it. The system prompt is never taken for that.
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
