package session

import (
	"bytes"
	"context"
	"slices"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/store"
)

// findState finds the state before the first entry that counts, unless the
// compaction recorded it.
func (s *Session) findState(ctx context.Context, sel *selection) error {
	if sel.compaction != nil && sel.compaction.Compaction.State != nil {
		sel.state = *sel.compaction.Compaction.State
		return nil
	}
	if sel.older.at == none {
		return nil
	}
	p, err := s.pastOf(ctx, sel)
	if err != nil {
		return err
	}
	s.pasts.mu.Lock()
	state := p.state
	s.pasts.mu.Unlock()
	if state == nil {
		if state, err = s.stateAt(ctx, sel.older, s.countsOf(sel.version)); err != nil {
			return err
		}
		s.pasts.mu.Lock()
		p.state = state
		s.pasts.mu.Unlock()
	}
	sel.state = *state
	return nil
}

// stateAt returns what is in force at the end of a path. n are the counts of its tree.
func (s *Session) stateAt(ctx context.Context, path ancestors, n counts) (*State, error) {
	state := &State{}
	levelsAt, modelsAt := path, path
	if n.kinds[kindThinkingLevel] == 0 {
		levelsAt.at = none
	}
	if n.kinds[kindModelChange]+n.speakers[speakerModel]+n.speakers[speakerUnknown] == 0 {
		modelsAt.at = none
	}
	isLevel := func(n *node) bool { return n.kind == kindThinkingLevel }
levels:
	for levels := range levelsAt.some(isLevel) {
		entries, err := s.inOrder(nodesOf(levels))
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if e != nil {
				state.ThinkingLevel = e.ThinkingLevel.ThinkingLevel
				break levels
			}
		}
	}
	var told []State // the models that answered, nearest first
	err := s.eachModel(ctx, modelsAt, func(m State, isChange bool) bool {
		told = append(told, m)
		n := len(told)
		// Nothing before a model change matters, nor before an answer that names its
		// provider, nor before an answer of another model.
		return isChange || m.Provider != "" || n > 1 && told[n-2].Model != m.Model
	})
	for _, m := range slices.Backward(told) {
		state.answeredBy(m.Provider, m.Model)
	}
	return state, err
}

// eachModel visits the model changes and the answers that name a model, nearest first,
// until visit returns true. It does not decode messages, because a long path may have none
// that does.
func (s *Session) eachModel(ctx context.Context, path ancestors, visit func(m State, isChange bool) (stop bool)) error {
	mayTell := func(n *node) bool {
		return n.kind == kindModelChange || n.kind == kindMessage && (n.speaker == speakerModel || n.speaker == speakerUnknown)
	}
	for some := range path.some(mayTell) {
		slices.Reverse(some) // as they are read
		found := make([]*State, len(some))
		err := s.eachLine(ctx, nodesOf(some), never, func(i int, line store.Line) error {
			if some[i].kind == kindModelChange {
				if e, err := decodeEntry(bytes.Clone(line.Data)); err == nil {
					found[i] = &State{Provider: e.ModelChange.Provider, Model: e.ModelChange.ModelID}
				}
			} else if namesModel(line.Data) {
				if role, provider, model := speaks(line.Data); role == RoleAssistant && model != "" {
					found[i] = &State{Provider: provider, Model: model}
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		for i, m := range slices.Backward(found) {
			if m != nil && visit(*m, some[i].kind == kindModelChange) {
				return nil
			}
		}
	}
	return nil
}

// namesModel reports whether a line, or the part after the role, may name the model that
// answered.
func namesModel(line []byte) bool {
	line = bytes.TrimPrefix(line, beforeText) // bytes.Contains is slow where there are many quotes
	return bytes.Contains(line, []byte(`"model"`))
}

// beforeText follows the role in nearly all lines, as we write them.
var beforeText = []byte(`,"content":[{"type":"text","text":{"content":"`)

// update applies an entry to the state.
func (s *State) update(e *Entry) {
	switch {
	case e.ModelChange != nil:
		s.Provider, s.Model = e.ModelChange.Provider, e.ModelChange.ModelID
	case e.ThinkingLevel != nil:
		s.ThinkingLevel = e.ThinkingLevel.ThinkingLevel
	case e.Message != nil && e.Message.Role == RoleAssistant && e.Message.Model != "":
		s.answeredBy(e.Message.Provider, e.Message.Model)
	}
}

// answeredBy applies an answer that names its model and perhaps its provider. Without a
// provider, the one in force still holds if the model is the same; otherwise it is unknown.
func (s *State) answeredBy(provider, model string) {
	if provider != "" || model != s.Model {
		s.Provider = provider
	}
	s.Model = model
}

// speaks returns the role in the line of a message, and the model and its provider, without
// decoding the content.
func speaks(line []byte) (role, provider, model string) {
	odd := false // the members are not in the usual order
	take := func(into *string, value []byte) {
		text, ok := rawjson.String(value)
		odd = odd || !ok || *into != ""
		*into = text
	}
	messages := 0
	err := rawjson.Object(line, func(key, value []byte) error {
		if string(key) != "message" {
			return nil
		}
		messages++
		return rawjson.Object(value, func(key, value []byte) error {
			switch string(key) {
			case "role":
				take(&role, value)
			case "provider":
				take(&provider, value)
			case "model":
				take(&model, value)
			}
			return nil
		})
	})
	if err == nil && messages == 1 && !odd {
		return role, provider, model
	}
	e, err := decodeEntry(bytes.Clone(line))
	if err != nil || e.Message == nil {
		return "", "", ""
	}
	return e.Message.Role, e.Message.Provider, e.Message.Model
}
