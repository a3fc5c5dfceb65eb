package conversation

import (
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

// Categorise chooses the category of a message that was given none. Results of
// tools are output, whatever role brings them; of the system's messages the
// prompt itself is SYSTEM, what looks like the output of a tool is output, and
// the rest is CONTEXT.
func Categorise(role string, content []session.Content, systemPrompt string) Category {
	for i := range content {
		if content[i].ToolResult != nil {
			return CategorySystemOutput
		}
	}
	switch role {
	case session.RoleTool, session.RoleBashExecution:
		return CategorySystemOutput
	case session.RoleBranchSummary, session.RoleCompactionSummary:
		return CategoryContext
	case session.RoleSystem:
		return categoriseSystem(session.TextOf(content), systemPrompt)
	}
	return CategoryDialog
}

func categoriseSystem(text, systemPrompt string) Category {
	if systemPrompt != "" && text == systemPrompt {
		return CategorySystem
	}
	lower := strings.ToLower(text)
	for _, mark := range outputMarks {
		if strings.HasPrefix(lower, mark) {
			return CategorySystemOutput
		}
	}
	return CategoryContext
}
