package wire

import "github.com/coppice-dev/coppice/session"

// Some formats put tool results and text into one message of the user. Entries keep
// them apart, because results are not the user's. The functions here split such
// messages, and find the parts that become one message again.

// Split gives the tool results of a message their own messages. The model's
// messages stay whole.
func Split(m *session.MessageEntry, format string) []session.Entry {
	if m.Role == session.RoleAssistant {
		return []session.Entry{{Type: session.TypeMessage, Message: m}}
	}
	var entries []session.Entry
	for i, part := range Messages([]session.Entry{{Message: m}}) {
		one := part.MessageEntry
		if part.Role == session.RoleTool {
			results := *one
			results.Role = session.RoleTool
			one = &results
		}
		if i > 0 {
			setJoin(one, format, true)
		}
		entries = append(entries, session.Entry{Type: session.TypeMessage, Message: one})
	}
	return entries
}

// Append appends the entries of a message. Results that follow results would be written
// into one message with them. If they were separate messages, they are marked.
func Append(entries, message []session.Entry, format string) []session.Entry {
	if n := len(entries); n > 0 && len(message) > 0 && isResults(entries[n-1].Message) && isResults(message[0].Message) {
		setJoin(message[0].Message, format, false)
	}
	return append(entries, message...)
}

func isResults(m *session.MessageEntry) bool { return m.Role == session.RoleTool }

func setJoin(m *session.MessageEntry, format string, join bool) {
	r, _ := ResidueOf(m.Extra, format)
	r.Join = &join
	r.Mark(&m.Extra, format)
}

// Joined groups the messages that are written as one: all the results of a turn, and
// the parts of what was one message before.
func Joined(list []Message, format string) [][]Message {
	var runs [][]Message
	for len(list) > 0 {
		n := 1
		for n < len(list) && joined(list[n-1], list[n], format) {
			n++
		}
		runs = append(runs, list[:n])
		list = list[n:]
	}
	return runs
}

func joined(before, m Message, format string) bool {
	if before.Role == session.RoleAssistant || m.Role == session.RoleAssistant {
		return false
	}
	if r, _ := ResidueOf(m.Extra, format); r.Join != nil {
		return *r.Join
	}
	return m.Part && m.Entry == before.Entry || before.Role == session.RoleTool && m.Role == session.RoleTool
}
