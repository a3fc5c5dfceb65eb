package transcript

import (
	"time"

	"github.com/coppice-dev/coppice/session"
)

// Conversation is what a source says about a conversation as a whole.
type Conversation struct {
	// ID is the conversation's native id. It must not be empty: a format without ids
	// makes one from the facts that identify the conversation (see HashID).
	ID string
	// Family names the conversation in whose tree the records belong, when that
	// is not ID: the copies of one conversation, such as a fork that repeats its
	// original's records under their old ids, share a family and become branches
	// of one session. Default: ID.
	Family string

	Title   string    // the name that a person or a program gave it, or ""
	CWD     string    // the directory it is about, or ""
	Created time.Time // zero means the time of the first record
	Tags    []string

	// Parent is the native id (the family, where there is one) of the
	// conversation that this one came from, and Relation what that is to it: one
	// of the Relation constants of package session. ParentCall is the tool call of the
	// parent that started it, for a subagent.
	Parent     string
	Relation   string
	ParentCall string
	// Continuation counts the continuations since the original conversation, for one
	// that continues another. Default: it is the first.
	Continuation int

	// Leaf is the native id of the record where the conversation currently ends.
	// Default: the last record.
	Leaf string
	// Extra are facts that have no other place here, such as the git branch.
	Extra map[string]any
}

// Record is one piece of a conversation: what will be one entry.
type Record struct {
	// ID is the record's native id, unique within its conversation. Empty means
	// that it has none, and that one is made from its content and place.
	ID string
	// Parent is the native id of the record that this one follows. The default is the
	// record before it in its conversation; Root means none.
	Parent string
	// Aliases are further native ids by which other records may refer to this
	// one: of the records that were merged into it, or that lead to it.
	Aliases []string

	// Entry is the record as an entry: Type, Timestamp and the payload. Its own
	// id and parent are left empty. Where a payload refers to entries (the first
	// kept one of a compaction, the target of a label), it has native ids.
	Entry session.Entry

	// From are the places in the source that the record was made from.
	From []Span
}

// Root is the Parent of a record that follows none.
const Root = "\x00root"

// MetaWhere is the member of a message's metadata with the directory and branch, if that is not
// where the conversation began: an object with a directory and a git branch. It is not part
// of the message's content: programs repeat records in other directories, and those are not
// new.
const MetaWhere = "where"

// Span is a place in a source.
type Span struct {
	Pos int64 // of the first byte, in the (decompressed) file or in the bytes for Sink.Keep
	Len int64
}

// Sink takes what a reader finds. A reader calls it from one goroutine, in the
// order of the source.
type Sink interface {
	// Begin says that a conversation begins or continues: the records that follow belong to
	// it. A reader calls it again, with the same ID, when it has learnt more about the
	// conversation (a title, its leaf), or when it returns to it after another one. Empty
	// fields do not clear earlier ones.
	Begin(c Conversation) error
	// Add adds a record to the conversation. The sink may keep it: a reader must not
	// change it afterwards.
	Add(r Record) error
	// Keep keeps bytes that are not the file's own: a database's row as JSON, or
	// a file beside the source. It returns where they are kept.
	Keep(what string, raw []byte) (Span, error)
	// Count says what became of n source records: what they were, and what they
	// are now, in a few words: "assistant line", "message". If only their bytes are
	// kept, became is OnlyKept.
	Count(what, became string, n int)
	// Problem reports a record that could not be read. It does not end the reading.
	Problem(p Problem)
}

// OnlyKept is what became of a record without an entry.
const OnlyKept = "kept as bytes"

// Problem is something in a source that could not be read.
type Problem struct {
	Line   int64  `json:"line,omitempty"` // counted from 1; 0 where there are no lines
	Pos    int64  `json:"pos"`            // in bytes
	Reason string `json:"reason"`
}

// ContinuedTo returns the record that says which conversation of a format continues
// another, so that the two are read as one.
func ContinuedTo(format, from, to string, at time.Time) Record {
	return Record{
		ID: HashID(format, from, "continued_to", to),
		Entry: session.Entry{
			Type: session.TypeCustom, Timestamp: at,
			Custom: &session.CustomEntry{CustomType: session.CustomContinuedTo, Data: map[string]any{
				"session": SessionID(format, to), "of": SessionID(format, from),
			}},
		},
	}
}

// Script is a conversation that is to be written.
type Script struct {
	Header session.Header
	Name   string // the display name, or ""
	// Path are the entries from the root to the leaf, remarks included, and
	// Context is what a model would be sent now.
	Path    []session.Entry
	Context *session.Context
	// All are all entries in the order of the log, for formats that hold trees;
	// Leaf is where the conversation currently ends.
	All  []session.Entry
	Leaf string
	// NativeID is the id that the conversation had in a source of the same
	// format, or "".
	NativeID string
	// Facts are the Extra of the conversation in that source, or nil.
	Facts map[string]any
	// Subagents returns the conversations that tool calls of this one started, for
	// formats that keep them with it. It is nil if they are not to be written.
	Subagents func() ([]*Script, error)
	// OneFile asks for a single file, if the format has such a form.
	OneFile bool
	// Now is the time of writing, for members that need one.
	Now time.Time
	// Existing returns the present content of a file, or nil if there is no such file:
	// so a writer whose ids are not unique by themselves can choose a free one.
	// Exporter.Prepare sets it; it may be nil.
	Existing func(path string) ([]byte, error)
}

// Output is what writing a conversation gives.
type Output struct {
	// Files are to be written all or none. The first is the conversation itself.
	Files []OutputFile
	// Base is the directory below which the program looks for them, "" for a
	// format that belongs to no program.
	Base string
	// Resume is the command that continues the conversation there, or "". It is run in
	// Dir or, by default, in the conversation's directory.
	Resume string
	Dir    string
	// Losses are what the format cannot hold.
	Losses []Loss
	// Records names the entry that a record of the files is, by the record's id, where that
	// is not the entry's own. If it is nil, entries are matched with records by their
	// content.
	Records map[string]string

	// Native is the id that the conversation has there. Exporter.Prepare sets it.
	Native string

	format *Format // in which it was written, by Exporter.Prepare
	of     string  // the session that it is
	wrote  map[string]string
}

// OutputFile is a file to be written.
type OutputFile struct {
	Path string // relative to Base, with slashes
	Data []byte
	// Merge, if it is not nil, makes the content from that of the existing file, or
	// from nil if there is none: for files that many conversations share, such as a
	// list of them.
	Merge func(old []byte) ([]byte, error)
	// Of is the conversation that the file holds if that is another one, such as a
	// subagent's. Nil means that the file belongs to the conversation that is
	// written.
	Of *OutputOf
}

// OutputOf is a conversation that is written with another.
type OutputOf struct {
	Session string            // the session that it is
	Native  string            // the id that it has in its program
	Records map[string]string // see Output
}

// Loss is something that a format cannot hold.
type Loss struct {
	EntryID string // the entry concerned, or ""
	What    string // "image", "branch", "thinking signature"
	Why     string
}
