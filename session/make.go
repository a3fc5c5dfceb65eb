package session

import "slices"

// The functions in this file make entries to append: with Session.AppendEntry or AppendAll, or
// in an Update with Tx.Append. They check nothing. Whatever is wrong with an entry, the append
// refuses it. An id, a time or more of the payload may be set before that.

// Message returns an entry that says something. Set more of its Message if you know it: the
// model, the usage, the category.
func Message(role MessageRole, content ...Content) Entry {
	return Entry{Type: TypeMessage, Message: &MessageEntry{Role: role, Content: content}}
}

// ModelChange returns an entry that says which model answers from here on.
func ModelChange(provider, modelID string) Entry {
	return Entry{Type: TypeModelChange, ModelChange: &ModelChangeEntry{Provider: provider, ModelID: modelID}}
}

// ThinkingLevel returns an entry that says how much effort the model spends from here on.
func ThinkingLevel(level string) Entry {
	return Entry{Type: TypeThinkingLevel, ThinkingLevel: &ThinkingLevelEntry{ThinkingLevel: level}}
}

// Name returns an entry that gives the session a display name.
func Name(name string) Entry {
	return Entry{Type: TypeSessionInfo, SessionInfo: &SessionInfoEntry{Name: name}}
}

// Label returns an entry that names another one; an empty label removes its name.
func Label(targetID, label string) Entry {
	return Entry{Type: TypeLabel, Label: &LabelEntry{TargetID: targetID, Label: label}}
}

// Custom returns an entry with an extension's data. The model never sees it.
func Custom(customType string, data map[string]any) Entry {
	return Entry{Type: TypeCustom, Custom: &CustomEntry{CustomType: customType, Data: data}}
}

// Compaction returns an entry that replaces everything before another one with a summary, in
// the context from here on. System messages stay, and so does the message that began the turn
// if the cut splits it (see Context). The log keeps everything; Undo takes the compaction back.
// The first kept entry must be on the path and the cut legal (see Cuts), so a tool call that
// waits for its result must be kept. Otherwise nothing is written and the error, a *CutError,
// says why. An empty firstKeptID keeps only the summary and the system messages, and is refused
// while a call waits. tokens is the size of the context before. PlanCompaction finds a good cut.
func Compaction(summary, firstKeptID string, tokens int) Entry {
	return Entry{Type: TypeCompaction, Compaction: &CompactionEntry{Summary: summary, FirstKeptEntryID: firstKeptID, TokensBefore: tokens}}
}

// ContextEdit returns an entry that changes what a message on the path contributes to the
// context from here on. Without a replacement it contributes nothing. The message itself stays
// in the log, and a Revert takes the edit back.
func ContextEdit(targetID string, replacement ...Content) Entry {
	return Entry{Type: TypeContextEdit, ContextEdit: &ContextEditEntry{TargetID: targetID, Replacement: replacement}}
}

// Revert returns an entry that takes back the effect of another one on the path: a compaction,
// a context edit, a merge, or an earlier revert.
func Revert(targetID string) Entry {
	return Entry{Type: TypeRevert, Revert: &RevertEntry{TargetID: targetID}}
}

// Merge returns an entry that brings what another branch arrived at onto this one: a summary
// of it, chosen entries of it, or both. The entries stay where they are; the context shows
// them here. A chosen tool call needs its results chosen too, and the other way round. What is
// on this branch already, or was merged into it, is refused with ErrInvalid: a model would be
// sent it twice.
func Merge(fromID, summary string, entryIDs ...string) Entry {
	return Entry{Type: TypeMerge, Merge: &MergeEntry{FromID: fromID, Summary: summary, EntryIDs: slices.Clone(entryIDs)}}
}

// Tags returns an entry that replaces the session's tags. They are sorted, and each is kept
// once. To add or remove some, use a TagChange.
func Tags(tags ...string) Entry {
	return Custom(CustomTags, map[string]any{"tags": tagList(tags)})
}

// Pinned returns an entry that pins the session, or unpins it: retention leaves pinned
// sessions alone.
func Pinned(pinned bool) Entry {
	return Custom(CustomPinned, map[string]any{"pinned": pinned})
}
