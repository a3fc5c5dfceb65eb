package residue

import (
	"bytes"
	"encoding/json"
)

// Indented returns the object as text for people, with two spaces a level.
func (o Object) Indented() []byte {
	var b bytes.Buffer
	if err := json.Indent(&b, o.JSON(), "", "  "); err != nil {
		return o.JSON() // a value is not JSON: whoever reads it will say so
	}
	return b.Bytes()
}
