package wire

import (
	"strings"

	"github.com/coppice-dev/coppice/session"
)

// Media returns a block with a source: an image, a recording or a file, as its
// media type says.
func Media(s *session.Source) session.Content {
	switch {
	case strings.HasPrefix(s.MediaType, "image/"):
		return session.Content{Type: session.ContentTypeImage, Image: &session.ImageContent{Source: s}}
	case strings.HasPrefix(s.MediaType, "audio/"):
		return session.Content{Type: session.ContentTypeAudio, Audio: &session.AudioContent{Source: s}}
	}
	return File("", s)
}

// File returns a block with a file.
func File(name string, s *session.Source) session.Content {
	return session.Content{Type: session.ContentTypeFile, File: &session.FileContent{Name: name, Source: s}}
}

// Image returns a block with an image.
func Image(s *session.Source) session.Content {
	return session.Content{Type: session.ContentTypeImage, Image: &session.ImageContent{Source: s}}
}

// Thinking returns a block with what a model thought.
func Thinking(text, signature string) session.Content {
	return session.Content{Type: session.ContentTypeThinking, Thinking: &session.ThinkingContent{Content: text, Signature: signature}}
}
