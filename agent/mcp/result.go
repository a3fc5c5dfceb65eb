package mcp

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/provider/media"
	"github.com/coppice-dev/coppice/session"
)

// maxFile is how many bytes the recordings and files in a result may have together.
const maxFile = 10 << 20

// result turns a server's answer into what a session keeps. Texts that follow each other
// become one: a server may send any number of them.
func (s *Server) result(from *sdk.CallToolResult) agent.Result {
	var parts []session.Content
	var texts []string
	flush := func() {
		if len(texts) > 0 {
			parts, texts = append(parts, session.Text(strings.Join(texts, "\n"))), nil
		}
	}
	room := maxFile
	for _, c := range from.Content {
		text, data := contents(c, &room)
		if text = strings.ToValidUTF8(text, "\uFFFD"); strings.TrimSpace(text) != "" { // no provider takes an empty one
			texts = append(texts, text)
		}
		if data != nil {
			flush()
			parts = append(parts, *data)
		}
	}
	flush()
	if from.StructuredContent != nil && session.TextOf(parts) == "" {
		// Most servers also give the same as text, for older clients. This one did not.
		if raw, err := json.Marshal(from.StructuredContent); err == nil {
			parts = append(parts, session.Text(string(raw)))
		}
	}
	result := agent.Result{Text: session.TextOf(parts), IsError: from.IsError}
	if slices.ContainsFunc(parts, func(p session.Content) bool { return p.Text == nil }) {
		result.Parts = parts
	}
	if result.Text == "" && result.Parts == nil {
		result.Text = "[no output]"
	}
	return result
}

// contents returns a piece of an answer as text, as data, or both. room is how many bytes
// of files the result may still have.
func contents(c sdk.Content, room *int) (string, *session.Content) {
	switch c := c.(type) {
	case *sdk.TextContent:
		return c.Text, nil
	case *sdk.ImageContent:
		return bytesOf("image", c.MIMEType, c.Data, room)
	case *sdk.AudioContent:
		return bytesOf("audio", c.MIMEType, c.Data, room)
	case *sdk.EmbeddedResource:
		switch {
		case c.Resource == nil:
			return "", nil
		case c.Resource.Blob != nil:
			return bytesOf(c.Resource.URI, c.Resource.MIMEType, c.Resource.Blob, room)
		}
		return fmt.Sprintf("[%s]\n%s", c.Resource.URI, c.Resource.Text), nil
	case *sdk.ResourceLink:
		return linkText(c), nil
	}
	return fmt.Sprintf("[content of an unknown kind: %T]", c), nil
}

func linkText(c *sdk.ResourceLink) string {
	var about []string
	for _, s := range []string{c.Title, c.Description, c.MIMEType} {
		if s != "" {
			about = append(about, s)
		}
	}
	return strings.TrimSpace(fmt.Sprintf("[%s: %s] %s", c.Name, c.URI, strings.Join(about, ", ")))
}

// bytesOf returns bytes as content, and a line that says what they are: a provider may leave
// the bytes out, and a model that gets nothing at all believes that there is nothing. If the
// server does not name the type, the bytes decide.
func bytesOf(name, mediaType string, data []byte, room *int) (string, *session.Content) {
	if mediaType == "" {
		mediaType = http.DetectContentType(data)
	}
	about := fmt.Sprintf("%s (%s, %d bytes)", name, mediaType, len(data))
	kind, _, _ := strings.Cut(mediaType, "/")
	switch {
	case kind == "image" || name == "image":
		shown, err := media.Image(data)
		if err != nil {
			return fmt.Sprintf("[%s is left out: %v]", about, err), nil
		}
		return "", &shown
	case kind == "text" && utf8.Valid(data):
		return fmt.Sprintf("[%s]\n%s", name, data), nil
	case len(data) > *room || len(data) == 0:
		return fmt.Sprintf("[%s is left out: the files of a result may have up to %d bytes]", about, maxFile), nil
	}
	*room -= len(data)
	source := &session.Source{Type: "base64", MediaType: mediaType, Data: base64.StdEncoding.EncodeToString(data)}
	block := session.File(name, source)
	if kind == "audio" {
		block = session.Content{Type: session.ContentTypeAudio, Audio: &session.AudioContent{Source: source}}
	}
	return "[" + about + "]", &block
}
