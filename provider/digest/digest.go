// Package digest has the requests that ask a model to condense a conversation: into a
// summary that replaces its beginning, a note about a branch that was left, or a title.
//
// The conversation is text in a single message of the user, not a conversation of its
// own. So no call lacks a result, and the model is not tempted to answer. Its text
// is indented; only our own text is at the beginning of a line. So
// nothing in the conversation can end it, speak in another's name or pass for an
// instruction.
//
// The caller makes a Task. Package provider/offline, which answers without
// understanding, reads it back.
package digest

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/session"
)

// Kind is what is wanted.
type Kind string

// The kinds.
const (
	Summary Kind = "summary" // of the beginning of a conversation, which it replaces
	Branch  Kind = "branch"  // of a branch that was left
	Title   Kind = "title"
)

// MaxTitle is how many characters a title may have.
const MaxTitle = 60

// Headings are those of a summary and of a note about a branch.
var Headings = []string{"Goal", "Constraints & preferences", "Progress", "Key decisions", "Next steps", "Critical context"}

// Who speaks in a turn.
const (
	User      = "User"
	Program   = "Program" // in the user's name: reminders, contexts, notices
	Assistant = "Assistant"
	Call      = "Call"   // of a tool; its name is the turn's
	Result    = "Result" // of a call
	Failure   = "Error"  // the result of a call that failed
	Note      = "Note"   // a summary of another branch
)

// Turn is a message, a call or a result.
type Turn struct {
	Who  string // one of the constants
	Name string // of a tool, or ""
	Text string
}

// Task is what a model is asked for.
type Task struct {
	Kind Kind
	// MaxTokens limits a summary.
	MaxTokens int
	// Instructions are further wishes of the user's. May be empty.
	Instructions string
	// Previous is the summary so far, to be updated. May be empty.
	Previous string
	// Current is the request that is being worked on if the conversation stops in the
	// middle of the work. It need not be in the summary.
	Current string
	Turns   []Turn
	// More of the conversation follows in a later task.
	More bool
}

// The sections of a message, in order.
const (
	sectionLimit        = "limit"
	sectionInstructions = "instructions"
	sectionPrevious     = "previous-summary"
	sectionConversation = "conversation"
	sectionCurrent      = "current-request"
)

const indent = "  "

// Request returns the request for a task. The caller limits the answer.
func (t *Task) Request() *provider.Request {
	return &provider.Request{NoCache: true, Entries: []session.Entry{
		message(session.RoleSystem, systems[t.Kind]),
		message(session.RoleUser, t.text()),
	}}
}

// Overhead returns everything that a model reads for a task besides the turns.
func (t *Task) Overhead() string {
	empty := *t
	empty.Turns = nil
	return systems[t.Kind] + empty.text()
}

func message(role session.MessageRole, text string) session.Entry {
	return session.Message(role, session.Text(text))
}

func (t *Task) text() string {
	var b strings.Builder
	limit := strconv.Itoa(t.MaxTokens) + " tokens"
	if t.Kind == Title {
		limit = strconv.Itoa(MaxTitle) + " characters"
	}
	writeSection(&b, sectionLimit, limit)
	writeSection(&b, sectionInstructions, t.Instructions)
	writeSection(&b, sectionPrevious, t.Previous)
	b.WriteString("<" + sectionConversation + ">\n" + Text(t.Turns) + "</" + sectionConversation + ">\n")
	writeSection(&b, sectionCurrent, t.Current)
	b.WriteString("\n" + t.closing())
	return b.String()
}

// closing repeats what is wanted. Models follow what they read last, and the
// conversation may be long.
func (t *Task) closing() string {
	switch {
	case t.Kind == Title:
		return "Write the title now, and nothing else."
	case t.More:
		return "The conversation goes on after this part, and you will be asked to update your summary with the rest. " +
			"Write the summary so far now, and nothing else."
	case t.Previous != "":
		return "Write the updated summary now, and nothing else."
	}
	return "Write the summary now, and nothing else."
}

func writeSection(b *strings.Builder, name, text string) {
	if text == "" {
		return
	}
	fmt.Fprintf(b, "<%s>\n%s</%s>\n", name, indented(text), name)
}

// Text returns turns as a request has them.
func Text(turns []Turn) string {
	var b strings.Builder
	for i := range turns {
		b.WriteString("[" + turns[i].Who)
		if name := oneLine(turns[i].Name); name != "" {
			b.WriteString(" " + name)
		}
		b.WriteString("]\n" + indented(turns[i].Text))
	}
	return b.String()
}

// indented moves every line of a text away from the beginning of the line, whatever
// kind of line end a reader may take for one.
func indented(text string) string {
	var b strings.Builder
	for line := range strings.SplitSeq(cleaned(text), "\n") {
		if line != "" {
			b.WriteString(indent + line)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// cleaned returns a text with one kind of line end, and without bytes that JSON cannot hold.
func cleaned(text string) string { return lineEnds.Replace(strings.ToValidUTF8(text, "\uFFFD")) }

var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\v", "\n", "\f", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n")

func oneLine(name string) string { return strings.Join(strings.Fields(cleaned(name)), " ") }

// Read returns the task that a request asks for. ok is false if it asks for something
// else.
func Read(r *provider.Request) (t *Task, ok bool) {
	if r == nil || len(r.Entries) != 2 || r.Entries[0].Message == nil || r.Entries[1].Message == nil {
		return nil, false
	}
	system, user := r.Entries[0].Message, r.Entries[1].Message
	if system.Role != session.RoleSystem || user.Role != session.RoleUser {
		return nil, false
	}
	for kind, text := range systems {
		if text == session.TextOf(system.Content) {
			t = &Task{Kind: kind}
			t.read(session.TextOf(user.Content))
			return t, true
		}
	}
	return nil, false
}

// read takes the parts of a message. What is at the beginning of a line is a tag or
// who speaks; the rest belongs to it.
func (t *Task) read(text string) {
	section := ""
	var part []string
	end := func() {
		said := strings.Join(part, "\n")
		switch part = nil; section {
		case sectionLimit:
			number, _, _ := strings.Cut(said, " ")
			if n, err := strconv.Atoi(number); err == nil && t.Kind != Title {
				t.MaxTokens = n
			}
		case sectionInstructions:
			t.Instructions = said
		case sectionPrevious:
			t.Previous = said
		case sectionCurrent:
			t.Current = said
		case sectionConversation:
			if n := len(t.Turns); n > 0 {
				t.Turns[n-1].Text = said
			}
		}
	}
	for line := range strings.SplitSeq(text, "\n") {
		switch said, ok := strings.CutPrefix(line, indent); {
		case ok || line == "":
			part = append(part, said)
		case strings.HasPrefix(line, "</"):
			end()
			section = ""
		case strings.HasPrefix(line, "<"):
			section, part = strings.Trim(line, "<>"), nil
		case strings.HasPrefix(line, "["):
			end()
			who, name, _ := strings.Cut(strings.TrimSuffix(line[1:], "]"), " ")
			t.Turns = append(t.Turns, Turn{Who: who, Name: name})
		default:
			t.More = line == (&Task{More: true}).closing()
		}
	}
}
