package wire

import (
	"encoding/json"
	"fmt"

	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/session"
)

// DecodeList reads a list of messages, each of which may be several entries.
func DecodeList(list []json.RawMessage, format, what string, message func(Object) []session.Entry) ([]session.Entry, error) {
	var entries []session.Entry
	for i, raw := range list {
		o, err := Parse(raw)
		if err != nil {
			return nil, fmt.Errorf("%s: %s %d must be an object, not %.40s", format, what, i, raw)
		}
		entries = Append(entries, message(o), format)
	}
	return entries, nil
}

// DecodeRequest reads a request: its system prompt, if system finds one, and the messages that
// are in a member.
func DecodeRequest(o Object, model, member string, system func(*Object) (session.Entry, bool),
	messages func([]json.RawMessage) ([]session.Entry, error),
) (*provider.Body, error) {
	b := &provider.Body{Kind: provider.KindRequest, Model: o.Str(model)}
	if prompt, ok := system(&o); ok {
		b.Entries = append(b.Entries, prompt)
	}
	list, _ := o.TakeElements(member)
	entries, err := messages(list)
	if err != nil {
		return nil, err
	}
	b.Entries, b.Fields = append(b.Entries, entries...), session.Fields(o)
	return b, nil
}
