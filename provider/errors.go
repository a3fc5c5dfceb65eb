package provider

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/session"
)

// Why a request was not answered. Errors of models match one of them, or
// session.ErrInvalid if the request itself is wrong.
var (
	// ErrOverflow means that the conversation does not fit the model's window.
	ErrOverflow = errors.New("the conversation is too long for the model")
	// ErrLimited means that the provider wants fewer requests.
	ErrLimited = errors.New("rate limited by the provider")
	// ErrDenied means that the key is missing or wrong, or may not do this.
	ErrDenied = errors.New("the provider denies access")
	// ErrUnavailable means that the provider cannot be reached or cannot answer at
	// the moment.
	ErrUnavailable = errors.New("the provider is not available")
	// ErrBroken means that the answer broke off, or cannot be understood.
	ErrBroken = errors.New("the answer broke off")
)

// Error is why a provider did not answer.
type Error struct {
	Kind     error  // one of the errors above, or session.ErrInvalid
	Provider string // "anthropic"
	Status   int    // of HTTP; 0 if there was none
	Code     string // the provider's own word for it, or ""
	Message  string // what the provider says, or ""
	Param    string // the part of the request that the provider names, or ""
	// Dropped is the parameter that the model does not take, if the request was refused for
	// one: later requests to this model leave it out, so the same request may be sent again.
	Dropped string
	// RetryAfter is how long the provider asks to wait; 0 if it does not say.
	RetryAfter time.Duration
	Err        error // the cause, or nil
	Hint       string
}

// maxShown is how much of a provider's words the text of an error repeats, in bytes.
const maxShown = 500

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Provider)
	if e.Kind != nil {
		fmt.Fprintf(&b, ": %s", e.Kind)
	}
	if e.Status != 0 {
		fmt.Fprintf(&b, " (status %d)", e.Status)
	}
	if e.RetryAfter > 0 {
		b.WriteString(": it asks to wait " + roughly(e.RetryAfter))
	}
	text := cmp.Or(e.Message, e.Code)
	if text == "" && e.Err != nil {
		text = e.Err.Error()
	}
	if len(text) > maxShown {
		text = strings.ToValidUTF8(text[:maxShown], "") + "…"
	}
	if text != "" {
		b.WriteString(": " + text)
	}
	return b.String()
}

// roughly returns a duration in words that a person can take in: "20ms", "1h30m",
// "73 days".
func roughly(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d < time.Second:
		return d.String()
	case d >= 2*day:
		return fmt.Sprintf("%d days", d/day)
	}
	text := d.Round(time.Second).String()
	for _, end := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, end) {
			text = text[:len(text)-2]
		}
	}
	return text
}

// Unwrap returns the kind and the cause.
func (e *Error) Unwrap() []error {
	all := make([]error, 0, 2)
	for _, err := range []error{e.Kind, e.Err} {
		if err != nil {
			all = append(all, err)
		}
	}
	return all
}

// KindOf names the kind of an error in one word, for logs and measurements:
// "overflow", "limited", "denied", "unavailable", "broken", "invalid", "cancelled" or
// "other".
func KindOf(err error) string {
	for _, k := range []struct {
		kind error
		name string
	}{
		{context.Canceled, "cancelled"},
		{context.DeadlineExceeded, "cancelled"},
		{ErrOverflow, "overflow"},
		{ErrLimited, "limited"},
		{ErrDenied, "denied"},
		{ErrUnavailable, "unavailable"},
		{ErrBroken, "broken"},
		{session.ErrInvalid, "invalid"},
	} {
		if errors.Is(err, k.kind) {
			return k.name
		}
	}
	return "other"
}
