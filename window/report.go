package window

import "github.com/coppice-dev/coppice/session"

// View is the part of a conversation that fits a window. It is a value: the session and
// its log do not change, and a later view does not change an earlier one. The entries
// are shared with other views, so do not change what they point to.
type View struct {
	// Entries are what to send, in order.
	Entries []session.Entry
	// Costs has what each of Entries costs.
	Costs []Cost
	// Report says what the view holds and what was left out.
	Report Report
}

// Report says what a view holds, and what it leaves out and why.
type Report struct {
	// Counter is the name of the counter that was used.
	Counter string `json:"counter"`
	// Counts says how much of the view each source counted, most reliable first. Their
	// entries and tokens add up to the view's.
	Counts []CountReport `json:"counts"`
	// Room and ByteRoom are how much room there is, 0 if there is no limit; Tokens and
	// Bytes are the size of the view.
	Room     int `json:"room,omitempty"`
	ByteRoom int `json:"byte_room,omitempty"`
	Tokens   int `json:"tokens"`
	Bytes    int `json:"bytes"`
	// LeftOutTokens is how many tokens smaller the view is than the whole.
	LeftOutTokens int `json:"left_out_tokens"`
	// Categories are the parts: System, Context, Dialog, SystemOutput. Their tokens add up
	// to Tokens, and those that were left out to LeftOutTokens.
	Categories []CategoryReport `json:"categories"`
	// Omissions are what was left out or shortened, in the order of the decisions.
	Omissions []Omission `json:"omissions"`
}

// CategoryReport is the part of a category in a view.
type CategoryReport struct {
	Category Category `json:"category"`
	// Share is what the category is guaranteed or, in a strict budget, the most it may take;
	// 0 if there is no limit.
	Share int `json:"share"`
	// Entries and Tokens are in the view.
	Entries int `json:"entries"`
	Tokens  int `json:"tokens"`
	// LeftOutEntries and LeftOutTokens are not.
	LeftOutEntries int `json:"left_out_entries"`
	LeftOutTokens  int `json:"left_out_tokens"`
}

// Kind says what was done to make room.
type Kind string

// The kinds of omissions.
const (
	// LeftOut: the entry is not in the view.
	LeftOut Kind = "left out"
	// Shortened: the middle of the entry was replaced by a marker.
	Shortened Kind = "shortened"
	// ImageLeftOut: an image of the entry was replaced by a placeholder.
	ImageLeftOut Kind = "image left out"
)

// Omission is one thing that a view lacks.
type Omission struct {
	Kind     Kind     `json:"kind"`
	EntryID  string   `json:"entry_id"`
	Category Category `json:"category"`
	// Tokens and Bytes are how much smaller the view is because of it.
	Tokens int `json:"tokens"`
	Bytes  int `json:"bytes"`
	// Why names the budget that required it.
	Why string `json:"why"`
	// Reference opens an image that was left out: see Recall.
	Reference string `json:"reference,omitempty"`
}
