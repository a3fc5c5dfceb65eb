package wire

import (
	"errors"
	"fmt"
	"io"

	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/session"
)

// partialResponse is a response that arrives in events.
type partialResponse interface {
	provider.Stream
	Body() []byte
}

// Fold reads a stream of events and returns the response that has grown. Without one, the
// error says that there is none.
func Fold(r io.Reader, s partialResponse, what, none string) ([]byte, error) {
	err := Events(r, func(data []byte) error {
		_, err := s.Add(data)
		return err
	})
	body := s.Body()
	if err == nil && body == nil {
		err = errors.New(none)
	}
	if err != nil {
		return nil, fmt.Errorf("%s stream: %w", what, err)
	}
	return body, nil
}

// MessageSoFar returns the message of a response, or nil if there is no response yet.
func MessageSoFar(body []byte, decode func([]byte) (*provider.Body, error)) (*session.MessageEntry, error) {
	if body == nil {
		return nil, nil
	}
	b, err := decode(body)
	if err != nil {
		return nil, err
	}
	return b.Entries[0].Message, nil
}

// Piece returns the event of a text that has grown, if it has.
func Piece(kind provider.EventType, block int, text string) []provider.Event {
	if text == "" {
		return nil
	}
	return []provider.Event{{Type: kind, Block: block, Text: text}}
}

// Spent returns the event of a usage, if it is known.
func Spent(u *session.Usage) []provider.Event {
	if u == nil {
		return nil
	}
	return []provider.Event{{Type: provider.EventUsage, Usage: u}}
}
