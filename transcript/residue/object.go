package residue

import (
	"encoding/json"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/transcript/loose"
)

// Object is a JSON object that is being made, its members in order.
type Object = rawjson.Members

// List returns an array of values that are JSON already.
func List(values []json.RawMessage) json.RawMessage { return rawjson.List(values) }

// members returns the members of an object; of a name that is there twice the
// last counts, as it does for most programs.
func members(v loose.Value) Object { return rawjson.MembersOf(v) }
