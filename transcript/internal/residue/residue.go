// Package residue keeps the parts of a record that a session has no place for, so that the
// format's own writer can write them again.
//
// A reader turns a record into an entry, lets the writer turn that entry back into a record,
// and keeps the difference between the two records with the entry. When the entry is written
// again, the difference is put back: the record then has equal JSON values, however much of
// it the reader understood. Nothing is kept twice.
package residue

import (
	"encoding/json"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
)

// Of returns the changes that make a value equal to the original, or nil if it is equal: see
// rawjson.Difference. Both are the text of a JSON object.
func Of(made, original loose.Value) json.RawMessage { return rawjson.Difference(made, original) }

// Restore applies a residue to a value. If the value has changed since, the residue changes
// what it can.
func Restore(made loose.Value, what loose.Value) json.RawMessage { return rawjson.Patch(made, what) }

// RestoreIn applies the residue that Keep kept for a format to the first of the records that
// something became.
func RestoreIn(extra session.Fields, format string, made ...json.RawMessage) []json.RawMessage {
	if kept := In(extra, format); kept != nil {
		made[0] = Restore(loose.Value(made[0]), kept)
	}
	return made
}

// Keep adds a residue to the unknown members of something, under the name of a
// format. Nothing is added for nil.
func Keep(extra session.Fields, format string, what json.RawMessage) session.Fields {
	if what == nil {
		return extra
	}
	return append(extra, session.Field{Name: format, Value: what})
}

// In returns the residue that was kept for a format, or nil.
func In(extra session.Fields, format string) loose.Value {
	for _, f := range extra {
		if f.Name == format {
			return loose.Value(f.Value)
		}
	}
	return nil
}
