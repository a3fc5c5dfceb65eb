package opencode

import (
	"encoding/base64"
	"slices"

	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/blocks"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
)

// piece is a run of parts that are one message here.
type piece struct {
	result   bool // of tools
	injected bool // put there by the program
	content  []session.Content

	step   int            // which request to the model it came from, counted from 1
	reason string         // why the model stopped
	usage  *session.Usage // what the step cost, with its last piece
}

// splitter cuts the parts of a message into pieces.
type splitter struct {
	id      string
	to      transcript.Sink
	pieces  []piece
	current piece
	results []session.Content
	steps   int  // that have ended
	inStep  bool // parts belong to one response until the step ends
	charged bool // a step said what it cost
}

// flush ends a piece: its text and calls, and then the answers of its tools.
func (s *splitter) flush() {
	if len(s.current.content) > 0 {
		s.current.step = s.steps + 1
		s.pieces = append(s.pieces, s.current)
	}
	if len(s.results) > 0 {
		s.pieces = append(s.pieces, piece{result: true, content: s.results})
	}
	s.current, s.results = piece{}, nil
}

// addText adds a block. If tools have answered, it comes after their answers, unless it
// belongs to the same step: tools answer when the model has ended.
func (s *splitter) addText(c session.Content, injected bool) {
	if len(s.results) > 0 && c.ToolUse == nil && !s.inStep || len(s.current.content) > 0 && s.current.injected != injected {
		s.flush()
	}
	s.current.injected = injected
	s.current.content = append(s.current.content, c)
}

// hasRead reports whether the message already has a plain text file as text. The program does
// not send such a file; it sends the text, in an earlier part. The file's path is kept for
// the program alone.
func (s *splitter) hasRead(c *session.Content) bool {
	if c.File == nil || c.File.Source.Type != "base64" || c.File.Source.MediaType != plainText {
		return false
	}
	text, err := base64.StdEncoding.DecodeString(c.File.Source.Data)
	read := err == nil && slices.ContainsFunc(s.current.content, func(c session.Content) bool {
		return c.Text != nil && c.Text.Content == string(text)
	})
	if read {
		s.to.Count("file part", "its text", 1)
	}
	return read
}

// plainText is the media type of files that are sent as text only.
const plainText = "text/plain"

func (s *splitter) add(part loose.Value) {
	switch kind := part.Get("type").Text(); kind {
	case "text":
		if text := part.Get("text").Text(); text != "" {
			s.addText(session.Text(text), part.Get("synthetic").Bool())
		}
	case "reasoning":
		if text := part.Get("text").Text(); text != "" {
			c := session.Thinking(text, "")
			c.Thinking.Extra = metadata(part)
			s.addText(c, false)
		}
	case "tool":
		s.tool(part)
	case "file":
		if c := file(part); !s.hasRead(&c) {
			s.addText(c, false)
		}
	case "step-finish":
		s.endStep(part)
	case "subtask":
		s.addText(session.Text(part.Get("prompt").Text()), true)
	case "step-start":
		s.flush()
		s.inStep = true
		s.to.Count(kind+" part", transcript.OnlyKept, 1)
	case "patch", "snapshot", "agent", "retry", "compaction":
		s.to.Count(kind+" part", transcript.OnlyKept, 1)
	default:
		s.to.Count(kind+" part", "unknown block", 1)
		s.addText(blocks.Unknown(part), false)
	}
}

// endStep records what a step cost, and why it ended. Parts after it belong to another
// request to the model.
func (s *splitter) endStep(part loose.Value) {
	s.flush()
	s.inStep = false
	s.steps++
	usage := usageOf(part)
	for i := len(s.pieces) - 1; i >= 0; i-- {
		if p := &s.pieces[i]; !p.result {
			if p.step == s.steps {
				p.usage, p.reason = usage, part.Get("reason").Text()
				s.charged = s.charged || usage != nil
			}
			return
		}
	}
}

// addUsage adds to the last piece what the message cost, if its steps did not say.
func (s *splitter) addUsage(m loose.Value) {
	if s.charged {
		return
	}
	for i := len(s.pieces) - 1; i >= 0; i-- {
		if !s.pieces[i].result {
			s.pieces[i].usage = usageOf(m)
			return
		}
	}
}

func metadata(part loose.Value) session.Fields {
	if m := part.Get("metadata"); m.IsObject() {
		return session.Fields{{Name: "metadata", Value: m.Raw()}}
	}
	return nil
}

// tool adds a call and, if it has ended, its result.
func (s *splitter) tool(part loose.Value) {
	state := part.Get("state")
	id := part.Get("callID").Text()
	call := session.ToolUseJSON(id, part.Get("tool").Text(), state.Get("input").Raw())
	if child := state.Get("metadata", "sessionId"); child.Exists() {
		call.ToolUse.Extra = session.Fields{{Name: "session", Value: child.Raw()}}
	}
	s.addText(call, false)
	switch state.Get("status").Text() {
	case "completed", "success":
		s.results = append(s.results, completed(id, part.Get("tool").Text(), state))
	case "error":
		s.results = append(s.results, session.ToolResult(id, state.Get("error").Text(), true))
	}
}

// completed returns the result of a completed call. A command that failed is completed too;
// its exit code shows the failure.
func completed(id, tool string, state loose.Value) session.Content {
	exit := state.Get("metadata", "exit")
	failed := exit.IsNumber() && exit.Int() != 0 || tool == "invalid"
	c := session.ToolResult(id, state.Get("output").Text(), failed)
	for attached := range state.Get("attachments").Items() {
		if c.ToolResult.Parts == nil {
			c.ToolResult.Parts = []session.Content{session.Text(c.ToolResult.Content)}
		}
		c.ToolResult.Parts = append(c.ToolResult.Parts, file(attached))
	}
	if title := state.Get("title"); title.Text() != "" {
		c.ToolResult.Extra = session.Fields{{Name: "title", Value: title.Raw()}}
	}
	return c
}

// file returns a file attached to a message, by its URL or in full.
func file(part loose.Value) session.Content {
	source := provider.SourceAt(part.Get("url").Text())
	source.MediaType = part.Get("mime").Text()
	return blocks.File(part.Get("filename").Text(), source)
}
