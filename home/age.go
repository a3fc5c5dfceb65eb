package home

import (
	"fmt"
	"strconv"
	"time"

	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/session"
)

// Age is how long ago something was. In JSON it is written as people write it: see ParseAge.
type Age time.Duration

// String writes an age as a person does: 2w, 12h.
func (a Age) String() string { return ageText(time.Duration(a)) }

// MarshalText implements encoding.TextMarshaler.
func (a Age) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (a *Age) UnmarshalText(text []byte) error {
	age, err := ParseAge(string(text))
	*a = Age(age)
	return err
}

// anAge says how to write an age.
const anAge = "an age such as 30d, 2w, 12h, 1d12h or 30min (m could be minutes or months)"

// ParseAge reads an age as a person writes it: 30d, 2w, 12h, 1d12h, 30min. Anything else is
// session.ErrInvalid.
func ParseAge(text string) (time.Duration, error) {
	age, ok := index.ParseAge(text)
	if !ok {
		return 0, session.Invalidf("it must be " + anAge)
	}
	return age, nil
}

// ParseTime reads the time for a field of a request as a person writes it: a day, a moment, or
// an age. "" is the zero time. Anything else is a *FieldError.
func ParseTime(field, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	at, ok := index.ParseTime(text, now)
	if !ok {
		return at, wrong(field, "{"+field+"}: %q is not a time; give 2026-03-01, 2026-03-01T15:04 or "+anAge, text)
	}
	return at, nil
}

// ageText writes an age as a person would, and as ParseAge reads it.
func ageText(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d >= day && d%(7*day) == 0:
		return fmt.Sprintf("%dw", d/(7*day))
	case d >= day && d%day == 0:
		return fmt.Sprintf("%dd", d/day)
	}
	text := ""
	if hours := d / time.Hour; hours > 0 {
		text = fmt.Sprintf("%dh", hours)
	}
	if minutes := d % time.Hour / time.Minute; minutes > 0 {
		text += fmt.Sprintf("%dmin", minutes)
	}
	if seconds := d % time.Minute; seconds > 0 || text == "" {
		text += strconv.FormatFloat(seconds.Seconds(), 'f', -1, 64) + "s"
	}
	return text
}
