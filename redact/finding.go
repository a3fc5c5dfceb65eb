package redact

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"strings"
)

// Finding is a secret that was found. It does not contain the secret itself, so it can be
// printed and logged.
type Finding struct {
	// Kind says what it is, in lower-case words joined by dashes: "github-token".
	Kind string `json:"kind"`
	// Path is where the string that has it is in a JSON value, such as
	// message.content[0].text.content; "" in plain text, and for a value that is a string
	// itself. Very long names and very deep nesting are abbreviated with an ellipsis.
	Path string `json:"path,omitempty"`
	// Start and End are its bytes: in the text, or in the decoded string at Path.
	Start int `json:"start"`
	End   int `json:"end"`
	// Same is SameAs of the secret: equal for findings of the same secret.
	Same uint64 `json:"-"`
	// Preview shows a person which secret is meant without revealing it: its public prefix
	// or what comes before it, and its length.
	Preview string `json:"preview"`
}

// sameSeed keeps Finding.Same from helping to guess a secret: with a hash that anyone can
// compute, a short password could be looked up.
var sameSeed = maphash.MakeSeed()

// SameAs returns a number that is equal for equal secrets in this process, and says nothing
// else about them: another process gets other numbers.
func SameAs(secret []byte) uint64 { return maphash.Bytes(sameSeed, secret) }

// Replacement returns the text that replaces a secret.
func Replacement(kind string) string { return mark + kind + "]" }

// IsMarked reports whether a text has a replacement in it: it may not be what it was.
func IsMarked(text []byte) bool { return bytes.Contains(text, []byte(mark)) }

// mark begins every replacement.
const mark = "[REDACTED:"

// maxShown limits how much a preview shows of what comes before a secret.
const maxShown = 48

// preview returns a Finding's Preview. shown must not be part of the secret, but it comes
// from the same text and may repeat it.
func preview(shown string, secret []byte) string {
	if len(shown) > maxShown {
		shown = "…" + strings.ToValidUTF8(shown[len(shown)-maxShown:], "")
	}
	if len(secret) <= len(shown) && strings.Contains(shown, string(secret)) {
		shown = ""
	}
	return fmt.Sprintf("%s… (%d characters)", shown, len(secret))
}

// replacement returns the text that replaces a secret of n bytes.
func (s *Scanner) replacement(kind string, n int) string {
	full := Replacement(kind)
	switch {
	case !s.SameLength:
		return full
	case len(full) > n:
		return strings.Repeat("*", n)
	}
	return full + strings.Repeat("*", n-len(full))
}

// replace returns the text with the findings replaced. They are in order and do
// not overlap.
func (s *Scanner) replace(text []byte, found []Finding) []byte {
	out := make([]byte, 0, len(text))
	done := 0
	for _, f := range found {
		out = append(out, text[done:f.Start]...)
		out = append(out, s.replacement(f.Kind, f.End-f.Start)...)
		done = f.End
	}
	return append(out, text[done:]...)
}
