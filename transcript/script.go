package transcript

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/session"
)

// Tags returns the session's tags: the latest entry that sets them counts,
// whatever branch it is on.
func (s *Script) Tags() []string {
	var tags []string
	if s == nil {
		return nil
	}
	for i := range s.All {
		if c := s.All[i].Custom; c != nil && c.CustomType == session.CustomTags {
			tags = c.Tags()
		}
	}
	return tags
}

// Updated returns the time of the last entry of the path, so that the same conversation
// always gives the same bytes.
func (s *Script) Updated() time.Time {
	if s == nil {
		return time.Time{}
	}
	var last time.Time
	for i := range s.Path {
		if at := s.Path[i].Timestamp; at.After(last) {
			last = at
		}
	}
	if last.IsZero() {
		return s.Now
	}
	return last
}

// Title returns the session's name, or the line with which its first prompt begins. It is
// "" if there is neither. The prompt need not be in the context.
func (s *Script) Title() string {
	if s == nil {
		return ""
	}
	if s.Name != "" {
		return s.Name
	}
	for i := range s.Path {
		m := s.Path[i].Message
		if m == nil || m.Role != session.RoleUser || len(m.Content) == 0 || m.Content[0].Text == nil {
			continue
		}
		if s.Path[i].IsInjected() {
			continue // a program wrote it
		}
		line, _, _ := strings.Cut(strings.TrimSpace(m.Content[0].Text.Content), "\n")
		if text := []rune(line); len(text) > 0 {
			return string(text[:min(len(text), maxTitle)])
		}
	}
	return ""
}

// maxTitle is how many characters of a prompt become a title.
const maxTitle = 80

// OtherBranches returns the loss of a format that holds one list of messages: the
// messages that are not on the path, if there are any.
func (s *Script) OtherBranches() []Loss {
	if s == nil {
		return nil
	}
	onPath := make(map[string]bool)
	for i := range s.Path {
		onPath[s.Path[i].ID] = true
	}
	left := 0
	for i := range s.All {
		if s.All[i].Message != nil && !onPath[s.All[i].ID] {
			left++
		}
	}
	if left == 0 {
		return nil
	}
	those := "1 message of another is"
	if left > 1 {
		those = fmt.Sprintf("%d messages of others are", left)
	}
	return []Loss{{What: "branches", Why: "there is only one there: " + those + " left out"}}
}

// Lost returns the losses of a message whose blocks a format holds only if it
// holds their types. why says what the format has instead.
func Lost(e *session.Entry, why string, holds ...session.ContentType) []Loss {
	var losses []Loss
	if e == nil || e.Message == nil {
		return nil
	}
	for i := range e.Message.Content {
		b := &e.Message.Content[i]
		what := string(b.Type)
		switch {
		case b.ToolResult != nil && len(b.ToolResult.Parts) > 0 && !holdsParts(b.ToolResult.Parts, holds):
			what = "parts of a tool's result"
		case b.Raw == nil && slices.Contains(holds, b.Type): // raw is what no reader understood
			continue
		}
		losses = append(losses, Loss{EntryID: e.ID, What: what, Why: why})
	}
	return losses
}

func holdsParts(parts []session.Content, holds []session.ContentType) bool {
	return !slices.ContainsFunc(parts, func(p session.Content) bool { return p.Raw != nil || !slices.Contains(holds, p.Type) })
}
