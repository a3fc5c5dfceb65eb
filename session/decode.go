package session

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/coppice-dev/coppice/internal/rawjson"
)

// UnmarshalJSON reads an entry in any of the forms that a log may hold: nested
// or flat payloads, any order of members, unknown members and types.
func (e *Entry) UnmarshalJSON(line []byte) error {
	decoded, err := decodeEntry(bytes.Clone(line))
	if err != nil {
		return err
	}
	*e = *decoded
	return nil
}

// UnmarshalJSON reads a header.
func (h *Header) UnmarshalJSON(line []byte) error {
	decoded, err := decodeHeader(bytes.Clone(line))
	if err != nil {
		return err
	}
	*h = *decoded
	return nil
}

// UnmarshalJSON reads a block.
func (c *Content) UnmarshalJSON(data []byte) error {
	decoded, err := decodeContent(bytes.Clone(data))
	if err != nil {
		return err
	}
	*c = decoded
	return nil
}

var bom = []byte("\xef\xbb\xbf")

func decodeHeader(line []byte) (*Header, error) {
	h := &Header{Type: TypeSession}
	err := decodeObject("header", bytes.TrimPrefix(line, bom), &h.Extra, func(key string, value []byte) decoding {
		switch key {
		case "type":
			return known
		case "id":
			return str(value, &h.ID)
		case "version":
			return integer(value, &h.Version)
		case "parent_session":
			return str(value, &h.ParentSession)
		case "timestamp":
			return timestamp(value, &h.CreatedAt)
		case "relation":
			return str(value, &h.Relation)
		case "continuation_index":
			return integer(value, &h.Continuation)
		case "cwd":
			return str(value, &h.CWD)
		case "key":
			return str(value, &h.Key)
		}
		return unknown
	})
	if err != nil {
		return nil, err
	}
	return h, nil
}

// decodeEntry reads a line. The entry may refer to the line's bytes: the caller
// must not change them afterwards.
func decodeEntry(line []byte) (*Entry, error) {
	e := &Entry{}
	var flat Fields // members that may belong to a flat payload
	var payload []byte
	var seen [4]bool // which of the leading members were there
	// The first occurrence of a leading member counts, even if it is of the wrong
	// kind, as for the scanner that reads only the first bytes of a line; a
	// second one is just kept.
	first := func(i int, read func() decoding) decoding {
		if seen[i] {
			return unknown
		}
		seen[i] = true
		return read()
	}
	err := decodeObject("entry", bytes.TrimPrefix(line, bom), &flat, func(key string, value []byte) decoding {
		switch key {
		case "type":
			return first(0, func() decoding { return str(value, (*string)(&e.Type)) })
		case "id":
			return first(1, func() decoding { return str(value, &e.ID) })
		case "parent_id":
			return first(2, func() decoding { return parentID(value, &e.ParentID) })
		case "timestamp":
			return first(3, func() decoding { return timestamp(value, &e.Timestamp) })
		}
		return unknown
	})
	if err != nil {
		return nil, err
	}
	name := string(e.Type)
	if name == oldThinkingLevel {
		e.Type = TypeThinkingLevel
		if raw, _, ok := flat.take(name); !ok || kindOf(raw) != '{' {
			name = string(TypeThinkingLevel)
		}
	}
	decode := e.payloadDecoder()
	if decode == nil {
		e.Extra = flat
		return e, nil
	}
	// Nested: the payload is the member named like the type. Flat: the members
	// of the payload stand among those of the entry.
	payload, e.Extra, _ = flat.take(name)
	if kindOf(payload) == '{' {
		return e, decodeObject(name, payload, decode.extra, decode.field)
	}
	e.Extra = nil
	for _, f := range flat {
		if decode.field(f.Name, f.Value) != known {
			e.Extra = append(e.Extra, f)
		}
	}
	return e, nil
}

// payloadDecoder says how to read a payload: what to do with each member, and
// where the members go that it does not know.
type payloadDecoder struct {
	extra *Fields
	field func(key string, value []byte) decoding
}

// payloadDecoder allocates the payload of the entry's type, or returns nil for
// a type that has none.
func (e *Entry) payloadDecoder() *payloadDecoder {
	switch e.Type {
	case TypeMessage:
		e.Message = &MessageEntry{}
		return &payloadDecoder{&e.Message.Extra, e.Message.field}
	case TypeModelChange:
		e.ModelChange = &ModelChangeEntry{}
		return &payloadDecoder{&e.ModelChange.Extra, func(key string, value []byte) decoding {
			return pick(key, value, "provider", &e.ModelChange.Provider, "model_id", &e.ModelChange.ModelID)
		}}
	case TypeThinkingLevel:
		e.ThinkingLevel = &ThinkingLevelEntry{}
		return &payloadDecoder{&e.ThinkingLevel.Extra, func(key string, value []byte) decoding {
			return pick(key, value, "thinking_level", &e.ThinkingLevel.ThinkingLevel, "", nil)
		}}
	case TypeLabel:
		e.Label = &LabelEntry{}
		return &payloadDecoder{&e.Label.Extra, func(key string, value []byte) decoding {
			return pick(key, value, "target_id", &e.Label.TargetID, "label", &e.Label.Label)
		}}
	case TypeSessionInfo:
		e.SessionInfo = &SessionInfoEntry{}
		return &payloadDecoder{&e.SessionInfo.Extra, func(key string, value []byte) decoding {
			return pick(key, value, "name", &e.SessionInfo.Name, "", nil)
		}}
	case TypeCompaction:
		e.Compaction = &CompactionEntry{}
		return &payloadDecoder{&e.Compaction.Extra, e.Compaction.field}
	case TypeBranchSummary:
		e.BranchSummary = &BranchSummaryEntry{}
		return &payloadDecoder{&e.BranchSummary.Extra, func(key string, value []byte) decoding {
			return pick(key, value, "summary", &e.BranchSummary.Summary, "from_id", &e.BranchSummary.FromID)
		}}
	case TypeCustom:
		e.Custom = &CustomEntry{}
		return &payloadDecoder{&e.Custom.Extra, e.Custom.field}
	case TypeLeaf:
		e.Leaf = &LeafEntry{}
		return &payloadDecoder{&e.Leaf.Extra, func(key string, value []byte) decoding {
			return pick(key, value, "from_id", &e.Leaf.FromID, "", nil)
		}}
	case TypeContextEdit:
		e.ContextEdit = &ContextEditEntry{}
		return &payloadDecoder{&e.ContextEdit.Extra, e.ContextEdit.field}
	case TypeRevert:
		e.Revert = &RevertEntry{}
		return &payloadDecoder{&e.Revert.Extra, func(key string, value []byte) decoding {
			return pick(key, value, "target_id", &e.Revert.TargetID, "", nil)
		}}
	case TypeMerge:
		e.Merge = &MergeEntry{}
		return &payloadDecoder{&e.Merge.Extra, e.Merge.field}
	}
	return nil
}

// decoding is what became of a member: taken, or to be kept as unknown. A known
// name with a value of the wrong kind is unknown too: it is kept, not guessed.
type decoding bool

const (
	known   decoding = true
	unknown decoding = false
)

// decodeObject reads the members of an object; those that field does not know
// are added to extra.
func decodeObject(what string, raw []byte, extra *Fields, field func(key string, value []byte) decoding) error {
	err := rawjson.Object(raw, func(key, value []byte) error {
		if field(string(key), value) == unknown {
			*extra = append(*extra, Field{string(key), value})
		}
		return nil
	})
	if err != nil {
		return &Error{Op: "decode", Kind: ErrCorrupt, Err: fmt.Errorf("%s: %w", what, err)}
	}
	return nil
}

// pick reads one of two string members.
func pick(key string, value []byte, name1 string, into1 *string, name2 string, into2 *string) decoding {
	switch {
	case key == name1:
		return str(value, into1)
	case key == name2 && into2 != nil:
		return str(value, into2)
	}
	return unknown
}

func str(value []byte, into *string) decoding {
	s, ok := rawjson.String(value)
	if ok {
		*into = s
	}
	return decoding(ok || rawjson.IsNull(value))
}

func integer(value []byte, into *int) decoding {
	n, ok := rawjson.Int(value)
	if ok {
		*into = int(n)
	}
	return decoding(ok)
}

func parentID(value []byte, into **string) decoding {
	if rawjson.IsNull(value) {
		*into = nil
		return known
	}
	s, ok := rawjson.String(value)
	if ok {
		*into = &s
	}
	return decoding(ok)
}

// The forms of time that are read besides RFC 3339: without a zone, which means
// local time.
var naiveTimes = []string{"2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999"}

func timestamp(value []byte, into *time.Time) decoding {
	s, ok := rawjson.String(value)
	if !ok {
		return unknown
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	for i := 0; err != nil && i < len(naiveTimes); i++ {
		t, err = time.ParseInLocation(naiveTimes[i], s, time.Local)
	}
	t = t.UTC()
	if err != nil || t.Year() < 0 || t.Year() > 9999 { // RFC 3339 has no other years
		return unknown
	}
	*into = t
	return known
}

// kindOf returns the first byte of a value, which tells what it is.
func kindOf(value []byte) byte {
	if len(value) == 0 {
		return 0
	}
	return value[0]
}

// object decodes a map and keeps its bytes. A number that a float64 cannot hold
// is a json.Number in the map: see rawjson.Number.
func object(value []byte, into *map[string]any, raw *json.RawMessage) decoding {
	if kindOf(value) != '{' {
		return decoding(rawjson.IsNull(value))
	}
	*raw = value
	*into, _ = rawjson.Map(value) // the whole line was found valid
	return known
}

func (m *MessageEntry) field(key string, value []byte) decoding {
	switch key {
	case "role":
		return str(value, &m.Role)
	case "content":
		return contents(value, &m.Content)
	case "model":
		return str(value, &m.Model)
	case "provider":
		return str(value, &m.Provider)
	case "category":
		return str(value, &m.Category)
	case "tokens":
		var n int
		if integer(value, &n) == unknown {
			return unknown
		}
		m.Tokens = &n
		return known
	case "usage":
		return usage(value, &m.Usage)
	case "stop_reason":
		return str(value, &m.StopReason)
	case "response_id":
		return str(value, &m.ResponseID)
	case "metadata":
		return object(value, &m.Metadata, &m.rawMetadata)
	}
	return unknown
}

func usage(value []byte, into **Usage) decoding {
	if kindOf(value) != '{' {
		return unknown
	}
	u := &Usage{}
	err := decodeObject("usage", value, &u.Extra, func(key string, value []byte) decoding {
		switch key {
		case "input":
			return integer(value, &u.Input)
		case "output":
			return integer(value, &u.Output)
		case "cache_read":
			return integer(value, &u.CacheRead)
		case "cache_write":
			return integer(value, &u.CacheWrite)
		case "reasoning":
			return integer(value, &u.Reasoning)
		case "cost_micro_usd":
			return integer(value, &u.CostMicroUSD)
		}
		return unknown
	})
	*into = u
	return decoding(err == nil)
}

func (c *CompactionEntry) field(key string, value []byte) decoding {
	switch key {
	case "summary":
		return str(value, &c.Summary)
	case "first_kept_entry_id":
		return str(value, &c.FirstKeptEntryID)
	case "tokens_before":
		return integer(value, &c.TokensBefore)
	case "state":
		if kindOf(value) != '{' {
			return unknown
		}
		c.State = &State{}
		return decoding(decodeObject("state", value, &c.State.Extra, c.State.field) == nil)
	}
	return unknown
}

func (s *State) field(key string, value []byte) decoding {
	if key == "thinking_level" {
		return str(value, &s.ThinkingLevel)
	}
	return pick(key, value, "provider", &s.Provider, "model", &s.Model)
}

func (c *CustomEntry) field(key string, value []byte) decoding {
	switch key {
	case "custom_type":
		return str(value, &c.CustomType)
	case "data":
		return object(value, &c.Data, &c.rawData)
	}
	return unknown
}

func (e *ContextEditEntry) field(key string, value []byte) decoding {
	switch key {
	case "target_id":
		return str(value, &e.TargetID)
	case "replacement":
		return contents(value, &e.Replacement)
	}
	return unknown
}

func (m *MergeEntry) field(key string, value []byte) decoding {
	if key != "entry_ids" {
		return pick(key, value, "from_id", &m.FromID, "summary", &m.Summary)
	}
	var ids []string
	ok := known
	err := rawjson.Array(value, func(id []byte) error {
		var s string
		ok = ok && str(id, &s)
		ids = append(ids, s)
		return nil
	})
	if err != nil || ok == unknown {
		return unknown
	}
	m.EntryIDs = ids
	return known
}
