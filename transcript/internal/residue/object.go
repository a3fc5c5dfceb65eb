package residue

import (
	"encoding/json"

	"github.com/coppice-dev/coppice/internal/rawjson"
)

// Object is a JSON object that is being made, its members in order.
type Object = rawjson.Members

// List returns an array of values that are JSON already.
func List(values []json.RawMessage) json.RawMessage { return rawjson.List(values) }
