package mcp

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/agent/internal/media"
	"github.com/coppice-dev/coppice/session"
)

// maxFile is how many bytes a recording or a file in a result may have.
const maxFile = 10 << 20

// result turns a server's answer into what a session keeps.
func (s *Server) result(from *sdk.CallToolResult) agent.Result {
	var parts []session.Content
	for _, c := range from.Content {
		parts = append(parts, contents(c)...)
	}
	if from.StructuredContent != nil && session.TextOf(parts) == "" {
		// Servers give the same as text, for clients that know no better. This one did not.
		if raw, err := json.Marshal(from.StructuredContent); err == nil {
			parts = append(parts, session.Text(string(raw)))
		}
	}
	result := agent.Result{Text: session.TextOf(parts), IsError: from.IsError}
	for _, p := range parts {
		if p.Text == nil {
			result.Parts = parts
		}
	}
	if result.Text == "" && result.Parts == nil {
		result.Text = "[no output]"
	}
	return result
}

// contents makes content of a piece of an answer: none of an empty text, which no
// provider takes.
func contents(c sdk.Content) []session.Content {
	switch c := c.(type) {
	case *sdk.TextContent:
		return text(c.Text)
	case *sdk.ImageContent:
		return bytesOf("image", "", c.MIMEType, c.Data)
	case *sdk.AudioContent:
		return bytesOf("audio", "", c.MIMEType, c.Data)
	case *sdk.EmbeddedResource:
		switch {
		case c.Resource == nil:
			return nil
		case c.Resource.Blob != nil:
			kind, _, _ := strings.Cut(c.Resource.MIMEType, "/")
			return bytesOf(kind, c.Resource.URI, c.Resource.MIMEType, c.Resource.Blob)
		}
		return text(fmt.Sprintf("[%s]\n%s", c.Resource.URI, c.Resource.Text))
	case *sdk.ResourceLink:
		return text(linkText(c))
	}
	return text(fmt.Sprintf("[content of a kind that is not known: %T]", c))
}

func text(s string) []session.Content {
	if s = strings.ToValidUTF8(s, "\uFFFD"); strings.TrimSpace(s) == "" {
		return nil
	}
	return []session.Content{session.Text(s)}
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

// bytesOf makes content of bytes. What cannot be shown is a line that says so: a model
// that gets nothing at all believes that there is nothing.
func bytesOf(kind, name, mediaType string, data []byte) []session.Content {
	about := strings.TrimSpace(fmt.Sprintf("%s %s (%s, %d bytes)", kind, name, mediaType, len(data)))
	if kind == "image" {
		shown, err := media.Image(data)
		if err != nil {
			return text(fmt.Sprintf("[%s is left out: %v]", about, err))
		}
		return []session.Content{shown}
	}
	if len(data) > maxFile || len(data) == 0 {
		return text(fmt.Sprintf("[%s is left out: it may have up to %d bytes]", about, maxFile))
	}
	source := &session.Source{Type: "base64", MediaType: mediaType, Data: base64.StdEncoding.EncodeToString(data)}
	if kind == "audio" {
		return []session.Content{{Type: session.ContentTypeAudio, Audio: &session.AudioContent{Source: source}}}
	}
	return append(text("["+about+"]"), session.File(name, source))
}
