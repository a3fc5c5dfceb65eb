package session

import (
	"context"
	"slices"
	"strings"
)

// The custom entries with which a session is organised. Of each, the latest
// counts, whatever branch it is on.
const (
	// CustomTags has the data {"tags": ["a", "b"]}.
	CustomTags = "coppice.tags"
	// CustomPinned has the data {"pinned": true}.
	CustomPinned = "coppice.pinned"
)

// SetTags replaces the session's tags. They are sorted, and each is kept once.
func (s *Session) SetTags(tags ...string) (string, error) {
	var clean []string
	for _, tag := range tags {
		if tag = strings.TrimSpace(tag); tag != "" {
			clean = append(clean, tag)
		}
	}
	slices.Sort(clean)
	list := []any{}
	for _, tag := range slices.Compact(clean) {
		list = append(list, tag)
	}
	return s.AppendCustomEntry(CustomTags, map[string]any{"tags": list})
}

// Tags returns the session's tags, sorted.
func (s *Session) Tags() ([]string, error) {
	e, err := s.lastCustom(CustomTags)
	if err != nil || e == nil {
		return nil, err
	}
	return e.Custom.Tags(), nil
}

// Tags returns the tags that an entry of type CustomTags sets.
func (c *CustomEntry) Tags() []string {
	list, _ := c.Data["tags"].([]any)
	var tags []string
	for _, tag := range list {
		if s, ok := tag.(string); ok {
			tags = append(tags, s)
		}
	}
	return tags
}

// SetPinned pins the session, or unpins it: retention leaves pinned sessions
// alone.
func (s *Session) SetPinned(pinned bool) (string, error) {
	return s.AppendCustomEntry(CustomPinned, map[string]any{"pinned": pinned})
}

// Pinned reports whether the session is pinned.
func (s *Session) Pinned() (bool, error) {
	e, err := s.lastCustom(CustomPinned)
	if err != nil || e == nil {
		return false, err
	}
	pinned, _ := e.Custom.Data["pinned"].(bool)
	return pinned, nil
}

// lastCustom returns the latest custom entry of a type, or nil.
func (s *Session) lastCustom(customType string) (*Entry, error) {
	nodes, err := s.snapshot()
	if err != nil {
		return nil, err
	}
	for i := len(nodes) - 1; i >= 0; i-- {
		if nodes[i].kind != kindCustom {
			continue
		}
		e, err := s.entryAt(context.Background(), &nodes[i])
		if err == nil && e.Custom.CustomType == customType {
			return e, nil
		}
	}
	return nil, nil
}
