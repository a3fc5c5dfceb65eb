package window

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/coppice-dev/coppice/session"
)

// Category is how important an entry is for the window. Smaller numbers are more important.
type Category int

// The categories, most important first.
const (
	System       Category = iota + 1 // instructions to the model: never trimmed
	Context                          // documents, requirements, summaries
	Dialog                           // what the user and the model say
	SystemOutput                     // results of tools
)

// trimOrder is the order in which categories are trimmed. System never is.
var trimOrder = [...]Category{SystemOutput, Dialog, Context}

var categoryNames = [...]string{System: "SYSTEM", Context: "CONTEXT", Dialog: "DIALOG", SystemOutput: "SYSTEM_OUTPUT"}

// formerName is an older name of SYSTEM_OUTPUT. It is read, never written.
const formerName = "ACTIONS"

func (c Category) String() string {
	if c < System || c > SystemOutput {
		return fmt.Sprintf("Category(%d)", int(c))
	}
	return categoryNames[c]
}

// ParseCategory returns the category of a name, or of its number: 1 to 4. ACTIONS
// is SYSTEM_OUTPUT. Anything else gives an error that matches session.ErrInvalid.
func ParseCategory(name string) (Category, error) {
	if name == formerName {
		return SystemOutput, nil
	}
	if len(name) == 1 && name[0] > '0' && Category(name[0]-'0') <= SystemOutput {
		return Category(name[0] - '0'), nil
	}
	if at := slices.Index(categoryNames[:], name); at >= int(System) {
		return Category(at), nil
	}
	return 0, fmt.Errorf("unknown category %q (it must be SYSTEM, CONTEXT, DIALOG or SYSTEM_OUTPUT): %w", name, session.ErrInvalid)
}

// MarshalText writes the category's name.
func (c Category) MarshalText() ([]byte, error) {
	if c < System || c > SystemOutput {
		return nil, fmt.Errorf("category %d: %w", int(c), session.ErrInvalid)
	}
	return []byte(categoryNames[c]), nil
}

// UnmarshalText reads a category's name.
func (c *Category) UnmarshalText(name []byte) error {
	parsed, err := ParseCategory(string(name))
	if err != nil {
		return err
	}
	*c = parsed
	return nil
}

// UnmarshalJSON reads a category's name, or its number as some programs write it.
func (c *Category) UnmarshalJSON(data []byte) error {
	name := string(data)
	if len(data) > 0 && data[0] == '"' {
		if err := json.Unmarshal(data, &name); err != nil {
			return err
		}
	}
	return c.UnmarshalText([]byte(name))
}

// CategoryOf returns the category of an entry: the one that its message names or, if it
// names no known one, CategoryFor its role and content. Summaries are CONTEXT, because
// they replace what is no longer sent.
func CategoryOf(e *session.Entry) Category {
	m := e.Message
	if m == nil {
		return Context
	}
	if m.Category != "" {
		if c, err := ParseCategory(m.Category); err == nil {
			return c
		}
	}
	return CategoryFor(m.Role, m.Content)
}

// CategoryFor returns the category of a message that names none. A system message is
// SYSTEM: a writer that means less must say so. Results of tools are SYSTEM_OUTPUT,
// even where a format gives them the role of the user or the system.
func CategoryFor(role session.MessageRole, content []session.Content) Category {
	switch role {
	case session.RoleTool, session.RoleBashExecution:
		return SystemOutput
	case session.RoleCustom, session.RoleBranchSummary, session.RoleCompactionSummary:
		return Context
	case session.RoleSystem, session.RoleUser:
		if slices.ContainsFunc(content, func(c session.Content) bool { return c.ToolResult != nil }) {
			return SystemOutput
		}
	}
	if role == session.RoleSystem {
		return System
	}
	return Dialog
}
