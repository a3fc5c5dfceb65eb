package session

// All that differs by the type of an entry stands here, once. To add a type: give
// it a Type constant and a struct, give the struct a field in Entry and the methods
// of payload, and add a kind and its row. Whatever reads, writes, copies and checks
// entries goes by the rows. What a type does to a context is in assemble.go.

// kind is an EntryType in one byte: the index of its row in kinds.
type kind uint8

const (
	kindOther kind = iota // a type that this version does not know
	kindMessage
	kindModelChange
	kindThinkingLevel
	kindLabel
	kindSessionInfo
	kindCompaction
	kindBranchSummary
	kindCustom
	kindLeaf
	kindContextEdit
	kindRevert
	kindMerge
	kindGap // see TypeGap
)

// kindRow is what this version knows of a type. A function that is nil, or a false,
// means that there is nothing of the sort.
type kindRow struct {
	name  EntryType
	older EntryType // a name that is read like name, and never written

	// The payload, which is nil for entries that have none.
	union[Entry]

	// said: it is a message, or a summary that stands for messages.
	said bool
	// remark: it says something about the session, and nothing in the conversation.
	remark bool
}

// payload is what the member named like the type of an entry or a block says. Every
// type has these methods.
type payload interface {
	members          // reads a member
	extra() *Fields  // the members that it does not know
	write(w *writer) // writes the members that it knows, in their order
	// detach is called for a copy of the struct, and copies what it shares with the
	// original and a caller could change, except for extra.
	detach()
	// checkMembers makes sure that the members are there without which an entry
	// says nothing. It is for what people and programs hand in: see ParseEntry.
	checkMembers() error
}

// own makes a payload, in a copy of its struct, share nothing with the original that
// a caller could change.
func own(p payload) {
	p.detach()
	extra := p.extra()
	*extra = extra.clone()
}

// union is one of the pointers of a tagged union U, of which one is set.
type union[U any] struct {
	get func(*U) payload // nil if it is not set
	set func(*U) payload // points it to an empty payload
	// copy points it, which must be set, to a copy of the struct. What that points
	// to is shared with the original.
	copy func(*U) payload
}

// member returns the union for the pointer that at finds.
func member[U, T any, P interface {
	*T
	payload
}](at func(*U) **T,
) union[U] {
	return union[U]{
		get: func(u *U) payload {
			if p := *at(u); p != nil {
				return P(p)
			}
			return nil
		},
		set: func(u *U) payload {
			p := new(T)
			*at(u) = p
			return P(p)
		},
		copy: func(u *U) payload {
			p := new(T)
			*p = **at(u)
			*at(u) = p
			return P(p)
		},
	}
}

// kinds has a row for each kind.
var kinds = [...]kindRow{
	kindMessage: {
		name: TypeMessage, said: true,
		union: member(func(e *Entry) **MessageEntry { return &e.Message }),
	},
	kindModelChange: {
		name:  TypeModelChange,
		union: member(func(e *Entry) **ModelChangeEntry { return &e.ModelChange }),
	},
	kindThinkingLevel: {
		name: TypeThinkingLevel, older: oldThinkingLevel,
		union: member(func(e *Entry) **ThinkingLevelEntry { return &e.ThinkingLevel }),
	},
	kindLabel: {
		name: TypeLabel, remark: true,
		union: member(func(e *Entry) **LabelEntry { return &e.Label }),
	},
	kindSessionInfo: {
		name: TypeSessionInfo, remark: true,
		union: member(func(e *Entry) **SessionInfoEntry { return &e.SessionInfo }),
	},
	kindCompaction: {
		name: TypeCompaction, said: true,
		union: member(func(e *Entry) **CompactionEntry { return &e.Compaction }),
	},
	kindBranchSummary: {
		name: TypeBranchSummary, said: true,
		union: member(func(e *Entry) **BranchSummaryEntry { return &e.BranchSummary }),
	},
	kindCustom: {
		name: TypeCustom, remark: true,
		union: member(func(e *Entry) **CustomEntry { return &e.Custom }),
	},
	kindLeaf: {
		name:  TypeLeaf,
		union: member(func(e *Entry) **LeafEntry { return &e.Leaf }),
	},
	kindContextEdit: {
		name:  TypeContextEdit,
		union: member(func(e *Entry) **ContextEditEntry { return &e.ContextEdit }),
	},
	kindRevert: {
		name:  TypeRevert,
		union: member(func(e *Entry) **RevertEntry { return &e.Revert }),
	},
	kindMerge: {
		name: TypeMerge, said: true,
		union: member(func(e *Entry) **MergeEntry { return &e.Merge }),
	},
	kindGap: {name: TypeGap},
}

// kindsByName has the kinds of the types that may stand in a line. A gap may not: a
// line that says it is one is of a type that this version does not know.
var kindsByName = func() map[string]kind {
	byName := make(map[string]kind)
	for k := kindMessage; k < kindGap; k++ {
		byName[string(kinds[k].name)] = k
		if kinds[k].older != "" {
			byName[string(kinds[k].older)] = k
		}
	}
	return byName
}()

func kindOfType(t []byte) kind {
	if string(t) == string(TypeMessage) { // as nearly all are
		return kindMessage
	}
	return kindsByName[string(t)]
}

func (t EntryType) kind() kind {
	if t == TypeMessage {
		return kindMessage
	}
	return kindsByName[string(t)]
}

// isKnown reports whether this version knows a type.
func (t EntryType) isKnown() bool { return t.kind() != kindOther }

// entryType is the reverse of kindOfType; "" for types that are not known.
func (k kind) entryType() EntryType { return kinds[k].name }

// IsSaid reports whether entries of a type are part of what was said: messages, and
// summaries that stand for messages. Only these make a session active.
func (t EntryType) IsSaid() bool { return kinds[t.kind()].said }

// IsRemark reports whether entries of a type say something about the session and
// nothing in the conversation: labels, names, and extensions' data.
func (t EntryType) IsRemark() bool { return t.kind().isRemark() }

func (k kind) isRemark() bool { return kinds[k].remark }

// isAside reports whether an entry of a kind is no part of the conversation: a
// remark, or a move of the leaf.
func (k kind) isAside() bool { return kinds[k].remark || k == kindLeaf }

// payload returns the payload of the entry and its kind, or nil and kindOther. If
// there are several, that of the type counts.
func (e *Entry) payload() (kind, payload) {
	if k := e.Type.kind(); k != kindOther {
		if p := kinds[k].get(e); p != nil {
			return k, p
		}
	}
	for k := kindMessage; k < kindGap; k++ {
		if p := kinds[k].get(e); p != nil {
			return k, p
		}
	}
	return kindOther, nil
}

// payloadType returns the type that the entry's payload belongs to, "" if there
// is none; ok is false if there are several.
func (e *Entry) payloadType() (t EntryType, ok bool) {
	n := 0
	for k := kindMessage; k < kindGap; k++ {
		if kinds[k].get(e) != nil {
			t, n = kinds[k].name, n+1
		}
	}
	return t, n < 2
}
