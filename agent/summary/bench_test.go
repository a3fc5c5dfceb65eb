package summary_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/agent/summary"
	"github.com/coppice-dev/coppice/session"
)

// BenchmarkCompaction is what everything but the model costs for a conversation of 10,000
// entries.
func BenchmarkCompaction(b *testing.B) {
	plan := &session.CompactionPlan{}
	add := func(role session.MessageRole, c session.Content) {
		plan.Summarise = append(plan.Summarise, session.Entry{
			Type: session.TypeMessage, ID: fmt.Sprint(len(plan.Summarise)), Message: &session.MessageEntry{Role: role, Content: []session.Content{c}},
		})
	}
	for i := range 5000 {
		id := fmt.Sprint("c", i)
		add(session.RoleAssistant, session.ToolUse(id, "edit", map[string]any{"path": fmt.Sprintf("file%d.go", i%2000), "old_string": "a", "new_string": "b"}))
		add(session.RoleTool, session.ToolResult(id, strings.Repeat("some text of a result ", 40), false))
	}
	m := writes(goal)
	model := m.Model()
	b.ReportAllocs()
	for b.Loop() {
		m.sent, m.tasks = nil, nil
		if _, err := summary.Compaction(b.Context(), model, plan, summary.Options{}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(m.sent)), "requests")
}
