package summary

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/coppice-dev/coppice/provider/digest"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/window"
)

const (
	// maxResult and maxCall are how many characters of a result and of a call's arguments go
	// into a summary. The model's later text has the part that matters.
	maxResult = 2000
	maxCall   = 2000
)

// serialised is a conversation as the model reads it.
type serialised struct {
	// units are turns that should be read together: a call and its result, for example.
	units    [][]digest.Turn
	previous string // the summary of the conversation before
	files    Files
}

// serialise turns entries into text. Every entry has at least one turn, except system
// messages, which stay in the context as they are, and the previous summary.
func serialise(entries []session.Entry, files func(*session.ToolUseContent) (read, changed []string)) *serialised {
	s := &serialised{}
	names := make(map[string]string) // of tools, by the id of the call
	cuts := make(map[int]bool)
	for _, cut := range session.CutPoints(entries) {
		cuts[cut.At] = true
	}
	var unit []digest.Turn
	end := func() {
		if len(unit) > 0 {
			s.units, unit = append(s.units, unit), nil
		}
	}
	for i := range entries {
		if cuts[i] {
			end()
		}
		e := &entries[i]
		switch {
		case isSystem(e):
		case e.Compaction != nil:
			s.resume(e)
		case e.Message != nil:
			s.eachCall(e.Message, names, files)
			unit = append(unit, turnsOf(e, names)...)
		case e.Summary() != "":
			handed := FilesOf(e)
			s.files.add(handed.Read, handed.Changed)
			unit = append(unit, digest.Turn{Who: digest.Note, Text: summaryText(e)})
		}
	}
	end()
	return s
}

// resume continues from a compaction's summary. There is normally one; if there are
// several, none may be lost.
func (s *serialised) resume(e *session.Entry) {
	handed := FilesOf(e)
	s.files.add(handed.Read, handed.Changed)
	if s.previous != "" {
		s.previous += "\n\n"
	}
	s.previous += summaryText(e)
}

// summaryText returns a summary without the files, if those are handed on beside it.
func summaryText(e *session.Entry) string {
	if handed := FilesOf(e); handed.isEmpty() {
		return e.Summary()
	}
	return withoutFiles(e.Summary())
}

func (s *serialised) eachCall(m *session.MessageEntry, names map[string]string, files func(*session.ToolUseContent) (read, changed []string)) {
	for i := range m.Content {
		if call := m.Content[i].ToolUse; call != nil {
			names[call.ID] = call.Name
			s.files.add(files(call))
		}
	}
}

func isSystem(e *session.Entry) bool {
	return e.Message != nil && e.Message.Role == session.RoleSystem
}

func isStub(e *session.Entry) bool { return strings.HasPrefix(e.ID, session.InterruptedPrefix) }

// turnsOf returns a message as turns: one for the text, and one for each call and
// result.
func turnsOf(e *session.Entry, names map[string]string) []digest.Turn {
	m, who := e.Message, digest.User
	switch {
	case m.Role == session.RoleAssistant:
		who = digest.Assistant
	case e.IsInjected():
		who = digest.Program
	}
	var turns []digest.Turn
	var said []session.Content
	end := func() {
		if text := textOf(said); text != "" {
			turns = append(turns, digest.Turn{Who: who, Text: text})
		}
		said = nil
	}
	for _, c := range m.Content {
		switch {
		case c.ToolUse != nil:
			end()
			turns = append(turns, digest.Turn{Who: digest.Call, Name: c.ToolUse.Name, Text: argumentsOf(c.ToolUse)})
		case c.ToolResult != nil:
			end()
			turns = append(turns, resultTurn(c.ToolResult, names))
		default:
			said = append(said, c)
		}
	}
	if end(); len(turns) == 0 {
		turns = []digest.Turn{{Who: who, Text: "[no text]"}}
	}
	return turns
}

func resultTurn(r *session.ToolResultContent, names map[string]string) digest.Turn {
	t := digest.Turn{Who: digest.Result, Name: names[r.ToolUseID], Text: r.Content}
	if len(r.Parts) > 0 {
		t.Text = textOf(r.Parts)
	}
	if r.IsError {
		t.Who = digest.Failure
	}
	t.Text, _ = window.Shorten(t.Text, maxResult, utf8.RuneCountInString)
	return t
}

// argumentsOf returns a call's arguments as JSON, without the middle if that is long.
func argumentsOf(call *session.ToolUseContent) string {
	raw, err := call.InputJSON()
	if err != nil {
		return "[arguments that are not JSON]"
	}
	text, _ := window.Shorten(string(raw), maxCall, utf8.RuneCountInString)
	return text
}

// textOf returns the text of blocks. It leaves out thinking, and names blocks that are not
// text.
func textOf(blocks []session.Content) string {
	var said []string
	for i := range blocks {
		switch b := &blocks[i]; {
		case b.Text != nil:
			said = append(said, b.Text.Content)
		case b.Thinking != nil:
		case b.Image != nil:
			said = append(said, named("image", "", b.Image.Source))
		case b.Audio != nil:
			said = append(said, named("audio", "", b.Audio.Source))
		case b.File != nil:
			said = append(said, named("file", b.File.Name, b.File.Source))
		default:
			said = append(said, fmt.Sprintf("[%s]", b.Type))
		}
	}
	return strings.Join(said, "\n")
}

// named describes a block that has no text.
func named(what, name string, source *session.Source) string {
	if name != "" {
		what += " " + name
	}
	if source != nil && source.MediaType != "" {
		what += ", " + source.MediaType
	}
	return "[" + what + "]"
}
