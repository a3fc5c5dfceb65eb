// Package aider reads the chat history of aider: a Markdown file that every run
// adds to.
//
// The file has no structure but the beginnings of its lines: "#### " is the user's, "> "
// aider's own output, and anything else the model's. A line that the model wrote may begin
// like that too; aider itself cannot tell them apart.
package aider

import (
	"bytes"
	"context"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
	"github.com/coppice-dev/coppice/transcript/internal/walk"
)

// Format returns the format.
func Format() *transcript.Format {
	return &transcript.Format{Name: "aider", Title: "Aider", Detect: detect, Read: read}
}

const (
	started     = "# aider chat started at "
	historyFile = ".aider.chat.history.md"
)

func detect(f *transcript.File) bool {
	if filepath.Base(f.Path) == historyFile {
		return true
	}
	head := f.Head()
	return bytes.HasPrefix(bytes.TrimSpace(head), []byte(started)) || bytes.Contains(head, []byte("\n"+started))
}

func read(ctx context.Context, f *transcript.File, to transcript.Sink) error {
	r := reader{to: to, path: f.Path, seen: make(map[string]int)}
	if err := walk.Each(f.Lines(ctx), r.line); err != nil {
		return err
	}
	return r.flush()
}

// kind is whose line it is.
type kind int

const (
	model kind = iota
	user
	output // aider's own
)

// reader reads one file.
type reader struct {
	to   transcript.Sink
	path string
	seen map[string]int // how often a header has occurred

	run     string // the id of the run, "" before the first
	began   time.Time
	answers string // the model that answers
	records int    // of the run

	kind  kind
	texts []string
	span  transcript.Span
	next  int64 // the number of the line after the last, to notice empty ones
	// held is the model's message, until aider has printed its cost.
	held *transcript.Record
}

func (r *reader) line(line transcript.Line) error {
	if line.Cut {
		r.to.Problem(transcript.Problem{Pos: line.Pos, Line: line.No, Reason: "the line is too long"})
		return nil
	}
	text := string(line.Data)
	if when, ok := strings.CutPrefix(text, started); ok {
		return r.begin(text, when)
	}
	if r.run == "" { // lines before the first header belong to a run too
		if err := r.begin("", ""); err != nil {
			return err
		}
	}
	k, rest := classify(text)
	if k != r.kind && len(r.texts) > 0 {
		if err := r.message(); err != nil {
			return err
		}
	}
	if len(r.texts) == 0 {
		r.span = line.Span
	} else if line.No > r.next && k == model {
		r.texts = append(r.texts, strings.Repeat("\n", int(line.No-r.next)-1))
	}
	r.kind = k
	r.texts = append(r.texts, rest)
	r.span.Len = line.Pos + line.Len - r.span.Pos
	r.next = line.No + 1
	return nil
}

func classify(text string) (kind, string) {
	if rest, ok := strings.CutPrefix(text, "#### "); ok {
		return user, strings.TrimRight(rest, " ")
	}
	if text == "####" {
		return user, ""
	}
	if rest, ok := strings.CutPrefix(text, "> "); ok {
		return output, strings.TrimRight(rest, " ")
	}
	if text == ">" {
		return output, ""
	}
	return model, text
}

// begin starts a run. Its time has no zone: it is local.
func (r *reader) begin(header, when string) error {
	if err := r.flush(); err != nil {
		return err
	}
	r.seen[header]++
	r.run = transcript.HashID("aider", r.path, header, strconv.Itoa(r.seen[header]))
	r.began = loose.ParseTime(strings.TrimSpace(when), time.Local)
	r.records, r.answers = 0, ""
	c := transcript.Conversation{ID: r.run, Created: r.began}
	if filepath.IsAbs(r.path) {
		c.CWD = filepath.Dir(r.path)
	}
	return r.to.Begin(c)
}

// flush passes on what is left of a run.
func (r *reader) flush() error {
	if err := r.message(); err != nil {
		return err
	}
	return r.release()
}

// message turns the lines so far into a record.
func (r *reader) message() error {
	text := strings.Trim(strings.Join(r.texts, "\n"), "\n")
	k := r.kind
	r.texts = nil
	if strings.TrimSpace(text) == "" {
		return nil
	}
	if k == output {
		r.readOutput(text)
	}
	if err := r.release(); err != nil {
		return err
	}
	record := &transcript.Record{
		ID:    transcript.HashID(r.run, strconv.Itoa(r.records)),
		From:  []transcript.Span{r.span},
		Entry: session.Entry{Type: session.TypeMessage, Timestamp: r.began, Message: r.messageOf(k, text)},
	}
	if r.records == 0 {
		record.Parent = transcript.Root
	}
	r.records++
	r.held = record
	return nil
}

func (r *reader) messageOf(k kind, text string) *session.MessageEntry {
	m := &session.MessageEntry{Content: []session.Content{session.Text(text)}}
	switch k {
	case user:
		m.Role = session.RoleUser
		if strings.HasPrefix(text, "/") {
			m.Metadata = map[string]any{"command": true}
		}
	case output:
		m.Role, m.Category = session.RoleSystem, "SYSTEM_OUTPUT"
	default:
		m.Role, m.Model = session.RoleAssistant, r.answers
	}
	return m
}

// release passes the held record to the sink.
func (r *reader) release() error {
	if r.held == nil {
		return nil
	}
	record := *r.held
	r.held = nil
	r.to.Count(record.Entry.Message.Role+" text", "message", 1)
	return r.to.Add(record)
}
