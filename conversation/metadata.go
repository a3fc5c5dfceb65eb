package conversation

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/coppice-dev/coppice/session"
)

// The metadata of sessions and messages is whatever a caller puts there: nested maps and
// lists, and values of its own types. We copy what comes in and what goes out, all the way
// down. Otherwise a caller who changes a nested map would change what we keep, and saving
// would compare the map with itself and find nothing to save.

// cloneMap returns a deep copy of a map of JSON values. It is never nil.
func cloneMap(m map[string]any) map[string]any {
	if m == nil {
		return map[string]any{}
	}
	return session.Entry{Custom: &session.CustomEntry{Data: m}}.Clone().Custom.Data
}

// cloneFields returns a copy of members that shares nothing with them.
func cloneFields(f session.Fields) session.Fields { return session.Entry{Extra: f}.Clone().Extra }

// stored returns a map as it will be when it is read from the log, so that callers get the
// same whether or not a session is in memory. It is never nil.
func stored(m map[string]any) (map[string]any, error) {
	e, err := encoded(session.Custom(customMetadata, m))
	if err != nil {
		return nil, fmt.Errorf("metadata: %w: %w", session.ErrInvalid, err)
	}
	if e.Custom == nil || e.Custom.Data == nil {
		return map[string]any{}, nil
	}
	return e.Custom.Data, nil
}

// encoded returns an entry as it will be when it is read from the log.
func encoded(e session.Entry) (stored session.Entry, _ error) {
	e.ID = cmp.Or(e.ID, "x") // so that it is complete
	line, err := e.MarshalJSON()
	if err == nil {
		err = stored.UnmarshalJSON(line)
	}
	return stored, err
}

// sameJSON reports whether two maps are the same once they are stored.
func sameJSON(a, b map[string]any) bool {
	if len(a) == 0 && len(b) == 0 {
		return true
	}
	x, err1 := json.Marshal(a)
	y, err2 := json.Marshal(b)
	return err1 == nil && err2 == nil && bytes.Equal(x, y)
}

// own returns a message's entry that shares nothing with the caller's value.
func (m Message) own() (session.Entry, error) {
	e := m.entry()
	if isPlain(m.Metadata) && allPlain(m.Content) {
		return e.Clone(), nil
	}
	// It contains types of the caller's, which only encoding to JSON can copy.
	e, err := encoded(e)
	if err != nil {
		return e, fmt.Errorf("message %.80q: %w: %w", m.ID, session.ErrInvalid, err)
	}
	return e, nil
}

func allPlain(blocks []session.Content) bool {
	for i := range blocks {
		if u := blocks[i].ToolUse; u != nil && !isPlain(u.Input) {
			return false
		}
	}
	return true
}

// isPlain reports whether a value consists only of the types that JSON decodes to, so that a
// clone shares nothing with it.
func isPlain(v any) bool {
	switch v := v.(type) {
	case nil, bool, string, int, int64, float64, json.Number:
		return true
	case map[string]any:
		for _, member := range v {
			if !isPlain(member) {
				return false
			}
		}
		return true
	case []any:
		for _, item := range v {
			if !isPlain(item) {
				return false
			}
		}
		return true
	}
	return false
}
