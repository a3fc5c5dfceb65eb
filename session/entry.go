package session

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"time"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/store"
)

// Version is the format version that this package writes, and the newest that it reads.
const Version = 1

// EntryType defines the kind of a session entry.
type EntryType string

// The entry types. An entry of any other type is kept and stays on its path, but is not sent
// to a model.
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
	// TypeContextEdit changes what an earlier entry contributes to the context.
	TypeContextEdit EntryType = "context_edit"
	// TypeRevert takes back a compaction, a context edit or another revert.
	TypeRevert EntryType = "revert"
	// TypeMerge brings another branch's outcome onto this one.
	TypeMerge EntryType = "merge"
	// TypeContinues is the marker of a continuation: what comes before it in the log was
	// copied from earlier sessions. Only Session.Continue writes it.
	TypeContinues EntryType = "continues"

	// oldThinkingLevel is read as TypeThinkingLevel.
	oldThinkingLevel = "thinking_level_change"

	// TypeGap is never written. It marks the place of an entry that must have been there,
	// because others refer to it or its line is damaged.
	TypeGap EntryType = "gap"
)

// MessageRole is the role of a message. It is an alias: the constants below can
// be used wherever a role is a string.
type MessageRole = string

// The roles of messages. An appended message has one of these; a log may hold others, which
// are kept as they are.
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

// CheckRole returns ErrInvalid unless a role is one that people and programs may use to
// write a conversation: user, assistant, system or tool. A Session also accepts the other
// Role constants, and Graft accepts whatever a source has.
func CheckRole(role MessageRole) error {
	if slices.Contains(Roles(), role) {
		return nil
	}
	return Invalidf("unknown role %q; it must be user, assistant, system or tool", role)
}

// Roles lists the roles that CheckRole accepts.
func Roles() []MessageRole {
	return []MessageRole{RoleUser, RoleAssistant, RoleSystem, RoleTool}
}

// Relations of a session to its parent session.
const (
	RelationFork         = "fork"         // a copy of the parent's history
	RelationContinuation = "continuation" // continues where the parent reached its limit
	RelationRecovery     = "recovery"     // replaces a parent that cannot be read
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

	// Relation says how this session relates to ParentSession: one of the Relation
	// constants.
	Relation string `json:"relation,omitempty"`
	// Continuation counts the continuations since the original session, which has 0.
	Continuation int `json:"continuation_index,omitempty"`
	// CWD is the directory that the conversation is about.
	CWD string `json:"cwd,omitempty"`
	// Key is the caller's own name for the session, such as "telegram:123456".
	Key string `json:"key,omitempty"`

	Extra Fields `json:"-"`
}

// Entry is one record of a session: a tagged union in which Type says which payload is set.
// Entries are values: you may keep and change what a Session returns, and the session does
// not change.
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
	Continues     *ContinuesEntry     `json:"continues,omitempty"`

	Extra Fields `json:"-"`
}

// FieldSource is the member of an imported entry that names the bytes of the source it was
// made from. Package transcript writes it.
const FieldSource = "source"

// Imported reports whether the entry came from another program's file. If something is odd
// about it, that may be the source's fault.
func (e *Entry) Imported() bool {
	for i := range e.Extra {
		if e.Extra[i].Name == FieldSource {
			return true
		}
	}
	return false
}

// MessageEntry is what a human, a model or a tool said.
type MessageEntry struct {
	Role    string    `json:"role"`    // who said it
	Content []Content `json:"content"` // what was said, piece by piece
	// Model and Provider are those of an answer.
	Model    string `json:"model,omitempty"`
	Provider string `json:"provider,omitempty"`

	Category   string `json:"category,omitempty"`    // importance in the context window: SYSTEM, CONTEXT, DIALOG, SYSTEM_OUTPUT
	Tokens     *int   `json:"tokens,omitempty"`      // how many the message takes in a context; nil means unknown, not zero
	Usage      *Usage `json:"usage,omitempty"`       // what the provider reported for the response
	StopReason string `json:"stop_reason,omitempty"` // why the model stopped
	// ResponseID is the provider's id of the response. Messages that share one are one
	// response: they are never separated, and their usage counts once.
	ResponseID string         `json:"response_id,omitempty"`
	Metadata   map[string]any `json:"metadata,omitempty"` // what programs note for themselves

	Extra       Fields `json:"-"`
	rawMetadata json.RawMessage
}

// Usage is what a provider reported for a response, in tokens.
type Usage struct {
	Input      int `json:"input,omitempty"`       // without what the cache served
	Output     int `json:"output,omitempty"`      // what the model wrote
	CacheRead  int `json:"cache_read,omitempty"`  // what the cache served
	CacheWrite int `json:"cache_write,omitempty"` // what the cache was given
	// CacheWriteHour is the part of CacheWrite that the cache keeps for an hour, which
	// costs more.
	CacheWriteHour int `json:"cache_write_1h,omitempty"`
	Reasoning      int `json:"reasoning,omitempty"` // included in Output
	// CostMicroUSD is what the response cost, in millionths of a US dollar.
	CostMicroUSD int `json:"cost_micro_usd,omitempty"`

	Extra Fields `json:"-"`
}

// Sent returns the size of the request in tokens, cached or not.
func (u *Usage) Sent() int { return u.Input + u.CacheRead + u.CacheWrite }

// Context returns the size of the conversation after the response, in tokens.
func (u *Usage) Context() int { return u.Sent() + u.Output }

// Plus returns the sum of two usages, such as those of two parts of a reply. Either may
// be nil; neither is changed. Extra fields are those of the first.
func (u *Usage) Plus(v *Usage) *Usage {
	if u == nil || v == nil {
		return cmp.Or(u, v)
	}
	sum := *u
	sum.Input += v.Input
	sum.Output += v.Output
	sum.CacheRead += v.CacheRead
	sum.CacheWrite += v.CacheWrite
	sum.CacheWriteHour += v.CacheWriteHour
	sum.Reasoning += v.Reasoning
	sum.CostMicroUSD += v.CostMicroUSD
	return &sum
}

// MicroUSD returns dollars in millionths, as CostMicroUSD has them. An amount that no response
// can cost (negative, above two thousand dollars, or not a number) gives 0.
func MicroUSD(dollars float64) int {
	micro := math.Round(dollars * 1e6)
	if !(micro > 0 && micro <= math.MaxInt32) {
		return 0
	}
	return int(micro)
}

// ModelChangeEntry records that another model answers from here on.
type ModelChangeEntry struct {
	Provider string `json:"provider"`
	ModelID  string `json:"model_id"`

	Extra Fields `json:"-"`
}

// ThinkingLevelEntry records how much effort the model spends on thinking from here on.
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

// CompactionEntry replaces everything before an entry with a summary, in the context only.
// The log keeps what it replaces.
type CompactionEntry struct {
	Summary string `json:"summary"`
	// FirstKeptEntryID is the earliest entry that stays in the context. Empty,
	// or the compaction's own id, means that none does.
	FirstKeptEntryID string `json:"first_kept_entry_id"`
	TokensBefore     int    `json:"tokens_before"` // of the context before

	// State is what was in force at the compaction, so that a reader need not search what
	// came before. A Session always fills it in itself. Only Graft keeps the one it is
	// given, provided that the entries in Kept exist.
	State *State `json:"state,omitempty"`

	Extra Fields `json:"-"`
}

// State is what holds at a point of a path in addition to the messages.
type State struct {
	Provider      string `json:"provider,omitempty"`
	Model         string `json:"model,omitempty"`
	ThinkingLevel string `json:"thinking_level,omitempty"`

	// Kept lists the entries before the first kept one that still count, in the order of
	// the path: all system messages; the last message that begins a turn, unless the first
	// kept message does; and the edits of these in force. With it, a reader need not look
	// at what came before. Nil means that it was not recorded. An append fills it
	// in.
	Kept []KeptEntry `json:"kept,omitempty"`

	Extra Fields `json:"-"`
}

// KeptEntry is an entry before a compaction's cut that still counts.
type KeptEntry struct {
	ID string `json:"id"`
	// At is where its line was when the compaction was written. It is a hint: a reader
	// that finds another line there searches for the entry by its id.
	At store.Pos `json:"at,omitempty"`
}

// BranchSummaryEntry is a checkpoint of a branch that was abandoned.
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

// ContextEditEntry changes what an entry contributes to the context, from here on and on
// this branch. The entry itself does not change.
type ContextEditEntry struct {
	TargetID string `json:"target_id"`
	// Replacement replaces the target's content; nil removes it. (Of a tool result a stub
	// remains, because its call needs an answer. If the target has tool results and the
	// replacement has none, its text becomes the text of each.)
	Replacement []Content `json:"replacement"`

	Extra Fields `json:"-"`
}

// RevertEntry takes back the effect of an earlier entry of its path.
type RevertEntry struct {
	TargetID string `json:"target_id"`

	Extra Fields `json:"-"`
}

// MergeEntry brings the outcome of another branch onto this one: as a summary, as chosen
// entries, or both.
type MergeEntry struct {
	FromID   string   `json:"from_id"` // the leaf of the other branch
	Summary  string   `json:"summary,omitempty"`
	EntryIDs []string `json:"entry_ids,omitempty"` // in the order in which they are sent to the model
	// FromSession is the session from which the branch was copied, if it did not grow in
	// this one.
	FromSession string `json:"from_session,omitempty"`

	Extra Fields `json:"-"`
}

// ContinuesEntry says which session this one continues, and what came before. The numbers are
// for a reader of this session alone: whoever has the earlier sessions can count.
type ContinuesEntry struct {
	Session  string `json:"session"`  // the session that this one continues
	Original string `json:"original"` // the first session of the conversation
	// Created is when the original was created. Zero means unknown.
	Created time.Time `json:"created,omitzero"`
	// Messages is how many messages the path had in all earlier sessions, without copies, and
	// Tokens how many tokens these have. Estimated counts those of messages without a count.
	Messages  int `json:"messages,omitempty"`
	Tokens    int `json:"tokens,omitempty"`
	Estimated int `json:"estimated,omitempty"`

	Extra Fields `json:"-"`
}
