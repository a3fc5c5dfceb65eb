package cli

import (
	"strings"

	"github.com/spf13/cobra"
)

// Errors of the floor name the fields of requests as JSON does. People read what they
// typed instead: --keep-tokens for keep_tokens, ID for session.

// fieldNames has what commands call the fields that are not flags of the same name. Those
// under "" hold for every command that has no other name for them.
var fieldNames = map[string]map[string]string{
	"": {
		"session": "ID", "sessions": "the ids of sessions", "entry": "ENTRY", "name": "NAME", "label": "TEXT",
		"content": "TEXT", "text": "the message", "tags": "--tag", "path": "-o",
	},
	"append":  {"message": "--role"},
	"backup":  {"path": "DIR"},
	"branch":  {"auto": "--summarise"},
	"compare": {"other": "the other ID"},
	"context": {"window.tokens": "--window", "last": "--limit"},
	"export":  {"sessions": "an ID"},
	"images":  {"session": "an ID"},
	"import":  {"paths": "a PATH", "format": "--from"},
	"merge":   {"from": "LEAF", "other": "--from", "picks": "--pick"},
	"note":    {"text": "TEXT"},
	"rate":    {"rating": "the rating"},
	"restore": {"from": "DIR"},
	"show":    {"entry": "--raw"},
	"tag":     {"add": "+TAG", "remove": "-TAG"},
}

// fieldsOf returns what a command calls a field of a request.
func fieldsOf(cmd *cobra.Command) func(field string) string {
	return func(field string) string {
		path := strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ")
		if name, ok := fieldNames[path][field]; ok {
			return name
		}
		if inside, ok := strings.CutPrefix(field, "entry."); ok {
			return "--entry: " + inside
		}
		last := field[strings.LastIndexByte(field, '.')+1:] // of a field in a field
		if flag := strings.ReplaceAll(last, "_", "-"); cmd.Flags().Lookup(flag) != nil {
			return "--" + flag
		}
		if name, ok := fieldNames[""][last]; ok {
			return name
		}
		return field
	}
}
