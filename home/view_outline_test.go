package home_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/session"
)

func TestOutline(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	s := h.say(session.Header{}, "One\nof two lines", "an answer")
	say := func(role string, content ...session.Content) string {
		t.Helper()
		return must[string](t)(s.AppendMessage(role, content))
	}
	say(session.RoleAssistant, session.ToolUse("1", "ls", nil))
	say(session.RoleUser, session.ToolResult("1", "as some agents write results", false))
	answer := say(session.RoleAssistant, session.Text("Here."))
	must[*home.LabelResult](t)(h.Entries.Label(t.Context(), home.LabelRequest{Session: s.ID(), Entry: answer, Label: "found"}))
	must[*home.CompactResult](t)(h.Entries.Compact(t.Context(), home.CompactRequest{Session: s.ID(), Summary: "They looked.", FirstKept: answer}))
	must[bool](t)(s.Refresh())
	last := say(session.RoleUser, session.Text("Two"))
	outline := func(r home.OutlineRequest) *home.OutlineResult {
		t.Helper()
		r.Session = s.ID()
		return must[*home.OutlineResult](t)(h.Entries.Outline(t.Context(), r))
	}
	all := outline(home.OutlineRequest{})
	var said []string
	for _, m := range all.Marks {
		said = append(said, m.Kind+": "+m.Text)
	}
	if diff := cmp.Diff([]string{"prompt: One of two lines", "prompt: an answer", "label: found", "compaction: Compacted", "prompt: Two"}, said); diff != "" {
		t.Error(diff)
	}
	if end := all.Marks[len(all.Marks)-1]; end.Entry != last || end.Index != all.Total-1 || all.Next != 0 {
		t.Errorf("the last mark is %+v of %+v", end, all)
	}
	var parts []home.OutlineMark
	for from := 0; ; {
		r := outline(home.OutlineRequest{From: from, Limit: 2})
		parts = append(parts, r.Marks...)
		if from = r.Next; from == 0 {
			break
		}
	}
	if diff := cmp.Diff(all.Marks, parts); diff != "" {
		t.Error(diff)
	}
	if _, err := h.Entries.Outline(t.Context(), home.OutlineRequest{Session: s.ID(), Limit: 5001}); err == nil {
		t.Error("any limit is accepted")
	}
}
