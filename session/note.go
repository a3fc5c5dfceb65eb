package session

import "strings"

// metaNote is the member of a message's metadata that says who wrote a note.
const metaNote = Reserved + "note"

// NewNote returns the entry with a note that somebody left in a conversation of others: a program,
// or a model that was asked to. It is no message of the user, and nothing waits for an answer to
// it. Its text says so itself, because programs that know nothing of notes send a model the text:
// every line is quoted, so that no line of it can pass for words of another author.
func NewNote(by, text string) Entry {
	by = strings.Join(strings.Fields(by), " ")
	if by == "" {
		by = "a program"
	}
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\u2028", "\n", "\u2029", "\n", "\u0085", "\n", "\v", "\n", "\f", "\n").Replace(strings.TrimSpace(text))
	quoted := noteHeading(by) + "\n" + quote + strings.ReplaceAll(text, "\n", "\n"+quote)
	return Entry{Type: TypeMessage, Message: &MessageEntry{
		Role: RoleCustom, Content: []Content{Text(quoted)}, Metadata: map[string]any{metaNote: by},
	}}
}

// quote is before each line of a note.
const quote = "> "

// noteHeading is the first line of a note.
func noteHeading(by string) string { return "Note by " + by + " (not the user's words):" }

// NoteText returns the words of a note, without the line that says who wrote them and without the
// marks of a quotation. ok is false for anything that NewNote did not make: it is to be shown as it
// is.
func (e *Entry) NoteText() (text string, ok bool) {
	by, ok := e.NoteBy()
	if !ok || len(e.Message.Content) != 1 || e.Message.Content[0].Text == nil {
		return "", false
	}
	text, ok = strings.CutPrefix(e.Message.Content[0].Text.Content, noteHeading(by)+"\n"+quote)
	return strings.ReplaceAll(text, "\n"+quote, "\n"), ok
}

// NoteBy returns who wrote a note; ok is false for any other entry. See NewNote.
func (e *Entry) NoteBy() (by string, ok bool) {
	if e.Message == nil || e.Message.Role != RoleCustom {
		return "", false
	}
	by, ok = e.Message.Metadata[metaNote].(string)
	return by, ok
}
