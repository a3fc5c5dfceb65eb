package provider_test

import (
	"testing"

	"github.com/coppice-dev/coppice/provider"
)

// TestSchemasAreOfObjects: every schema is sent as that of an object without alternatives at its
// top, and the description names what must be given together.
func TestSchemasAreOfObjects(t *testing.T) {
	t.Parallel()
	for schema, want := range map[string]string{
		`{"type":"object","properties":{"a":{"anyOf":[{"type":"string"}]}}}`: `{"type":"object","properties":{"a":{"anyOf":[{"type":"string"}]}}}`,
		`{"type": "object"}`: `{"type":"object","properties":{}}`,
		`{}`:                 `{"type":"object","properties":{}}`,
		`{"type":["object","null"],"properties":{"a":{}}}`: `{"type":"object","properties":{"a":{}}}`,
		`{"type":"object","anyOf":[{"properties":{"content":{"type":"string"},"p":{"type":"string"}},"required":["p","content"]},` +
			`{"properties":{"source_url":{"type":"string"},"p":{"type":"string"}},"required":["source_url","p"]}]}`: `{"type":"object","description":"Needed: p and content, or source_url and p.",` +
			`"properties":{"content":{"type":"string"},"p":{"type":"string"},"source_url":{"type":"string"}},"required":["p"]}`,
		`{"type":"object","description":"Do.","properties":{"a":{},"b":{}},"required":["b"],"oneOf":[{"required":["a"]},{"required":["c"]}]}`: `{"type":"object","description":"Do. Needed: a, or c.","properties":{"a":{},"b":{}},"required":["b"]}`,
		`{"allOf":[{"properties":{"a":{"type":"string"}},"required":["a"]},{"properties":{"b":{}},"required":["b"]}]}`:                        `{"type":"object","properties":{"a":{"type":"string"},"b":{}},"required":["a","b"]}`,
		`{"oneOf":[{"properties":{"a":{"type":"string"}}},{"properties":{"a":{"type":"number"}}},{"properties":{"a":{"type":"string"}}}]}`:    `{"type":"object","properties":{"a":{"anyOf":[{"type":"string"},{"type":"number"}]}}}`,
		`{"$ref":"#/$defs/x","$defs":{"x":{"properties":{"a":{}},"required":["a"]}}}`:                                                         `{"type":"object","$defs":{"x":{"properties":{"a":{}},"required":["a"]}},"properties":{"a":{}},"required":["a"]}`,
		`{"$ref":"#"}`:                           `{"type":"object","properties":{}}`,
		`{"anyOf":[true,{"required":["a"]}]}`:    `{"type":"object","properties":{}}`,
		`{"type":"object","enum":[{}],"not":{}}`: `{"type":"object","properties":{}}`,
		`{"anyOf":[{"$ref":"#/$defs/x"}],"$defs":{"x":{"anyOf":[{"$ref":"#/$defs/x"},{"properties":{"a":{}}}]}}}`: `{"type":"object","$defs":{"x":{"anyOf":[{"$ref":"#/$defs/x"},{"properties":{"a":{}}}]}},"properties":{"a":{}}}`,
	} {
		tool := provider.Tool{Name: "t", Schema: []byte(schema)}
		if got := string(tool.Arguments()); got != want {
			t.Errorf("%s is sent as\n%s, want\n%s", schema, got, want)
		}
	}
}
