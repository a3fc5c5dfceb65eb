package media

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/session"
)

// Fit returns blocks of the user, or with result those of a tool's result, that the provider
// takes, and notes about the blocks that were changed. Without notes, the blocks are the same.
func (l *Limits) Fit(blocks []session.Content, result bool) (fit []session.Content, notes []string) {
	fit = blocks
	for i := range blocks {
		one, more := l.one(&blocks[i], result)
		if len(more) == 0 {
			continue
		}
		if notes == nil {
			fit = slices.Clone(blocks)
		}
		fit[i], notes = one, append(notes, more...)
	}
	return fit, notes
}

func (l *Limits) one(c *session.Content, result bool) (session.Content, []string) {
	if r := c.ToolResult; r != nil && len(r.Parts) > 0 {
		parts, notes := l.Fit(r.Parts, true)
		if len(notes) == 0 {
			return *c, nil
		}
		other := *r
		other.Parts, other.Content = parts, session.TextOf(parts)
		made := *c
		made.ToolResult = &other
		return made, notes
	}
	if made, note := l.block(c, result); note != "" {
		return made, []string{note}
	}
	return *c, nil
}

// Fault returns why the provider refuses a block, or "".
func (l *Limits) Fault(c session.Content, result bool) string {
	_, note := l.block(&c, result)
	return note
}

// block returns a block that the provider takes, and a note if it is another.
func (l *Limits) block(c *session.Content, result bool) (session.Content, string) {
	s := c.Source()
	switch {
	case s == nil || s.Type != provider.SourceBase64:
		return *c, ""
	case result && !l.Results:
		if text, ok := textOf(s); ok && c.File != nil {
			return asText(c, text)
		}
		return named(c, "a tool cannot show it to this model")
	case c.Image != nil:
		return l.picture(c)
	case c.Audio != nil:
		return l.recording(c)
	case strings.HasPrefix(s.MediaType, "image/"):
		picture := session.ImageFrom(s)
		made, _ := l.picture(&picture)
		return made, "a file is sent as a picture"
	}
	return l.document(c)
}

func (l *Limits) picture(c *session.Content) (session.Content, string) {
	s := c.Image.Source
	if strings.HasPrefix(s.MediaType, "image/hei") && slices.Contains(l.Images, s.MediaType) {
		return *c, "" // which cannot be decoded here
	}
	f := l.fitBase64(s.Data)
	switch {
	case f.err != nil:
		return named(c, f.err.Error())
	case f.data == s.Data && f.mediaType == s.MediaType:
		return *c, ""
	}
	return session.Image(f.mediaType, f.data), "a picture is sent smaller or as another type"
}

// spellings are other names of the types of recordings.
var spellings = map[string]string{"audio/mpeg": "audio/mp3", "audio/x-wav": "audio/wav", "audio/wave": "audio/wav"}

func (l *Limits) recording(c *session.Content) (session.Content, string) {
	s := *c.Audio.Source
	if slices.Contains(l.Audio, s.MediaType) {
		return *c, ""
	}
	if s.MediaType = spellings[s.MediaType]; slices.Contains(l.Audio, s.MediaType) {
		return session.Media(&s), "a recording is sent as another type"
	}
	return named(c, "this model cannot listen to it")
}

// document returns a file as one that the provider takes. A text is sent as such.
func (l *Limits) document(c *session.Content) (session.Content, string) {
	s := c.File.Source
	known := slices.Contains(l.Documents, s.MediaType)
	switch {
	case s.MediaType == pdf && !isPDF(s.Data):
		return named(c, "it is no PDF")
	case known && sizeOf(s) <= l.DocumentBytes:
		return *c, ""
	}
	if text, ok := textOf(s); ok {
		return asText(c, text)
	}
	if known {
		return named(c, fmt.Sprintf("a file may have %d bytes", l.DocumentBytes))
	}
	return named(c, "this model cannot read such a file")
}

func sizeOf(s *session.Source) int { return len(strings.TrimRight(s.Data, "=")) * 3 / 4 }

// isPDF reports whether base64 begins like a PDF, whose mark is among the first 1,024 bytes.
func isPDF(data string) bool {
	head := data[:min(len(data), 1368)/4*4]
	raw, _ := base64.StdEncoding.DecodeString(head)
	return bytes.Contains(raw, []byte("%PDF-"))
}

// textOf returns the text of a file that is one.
func textOf(s *session.Source) (string, bool) {
	raw, err := base64.StdEncoding.DecodeString(s.Data)
	if err != nil || len(raw) == 0 || !utf8.Valid(raw) || !strings.HasPrefix(http.DetectContentType(raw), "text/") {
		return "", false
	}
	return string(raw), true
}

func asText(c *session.Content, text string) (session.Content, string) {
	name := c.File.Name
	if name == "" {
		name = "file"
	}
	return session.Text(fmt.Sprintf("[%s]\n%s", name, text)), fmt.Sprintf("the file %s is sent as text", name)
}

// named returns a line that describes a block, to be sent in its place.
func named(c *session.Content, why string) (session.Content, string) {
	what := string(c.Type)
	if c.File != nil && c.File.Name != "" {
		what += " " + c.File.Name
	}
	s := c.Source()
	what = fmt.Sprintf("%s (%s, %d bytes)%s%s", what, s.MediaType, sizeOf(s), notShown, why)
	return session.Text("[" + what + "]"), what
}

const notShown = " is not shown: "

// IsLost reports whether a note says that the model gets nothing of a block but its name.
func IsLost(note string) bool { return strings.Contains(note, notShown) }
