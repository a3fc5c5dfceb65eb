package session

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/store"
)

// Version is the format version that this package writes, and the newest it
// reads.
const Version = 1

// EntryType defines the kind of a session entry.
type EntryType string

// The entry types. An entry of any other type is kept, stays on its path, and
// gives the model nothing.
const (
	TypeSession       EntryType = "session"
	TypeMessage       EntryType = "message"
	TypeModelChange   EntryType = "model_change"
	TypeThinkingLevel EntryType = "thinking_level"
	TypeLabel         EntryType = "label"
	TypeSessionInfo   EntryType = "session_info"
	TypeCompaction    EntryType = "compaction"
	TypeBranchSummary EntryType = "branch_summary"
	TypeCustom        EntryType = "custom"

	// TypeLeaf moves the leaf to its parent: see Session.Branch.
	TypeLeaf EntryType = "leaf"
	// TypeContextEdit changes what an earlier entry gives the model.
	TypeContextEdit EntryType = "context_edit"
	// TypeRevert takes back a compaction, a context edit or another revert.
	TypeRevert EntryType = "revert"
	// TypeMerge brings another branch's outcome onto this one.
	TypeMerge EntryType = "merge"

	// oldThinkingLevel is read as TypeThinkingLevel.
	oldThinkingLevel = "thinking_level_change"

	// TypeGap is never written. It stands in a tree where an entry is known to
	// have been, because others refer to it or its line is damaged.
	TypeGap EntryType = "gap"
)

// MessageRole is the role of a message. It is an alias: the constants below can
// be used wherever a role is a string.
type MessageRole = string

// The roles of messages. What is appended has one of these; a log may hold
// others, which are kept as they are.
const (
	RoleSystem            MessageRole = "system"
	RoleUser              MessageRole = "user"
	RoleAssistant         MessageRole = "assistant"
	RoleTool              MessageRole = "tool"              // tool results
	RoleBashExecution     MessageRole = "bashExecution"     // a command the user ran
	RoleCustom            MessageRole = "custom"            // injected by an extension
	RoleBranchSummary     MessageRole = "branchSummary"     // checkpoint of an abandoned branch
	RoleCompactionSummary MessageRole = "compactionSummary" // summary of history no longer sent
)

// CheckRole refuses a role, with ErrInvalid, unless a person or a program that
// writes a conversation may use it: user, assistant, system and tool. A Session
// takes the other Role constants too, and Graft takes whatever a source has.
func CheckRole(role MessageRole) error {
	switch role {
	case RoleUser, RoleAssistant, RoleSystem, RoleTool:
		return nil
	}
	return invalid{fmt.Errorf("unknown role %q; it must be user, assistant, system or tool", role)}
}

// Relations of a session to its parent session.
const (
	RelationFork         = "fork"         // a copy of the parent's history
	RelationContinuation = "continuation" // goes on where the parent reached its limit
	RelationRecovery     = "recovery"     // stands in for a parent that cannot be read
	RelationSubagent     = "subagent"     // was started by a tool call of the parent
)

// Field is a member of a JSON object that this version does not know. It is
// written back as it was read.
type Field = rawjson.Member // Name string, Value json.RawMessage

// Fields are the unknown members of an object, in the order they were found.
type Fields []Field

// Header is the first line of a session.
type Header struct {
	Type          EntryType `json:"type"` // always "session"
	ID            string    `json:"id"`
	Version       int       `json:"version"`
	ParentSession string    `json:"parent_session,omitempty"` // the session this one came from
	CreatedAt     time.Time `json:"timestamp"`

	// Relation says what ParentSession is to this session: one of the Relation
	// constants.
	Relation string `json:"relation,omitempty"`
	// Continuation counts the continuations since the original session, which
	// has 0.
	Continuation int `json:"continuation_index,omitempty"`
	// CWD is the directory the conversation was about.
	CWD string `json:"cwd,omitempty"`
	// Key is the caller's own name for the session, such as "telegram:123456".
	Key string `json:"key,omitempty"`

	Extra Fields `json:"-"`
}

// Entry is one record of a session: a tagged union in which Type says which
// payload is set. Entries are values: what a Session hands out is yours to keep
// and to change, and does not change the session.
type Entry struct {
	Type      EntryType `json:"type"`
	ID        string    `json:"id"`
	ParentID  *string   `json:"parent_id"` // nil for a root
	Timestamp time.Time `json:"timestamp"`

	// Exactly one of these is set; none for an unknown type.
	Message       *MessageEntry       `json:"message,omitempty"`
	ModelChange   *ModelChangeEntry   `json:"model_change,omitempty"`
	ThinkingLevel *ThinkingLevelEntry `json:"thinking_level,omitempty"`
	Label         *LabelEntry         `json:"label,omitempty"`
	SessionInfo   *SessionInfoEntry   `json:"session_info,omitempty"`
	Compaction    *CompactionEntry    `json:"compaction,omitempty"`
	BranchSummary *BranchSummaryEntry `json:"branch_summary,omitempty"`
	Custom        *CustomEntry        `json:"custom,omitempty"`
	Leaf          *LeafEntry          `json:"leaf,omitempty"`
	ContextEdit   *ContextEditEntry   `json:"context_edit,omitempty"`
	Revert        *RevertEntry        `json:"revert,omitempty"`
	Merge         *MergeEntry         `json:"merge,omitempty"`

	Extra Fields `json:"-"`
}

// FieldSource is the member of an imported entry that says which bytes of its
// source it was made of. See package transcript, which writes it.
const FieldSource = "source"

// Imported reports whether the entry came from another program's file: what is
// odd about it, the source may have had wrong already.
func (e *Entry) Imported() bool {
	for i := range e.Extra {
		if e.Extra[i].Name == FieldSource {
			return true
		}
	}
	return false
}

// MessageEntry is what somebody said: a human, a model, or a tool.
type MessageEntry struct {
	Role    string    `json:"role"`
	Content []Content `json:"content"`
	Model   string    `json:"model,omitempty"`

	Provider   string `json:"provider,omitempty"`
	Category   string `json:"category,omitempty"` // importance in the context window: SYSTEM, CONTEXT, DIALOG, SYSTEM_OUTPUT
	Tokens     *int   `json:"tokens,omitempty"`   // what the message costs in a context; nil is unknown, not zero
	Usage      *Usage `json:"usage,omitempty"`    // what the provider reported for the response
	StopReason string `json:"stop_reason,omitempty"`
	// ResponseID is the provider's id of the response. Messages that share one
	// were one response: they are never separated, and their usage counts once.
	ResponseID string         `json:"response_id,omitempty"`
	Metadata   map[string]any `json:"metadata,omitempty"`

	Extra       Fields `json:"-"`
	rawMetadata json.RawMessage
}

// Usage is what a provider reported that a response cost, in tokens.
type Usage struct {
	Input      int `json:"input,omitempty"` // without what the cache served
	Output     int `json:"output,omitempty"`
	CacheRead  int `json:"cache_read,omitempty"`
	CacheWrite int `json:"cache_write,omitempty"`
	Reasoning  int `json:"reasoning,omitempty"` // included in Output
	// CostMicroUSD is what the response cost, in millionths of a US dollar.
	CostMicroUSD int `json:"cost_micro_usd,omitempty"`

	Extra Fields `json:"-"`
}

// Context returns how many tokens the conversation had after the response.
func (u *Usage) Context() int { return u.Input + u.CacheRead + u.CacheWrite + u.Output }

// ModelChangeEntry records that another model answers from here on.
type ModelChangeEntry struct {
	Provider string `json:"provider"`
	ModelID  string `json:"model_id"`

	Extra Fields `json:"-"`
}

// ThinkingLevelEntry records how hard the model is to think from here on.
type ThinkingLevelEntry struct {
	ThinkingLevel string `json:"thinking_level"` // e.g. "high", "low", "off"

	Extra Fields `json:"-"`
}

// LabelEntry names another entry. The latest label of an entry counts; an empty
// one removes it.
type LabelEntry struct {
	TargetID string `json:"target_id"`
	Label    string `json:"label,omitempty"`

	Extra Fields `json:"-"`
}

// SessionInfoEntry carries the session's display name. The latest counts.
type SessionInfoEntry struct {
	Name string `json:"name"`

	Extra Fields `json:"-"`
}

// CompactionEntry replaces, in the context, everything before an entry by a
// summary. The log keeps what it replaces.
type CompactionEntry struct {
	Summary string `json:"summary"`
	// FirstKeptEntryID is the earliest entry that stays in the context. Empty,
	// or the compaction's own id, means that none does.
	FirstKeptEntryID string `json:"first_kept_entry_id"`
	TokensBefore     int    `json:"tokens_before"` // of the context before

	// State is what was in force at the compaction, so that a reader need not
	// look for it in what came before. A Session fills it in, whatever it is given;
	// Graft alone keeps what it is given, as long as what Kept names is there.
	State *State `json:"state,omitempty"`

	Extra Fields `json:"-"`
}

// State is what holds at a point of a path besides the messages.
type State struct {
	Provider      string `json:"provider,omitempty"`
	Model         string `json:"model,omitempty"`
	ThinkingLevel string `json:"thinking_level,omitempty"`

	// Kept lists what stands before the first kept entry and still counts, in the
	// order of the path: all system messages; the last message that begins a turn,
	// unless the first kept message does; and the edits of these in force. With it
	// a reader need not look at what came before. Nil means that nobody recorded
	// it. AppendCompaction fills it in.
	Kept []KeptEntry `json:"kept,omitempty"`

	Extra Fields `json:"-"`
}

// KeptEntry is an entry before a compaction's cut that still counts.
type KeptEntry struct {
	ID string `json:"id"`
	// At is where its line was when the compaction was written. It is a hint:
	// whoever finds another line there looks for the entry by its id.
	At store.Pos `json:"at,omitempty"`
}

// BranchSummaryEntry is a checkpoint of a branch that was left.
type BranchSummaryEntry struct {
	Summary string `json:"summary"`
	FromID  string `json:"from_id"` // the leaf that was left

	Extra Fields `json:"-"`
}

// CustomEntry is an extension's own record. The model never sees it.
type CustomEntry struct {
	CustomType string         `json:"custom_type"`
	Data       map[string]any `json:"data"`

	Extra   Fields `json:"-"`
	rawData json.RawMessage
}

// LeafEntry moves the leaf to the entry's parent, so that a branch survives a
// restart.
type LeafEntry struct {
	FromID string `json:"from_id,omitempty"` // the leaf that was left

	Extra Fields `json:"-"`
}

// ContextEditEntry changes what an entry gives the model, from here on and on
// this branch. The entry itself stays as it is.
type ContextEditEntry struct {
	TargetID string `json:"target_id"`
	// Replacement is given instead of the target's content; nil gives nothing
	// (of a tool result a stub remains, because its call needs an answer). For
	// tool results, text without a result becomes the text of each.
	Replacement []Content `json:"replacement"`

	Extra Fields `json:"-"`
}

// RevertEntry takes back the effect of an earlier entry of its path.
type RevertEntry struct {
	TargetID string `json:"target_id"`

	Extra Fields `json:"-"`
}

// MergeEntry brings what another branch arrived at onto this one: as a summary,
// as chosen entries of it, or both.
type MergeEntry struct {
	FromID   string   `json:"from_id"` // the leaf of the other branch
	Summary  string   `json:"summary,omitempty"`
	EntryIDs []string `json:"entry_ids,omitempty"` // in the order in which they are given to the model
	// FromSession is the session whose messages the branch has copies of, if it did
	// not grow in this one.
	FromSession string `json:"from_session,omitempty"`

	Extra Fields `json:"-"`
}
