package session

import "context"

// Everything that differs by type of entry is here, and only here. To add a type: give it a
// Type constant and a struct, give the struct a field in Entry and the methods of payload,
// and add a kind and its row. All code that reads, writes, copies and checks entries uses
// the rows. What a type does to a context is in assemble.go.

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
	kindContinues
	kindGap // see TypeGap
)

// kindRow is what this version knows about a type. A nil function or a false means "does not
// apply".
type kindRow struct {
	name  EntryType
	older EntryType // an older name, which is read but never written
	verb  string    // for errors of an append of one; "" is "append"

	// The payload, which is nil for entries that have none.
	union[Entry]

	said   bool // it is a message, or a summary that replaces messages
	remark bool // it is about the session, and not part of the conversation
	listed bool // the tree keeps a list of such entries
	adds   bool // at the end of a path, it does not change the context of the entries before it: see grow

	// reachesBack: it decides how far back the context goes, or brings back entries before
	// that. A reader of only the end of a log must look at these entries.
	reachesBack bool

	// inLog: whether it may be written depends on the lines before it in the log. Its
	// payload then is a logChecker.
	inLog inLogRule

	// content returns its blocks. In errors they are called contentName.
	content     func(*Entry) *[]Content
	contentName string

	// summary returns what it says to a model.
	summary func(*Entry) string

	// refs visits the ids of other entries in it, except the parent's.
	refs func(*Entry, func(ref, *string))
	// target says which entries it may act on, if they must be on its path.
	target *targetRule
}

// ref is the role of an entry that another one names.
type ref uint8

const (
	refTarget    ref = iota // the entry that it acts on
	refPicked               // an entry that it brings along
	refFirstKept            // where it begins to keep entries
	refFrom                 // the end of the branch that it comes from
)

// targetRule says which entries another one can act on.
type targetRule struct {
	kinds []kind
	words string // the same for people
}

// inLogRule says which entries of a kind are checked in the log.
type inLogRule uint8

const (
	inLogNever  inLogRule = iota
	inLogIfOurs           // but not in a graft: what another program wrote is kept
	inLogAlways
)

// payload is the member of an entry or a block that has the name of its type. Every type has
// these methods.
type payload interface {
	members          // reads a member
	extra() *Fields  // the members that it does not know
	write(w *writer) // writes the members that it knows, in their order
	// detach is called on a copy of the struct. It copies whatever the struct shares with
	// the original and a caller could change, except for extra.
	detach()
	// checkMembers makes sure that the members are there without which an entry is
	// meaningless. It is for what people and programs hand in: see ParseEntry.
	checkMembers() error
}

// checker is a payload that can be wrong in more than its form.
type checker interface {
	// check refuses what must not be appended, although a log may contain it.
	check() error
}

// logChecker is a payload for which the log has to be read: see kindRow.inLog.
type logChecker interface {
	checkInLog(ctx context.Context, s *Session, w *writing, i int) error
}

// own makes a payload, in a copy of its struct, share nothing with the original that a caller
// could change.
func own(p payload) {
	p.detach()
	extra := p.extra()
	*extra = extra.clone()
}

// union is one of the pointers of a tagged union U.
type union[U any] struct {
	has func(*U) bool    // whether it is set
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
		has: func(u *U) bool { return *at(u) != nil },
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
	kindOther: {adds: true}, // it is never sent
	kindMessage: {
		name: TypeMessage, said: true, adds: true,
		union:   member(func(e *Entry) **MessageEntry { return &e.Message }),
		content: func(e *Entry) *[]Content { return &e.Message.Content }, contentName: "content",
	},
	kindModelChange: {
		name: TypeModelChange, adds: true,
		union: member(func(e *Entry) **ModelChangeEntry { return &e.ModelChange }),
	},
	kindThinkingLevel: {
		name: TypeThinkingLevel, older: oldThinkingLevel, adds: true,
		union: member(func(e *Entry) **ThinkingLevelEntry { return &e.ThinkingLevel }),
	},
	kindLabel: {
		name: TypeLabel, verb: "label", remark: true, listed: true, adds: true,
		union: member(func(e *Entry) **LabelEntry { return &e.Label }),
		refs:  func(e *Entry, each func(ref, *string)) { each(refTarget, &e.Label.TargetID) },
	},
	kindSessionInfo: {
		name: TypeSessionInfo, remark: true, listed: true, adds: true,
		union: member(func(e *Entry) **SessionInfoEntry { return &e.SessionInfo }),
	},
	kindCompaction: {
		name: TypeCompaction, verb: "compact", said: true, reachesBack: true, inLog: inLogAlways,
		union:   member(func(e *Entry) **CompactionEntry { return &e.Compaction }),
		summary: func(e *Entry) string { return e.Compaction.Summary },
		refs:    func(e *Entry, each func(ref, *string)) { each(refFirstKept, &e.Compaction.FirstKeptEntryID) },
	},
	kindBranchSummary: {
		name: TypeBranchSummary, said: true, adds: true,
		union:   member(func(e *Entry) **BranchSummaryEntry { return &e.BranchSummary }),
		summary: func(e *Entry) string { return e.BranchSummary.Summary },
		refs:    func(e *Entry, each func(ref, *string)) { each(refFrom, &e.BranchSummary.FromID) },
	},
	kindCustom: {
		name: TypeCustom, remark: true, adds: true,
		union: member(func(e *Entry) **CustomEntry { return &e.Custom }),
	},
	kindLeaf: {
		name: TypeLeaf, adds: true,
		union: member(func(e *Entry) **LeafEntry { return &e.Leaf }),
		refs:  func(e *Entry, each func(ref, *string)) { each(refFrom, &e.Leaf.FromID) },
	},
	kindContextEdit: {
		name: TypeContextEdit, verb: "edit",
		union:   member(func(e *Entry) **ContextEditEntry { return &e.ContextEdit }),
		content: func(e *Entry) *[]Content { return &e.ContextEdit.Replacement }, contentName: "replacement",
		refs:   func(e *Entry, each func(ref, *string)) { each(refTarget, &e.ContextEdit.TargetID) },
		target: &targetRule{[]kind{kindMessage}, "only messages can be edited"},
	},
	kindRevert: {
		name: TypeRevert, verb: "revert", reachesBack: true,
		union: member(func(e *Entry) **RevertEntry { return &e.Revert }),
		refs:  func(e *Entry, each func(ref, *string)) { each(refTarget, &e.Revert.TargetID) },
		target: &targetRule{
			[]kind{kindCompaction, kindContextEdit, kindMerge, kindRevert},
			"only compactions, context edits, merges and reverts can be reverted",
		},
	},
	kindMerge: {
		name: TypeMerge, verb: "merge", said: true, reachesBack: true, inLog: inLogIfOurs,
		union:   member(func(e *Entry) **MergeEntry { return &e.Merge }),
		summary: func(e *Entry) string { return e.Merge.Summary },
		refs: func(e *Entry, each func(ref, *string)) {
			each(refFrom, &e.Merge.FromID)
			for i := range e.Merge.EntryIDs {
				each(refPicked, &e.Merge.EntryIDs[i])
			}
		},
	},
	kindContinues: {
		name: TypeContinues, remark: true, adds: true,
		union: member(func(e *Entry) **ContinuesEntry { return &e.Continues }),
	},
	kindGap: {name: TypeGap},
}

// kindsByName has the kinds of the types that a line may have. A gap is not one of them: a
// line that claims to be one has a type that this version does not know.
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

// IsKnown reports whether this version knows a type.
func (t EntryType) IsKnown() bool { return t.kind() != kindOther }

// entryType is the reverse of kindOfType; "" for types that are not known.
func (k kind) entryType() EntryType { return kinds[k].name }

// IsSaid reports whether entries of a type are part of what was said: messages, and summaries
// that replace messages. Only these make a session active.
func (t EntryType) IsSaid() bool { return kinds[t.kind()].said }

// IsRemark reports whether entries of a type are about the session and not part of the
// conversation: labels, names, and data of extensions.
func (t EntryType) IsRemark() bool { return t.kind().isRemark() }

func (k kind) isRemark() bool { return kinds[k].remark }

// isAside reports whether an entry of a kind is not part of the conversation: a remark, or a
// move of the leaf.
func (k kind) isAside() bool { return kinds[k].remark || k == kindLeaf }

// payload returns the payload of the entry and its kind, or nil and kindOther. If there are
// several, the one of the type counts.
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
		if kinds[k].has(e) {
			t, n = kinds[k].name, n+1
		}
	}
	return t, n < 2
}

// Summary returns what an entry that is not a message says to a model: the summary of a
// compaction, of a branch or of a merge. For all others it returns "".
func (e *Entry) Summary() string {
	if k, _ := e.payload(); kinds[k].summary != nil {
		return kinds[k].summary(e)
	}
	return ""
}

// EachRef calls each with every id of another entry in this one, except the parent's, so that
// a caller that gives entries new ids can change them. An id may be "". It does not visit
// the list in a compaction's State, which is only valid in its own log.
func (e *Entry) EachRef(each func(id *string)) {
	e.eachRef(func(_ ref, id *string) { each(id) })
}

func (e *Entry) eachRef(each func(as ref, id *string)) {
	if k, _ := e.payload(); kinds[k].refs != nil {
		kinds[k].refs(e, each)
	}
}

// content returns the blocks that the entry has.
func (e *Entry) content() []Content {
	if k, _ := e.payload(); kinds[k].content != nil {
		return *kinds[k].content(e)
	}
	return nil
}

// setContent replaces the blocks that the entry has. Its payload, which may be the
// caller's, is not changed.
func (e *Entry) setContent(blocks []Content) {
	k, _ := e.payload()
	kinds[k].copy(e)
	*kinds[k].content(e) = blocks
}
