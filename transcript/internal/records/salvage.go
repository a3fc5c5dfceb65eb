package records

import (
	"bytes"
	"encoding/json"

	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
	"github.com/coppice-dev/coppice/transcript/internal/residue"
)

// WholeOrTorn is Whole for an object with a list of messages, in the member of that name.
// If the file is cut off or broken in that list, it returns the part before.
func WholeOrTorn(f *transcript.File, list string, to transcript.Sink) (Record, error) {
	whole, broken := Whole(f)
	if broken == nil {
		return whole, nil
	}
	data, err := f.ReadAll()
	if err != nil {
		return Record{}, err
	}
	v := Salvage(data, list, broken, to)
	if v == nil {
		return Record{}, broken
	}
	return Record{Value: v, Span: transcript.Span{Len: int64(len(data))}, N: 1, Only: true}, nil
}

// Salvage returns the readable beginning of a broken object: the members before its list, and
// the elements of the list that are complete. It reports why that is not all. Nil means that
// there are no such elements.
func Salvage(data []byte, list string, why error, to transcript.Sink) loose.Value {
	dec := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(data, bom)))
	if open, err := dec.Token(); err != nil || open != json.Delim('{') {
		return nil
	}
	var whole residue.Object
	for {
		member, err := dec.Token()
		name, ok := member.(string)
		if err != nil || !ok {
			return nil
		}
		if name == list {
			break
		}
		var value json.RawMessage
		if dec.Decode(&value) != nil {
			return nil
		}
		whole.Set(name, value)
	}
	if open, err := dec.Token(); err != nil || open != json.Delim('[') {
		return nil
	}
	var elements []json.RawMessage
	for dec.More() {
		var element json.RawMessage
		if dec.Decode(&element) != nil {
			break
		}
		elements = append(elements, element)
	}
	if len(elements) == 0 {
		return nil
	}
	to.Problem(transcript.Problem{Reason: why.Error() + "; the whole messages before that were read"})
	whole.Set(list, residue.List(elements))
	return loose.Value(whole.JSON())
}
