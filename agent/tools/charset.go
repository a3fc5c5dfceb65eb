package tools

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"
)

// western are the characters 0x80 to 0x9f of windows-1252. All others have the numbers of Unicode.
// Browsers read ISO-8859-1, which has nothing there, in the same way.
var western = [32]rune{
	'€', 0x81, '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', 0x8d, 'Ž', 0x8f,
	0x90, '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', 0x9d, 'ž', 'Ÿ',
}

// metaCharset finds the encoding that a page declares.
var metaCharset = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)<meta\s[^>]*charset\s*=\s*["']?\s*([\w.:-]+)`)
})

// decodePage returns the text of a page. charset is what the server calls its characters, or "".
// Nearly all pages are in UTF-8, and most others in a western character set; the tables of the
// rest would be larger than everything else that fetch needs.
func decodePage(page []byte, charset string) (string, error) {
	rest, marked := bytes.CutPrefix(page, []byte("\uFEFF"))
	switch {
	case marked:
		return strings.ToValidUTF8(string(rest), "\uFFFD"), nil
	case bytes.HasPrefix(page, []byte("\xff\xfe")), bytes.HasPrefix(page, []byte("\xfe\xff")):
		charset = "utf-16"
	}
	if charset == "" {
		const where = 1024 // a browser looks no further either
		if said := metaCharset().FindSubmatch(page[:min(where, len(page))]); said != nil {
			charset = string(said[1])
		}
	}
	switch strings.ToLower(charset) {
	case "utf-8", "utf8":
		return strings.ToValidUTF8(string(page), "\uFFFD"), nil
	case "windows-1252", "cp1252", "iso-8859-1", "iso8859-1", "latin1", "us-ascii", "ascii":
		return decodeWestern(page), nil
	case "":
		if utf8.Valid(page) {
			return strings.ToValidUTF8(string(page), "\uFFFD"), nil
		}
		return decodeWestern(page), nil
	}
	return "", fmt.Errorf("the page is in %q, which fetch cannot read: it reads UTF-8 and windows-1252; look for another version of the page", charset)
}

// withoutTorn leaves out a character at the end that was cut off in its middle.
func withoutTorn(text []byte) []byte {
	for i := 1; i < utf8.UTFMax && i <= len(text); i++ {
		if last := text[len(text)-i:]; utf8.RuneStart(last[0]) {
			if !utf8.FullRune(last) {
				return text[:len(text)-i]
			}
			break
		}
	}
	return text
}

func decodeWestern(text []byte) string {
	var b strings.Builder
	b.Grow(len(text))
	for _, c := range text {
		if c >= 0x80 && c < 0xa0 {
			b.WriteRune(western[c-0x80])
		} else {
			b.WriteRune(rune(c))
		}
	}
	return b.String()
}
