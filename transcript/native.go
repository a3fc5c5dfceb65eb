package transcript

import (
	"context"
	"errors"
)

// NativeID returns the id that the first conversation of a file has in its program. It
// reads no further than that. A format that is nil is ErrInvalid.
func NativeID(ctx context.Context, format *Format, f *File) (string, error) {
	if f == nil {
		return "", errMissing("read", "a file")
	}
	if err := format.check("read", f.Path, canRead); err != nil {
		return "", err
	}
	to := &firstOnly{}
	if err := format.Read(ctx, f, to); err != nil && !errors.Is(err, errEnough) {
		return "", err
	}
	return to.id, nil
}

var errEnough = errors.New("the conversation is known")

// firstOnly is a sink that wants to know the first conversation.
type firstOnly struct{ id string }

func (s *firstOnly) Begin(c Conversation) error {
	s.id = c.ID
	return errEnough
}

func (s *firstOnly) Add(Record) error                  { return nil }
func (s *firstOnly) Keep(string, []byte) (Span, error) { return Span{}, nil }
func (s *firstOnly) Count(string, string, int)         {}
func (s *firstOnly) Problem(Problem)                   {}
