package coppice

import (
	"fmt"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/index"
)

// ParseAge reads an age as a person writes it: 30d, 2w, 12h, 1d12h. Anything else is
// session.ErrInvalid.
func ParseAge(text string) (time.Duration, error) {
	age, ok := index.ParseAge(text)
	if !ok {
		return 0, invalid("it must be a time such as 30d, 2w, 12h or 1d12h")
	}
	return age, nil
}

// ageText writes an age as a person would.
func ageText(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d >= day && d%(7*day) == 0:
		return fmt.Sprintf("%dw", d/(7*day))
	case d >= day && d%day == 0:
		return fmt.Sprintf("%dd", d/day)
	}
	return strings.TrimSuffix(strings.TrimSuffix(d.String(), "0s"), "0m")
}
