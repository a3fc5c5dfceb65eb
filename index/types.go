package index

import (
	"time"
)

// Session is what the catalogue knows about a session, or about a chain of sessions that
// continue each other and are one conversation. The counts of a chain are those of all its
// sessions, without messages that one only passed on to the next; ID, Key, Parent and CWD are
// the first session's, Leaf and Context the last one's.
type Session struct {
	ID    string // from the header
	Name  string // of its log in the store; the ID, unless the file was renamed or the original is missing
	Key   string // the caller's own name for it, or ""
	Title string // its name, or else the first line of what the user said first; "" if there is neither
	Named bool   // Title is a name that the session was given
	Tags  []string
	CWD   string
	// Agent is the program in which the session was held: see session.AgentOf.
	Agent string `json:"agent"`
	// Project is the name of CWD: see ProjectOf.
	Project string `json:"project"`

	Created time.Time
	Updated time.Time // of the latest message or summary: see session.LastSaid

	Entries  int
	Messages int // on all branches
	Branches int // ends of branches
	// Tokens is how many tokens the responses in this log were billed for, each response
	// counted once (see Usage). If Reported is false, it is what was recorded with the
	// messages, or 0.
	Tokens   int64
	Reported bool // Tokens is what providers reported
	// Context is how many tokens the conversation had at its leaf when the
	// provider last said so; 0 if that is not known.
	Context int64
	Size    int64 // bytes that the log takes up in the store

	Models []Count // that answered, with the number of messages, the most frequent first
	Tools  []Count // that were called, with the number of calls, the most frequent first

	Parent       string // the session that this one came from, or ""
	Relation     string // what the parent is: see session.Header
	Subagents    int    // how many sessions in the store its tool calls started
	Forks        int    // how many in the store were forked from it, or recovered
	Continuation int    // how many continuations came between the original and this one
	ContinuedTo  string // the session that continues this one, or ""

	Links        int      // of a chain: how many sessions it has; else 0
	Missing      []string // sessions of the chain that are not in the store
	Conversation string   // of a session that is part of a chain: the chain's ID; else ""

	Pinned   bool
	Archived bool
	Leaf     string // the entry that the next one will follow, or ""
	// Problems counts the faults found while reading: damaged lines, repeated ids,
	// missing parents, a missing header. session.Session.Problems finds more.
	Problems int
}

// Count is a name and how often it occurs.
type Count struct {
	Name  string `json:"name"`
	Count int64  `json:"count"`
}

// Sort is an order of sessions.
type Sort string

// The orders of sessions.
const (
	ByUpdated  Sort = "updated"
	ByCreated  Sort = "created"
	ByTitle    Sort = "title" // without regard to case and accents
	ByMessages Sort = "messages"
	ByTokens   Sort = "tokens"
	BySize     Sort = "size"
)

// sorts are the columns of the orders.
var sorts = map[Sort]string{
	ByUpdated: "updated", ByCreated: "created", ByTitle: "sort_title",
	ByMessages: "messages", ByTokens: "tokens", BySize: "size",
}

// ListOptions says which sessions to list, and how. The zero value lists the 50
// least recently updated ones; most callers want Desc.
type ListOptions struct {
	Sort  Sort // Default: ByUpdated.
	Desc  bool // greatest or latest first
	Limit int  // Default: 50. Negative means no limit.
	// Offset is how many sessions to skip at the beginning. The cost grows with it; After
	// does not have that cost.
	Offset int
	// After is the cursor that the previous page returned: the list continues there, whatever
	// was added at its beginning since. Sort and Desc must be the same.
	After string

	// Links lists the sessions of a chain one by one, instead of as one conversation.
	Links bool

	// Filters; the zero value of each accepts everything.
	Tags     []string  // has all of these
	CWD      string    // is about this directory or one below it
	Agent    string    // was held in this program; an error if no session was
	Project  string    // is about a directory of this name; an error if no session is
	File     string    // a tool touched a file of this name, or whose path ends so
	Key      string    // has exactly this key
	Parent   string    // came from this session, or from another of its chain
	Relation string    // has this relation to its parent: see session.Header
	Fold     bool      // leave out subagents whose parent is in the store: Session.Subagents counts them
	Roots    bool      // leave out forks and recoveries whose parent is in the store: Session.Forks counts them
	Nonempty bool      // has a message
	Pinned   *bool     // is pinned, or not
	Archived *bool     // is archived, or not
	Since    time.Time // was updated at or after this time
	Until    time.Time // was updated before this time
}

// Kind says what a searchable piece of text is.
type Kind string

// The kinds of text.
const (
	KindText     Kind = "text"     // of a message
	KindThinking Kind = "thinking" // what a model thought before it answered
	KindCall     Kind = "call"     // a tool's name and input
	KindOutput   Kind = "output"   // of a tool
	KindSummary  Kind = "summary"  // of a compaction, a branch or a merge
	KindTitle    Kind = "title"    // a name that was given to the session
	KindTag      Kind = "tag"
	KindLabel    Kind = "label" // of an entry
	KindDraft    Kind = "draft" // a piece of an unfinished answer, or a queued prompt
	KindNote     Kind = "note"  // of an author who is not part of the conversation
)

// Order is an order of search hits.
type Order string

// The orders of search hits.
const (
	ByRank Order = "rank" // best first: BM25, with a little weight on what is recent
	ByTime Order = "time" // newest first
)

// Branch says which branches are searched.
type Branch string

// The branches to search.
const (
	AllBranches Branch = "all"
	LiveBranch  Branch = "live" // the path from each session's leaf to its root
)

// SearchOptions says what to search for. Every filter can also be written into
// the query; both must hold. A query that cannot be understood is a *QueryError.
//
// The language of queries:
//
//	deploy script       both words, anywhere in a text
//	"deploy script"     these words side by side
//	deploy OR release   one of them; AND binds closer than OR, ( ) groups
//	-draft              not this; also NOT draft
//	--force             the option of a command
//	conf*               words that begin like this
//	readFile            readFile, read_file, read-file, readfile
//	kind:output         filters: kind role tool model agent project tag file cwd session since
//	                    until branch; after is since, before is until, in:. and in:NAME are cwd and project
//
// A word is also found in its other forms, templates as template, after the texts with the
// exact word. A word in quotation marks is found only as it is.
//
// Filters hold for the whole query and cannot be part of an OR. A filter that is given twice
// accepts both values (with tags, a session must have both). The filters kind, role, tool and
// model can be negated. since and until take 2026, 2026-03, 2026-03-14, a time as in RFC
// 3339, today, yesterday, or an age such as 12h, 7d, 2w; branch takes live or all; cwd takes
// . and ~, too: see Dir; file takes a name, the end of a path, or ./, ../ and ~/ before one. Anything else with a colon is searched as text.
type SearchOptions struct {
	// Query is in the query language above. An empty query with a
	// filter finds everything that the filter accepts.
	Query string
	// Elsewhere says that the query comes from another machine: directories and files in it are not
	// relative to anything on this one.
	Elsewhere bool

	Kinds   []Kind   // any of these
	Roles   []string // any of these roles: "user", "assistant", "tool", …
	Tools   []string // calls and outputs of any of these tools
	Models  []string // said by any of these models
	Tags    []string // in sessions that have all of these tags
	CWD     string   // in sessions about this directory or one below it
	Agent   string   // in sessions that were held in this program
	Project string   // in sessions about a directory of this name
	File    string   // in sessions whose tools touched a file of this name, or whose path ends so
	Session string   // in sessions whose id, name or short name begins like this, or with this key or native id, and all of their chains
	Since   time.Time
	Until   time.Time // before this time
	Branch  Branch    // Default: AllBranches.

	// BySession finds one hit of each conversation, the first. Limit, Offset and Matches
	// are then about conversations.
	BySession bool

	Order  Order // Default: ByRank.
	Limit  int   // Default: 20.
	Offset int   // how many of the best hits to leave out
	// Newest is how many of the newest matches are ranked. Default: 1,000, or 400 of a query
	// with a phrase.
	Newest int
	// SnippetLen is roughly how many bytes of text a snippet has. Default: 160. Negative
	// means no snippets, and then the logs are not read.
	SnippetLen int
}

// Results is the answer to a search.
type Results struct {
	Hits []Hit
	// Matches is how many matches were ranked. A text that forks repeat counts once.
	Matches int
	// Bounded is true when there are more matches, which are older than the
	// ranked ones, or when older texts were not searched.
	Bounded bool
	// Across is true when no text has all that was asked for. Then the hits are texts of
	// conversations that have each part of the query in some text.
	Across bool
	// DidYouMean has queries that the user may have meant, if nothing was found because no
	// text has one of the words.
	DidYouMean []string
	// Unknown has the filters whose values no session has, if nothing was found.
	Unknown []Unknown
	// NotFilters has the names of words that look like filters but were searched as text,
	// if nothing was found: see Filters.
	NotFilters []string
}

// Hit is a piece of text that matches.
type Hit struct {
	Session string // the conversation's id: that of the session, or of its chain
	Name    string // of the log with the hit
	Title   string
	CWD     string    // the directory that the conversation is about, or ""
	Agent   string    // the program in which it was held: see Session.Agent
	Updated time.Time // when something was last said in it
	Entry   string
	Kind    Kind
	Role    string
	Tool    string // the tool that was called or that answered, or ""
	Model   string // of the message, or ""
	Time    time.Time
	Live    bool    // the entry is on the path of the leaf of its own session, also in a chain
	Leaf    string  // the end of the branch that the entry is on: of the live one if it is on several
	Score   float64 // greater is better; comparable only within one search

	Snippet    string
	Highlights []Range // what matched, in Snippet

	// Also are the ids of other sessions that have the same entry, because one was
	// forked from the other, sorted.
	Also []string

	// Hits is how many hits the conversation has, and Tools are their tools in order of
	// appearance. Only a search BySession counts them.
	Hits  int
	Tools []string
}

// Range is a part of a string: s[Start:End].
type Range struct{ Start, End int }
