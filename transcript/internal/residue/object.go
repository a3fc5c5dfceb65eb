package residue

import (
	"encoding/json"

	"github.com/coppice-dev/coppice/internal/rawjson"
)

// Object is a JSON object under construction, with its members in order.
type Object = rawjson.Members

// List returns an array of JSON values.
func List(values []json.RawMessage) json.RawMessage { return rawjson.List(values) }
