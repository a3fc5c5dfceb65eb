package keyed

import (
	"errors"
	"fmt"
	"os"
)

// RefusedError is how Save and Close report a message that was not recorded and never will
// be: its role is unknown, it is too large, or its arguments are not JSON. It is reported
// once. Add and Replace return the reason itself.
//
// It never matches os.ErrInvalid, which from Save means that the key is invalid.
type RefusedError struct {
	Key string
	Err error // why
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("session %.80q: not recorded: %v", e.Key, e.Err)
}

// Unwrap returns the reason, unless that would make the key look invalid.
func (e *RefusedError) Unwrap() error {
	if errors.Is(e.Err, os.ErrInvalid) {
		return nil
	}
	return e.Err
}

// refusal is the error of an append that would fail on every retry.
type refusal struct{ error }

func (r refusal) Unwrap() error { return r.error }

// isRefusal reports whether an error is about something that will never be written. After
// any other error, later calls try again.
func isRefusal(err error) bool {
	var never refusal
	return errors.As(err, &never)
}

// refuse records a refusal for Save to report.
func (c *chat) refuse(err error) {
	c.manager.opts.Logger.Warn("message not recorded", "key", c.key, "error", err)
	c.refused = append(c.refused, &RefusedError{c.key, err})
}

// keepRefusal is for callers that cannot return an error: it keeps a refusal for Save. A
// change that could not be written yet needs no note, because it is pending.
func (c *chat) keepRefusal(err error) {
	if isRefusal(err) {
		c.refuse(err)
	}
}
