package provider

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/coppice-dev/coppice/internal/rawjson"
)

// Providers want the schema of a tool's arguments to be that of an object, and refuse every
// request with a tool whose schema has alternatives at its top. MCP servers write such schemas:
// https://github.com/makenotion/notion-mcp-server/issues/340.

// combiners are the members that providers refuse at the top of a schema. What enum and not say
// is lost: the tool checks its arguments itself.
var combiners = []string{"allOf", "anyOf", "oneOf", "enum", "not"}

// objectSchema returns a schema as one of an object: the members of its alternatives are merged,
// and words say which must be given together. A schema of an object stays as it is.
func objectSchema(raw json.RawMessage) json.RawMessage {
	o := rawjson.MembersOf(raw)
	if o.Str("type") == "object" && o.Has("properties") && !o.Has("$ref") && !slices.ContainsFunc(combiners, o.Has) {
		return raw
	}
	m := merger{defs: o}
	m.merge(o, 0)
	var out rawjson.Members
	out.SetStr("type", "object")
	for _, f := range o {
		if !slices.Contains(combiners, f.Name) && f.Name != "type" && f.Name != "$ref" && f.Name != "properties" && f.Name != "required" && f.Name != "description" {
			out = append(out, f)
		}
	}
	out.SetText("description", strings.TrimSpace(o.Str("description")+" "+m.words()))
	out.Put("properties", m.properties.JSON())
	if len(m.required) > 0 {
		out.Set("required", m.required)
	}
	return out.JSON()
}

// merger collects what a schema and its alternatives say about an object.
type merger struct {
	defs       rawjson.Members // the whole schema, to which references refer
	properties rawjson.Members
	required   []string
	choices    []string // the sets of members of which one must be given, in words
}

// maxNesting is how deep alternatives and references are followed.
const maxNesting = 8

func (m *merger) merge(o rawjson.Members, depth int) {
	if depth > maxNesting {
		return
	}
	if ref := m.resolve(o.Str("$ref")); ref != nil {
		m.merge(ref, depth+1)
	}
	for _, f := range rawjson.MembersOf(o.Get("properties")) {
		m.add(f.Name, f.Value)
	}
	m.require(namesIn(o.Get("required")))
	all, _ := rawjson.Elements(o.Get("allOf"))
	for _, one := range all {
		m.merge(rawjson.MembersOf(one), depth+1)
	}
	for _, name := range []string{"anyOf", "oneOf"} {
		list, _ := rawjson.Elements(o.Get(name))
		m.choose(list, depth+1)
	}
}

// choose merges alternatives: only what all of them require is required.
func (m *merger) choose(list []json.RawMessage, depth int) {
	var common, words []string
	for i, one := range list {
		part := merger{defs: m.defs}
		part.merge(rawjson.MembersOf(one), depth)
		for _, f := range part.properties {
			m.add(f.Name, f.Value)
		}
		if i == 0 {
			common = part.required
		}
		common = slices.DeleteFunc(slices.Clone(common), func(name string) bool { return !slices.Contains(part.required, name) })
		if len(part.required) > 0 {
			words = append(words, strings.Join(part.required, " and "))
		}
		m.choices = append(m.choices, part.choices...)
	}
	m.require(common)
	if slices.Sort(words); len(slices.Compact(slices.Clone(words))) > 1 {
		m.choices = append(m.choices, strings.Join(slices.Compact(words), ", or "))
	}
}

// add adds a property. One that alternatives describe differently may be either.
func (m *merger) add(name string, schema json.RawMessage) {
	old := m.properties.Get(name)
	switch {
	case old == nil:
		m.properties.Put(name, schema)
	case !bytes.Equal(old, schema):
		either := rawjson.MembersOf(old)
		list, ok := rawjson.Elements(either.Get("anyOf"))
		if len(either) != 1 || !ok {
			list = []json.RawMessage{old}
		}
		if !slices.ContainsFunc(list, func(one json.RawMessage) bool { return bytes.Equal(one, schema) }) {
			m.properties.Put(name, rawjson.Members{{Name: "anyOf", Value: rawjson.List(append(slices.Clone(list), schema))}}.JSON())
		}
	}
}

func (m *merger) require(names []string) {
	for _, name := range names {
		if !slices.Contains(m.required, name) {
			m.required = append(m.required, name)
		}
	}
}

// resolve returns what a reference within the schema refers to, or nil.
func (m *merger) resolve(ref string) rawjson.Members {
	path, ok := strings.CutPrefix(ref, "#/")
	if !ok {
		return nil
	}
	at := m.defs
	for name := range strings.SplitSeq(path, "/") {
		at = rawjson.MembersOf(at.Get(name))
	}
	return at
}

// words says which members must be given together.
func (m *merger) words() string {
	if len(m.choices) == 0 {
		return ""
	}
	return "Needed: " + strings.Join(m.choices, "; ") + "."
}

func namesIn(list json.RawMessage) []string {
	var names []string
	elements, _ := rawjson.Elements(list)
	for _, raw := range elements {
		if name, ok := rawjson.String(raw); ok {
			names = append(names, name)
		}
	}
	return names
}
