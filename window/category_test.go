package window_test

import (
	"encoding/json"
	"errors"
	"strconv"
	"testing"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/window"
)

// R14, R15, ruling 4.
func TestCategoryNames(t *testing.T) {
	t.Parallel()
	for i, name := range []string{"SYSTEM", "CONTEXT", "DIALOG", "SYSTEM_OUTPUT"} {
		c, err := window.ParseCategory(name)
		if err != nil || int(c) != i+1 || c.String() != name {
			t.Errorf("%s is %d, %q, error %v", name, c, c, err)
		}
		if data, err := json.Marshal(c); err != nil || string(data) != `"`+name+`"` {
			t.Errorf("%s is written as %s, error %v", name, data, err)
		}
	}
	var c window.Category
	if err := json.Unmarshal([]byte(`"ACTIONS"`), &c); err != nil || c != window.SystemOutput {
		t.Errorf("ACTIONS is read as %v, error %v", c, err)
	}
	for _, name := range []string{"", "dialog", "OTHER", "0", "5", "12"} {
		if _, err := window.ParseCategory(name); !errors.Is(err, session.ErrInvalid) {
			t.Errorf("%q: error is %v", name, err)
		}
	}
	for _, data := range []string{`"OTHER"`, `0`, `5`, `2.0`, `null`, `{}`, `"\q"`} {
		if err := json.Unmarshal([]byte(data), &c); data != `null` && err == nil {
			t.Errorf("%s is read as %v", data, c)
		}
	}
	if _, err := window.Category(9).MarshalText(); !errors.Is(err, session.ErrInvalid) || window.Category(9).String() != "Category(9)" {
		t.Errorf("category 9 is %v, error %v", window.Category(9), err)
	}
}

// R1: programs that keep the category as an enumeration write its number.
func TestCategoryMayBeANumber(t *testing.T) {
	t.Parallel()
	for want := window.System; want <= window.SystemOutput; want++ {
		number := strconv.Itoa(int(want))
		for _, data := range []string{number, `"` + number + `"`} {
			var c window.Category
			if err := json.Unmarshal([]byte(data), &c); err != nil || c != want {
				t.Errorf("%s is read as %v, error %v; want %v", data, c, err, want)
			}
		}
		e := session.Entry{Message: &session.MessageEntry{Role: session.RoleUser, Category: number}}
		if c := window.CategoryOf(&e); c != want {
			t.Errorf("a message of category %s is %v, want %v", number, c, want)
		}
	}
}

// R16: what belongs where.
func TestCategoryOf(t *testing.T) {
	t.Parallel()
	message := func(role session.MessageRole, category string, content ...session.Content) session.Entry {
		return session.Entry{Type: session.TypeMessage, Message: &session.MessageEntry{Role: role, Category: category, Content: content}}
	}
	tests := map[string]struct {
		entry session.Entry
		want  window.Category
	}{
		"prompt":                  {message(session.RoleSystem, ""), window.System},
		"question":                {message(session.RoleUser, ""), window.Dialog},
		"answer":                  {message(session.RoleAssistant, ""), window.Dialog},
		"result":                  {message(session.RoleTool, ""), window.SystemOutput},
		"result as the user's":    {message(session.RoleUser, "", session.ToolResult("c", "x", false)), window.SystemOutput},
		"result as the system's":  {message(session.RoleSystem, "", session.ToolResult("c", "x", false)), window.SystemOutput},
		"command":                 {message(session.RoleBashExecution, ""), window.SystemOutput},
		"extension's":             {message(session.RoleCustom, ""), window.Context},
		"summary":                 {message(session.RoleCompactionSummary, ""), window.Context},
		"compaction":              {session.Entry{Compaction: &session.CompactionEntry{Summary: "s"}}, window.Context},
		"branch summary":          {session.Entry{BranchSummary: &session.BranchSummaryEntry{Summary: "s"}}, window.Context},
		"named":                   {message(session.RoleUser, "CONTEXT"), window.Context},
		"formerly named":          {message(session.RoleUser, "ACTIONS"), window.SystemOutput},
		"named, but not known so": {message(session.RoleUser, "INTERNAL"), window.Dialog},
		"system message of tools": {message(session.RoleSystem, "SYSTEM_OUTPUT"), window.SystemOutput},
		"another role":            {message("developer", ""), window.Dialog},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := window.CategoryOf(&tt.entry); got != tt.want {
				t.Errorf("category is %v, want %v", got, tt.want)
			}
		})
	}
}
