package session

import (
	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/store"
)

// The members of each object of a line, but for those of blocks.

// headerLine is a header while its line is read. As in an entry, the first
// occurrence of a member counts.
type headerLine struct {
	*Header
	seen map[string]bool
}

func (h *headerLine) field(d *decoder, key []byte) decoding {
	if h.seen[string(key)] {
		return unknown
	}
	h.seen[string(key)] = true
	switch string(key) {
	case "type":
		d.r.Raw()
		return known
	case "id":
		return d.str(&h.ID)
	case "version":
		return d.integer(&h.Version)
	case "parent_session":
		return d.str(&h.ParentSession)
	case "timestamp":
		return d.timestamp(&h.CreatedAt)
	case "relation":
		return d.str(&h.Relation)
	case "continuation_index":
		return d.integer(&h.Continuation)
	case "cwd":
		return d.str(&h.CWD)
	case "key":
		return d.str(&h.Key)
	}
	return unknown
}

func (m *MessageEntry) extra() *Fields { return &m.Extra }

func (m *MessageEntry) field(d *decoder, key []byte) decoding {
	switch string(key) {
	case "role":
		return d.word(&m.Role)
	case "content":
		return d.contents(&m.Content)
	case "model":
		return d.word(&m.Model)
	case "provider":
		return d.word(&m.Provider)
	case "category":
		return d.word(&m.Category)
	case "tokens":
		n := new(int)
		if d.count(n) == unknown {
			return unknown
		}
		m.Tokens = n
		return known
	case "usage":
		if d.r.Kind() != '{' {
			return unknown
		}
		m.Usage = &Usage{}
		return d.inner(m.Usage, &m.Usage.Extra)
	case "stop_reason":
		return d.word(&m.StopReason)
	case "response_id":
		return d.str(&m.ResponseID)
	case "metadata":
		return d.anyObject(&m.Metadata, &m.rawMetadata)
	}
	return unknown
}

func (u *Usage) field(d *decoder, key []byte) decoding {
	switch string(key) {
	case "input":
		return d.count(&u.Input)
	case "output":
		return d.count(&u.Output)
	case "cache_read":
		return d.count(&u.CacheRead)
	case "cache_write":
		return d.count(&u.CacheWrite)
	case "cache_write_1h":
		return d.count(&u.CacheWriteHour)
	case "reasoning":
		return d.count(&u.Reasoning)
	case "cost_micro_usd":
		return d.count(&u.CostMicroUSD)
	}
	return unknown
}

func (m *ModelChangeEntry) extra() *Fields { return &m.Extra }

func (m *ModelChangeEntry) field(d *decoder, key []byte) decoding {
	switch string(key) {
	case "provider":
		return d.word(&m.Provider)
	case "model_id":
		return d.word(&m.ModelID)
	}
	return unknown
}

func (t *ThinkingLevelEntry) extra() *Fields { return &t.Extra }

func (t *ThinkingLevelEntry) field(d *decoder, key []byte) decoding {
	if string(key) == "thinking_level" {
		return d.word(&t.ThinkingLevel)
	}
	return unknown
}

func (l *LabelEntry) extra() *Fields { return &l.Extra }

func (l *LabelEntry) field(d *decoder, key []byte) decoding {
	switch string(key) {
	case "target_id":
		return d.str(&l.TargetID)
	case "label":
		return d.str(&l.Label)
	}
	return unknown
}

func (s *SessionInfoEntry) extra() *Fields { return &s.Extra }

func (s *SessionInfoEntry) field(d *decoder, key []byte) decoding {
	if string(key) == "name" {
		return d.str(&s.Name)
	}
	return unknown
}

func (c *CompactionEntry) extra() *Fields { return &c.Extra }

func (c *CompactionEntry) field(d *decoder, key []byte) decoding {
	switch string(key) {
	case "summary":
		return d.str(&c.Summary)
	case "first_kept_entry_id":
		return d.str(&c.FirstKeptEntryID)
	case "tokens_before":
		return d.count(&c.TokensBefore)
	case "state":
		if d.r.Kind() != '{' {
			return unknown
		}
		c.State = &State{}
		return d.inner(c.State, &c.State.Extra)
	}
	return unknown
}

func (s *State) field(d *decoder, key []byte) decoding {
	switch string(key) {
	case "provider":
		return d.word(&s.Provider)
	case "model":
		return d.word(&s.Model)
	case "thinking_level":
		return d.word(&s.ThinkingLevel)
	case "kept":
		mark := d.r.Mark()
		kept, ok := keptEntries(d.r.Raw())
		if !ok {
			d.r.Rewind(mark)
			return unknown
		}
		s.Kept = kept
		return known
	}
	return unknown
}

// keptEntries reads a list as we write it; any other is left as it is and not
// believed.
func keptEntries(value []byte) (kept []KeptEntry, ok bool) {
	kept, ok = []KeptEntry{}, true
	err := rawjson.Array(value, func(elem []byte) error {
		var k KeptEntry
		err := rawjson.Object(elem, func(key, value []byte) error {
			switch string(key) {
			case "id":
				ok = ok && k.ID == ""
				k.ID, _ = rawjson.String(value)
			case "at":
				n, isInt := rawjson.Int(value)
				ok = ok && isInt && n > 0 && k.At == 0
				k.At = store.Pos(n)
			default:
				ok = false
			}
			return nil
		})
		ok = ok && err == nil && k.ID != ""
		kept = append(kept, k)
		return nil
	})
	return kept, ok && err == nil
}

func (b *BranchSummaryEntry) extra() *Fields { return &b.Extra }

func (b *BranchSummaryEntry) field(d *decoder, key []byte) decoding {
	switch string(key) {
	case "summary":
		return d.str(&b.Summary)
	case "from_id":
		return d.str(&b.FromID)
	}
	return unknown
}

func (c *CustomEntry) extra() *Fields { return &c.Extra }

func (c *CustomEntry) field(d *decoder, key []byte) decoding {
	switch string(key) {
	case "custom_type":
		return d.word(&c.CustomType)
	case "data":
		return d.anyObject(&c.Data, &c.rawData)
	}
	return unknown
}

func (l *LeafEntry) extra() *Fields { return &l.Extra }

func (l *LeafEntry) field(d *decoder, key []byte) decoding {
	if string(key) == "from_id" {
		return d.str(&l.FromID)
	}
	return unknown
}

func (e *ContextEditEntry) extra() *Fields { return &e.Extra }

func (e *ContextEditEntry) field(d *decoder, key []byte) decoding {
	switch string(key) {
	case "target_id":
		return d.str(&e.TargetID)
	case "replacement":
		return d.contents(&e.Replacement)
	}
	return unknown
}

func (r *RevertEntry) extra() *Fields { return &r.Extra }

func (r *RevertEntry) field(d *decoder, key []byte) decoding {
	if string(key) == "target_id" {
		return d.str(&r.TargetID)
	}
	return unknown
}

func (m *MergeEntry) extra() *Fields { return &m.Extra }

func (m *MergeEntry) field(d *decoder, key []byte) decoding {
	switch string(key) {
	case "from_id":
		return d.str(&m.FromID)
	case "summary":
		return d.str(&m.Summary)
	case "entry_ids":
		return d.strings(&m.EntryIDs)
	case "from_session":
		return d.str(&m.FromSession)
	}
	return unknown
}

func (c *ContinuesEntry) extra() *Fields { return &c.Extra }

func (c *ContinuesEntry) field(d *decoder, key []byte) decoding {
	switch string(key) {
	case "session":
		return d.str(&c.Session)
	case "original":
		return d.str(&c.Original)
	case "created":
		return d.timestamp(&c.Created)
	case "messages":
		return d.count(&c.Messages)
	case "tokens":
		return d.count(&c.Tokens)
	case "estimated":
		return d.count(&c.Estimated)
	}
	return unknown
}

// strings reads a list of strings. One with anything else in it is not guessed at.
func (d *decoder) strings(into *[]string) decoding {
	if d.r.Kind() != '[' {
		return unknown
	}
	mark := d.r.Mark()
	var all []string
	ok := known
	for more := d.r.Open('['); more; more = d.r.More(']') {
		s, isString := d.r.String()
		if !isString {
			ok = unknown
			d.r.Raw()
		}
		all = append(all, s)
	}
	if ok == unknown {
		d.r.Rewind(mark)
		return unknown
	}
	*into = all
	return known
}
