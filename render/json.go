package render

import (
	"bytes"
	"encoding/json"
	"strings"
)

// IndentJSON returns JSON for people: two spaces for each level, and no escapes for < and >.
func IndentJSON(v any) (string, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(v)
	return strings.TrimSuffix(b.String(), "\n"), err
}
