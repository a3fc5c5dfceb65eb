package wire

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/coppice-dev/coppice/internal/rawjson"
)

// Merged is a JSON value that grows as the pieces of a stream are merged into
// it: strings are lengthened, objects get members, lists get elements. Elements
// that say their index are merged with the element of the same index.
type Merged struct {
	raw     json.RawMessage // the text of a value that does not grow
	text    *strings.Builder
	members []mergedMember
	names   map[string]*Merged // the members by their names
	list    []*Merged
	indexed map[int64]*Merged // the elements by their index
	kind    byte              // as rawjson.Kind has it
}

type mergedMember struct {
	name  string
	value *Merged
}

// whole are members that are repeated as a whole: they do not grow.
var whole = []string{"role", "id", "type", "index", "format"}

// repeats reports whether a name is sent again, perhaps with more of it, rather than continued:
// servers do either.
func (m *Merged) repeats(name string) bool {
	return m.kind != 's' || strings.HasPrefix(name, m.text.String())
}

// Add merges a piece.
func (m *Merged) Add(piece json.RawMessage) {
	kind := rawjson.Kind(piece)
	switch {
	case kind == '0' && m.kind != 0: // null adds nothing
	case kind == 's' && m.kind == 's':
		s, _ := rawjson.String(piece)
		m.text.WriteString(s)
	case kind == 'o' && m.kind == 'o':
		m.addMembers(Members(piece))
	case kind == 'a' && m.kind == 'a':
		m.addElements(piece)
	default:
		m.set(piece, kind)
	}
}

func (m *Merged) set(piece json.RawMessage, kind byte) {
	*m = Merged{kind: kind}
	switch kind {
	case 's':
		s, _ := rawjson.String(piece)
		m.text = &strings.Builder{}
		m.text.WriteString(s)
	case 'o':
		m.addMembers(Members(piece))
	case 'a':
		m.addElements(piece)
	default:
		m.raw = piece
	}
}

func (m *Merged) addMembers(o Object) {
	m.kind = 'o'
	for _, f := range o {
		value := m.Member(f.Name)
		s, _ := rawjson.String(f.Value)
		if slices.Contains(whole, f.Name) || f.Name == "name" && value.repeats(s) {
			if s, ok := rawjson.String(f.Value); value.kind == 's' && ok && s == "" {
				continue // known already: not added again
			}
			if rawjson.IsNull(f.Value) && value.kind != 0 {
				continue
			}
			value.set(f.Value, rawjson.Kind(f.Value))
			continue
		}
		value.Add(f.Value)
	}
}

// Member returns a member, and adds it if there is none.
func (m *Merged) Member(name string) *Merged {
	m.kind = 'o'
	if have := m.names[name]; have != nil {
		return have
	}
	if m.names == nil {
		m.names = make(map[string]*Merged)
	}
	value := &Merged{}
	m.names[name] = value
	m.members = append(m.members, mergedMember{name, value})
	return value
}

func (m *Merged) addElements(piece json.RawMessage) {
	list, _ := Elements(piece)
	for _, raw := range list {
		index, ok := rawjson.Int(Members(raw).Get("index"))
		if have := m.indexed[index]; ok && have != nil {
			have.Add(raw)
			continue
		}
		added := &Merged{}
		added.Add(raw)
		m.list = append(m.list, added)
		if ok {
			if m.indexed == nil {
				m.indexed = make(map[int64]*Merged)
			}
			m.indexed[index] = added
		}
	}
}

// JSON returns the value as text.
func (m *Merged) JSON() json.RawMessage {
	switch m.kind {
	case 's':
		return Quote(m.text.String())
	case 'o':
		var o Object
		for _, member := range m.members {
			if member.value.kind != 0 {
				o = append(o, Object{{Name: member.name, Value: member.value.JSON()}}...)
			}
		}
		return o.JSON()
	case 'a':
		list := make([]json.RawMessage, len(m.list))
		for i, e := range m.list {
			list[i] = e.JSON()
		}
		return List(list)
	}
	if m.raw == nil {
		return json.RawMessage("null")
	}
	return m.raw
}
