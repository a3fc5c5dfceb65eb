package clean

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf16"
)

// minSpelling is the length from which other spellings of a secret are searched for.
// Shorter ones are too likely to be something else.
const minSpelling = 8

// maxNesting is how many levels of JSON within JSON are considered.
const maxNesting = 3

// spellings returns the ways in which a secret may be written, itself first. It may
// have been found in text that escapes it and occur elsewhere unescaped. Or the other
// way round: escaped as various JSON encoders do it, and again in JSON within JSON. Or it
// is percent-encoded, as in a URL, or in base64, by itself or as a part of something.
func spellings(secret string) []string {
	forms := []string{secret}
	add := func(form string) {
		if len(form) >= minSpelling && !slices.Contains(forms, form) {
			forms = append(forms, form)
		}
	}
	for form, level := secret, 0; strings.Contains(form, `\`) && level < maxNesting; level++ {
		meant := unescaped(form)
		add(meant)
		if json.Unmarshal([]byte(`"`+form+`"`), &meant) == nil {
			add(meant)
		}
		form = meant
	}
	meanings := slices.Clone(forms)
	for _, form := range meanings {
		for _, nested := range []string{
			escaped(form, ""), escaped(form, "<>&"), escapedASCII(form, ""), escapedASCII(form, "<>&"), escaped(form, "/"),
		} {
			for range maxNesting {
				add(nested)
				nested = escaped(nested, "")
			}
		}
	}
	for _, form := range meanings {
		for _, encoded := range []string{url.QueryEscape(form), url.PathEscape(form)} {
			add(encoded)
			add(lowerPercent().ReplaceAllStringFunc(encoded, strings.ToLower))
		}
		for before := range 3 {
			add(inBase64(base64.RawStdEncoding, form, before))
			add(inBase64(base64.RawURLEncoding, form, before))
		}
	}
	return forms
}

// lowerPercent matches what is percent-encoded: some programs write it in lower case.
var lowerPercent = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`%[0-9A-F]{2}`) })

// inBase64 returns the base64 digits of a text with a number of bytes before it. The
// digits at its ends, which also depend on what is around it, are left out.
func inBase64(encoding *base64.Encoding, text string, before int) string {
	digits := encoding.EncodeToString(append(make([]byte, before), text...))
	return digits[(before*8+5)/6 : (before+len(text))*8/6]
}

// unescaped removes the backslashes of a shell.
func unescaped(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// escaped returns a text as it appears in a JSON string. also are characters that some
// encoders escape although they need not: < > & in Go, / in PHP.
func escaped(s, also string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '"' || r == '\\' || r == '/' && strings.Contains(also, "/"):
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < ' ' || strings.ContainsRune(also, r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// escapedASCII is escaped with nothing but ASCII left, as Python does it.
func escapedASCII(s, also string) string {
	var b strings.Builder
	for _, r := range escaped(s, also) {
		if r < 0x80 {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.String()
}
